"""`ViewInput`: what a view of the fusion is computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.cells import Empty
from clusterea.numerics.knn import Nearest, OnStep
from clusterea.types import IntArray, KnowledgeGraph, Pair, Partition

OnNamedStep = Callable[[str, int, int], None]  # name, steps done, steps in all
# Runs a function on each tuple of arguments, and gives the results in their order.
Each: TypeAlias = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]


def one_by_one(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Runs the function here."""
    return (function(*each) for each in arguments)


@dataclass(frozen=True, slots=True, eq=False)
class ViewInput:
    """The entities to match, their nearest neighbors, and the settings."""

    entities: Undecided
    found: Nearest | None  # nearest neighbors; None if no view takes them in one piece
    outside: Pair[Tensor] | None  # (rows,) of each side: the similarity of having no partner
    partitions: Sequence[Partition]  # one for each sampler
    seeds: IntArray | Tensor  # (n, 2)
    graphs: Pair[KnowledgeGraph] | None
    config: FusionConfig
    device: torch.device
    block_cells: int | None  # of a block worked on at a time: speed and memory only
    progress: OnNamedStep | None
    each: Each = one_by_one  # runs independent parts of a view
    empty: Empty | None = None  # makes room for a large matrix; None: in memory

    def step(self, what: str) -> OnStep | None:
        """The progress callback for one named part of the work."""
        progress = self.progress
        return None if progress is None else lambda done, of: progress(what, done, of)
