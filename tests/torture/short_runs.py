"""Runs that take a second or two: what the kill test and the corruption test share."""

from __future__ import annotations

import sys
from pathlib import Path

for _folder in ("cli", "."):  # so that a program finds what pytest finds
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / _folder))

from tiny_runs import PAPER_SETTINGS, ROUNDS, SHARE, options  # noqa: E402

_FAST = ["propagation.dimension=16", "propagation.features=32", "fusion.candidates=10"]
_SMALL = ["sampling.num_batches=3", "sampling.gcn_epochs=10"]
KINDS = {
    "fast": [*SHARE, *options("fast", _FAST)],
    "default": ROUNDS,  # few epochs, two encoders, held-out seeds, two rounds
    "paper": [*SHARE, *options("paper", [*PAPER_SETTINGS, *_SMALL]), "--samplers", "cmcs,iscs"],
}
LINKS = ("alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv", "candidates.parquet")


def align_words(kind: str, pair: Path, run: Path) -> list[str]:
    """The command that makes a run of a kind."""
    return ["align", str(pair), "--out", str(run), *KINDS[kind], "--quiet"]


def is_stored(path: Path) -> bool:
    """Whether a later command reads this file of a run."""
    if any(part.endswith(".part") for part in path.parts):  # a kill left it
        return False
    return path.name not in (*LINKS, "metrics.json", "report.html", ".lock")


def outputs(run: Path, names: tuple[str, ...]) -> dict[str, bytes | None]:
    """The bytes of these files of a run; None where there is none."""
    return {name: (run / name).read_bytes() if (run / name).is_file() else None for name in names}
