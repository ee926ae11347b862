"""Small problems of fusion, and what `fuse` must make of them: dense, in float64, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.undecided import undecided
from clusterea.sharded import fuse
from clusterea.types import IntArray, Pair, Partition, Similarity
from whole_runs import searched

Cells = dict[tuple[int, int], float]
Floats = np.ndarray[Any, np.dtype[np.float64]]
# Nearest neighbors are exact, but in mini-batches ties add a little less than this to a cosine: two
# cells that differ by less may change places.
EXACT, TIED = 1e-6, 1e-4
ALL_CANDIDATES: dict[str, Any] = {"views": ("local", "sinkhorn"), "outside": "neighbors"}


@dataclass(frozen=True)
class Problem:
    """The arguments of `fuse`."""

    embeddings: Pair[Tensor]
    partitions: list[Partition]
    seeds: IntArray
    keys: Pair[IntArray]
    more: list[Pair[Tensor]] = field(default_factory=list)  # the embeddings of further encoders
    shares: list[float] | None = None

    @property
    def encodings(self) -> list[Pair[Tensor]]:
        return [self.embeddings, *self.more]

    def cosines(self) -> Floats:
        """(sources, targets): the mean over all encoders, weighted by their shares."""
        shares = self.shares or [1 / len(self.encodings)] * len(self.encodings)
        products = [
            share * (each.source.double() @ each.target.double().T).numpy()
            for share, each in zip(shares, self.encodings, strict=True)
        ]
        return np.asarray(sum(products), dtype=np.float64)

    def fuse(self, config: FusionConfig, **options: Any) -> Similarity:
        return fuse(
            self.encodings,
            self.partitions,
            self.seeds,
            self.keys,
            config,
            shares=self.shares,
            **options,
        )

    def free(self) -> Pair[list[int]]:
        """Who is in no seed."""
        taken = Pair(set(self.seeds[:, 0].tolist()), set(self.seeds[:, 1].tolist()))
        sizes = self.embeddings.map(len)
        return sizes.zip(taken).map(lambda side: [i for i in range(side[0]) if i not in side[1]])


def quick(**changes: Any) -> FusionConfig:
    """Settings for small problems."""
    small: dict[str, Any] = {
        "views": ("local", "global"),
        "csls": True,
        "candidates": 6,
        "hubness_neighbors": 4,
        "sinkhorn_rounds": 9,
        "sinkhorn_temperature": 0.05,
        "outside": "none",
        "seed": 3,
    }
    return FusionConfig(**(small | changes))


def problem(
    seed: int,
    sizes: tuple[int, int] = (31, 24),
    *,
    dim: int = 6,
    distinct: int | None = None,
    samplers: int = 2,
    num_batches: int = 3,
    num_seeds: int = 5,
) -> Problem:
    """Random vectors, of which only so many are distinct, in random mini-batches."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(distinct or sum(sizes), dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    of_entity = rng.integers(0, distinct, sum(sizes)) if distinct else np.arange(sum(sizes))
    rows = torch.from_numpy(vectors).float()[torch.from_numpy(of_entity)]

    def labels(size: int) -> Tensor:
        return torch.from_numpy(rng.integers(0, num_batches, size))

    return Problem(
        Pair(rows[: sizes[0]], rows[sizes[0] :]),
        [Partition(Pair(*sizes).map(labels), num_batches) for _ in range(samplers)],
        np.stack([rng.permutation(size)[:num_seeds] for size in sizes], 1),
        Pair(*sizes).map(lambda size: rng.integers(-(2**62), 2**62, size)),
    )


def with_encoders(
    given: Problem, dims: Sequence[int], shares: list[float] | None = None, seed: int = 100
) -> Problem:
    """The same with further encoders, of these widths, which agree with the first in part."""
    rng = np.random.default_rng(seed)

    def other(rows: Tensor, dim: int) -> Tensor:
        noise = torch.from_numpy(rng.normal(size=(len(rows), dim))).float()
        mixed = noise + 2 * torch.nn.functional.pad(rows, (0, dim))[:, :dim]
        return torch.nn.functional.normalize(mixed)

    source, target = given.embeddings
    more = [Pair(other(source, dim), other(target, dim)) for dim in dims]
    return replace(given, more=more, shares=shares)


def renumbered(given: Problem, new: Pair[IntArray]) -> Problem:
    """The same, where entity i of a side is number new[i]."""

    def moved(values: Any, numbers: IntArray) -> Any:
        result = values.clone() if isinstance(values, torch.Tensor) else values.copy()
        result[numbers] = values
        return result

    return Problem(
        given.embeddings.zip(new).map(lambda side: moved(*side)),
        [
            Partition(each.labels.zip(new).map(lambda side: moved(*side)), each.num_batches)
            for each in given.partitions
        ],
        links_renumbered(given.seeds, new),
        given.keys.zip(new).map(lambda side: moved(*side)),
        [each.zip(new).map(lambda side: moved(*side)) for each in given.more],
        given.shares,
    )


def links_renumbered(links: IntArray, new: Pair[IntArray]) -> IntArray:
    return np.stack([new.source[links[:, 0]], new.target[links[:, 1]]], 1)


def view_input(given: Problem, config: FusionConfig) -> ViewInput:
    """What a view is given, without graphs and outside options."""
    device = given.embeddings.source.device
    entities = undecided(given.encodings, given.seeds, given.keys, config.seed).read()
    found = searched(entities, config, device)
    return ViewInput(
        entities, found, None, given.partitions, given.seeds, None, config, device, None, None
    )


def cells_of(similarity: Similarity) -> Cells:
    cells = zip(similarity.rows().tolist(), similarity.columns.tolist(), strict=True)
    return dict(zip(cells, similarity.values.tolist(), strict=True))


def dense_fuse(problem: Problem, config: FusionConfig) -> Cells:
    """M_F = min-max(2 (M_L + M_N + M_G) - r_T - r_S), cell by cell."""
    cosines = problem.cosines()
    rows, columns = problem.free()
    near = Pair(
        {i: sorted((cosines[i, j] for j in columns), reverse=True) for i in rows},
        {j: sorted((cosines[i, j] for i in rows), reverse=True) for j in columns},
    )
    total: Cells = {}
    for view in config.views:
        if view in ("local", "local-cosine"):
            for partition in problem.partitions:
                for batch in range(partition.num_batches):
                    inside = Pair(
                        [i for i in rows if partition.labels.source[i] == batch],
                        [j for j in columns if partition.labels.target[j] == batch],
                    )
                    add(total, dense_mini_batch(cosines, inside, near, config, view))
        elif view == "sinkhorn":
            add(total, dense_normalized(cosines, problem.free(), near, config))
        else:
            add(total, shifted(dense_neighbors(cosines, problem.free(), config), near, config))
    return shifted(total, near, config)


def dense_neighbors(cosines: Floats, free: Pair[list[int]], config: FusionConfig) -> Cells:
    """Each row's nearest and each column's: what both found is there twice."""
    rows, columns = free
    total: Cells = {}
    k = config.candidates
    for i in rows:
        add(total, {(i, j): cosines[i, j] for j in largest(cosines[i], columns, k, EXACT)})
    for j in columns:
        add(total, {(i, j): cosines[i, j] for i in largest(cosines[:, j], rows, k, EXACT)})
    return total


def dense_normalized(
    cosines: Floats,
    free: Pair[list[int]],
    near: Pair[dict[int, list[float]]],
    config: FusionConfig,
) -> Cells:
    """Sinkhorn of a matrix that is -inf but for each row's and each column's nearest."""
    rows, columns = free
    if not rows or not columns:
        return {}
    found = dense_neighbors(cosines, free, config)
    block = np.array(
        [[cosines[i, j] if (i, j) in found else -np.inf for j in columns] for i in rows]
    )
    logs = loop_sinkhorn(block, config, dense_outside(free, near, config))
    return {
        (i, j): float(np.exp(logs[a, b]))
        for a, i in enumerate(rows)
        for b, j in enumerate(columns)
        if (i, j) in found
    }


def dense_outside(
    inside: Pair[list[int]], near: Pair[dict[int, list[float]]], config: FusionConfig
) -> Pair[Floats] | None:
    """What each row and each column could have instead of a partner."""
    if config.outside == "none":
        return None
    count = 1 if config.outside == "best" else config.hubness_neighbors
    return Pair(
        np.array([np.mean(near.source[i][:count]) for i in inside.source]),
        np.array([np.mean(near.target[j][:count]) for j in inside.target]),
    )


def dense_mini_batch(
    cosines: Floats,
    inside: Pair[list[int]],
    near: Pair[dict[int, list[float]]],
    config: FusionConfig,
    view: str = "local",
) -> Cells:
    """The best cells of each row and each column of one mini-batch."""
    rows, columns = inside
    if not rows or not columns:
        return {}
    block = cosines[np.ix_(rows, columns)]
    order = block  # what best is judged by, as large as cosines
    if view == "local":
        logs = loop_sinkhorn(block, config, dense_outside(inside, near, config))
        block, order = np.exp(logs), logs * config.sinkhorn_temperature
    places = Pair(range(len(rows)), range(len(columns)))
    k = config.candidates
    kept = {(a, b) for a in places.source for b in largest(order[a], places.target, k, TIED)}
    kept |= {(a, b) for b in places.target for a in largest(order[:, b], places.source, k, TIED)}
    return {(rows[a], columns[b]): float(block[a, b]) for a, b in kept}


def loop_sinkhorn(cosines: Floats, config: FusionConfig, outside: Pair[Floats] | None) -> Floats:
    """The logarithms of u K v, where u = 1 / (K v + c) and v = 1 / (Kᵀ u + d), row after row."""
    temperature = config.sinkhorn_temperature
    kernel = (cosines - 1) / temperature
    none = cosines.shape[0] * [-np.inf], cosines.shape[1] * [-np.inf]
    c, d = none if outside is None else ((side - 1) / temperature for side in outside)
    u, v = np.zeros(cosines.shape[0]), np.zeros(cosines.shape[1])
    for _ in range(config.sinkhorn_rounds):
        for i in range(len(u)):
            u[i] = -np.logaddexp.reduce([*(kernel[i] + v), c[i]])
        for j in range(len(v)):
            v[j] = -np.logaddexp.reduce([*(kernel[:, j] + u), d[j]])
    return np.asarray(kernel + u[:, None] + v[None, :], dtype=np.float64)


def largest(values: Floats, among: Sequence[int], k: int, gap: float) -> list[int]:
    """The k with the largest values; it must be clear which they are."""
    ranked = sorted(among, key=lambda i: -values[i])
    if k < len(ranked):
        assert values[ranked[k - 1]] - values[ranked[k]] > gap, "take another seed"
    return ranked[:k]


def add(total: Cells, more: Cells) -> None:
    for cell, value in more.items():
        total[cell] = total.get(cell, 0.0) + value


def shifted(cells: Cells, near: Pair[dict[int, list[float]]], config: FusionConfig) -> Cells:
    """CSLS, unless it is off, and then from 0 to 1."""
    if config.csls:
        k = config.hubness_neighbors
        cells = {
            (i, j): 2 * value - float(np.mean(near.source[i][:k]) + np.mean(near.target[j][:k]))
            for (i, j), value in cells.items()
        }
    if not cells:
        return {}
    low, high = min(cells.values()), max(cells.values())
    return {
        cell: (value - low) / (high - low) if high > low else 1.0 for cell, value in cells.items()
    }


def assert_cells(found: Similarity, wanted: Cells, tolerance: float = 1e-5) -> None:
    """The same pattern, and the same values."""
    cells = cells_of(found)
    assert set(cells) == set(wanted)
    pairs = sorted(wanted)
    np.testing.assert_allclose(
        [cells[pair] for pair in pairs],
        [wanted[pair] for pair in pairs],
        rtol=0,
        atol=tolerance,
    )
