from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from clusterea.cli import main
from clusterea.workspace import read_tensors

if TYPE_CHECKING:
    from torch import Tensor

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # the suite was started with nohup or `&`
    signal.signal(signal.SIGINT, signal.default_int_handler)  # commands that it starts inherit this

LONGEST = "test_documents.py"  # runs the tutorial


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts with the longest test, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.path.name != LONGEST)


SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """The real datasets beside the project; a test that needs them is skipped without them."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real data at {SHARED_DATA}")
    return SHARED_DATA


WriteFiles = Callable[..., Path]


@pytest.fixture
def write_files(tmp_path: Path) -> WriteFiles:
    """Writes files of the given names and contents into one folder and returns it."""

    def write(contents: dict[str, str | bytes]) -> Path:
        for name, content in contents.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path

    return write


@dataclass(frozen=True)
class Ran:
    """What a command did: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str


def stored(path: Path) -> dict[str, Tensor]:
    """The tensors of an artifact."""
    return read_tensors(path, path.parent.name)


@pytest.fixture
def clusterea_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Runs the command line in this process, through its real entry point."""

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr("sys.argv", ["clusterea", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return Ran(int(exit_.value.code or 0), captured.out, captured.err)

    return run
