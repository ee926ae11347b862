"""Tiny similarities with many ties and gaps, and keys of their entities."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

from clusterea.matching.cells import Cells
from clusterea.numerics.ties import pair_hash
from clusterea.sharded import HeldScores, ShardedCells
from clusterea.types import Pair, Similarity

NAN = float("nan")  # no cell
NO_SEEDS = torch.empty(0, 2, dtype=torch.int64)


def sparse(dense: Tensor) -> Similarity:
    """The cells of `dense` that are numbers."""
    present = ~dense.isnan()
    offsets = torch.cat([present.new_zeros(1, dtype=torch.int64), present.sum(1).cumsum(0)])
    return Similarity(offsets, present.nonzero()[:, 1], dense[present], Pair(*dense.shape))


def keys_of(dense: Tensor, seed: int = 0) -> Pair[Tensor]:
    """Keys as hashes of names would be."""
    draw = torch.Generator().manual_seed(seed)
    return Pair(*(torch.randint(-(2**62), 2**62, (n,), generator=draw) for n in dense.shape))


def held(dense: Tensor) -> HeldScores:
    return HeldScores.of(sparse(dense))


def open_cells_of(dense: Tensor, seeds: Tensor = NO_SEEDS, seed: int = 0) -> ShardedCells:
    return ShardedCells.of(held(dense), keys_of(dense), Pair(seeds[:, 0], seeds[:, 1]), seed)


def cells_of(dense: Tensor) -> Cells:
    return open_cells_of(dense).whole()


def listed(cells: Cells) -> list[tuple[float, int, int, int]]:
    """Each cell as (score, hash, source, target): Python's own order is theirs, rising."""
    source, target = cells.keys.source[cells.ends.source], cells.keys.target[cells.ends.target]
    hashes = pair_hash(source, target, cells.seed)
    columns = (cells.values, hashes, cells.ends.source, cells.ends.target)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def links_of(cells: Cells) -> set[tuple[int, int]]:
    """The pairs, none of them twice."""
    links = list(zip(cells.ends.source.tolist(), cells.ends.target.tolist(), strict=True))
    assert len(set(links)) == len(links)
    return set(links)


def calibration_error(confidence: Tensor, is_right: Tensor, bins: int = 10) -> float:
    """Expected calibration error, bin by bin."""
    bin_of = (confidence * bins).long().clamp(max=bins - 1)
    error = 0.0
    for at in set(bin_of.tolist()):
        here = bin_of == at
        gap = confidence[here].mean() - is_right[here].float().mean()
        error += float(gap.abs() * here.float().mean())
    return error


@st.composite
def dense_scores(draw: st.DrawFn) -> Tensor:
    """(rows, columns): of a few different scores, some of them no cell."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 7))
    score = st.sampled_from([NAN, NAN, 0.0, 0.25, 0.5, 1.0, -0.5])
    scores = draw(st.lists(score, min_size=rows * columns, max_size=rows * columns))
    return torch.tensor(scores).reshape(rows, columns)
