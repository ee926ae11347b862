"""Errors name options on the command line, and arguments in Python; the message is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clusterea
from clusterea.errors import DataError, InputError, as_arguments, names_arguments
from conftest import Ran


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("--seeds-share 0.01 of 9 links", "seeds_share=0.01 of 9 links"),
        ("--seeds-share must be a number", "seeds_share must be a number"),
        ("goes with --split=first or random", "goes with split='first' or random"),
        ("--links, --seeds and --test-links go", "links, seeds and test_links go"),
        ("(see `--test-links`)", "(see `test_links`)"),
        ("try --set sampling.max_batch=200, or", "try settings={'sampling.max_batch': 200}, or"),
        ("--set a.classifier=softmax.", "settings={'a.classifier': 'softmax'}."),
        ("--set must be FIELD=VALUE", "settings must be FIELD=VALUE"),
        ("another --out", "another run"),
        # A name or a path from the data is not an option.
        ("got '--seeds-share'", "got '--seeds-share'"),
        ("/a--b/x--y: expected -- and ---", "/a--b/x--y: expected -- and ---"),
    ],
)
def test_options_become_arguments(message: str, expected: str) -> None:
    assert as_arguments(message) == expected


def test_an_error_stays_what_it_was() -> None:
    @names_arguments
    def fails(kind: str) -> None:
        raise DataError("a.tsv", "give --format", line=3) if kind == "data" else KeyError("--kind")

    with pytest.raises(DataError, match="^a.tsv line 3: give format$") as caught:
        fails("data")
    assert (caught.value.path, caught.value.line) == (Path("a.tsv"), 3)
    with pytest.raises(KeyError, match="--kind"):
        fails("other")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rel_triples_1").write_text("a\tr\tb\nb\tr\tc\n")
    (tmp_path / "rel_triples_2").write_text("x\ts\ty\ny\ts\tz\n")
    (tmp_path / "ent_links").write_text("a\tx\nb\ty\n")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "arguments", "on_the_command_line", "in_python"),
    [
        (
            ["--seeds-share", "2"],
            {"seeds_share": 2.0},
            "--seeds-share must be a number in (0, 1]. Got 2.0 instead.",
            "seeds_share must be a number in (0, 1]. Got 2.0 instead.",
        ),
        (
            ["--fold", "3"],
            {"fold": 3},
            "--fold 3: this data has no folds (721_5fold).",
            "fold=3: this data has no folds (721_5fold).",
        ),
        (
            ["--split-seed", "1"],
            {"split_seed": 1},
            "--split-seed goes with --split=random, not with given.",
            "split_seed goes with split='random', not with given.",
        ),
        (
            ["--links", "x"],
            {"links": "x"},
            "--links, --seeds and --test-links go with two files, SOURCE and TARGET; "
            "a folder brings its own.",
            "links, seeds and test_links go with two files, source and target; "
            "a folder brings its own.",
        ),
    ],
)
def test_both_sides_of_one_message(
    folder: Path,
    clusterea_command: Callable[..., Ran],
    options: list[str],
    arguments: dict[str, Any],
    on_the_command_line: str,
    in_python: str,
) -> None:
    ran = clusterea_command("info", folder, *options)
    assert (ran.code, ran.err) == (2, f"error: {on_the_command_line}\n")
    with pytest.raises(InputError) as caught:
        clusterea.load(folder, **arguments)
    assert str(caught.value) == in_python


def test_so_do_align_and_fuse(folder: Path) -> None:
    benchmark = clusterea.load(folder)
    for wrong, message in (
        ({"device": "tpu"}, "^device must be auto, cpu or cuda"),
        ({"settings": ["epochs"]}, "^settings must be FIELD=VALUE"),
        ({"model": ","}, "^model must name at least one encoder"),
    ):
        with pytest.raises(InputError, match=message):
            clusterea.align(benchmark, preset="fast", **wrong)
    with pytest.raises(
        InputError, match="^there is no known pair .* Give pairs that are known with links"
    ):
        clusterea.align([("a", "r", "b")], [("x", "s", "y")])
    with pytest.raises(InputError, match="^device must be auto"):
        clusterea.fuse(np.eye(3), np.eye(3), device="tpu")


def test_a_word_without_end_is_cut() -> None:
    """An argument of a command may be as long as the shell allows."""
    word = "x" * 100_000
    assert len(str(InputError(f"unknown preset '{word}'; choose one of a, b."))) < 300
    assert len(str(DataError(word, "expected a file, but there is none."))) < 300
    path = "/long/but/possible/" + "folder/" * 60
    assert path in str(DataError(path, "expected a file, but there is none."))
