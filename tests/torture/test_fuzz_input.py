"""The fuzzer finds what it is there to find, and finds nothing in a few hundred inputs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz_input import READ, REFUSED, outcome_of
from valid_inputs import CASES

import clusterea
from clusterea.errors import InputError


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_damaged_is_read(case: str, tmp_path: Path) -> None:
    files, arguments, options = CASES[case]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert outcome_of(clusterea.load, tmp_path, arguments, options) == READ


def raising(error: BaseException) -> Callable[..., object]:
    def load(*_: object, **__: object) -> object:
        raise error

    return load


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InputError("one line"), REFUSED),
        (InputError("two\nlines"), "a message of 2 lines"),
        (InputError("x " * 500 + "x"), "a message of 1001 characters"),
        (InputError("red \x1b[31m"), "a message with control characters"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "wrong"), "Traceback"),
        (MemoryError(), "Traceback"),
        (SystemExit(1), "Traceback"),
    ],
)
def test_outcomes(error: BaseException, outcome: str, tmp_path: Path) -> None:
    assert outcome_of(raising(error), tmp_path, ["a"], {"links": "b"}).startswith(outcome)


def test_what_is_no_benchmark(tmp_path: Path) -> None:
    assert outcome_of(lambda *_, **__: None, tmp_path, [], {}) == "got NoneType"


def test_a_few_hundred_inputs() -> None:
    program = Path(__file__).with_name("fuzz_input.py")
    ran = subprocess.run(
        [sys.executable, program, "--inputs", "400", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    last = ran.stdout.splitlines()[-1]
    assert last.startswith("400 inputs: ")
    assert last.endswith(" 0 failed")
