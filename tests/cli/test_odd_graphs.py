"""Graphs that nobody expects: a run ends with valid files, and says what structure can't tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import PAPER_SETTINGS, ROUNDS_SETTINGS, Command, options, rows

COUNT = 60
Edge = tuple[int, int, int]


def drawn(seed: int, first: int = 0, last: int = COUNT, relations: int = 3) -> list[Edge]:
    """Random edges between the entities from `first` to `last`, each of which has one."""
    draw = np.random.default_rng(seed)
    heads = np.concatenate([np.arange(first, last), draw.integers(first, last, 90)])
    tails, kinds = draw.integers(first, last, len(heads)), draw.integers(relations, size=len(heads))
    return list(zip(heads.tolist(), kinds.tolist(), tails.tolist(), strict=True))


CHAIN = [(i, 0, i + 1) for i in range(COUNT - 1)]
STAR = [(0, 0, i) for i in range(1, COUNT)]
HALVES = [*drawn(0, 0, 30), *drawn(1, 30, COUNT)]
EVERY_OTHER = range(0, COUNT, 2)
NO_PATH = "have no path to a seed, so structure says nothing about them."
TWINS = (
    "have exactly the neighbors of another entity, by the same relations, "
    "so structure can't tell them apart."
)
NOTHING_LEFT = "Every entity of a graph is in a seed, so there is nothing left to match."
# Source edges, target edges, seeds, and what is said.
ODD: dict[str, tuple[Sequence[Edge], Sequence[Edge], Sequence[int], str]] = {
    "a chain": (CHAIN, CHAIN, EVERY_OTHER, ""),
    "a star": (STAR, STAR, EVERY_OTHER, f"59 source and 59 target entities {TWINS}"),
    "no common structure": (
        drawn(2),
        drawn(3),
        range(40),
        "Structure says nothing about the other entities; check the links.",
    ),
    "one relation": (drawn(4, relations=1), drawn(4, relations=1), EVERY_OTHER, ""),
    "all links are seeds": (drawn(5), drawn(5), range(COUNT), NOTHING_LEFT),
    "one entity": ([(0, 0, 0)], [(0, 0, 0)], [0], NOTHING_LEFT),
    "two halves, seeds in one": (
        HALVES,
        HALVES,
        range(30),
        f"30 source and 30 target entities {NO_PATH}",
    ),
    "loops": (
        [(i, 0, i) for i in range(COUNT)],
        [(i, 0, i) for i in range(COUNT)],
        EVERY_OTHER,
        f"30 source and 30 target entities {NO_PATH}",
    ),
}
FAST = options("fast", ["propagation.dimension=32", "propagation.features=48"])
LONGER = "training.epochs=20"  # where there is something to learn, it must be learned
PAPER = [*options("paper", [*PAPER_SETTINGS, LONGER]), "--samplers", "cmcs,metis-cps"]
DEFAULT = options("default", [*ROUNDS_SETTINGS, LONGER])


def write(
    folder: Path, source: Sequence[Edge], target: Sequence[Edge], seeds: Sequence[int]
) -> None:
    for number, side, edges in ((1, "s", source), (2, "t", target)):
        lines = [f"{side}{head}\tr{kind}\t{side}{tail}\n" for head, kind, tail in edges]
        (folder / f"rel_triples_{number}").write_text("".join(lines))
    (folder / "ent_links").write_text("".join(f"s{i}\tt{i}\n" for i in seeds))


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(FAST, id="fast"),
        pytest.param(PAPER, id="paper", marks=pytest.mark.slow),
        pytest.param(DEFAULT, id="default", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ODD)
def test_it_ends_and_says_what_is_true(
    name: str, how: list[str], tmp_path: Path, clusterea_command: Command
) -> None:
    source, target, seeds, said = ODD[name]
    write(tmp_path, source, target, seeds)
    run = tmp_path / "run"
    ran = clusterea_command("align", tmp_path, "--out", run, *how)
    if ran.code:  # training may fail where there is nothing to learn, and must not blame itself
        assert ran.code == 2
        assert said
        assert ran.err.splitlines()[-1].endswith(said)
        assert "learning rate" not in ran.err
        return
    assert said in ran.err
    if not said:
        assert "structure" not in ran.err
    links = rows(run / "alignment.tsv")[1:]
    for side in (0, 1):
        linked = [row[side] for row in links]
        assert len(set(linked)) == len(linked)
        assert not set(linked) & {f"{'st'[side]}{i}" for i in seeds}
    is_guess = NO_PATH in said and how is not PAPER  # so few seeds give only what they support
    assert bool(links) == (said != NOTHING_LEFT and not is_guess)
