"""What a person meets at the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import clusterea
from clusterea.cli import data_options
from clusterea.cli.export import FORMAT_NAMES as EXPORT_NAMES
from clusterea.cli.generate import DEFAULT_SHARES, SHAPE_NAMES
from clusterea.data import FORMATS
from clusterea.data.synthetic import SHAPES, LabelShape
from clusterea.workspace import EXPORTED
from conftest import Ran

Command = Callable[..., Ran]


def test_version(clusterea_command: Command) -> None:
    assert clusterea_command("--version").out == f"clusterea {clusterea.__version__}\n"


def test_help_names_every_command(clusterea_command: Command) -> None:
    ran = clusterea_command("--help")
    assert ran.code == 0
    for command in ("info", "generate", "datasets"):
        assert command in ran.out


@pytest.mark.parametrize("command", ["info", "generate", "datasets"])
def test_each_command_has_help(command: str, clusterea_command: Command) -> None:
    ran = clusterea_command(command, "--help")
    assert ran.code == 0
    assert f"clusterea {command}" in ran.out


@pytest.mark.parametrize("asked", [["--version"], ["--help"], ["align", "--help"]])
def test_help_does_not_wait_for_slow_libraries(asked: list[str]) -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'numpy', 'pyarrow', 'scipy', 'pandas', 'bokeh', 'pooch'):\n"
        "    sys.modules[name] = None\n"  # importing it now fails
        "from clusterea.entry import main\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_help_lists_what_there_is() -> None:
    """The lists are written again in the command line, which must not wait for slow libraries."""
    assert data_options.FORMAT_NAMES == FORMATS
    assert list(EXPORT_NAMES) == list(EXPORTED)
    assert list(SHAPE_NAMES) == list(SHAPES)
    shares = {name: str(share) for name, share in asdict(LabelShape()).items()}
    assert shares == DEFAULT_SHARES


def test_generate_then_info(tmp_path: Path, clusterea_command: Command) -> None:
    out = tmp_path / "pair"
    made = clusterea_command(
        "generate", out, "--entities", "300,250", "--relations", "12,9", "--common-share", "0.8"
    )
    assert made.code == 0, made.err
    assert f"Wrote {out}" in made.out
    seen = json.loads(clusterea_command("info", out, "--seeds-share", "0.3", "--json").out)
    source, target = seen["graphs"]["source"], seen["graphs"]["target"]
    assert (source["entities"], target["entities"]) == (300, 250)
    assert (source["relations"], target["relations"]) == (12, 9)
    demo = SHAPES["demo"]
    density = demo.triples.source / demo.entities.source
    assert source["triples"] == round(300 * density)  # as dense as the shape it is like
    assert seen["seeds"] + seen["test_links"] == 200
    assert seen["seeds"] == 60
    assert target["share_without_link"] == pytest.approx(0.2)


def test_generate_checks_all_controls_together(tmp_path: Path, clusterea_command: Command) -> None:
    small = ["--entities", "10", "--triples", "40", "--relations", "3"]
    ran = clusterea_command("generate", tmp_path / "pair", *small)
    assert ran.code == 0, ran.err


SMALL_PAIR = ["--entities", "200,150", "--relations", "9"]


@pytest.mark.parametrize(
    ("arguments", "shares"),
    [
        (["--labels"], "90.0% and 90.0%"),
        (["--missing-labels", "0.5"], "50.0% and 50.0%"),
        (["--ambiguous-labels", "0"], "90.0% and 90.0%"),
        (["--label-noise", "0", "--missing-labels", "0"], "100.0% and 100.0%"),
    ],
)
def test_generate_writes_labels(
    arguments: list[str], shares: str, tmp_path: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command("generate", tmp_path / "pair", *SMALL_PAIR, *arguments)
    assert ran.code == 0, ran.err
    assert f"labels for {shares} of entities" in ran.out
    assert ran.out.splitlines()[-1].startswith("Look at it: clusterea info")
    for number, entities, share in zip((1, 2), (200, 150), shares.split(" and "), strict=True):
        lines = (tmp_path / "pair" / f"labels_{number}").read_text().splitlines()
        assert len(lines) == entities * float(share.rstrip("%")) / 100


def test_generate_passes_the_noise_and_ambiguity_of_labels_on(
    tmp_path: Path, clusterea_command: Command
) -> None:
    def seen(name: str, ambiguous: str, noise: str) -> list[set[str]]:
        shares = ["--ambiguous-labels", ambiguous, "--label-noise", noise, "--missing-labels", "0"]
        ran = clusterea_command(
            "generate", tmp_path / name, *SMALL_PAIR, *shares, "--common-share", "1"
        )
        assert ran.code == 0, ran.err
        files = [tmp_path / name / f"labels_{number}" for number in (1, 2)]
        return [{row.split("\t")[1] for row in file.read_text().splitlines()} for file in files]

    source, target = seen("clean", "0", "0")
    assert len(source) == 200
    assert target < source
    noisy_source, noisy_target = seen("noisy", "0", "1")
    assert len(noisy_target & noisy_source) < 50
    assert len(seen("ambiguous", "1", "0")[0]) < 150


def test_generate_writes_no_labels_unless_asked(tmp_path: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("generate", tmp_path / "pair", *SMALL_PAIR)
    assert "labels for" not in ran.out
    assert not (tmp_path / "pair" / "labels_1").exists()


@pytest.mark.parametrize("place", ["file/pair", "/proc/pair"])
def test_generate_where_nothing_can_be_written(
    place: str, tmp_path: Path, clusterea_command: Command
) -> None:
    (tmp_path / "file").write_text("")
    ran = clusterea_command("generate", tmp_path / place)
    assert ran.code == 2
    assert "can't write" in ran.err
    assert "Traceback" not in ran.err


def test_info_shows_what_was_left_out(tmp_path: Path, clusterea_command: Command) -> None:
    (tmp_path / "rel_triples_1").write_text("a\tr\tb\na\tr\tb\n")
    (tmp_path / "rel_triples_2").write_text("x\ts\ty\n")
    (tmp_path / "ent_links").write_text("a\tx\nb\tnobody\n")
    ran = clusterea_command("info", tmp_path)
    assert ran.code == 0
    assert "Links: 1, all of them seeds; no test links." in ran.out
    assert "1 source repeated triples; 1 links with an entity in no triple." in ran.out
    assert "1 (50.0%)" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--like", "dmo"], "unknown shape 'dmo'; choose one of demo, .*Did you mean 'demo'"),
        (["--entities", "many"], "--entities must be one number, or two as SOURCE,TARGET. Got 'm"),
        (["--entities", "1,2,3"], "--entities must be one number, or two"),
        (["--seed", "-1"], r"--seed must be an int in \[0, inf\)"),
        (["--common-share", "1.5"], r"common_share must"),
        (["--entities", "100", "--triples", "10"], "triples must"),
        (["--missing-labels", "1.5"], r"missing labels must be a number in \[0, 1\]. Got 1.5 "),
        (["--ambiguous-labels", "-1"], r"ambiguous labels must be a number"),
        (["--label-noise", "nan"], r"label noise must be a number"),
    ],
)
def test_generate_refuses_and_writes_nothing(
    arguments: list[str], message: str, tmp_path: Path, clusterea_command: Command
) -> None:
    import re

    ran = clusterea_command("generate", tmp_path / "pair", *arguments)
    assert ran.code == 2
    assert re.search(message, ran.err), ran.err
    assert list(tmp_path.iterdir()) == []


def test_generate_leaves_a_full_folder_alone(tmp_path: Path, clusterea_command: Command) -> None:
    (tmp_path / "mine").write_text("precious")
    ran = clusterea_command("generate", tmp_path)
    assert ran.code == 2
    assert str(tmp_path) in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_datasets(
    tmp_path: Path, clusterea_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTEREA_CACHE", str(tmp_path))
    listed = clusterea_command("datasets", "list")
    assert "ids15k-en-fr" in listed.out
    unknown = clusterea_command("datasets", "fetch", "ids15k-en-rf")
    assert unknown.code == 2
    assert "Did you mean 'ids15k-en-fr'" in unknown.err
    offline = clusterea_command(
        "datasets", "fetch", "ids15k-en-fr", "--mirror", "http://127.0.0.1:9/openea.zip"
    )
    assert offline.code == 2
    assert "Traceback" not in offline.err
    assert "127.0.0.1:9" in offline.err


def test_nonsense_is_the_callers_fault(clusterea_command: Command) -> None:
    assert clusterea_command("inof").code == 2
    assert clusterea_command("info").code == 2


COMMANDS = (
    "align",
    "explain",
    "review",
    "export",
    "report",
    "info",
    "generate",
    "train",
    "sample",
    "match",
)


@pytest.mark.parametrize("command", [*COMMANDS, "suggest", "fuse", "evaluate", "datasets", ""])
def test_help_shows_flags_as_flags(command: str, clusterea_command: Command) -> None:
    shown = clusterea_command(*command.split(), "--help").out.lower()
    assert "--help" in shown
    assert "bool" not in shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_completion_in_bash(tmp_path: Path) -> None:
    def ran(script: str, **more: str) -> str:
        environment = {**os.environ, "HOME": str(tmp_path), "PYTHON": sys.executable, **more}
        done = subprocess.run(
            ["bash", "-c", f"{script}; exit $?"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "bash completion installed" in ran("$PYTHON -m clusterea --install-completion")
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert str(script) in (tmp_path / ".bashrc").read_text()
    assert "_CLUSTEREA_COMPLETE=complete_bash" in script.read_text()
    assert ran("$PYTHON -m clusterea --show-completion") == script.read_text() + "\n"
    asked = {"_CLUSTEREA_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    answer = ran("$PYTHON -m clusterea", **asked, COMP_WORDS="clusterea export --with")
    assert answer.split() == ["--with-unmatched"]


def test_info_does_not_round_to_all(tmp_path: Path, clusterea_command: Callable[..., Ran]) -> None:
    chain = "".join(f"e{number}\tnext\te{number + 1}\n" for number in range(3000))
    for name in ("one.tsv", "other.tsv"):
        (tmp_path / name).write_text(chain)
    (tmp_path / "links.tsv").write_text("e0\te0\n")
    ran = clusterea_command(
        "info", tmp_path / "one.tsv", tmp_path / "other.tsv", "--links", tmp_path / "links.tsv"
    )
    assert ran.out.count("3,000 (99.97%)") == 2, ran
