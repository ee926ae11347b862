"""Ctrl-C and SIGTERM, at moments that are hard to hit by hand."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusterea.data.synthetic import SHAPES, generate, write_openea

# Sends the process a signal as soon as it looks for a module, then runs the command line.
WHILE_IMPORTING = """
import os, sys
module, number, *arguments = sys.argv[1:]
class Signals:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))
sys.meta_path.insert(0, Signals())
sys.argv = ["clusterea", *arguments]
from clusterea.entry import main
main()
"""
# Python can't raise what a finalizer raises: it prints it and goes on.
IN_A_FINALIZER = """
import os, signal, sys
import clusterea.cli, clusterea.entry
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
def run():
    Finalized()
    print("went on")
clusterea.cli.main = run
clusterea.entry.main()
"""
AT_THE_END = """
import os, signal, sys
import clusterea.cli, clusterea.entry
clusterea.cli.main = lambda: None
clusterea.entry.main()
os.kill(os.getpid(), signal.SIGINT)
"""
GOES_ON = " Run the same command again to continue."


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "pair"
    write_openea(generate(SHAPES["demo"], seed=0), folder)
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["clusterea.cli", "typer", "numpy", "pyarrow.lib"])
def test_while_it_starts(number: signal.Signals, module: str, pair: Path) -> None:
    ran = python(WHILE_IMPORTING, module, int(number), "info", pair)
    assert ran.returncode == 128 + number
    assert ran.stdout == ""
    assert ran.stderr == "Stopped.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["torch", "torch.nn", "clusterea.training"])
def test_while_a_command_imports_more(
    number: signal.Signals, module: str, pair: Path, tmp_path: Path
) -> None:
    asked = ["align", pair, "--out", tmp_path / "run", "--preset", "fast", "--quiet"]
    ran = python(WHILE_IMPORTING, module, int(number), *asked)
    assert ran.returncode == 128 + number
    assert ran.stdout == ""
    assert ran.stderr == f"Stopped.{GOES_ON}\n"
    assert not list(tmp_path.rglob("*.part"))


def test_as_json(pair: Path, tmp_path: Path) -> None:
    for module in ("numpy", "torch"):
        asked = ["align", pair, "--out", tmp_path / "run", "--json"]
        ran = python(WHILE_IMPORTING, module, int(signal.SIGTERM), *asked)
        assert (ran.returncode, ran.stderr) == (143, '{"event": "stopped"}\n')


def test_in_a_finalizer() -> None:
    ran = python(IN_A_FINALIZER)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "Stopped.\n")


def test_while_python_shuts_down() -> None:
    ran = python(AT_THE_END)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_signal_that_the_shell_ignores_stays_ignored() -> None:
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ran = python(ignored + IN_A_FINALIZER)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "went on\n", "")
