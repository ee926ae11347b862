"""What the units of a run take: memory of a worker, and the bytes that units make for others.

Each function counts the largest tensors of its units, as `working_memory` does for whole stages.
`benchmarks/cluster.py` measures both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterea.config import Config, PropagationConfig
from clusterea.numerics.block_sizes import BLOCK_SIZES, FOLLOWING
from clusterea.pipeline.planned import Planned, planned_stages
from clusterea.pipeline.working_memory import (
    BATCH_SHARE,
    CELL_BYTES,
    LABEL_EDGE_BYTES,
    MEBI,
    SIMILARITY_BYTES,
    SLAB,
    SPARE,
    UNION_BYTES,
    Sizes,
    largest_batch_of,
)
from clusterea.types import AlignmentTask

TILE = 1024  # see `numerics.rows`
IDLE_BYTES = 190 * MEBI  # of a worker: interpreter and libraries
SUMS_BYTES = 76  # of a cell that Sinkhorn's units make: it is held by rows and by columns
SLACK = 1.12  # memory that is freed is not free at once


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Expected sizes of a run in so many shards."""

    shards: int
    unit: int  # bytes of private memory that a unit takes, at most
    exchanged: int  # bytes that units make for other units

    @property
    def worker(self) -> int:
        """Bytes of private memory of a process that runs units."""
        return IDLE_BYTES + self.unit


def shard_plan(task: AlignmentTask, config: Config, shards: int) -> ShardPlan:
    """What the units of a run take if its work is cut into so many shards."""
    sizes = Sizes(task, config, "cpu")
    found = [
        CUT[stage.kind](stage, sizes, shards)
        for stage in planned_stages(task, config)
        if stage.kind in CUT
    ]
    units, made = zip(*found, strict=True) if found else ((0,), (0,))
    return ShardPlan(shards, int(SLACK * max(units)), sum(made))


def _rows(size: int, shards: int) -> int:
    """The rows of the largest shard."""
    tiles = -(-size // TILE)
    return min(size, -(-tiles // shards) * TILE)


def _propagation(stage: Planned, sizes: Sizes, shards: int) -> tuple[int, int]:
    encoder = stage.encoder
    assert isinstance(encoder, PropagationConfig)
    nodes = sizes.entities
    wide, features = 4 * encoder.dimension, 4 * encoder.features
    slab = 4 * 4 * SLAB * nodes  # the labels, what is heard, its parts and squares
    rows = _rows(nodes, shards) * 2 * features + TILE * (wide + features)
    spread = wide * (encoder.rounds + 1)  # labels, with the first ones
    sketched = features * (encoder.rounds + 1) + 3 * features  # parts, sums, embeddings
    return (
        max(UNION_BYTES * sizes.edges, slab, rows),
        nodes * (spread + sketched) + LABEL_EDGE_BYTES * sizes.edges,
    )


def _fusion(stage: Planned, sizes: Sizes, shards: int) -> tuple[int, int]:
    config = sizes.config.fusion
    source, target = sizes.free
    both, largest = source + target, max(source, target)
    row = 4 * (stage.structure + stage.contents)
    count = max(config.candidates, config.hubness_neighbors)
    own = _rows(largest, shards)
    cells = sizes.cells()
    best = 8 * (count + SPARE)
    gathered = FOLLOWING["gathered"] * BLOCK_SIZES["gathered"]["cpu"]
    if config.search == "approximate":
        search = 8 * BLOCK_SIZES["listed"]["cpu"] + own * 2 * best
        search += row * min(largest, config.search_compared)
        search += FOLLOWING["joined"] * BLOCK_SIZES["joined"]["cpu"]
    else:
        search = 8 * BLOCK_SIZES["nearest"]["cpu"] + gathered
        search += own * (row + 2 * best) + 2 * best * largest
    evidence = min(6 * own * sizes.degree, BLOCK_SIZES["evidence"]["cpu"])
    normalized = CELL_BYTES["cpu"] * cells // shards + int(FOLLOWING["evidence"] * evidence)
    found = SIMILARITY_BYTES * count * both
    chosen = best * (source + shards * target) if config.search != "approximate" else 0
    rounds = 1 + config.support_rounds
    potentials = 2 * 8 * both * config.sinkhorn_rounds
    made = row * both + 2 * found + chosen + rounds * (SUMS_BYTES * cells + potentials)
    batch = 0
    if sizes.config.samplers and any(name.startswith("local") for name in config.views):
        rows, columns = largest_batch_of(sizes.task, sizes.config.sampling)
        batch = int(BATCH_SHARE * 8 * rows * columns) + 3 * row * (rows + columns)
        made += row * both * len(sizes.config.samplers)
    return max(search, normalized, batch), made


# The stages that are cut, and what gives the bytes of a unit and those that units make.
CUT: dict[str, Callable[[Planned, Sizes, int], tuple[int, int]]] = {
    "propagation": _propagation,
    "fusion": _fusion,
}
