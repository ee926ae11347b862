"""One tiny generated pair, and runs on it: what the tests of the command line share."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from clusterea.cli import main
from clusterea.data.synthetic import SHAPES, generate, write_openea
from clusterea.types import Pair
from clusterea.types.alignment import NOT_CALIBRATED
from conftest import Ran

Command = Callable[..., Ran]
TINY = ["training.epochs=2", "training.dimension=16"]
# One encoder that is trained, and mini-batches.
PAPER_SETTINGS = [*TINY, "sampling.classifier=softmax", "sampling.kmeans_starts=3"]
# Two encoders, two fits that hold out 50 of 106 seeds each, and two rounds, of two folds each.
ROUNDS_SETTINGS = [
    *(*TINY, "propagation.dimension=32", "propagation.features=48"),
    *("fusion.candidates=20", "fusion.sinkhorn_rounds=20", "matching.held_out=0.5"),
    *("self_training.rounds=2", "self_training.threshold=0.1", "self_training.least_gain=0"),
    *("self_training.epochs=0", "self_training.few=1", "self_training.trained_rounds=1"),
]


def options(preset: str, settings: Sequence[str]) -> list[str]:
    """Of `clusterea align`."""
    changed = [word for setting in settings for word in ("--set", setting)]
    return ["--preset", preset, *changed, "--device", "cpu"]


PAPER = [*options("paper", PAPER_SETTINGS), "--samplers", "cmcs"]
ROUNDS = [*options("default", ROUNDS_SETTINGS), "--seeds-share", "0.5"]
SHARE = ["--seeds-share", "0.3"]
# `confidence` in run.json and with --json, of a run that held out nothing.
ONLY_SCORED = {"calibrated": False, "examples": 0, "measure": "score", "note": NOT_CALIBRATED}
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


def write_pair(folder: Path) -> Path:
    """300 and 250 entities as an OpenEA folder."""
    shape = replace(
        SHAPES["demo"], entities=Pair(300, 250), triples=Pair(1500, 1200), relations=Pair(9, 7)
    )
    write_openea(generate(shape, seed=0), folder)
    return folder


def command(*arguments: str | Path) -> Ran:
    """As the fixture `clusterea_command`, for fixtures that outlive a test."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["clusterea", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as exit_,
    ):
        main()
    return Ran(int(exit_.value.code or 0), out.getvalue(), err.getvalue())


def aligned(pair: Path, run: str | Path, *more: str | Path, how: Sequence[str] = PAPER) -> Ran:
    """`clusterea align`, quickly."""
    ran = command("align", pair, "--out", run, *SHARE, *how, *more)
    assert ran.code == 0, ran.err
    return ran


def rows(path: Path) -> list[list[str]]:
    """The cells of a TSV file."""
    return [line.split("\t") for line in path.read_text().splitlines()]


def links_of(path: Path) -> set[tuple[str, str]]:
    """The pairs in a TSV file without a header."""
    return {(row[0], row[1]) for row in rows(path)}


def entities_of(triples: Path) -> set[str]:
    """Everything that some triple names."""
    return {row[column] for row in rows(triples) for column in (0, 2)}


def events(err: str) -> list[dict[str, Any]]:
    """What `--json` said; every line must parse."""
    return [json.loads(line) for line in err.splitlines()]


def reused(err: str) -> dict[str, bool]:
    """Of what `--json` said: which stages were there already."""
    return {event["stage"]: event["reused"] for event in events(err) if event["event"] == "end"}


def leftovers(run: Path) -> list[Path]:
    """Files and folders that somebody began and did not finish."""
    return list(run.rglob("*.part"))


def write_rdf(pair: Path, folder: Path) -> Pair[Path]:
    """The pair's graphs as N-Triples and Turtle, and its links as `links.nt`."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in ((1, "source.nt"), (2, "target.ttl")):
        triples = [
            " ".join(f"<{cell}>" for cell in row) for row in rows(pair / f"rel_triples_{number}")
        ]
        (folder / name).write_text("".join(f"{triple} .\n" for triple in triples))
    (folder / "links.nt").write_text(
        "".join(f"<{a}> <{SAME_AS}> <{b}> .\n" for a, b in rows(pair / "ent_links"))
    )
    return Pair(folder / "source.nt", folder / "target.ttl")
