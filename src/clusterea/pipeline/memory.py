"""The memory and disk that a run is expected to take, and limits on memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clusterea.config import Config
from clusterea.errors import InputError
from clusterea.files import readable_size
from clusterea.numerics.block_sizes import host_memory_bound
from clusterea.pipeline.learning import num_held_out
from clusterea.pipeline.planned import content_widths, planned_stages
from clusterea.pipeline.rounds import Rounds, encodings
from clusterea.pipeline.shard_plan import CUT, shard_plan
from clusterea.pipeline.working_memory import (
    MEBI,
    SIMILARITY_BYTES,
    TRAINING_BYTES,
    Need,
    Sizes,
    cell_bytes,
    fused_views,
    working_memory,
)
from clusterea.types import AlignmentTask, Benchmark

if TYPE_CHECKING:
    import torch

PART_BYTES = 20  # of a cell of a view while it is computed
CELLS_A_ROW = 130  # of the fused similarity, measured on IDS15K with three samplers
PAGE_BYTES = 1 << 20  # of report.html, however few links there are
CANDIDATE_BYTES = 100  # of candidates.parquet per source entity
BLOCK_SHARE = 0.9  # of the free memory that a mini-batch's matrix may take
LEAST_BATCH = 1000  # entities of a side: mini-batches are made no smaller to save memory
BASE_BYTES = {"cpu": 390 * MEBI, "cuda": 2450 * MEBI}  # interpreter, libraries, and CUDA's own
GPU_BYTES = 256 * MEBI  # that CUDA's libraries work in
TRIPLE_BYTES, ENTITY_BYTES = 200, 500  # of the data as read, with names
LEAST_ROOM = 1.04  # of the smallest limit
SLACK = 1.12  # of what a stage takes: memory that is freed is not free at once


@contextmanager
def memory_limit(device: torch.device, allowed: int | None) -> Iterator[None]:
    """Inside, work is done in blocks that fit into so many bytes of the device; None: no limit."""
    with host_memory_bound(allowed if device.type == "cpu" else None):
        if allowed is not None:
            limit_memory(device, allowed)
        try:
            yield
        finally:
            if allowed is not None:
                limit_memory(device, None)


def limit_memory(device: torch.device, allowed: int | None) -> None:
    """Limits the memory of a GPU to this many bytes; None: no limit."""
    if device.type == "cuda":
        import torch

        total = torch.cuda.mem_get_info(device)[1]
        share = 1.0 if allowed is None else min(1.0, allowed / total)
        torch.cuda.set_per_process_memory_fraction(share, device)


def widths(config: Config, task: AlignmentTask | None = None) -> list[int]:
    """The dimensions of all vectors that the last fusion compares; those of content come last.

    Without a task, it is not known whether seeds are few: then as many as there can be. Nor is it
    known whether there are names or features: then none.
    """
    from clusterea.models import output_width

    rounds = Rounds(config, has_few=True) if task is None else Rounds.of(task, config)
    own = [output_width(each) for each in rounds.compared()]
    return own + content_widths(config, task)


def largest_batch(
    memory: int, device: torch.device, config: Config, task: AlignmentTask | None = None
) -> int:
    """The most entities per side of a mini-batch whose matrix fits into the memory allowed.

    With a task, this is the number for the larger side; the other side has proportionally fewer.
    Then it also counts that seeds take no cells, and that vectors and fused cells take memory.
    """
    cell = cell_bytes(device.type, config.fusion.sinkhorn_temperature)
    cells = BLOCK_SHARE * memory / cell
    if task is not None:
        entities = sum(task.num_undecided)
        left = max(memory - _beside_a_block(entities, config, device, task), memory / 10)
        cells = BLOCK_SHARE * left / cell
        sizes = [graph.num_entities for graph in task.graphs]
        free = [undecided / max(sizes) for undecided in task.num_undecided]
        if all(share > 0 for share in free):
            cells /= free[0] * free[1]
    return max(1, math.isqrt(int(cells)))


def _beside_a_block(
    entities: int, config: Config, device: torch.device, task: AlignmentTask
) -> int:
    """Bytes of vectors, their neighbors, fused views, and the view being computed."""
    fusion = config.fusion
    vectors = sum(widths(config, task)) * (2 if device.type == "cuda" else 4)
    neighbors = SIMILARITY_BYTES * max(fusion.candidates, fusion.hubness_neighbors)
    views = fusion.candidates * (SIMILARITY_BYTES * (len(config.samplers) - 1) + PART_BYTES)
    return entities * (vectors + neighbors + (views if config.samplers else 0))


@dataclass(frozen=True, slots=True)
class Expected:
    """Bytes on host and GPU: the peak, and the smallest one that smaller blocks allow."""

    host: int
    gpu: int
    least_host: int = 0
    least_gpu: int = 0

    def on(self, device: torch.device) -> int:
        """The peak on the device that a limit is about."""
        return self.gpu if device.type == "cuda" else self.host

    def within(self, device: torch.device, allowed: int | None) -> Expected:
        """The same with a limit on the device, which is kept."""
        if allowed is None:
            return self
        if device.type == "cuda":
            return replace(self, gpu=min(self.gpu, allowed))
        return replace(self, host=min(self.host, allowed))

    def least_on(self, device: torch.device) -> int:
        """The smallest limit on the device that can be kept."""
        return self.least_gpu if device.type == "cuda" else self.least_host


def expected_memory(
    task: AlignmentTask, config: Config, device: torch.device, shards: int | None = None
) -> Expected:
    """The memory that a run takes at most, if rounds go on as long as they may.

    It is that of the stage with the highest peak: what is in memory when the stage begins, and what
    it takes itself. With several `shards` on a CPU, vectors, similarities and results that wait
    are in files.
    """
    sizes = Sizes(task, config, device.type)
    cells = sizes.cells(fused_views(config))
    triples = sum(graph.num_triples for graph in task.graphs)
    base = BASE_BYTES[device.type] + TRIPLE_BYTES * triples + ENTITY_BYTES * sizes.entities
    if device.type == "cpu" and config.has_trained:
        base += TRAINING_BYTES
    host, gpu = [Need(base)], [Need(0)]
    content_width = sum(content_widths(config, task))
    parts = shards if shards is not None and device.type == "cpu" else 1
    is_cut = parts > 1
    if is_cut:
        host.append(Need(base + shard_plan(task, config, parts).unit))
    for stage in planned_stages(task, config):
        if is_cut and stage.kind in CUT:
            continue
        taken = working_memory(stage, sizes)
        taken = Need(*(int(SLACK * each) for each in (taken.fixed, taken.usual, taken.least)))
        contents = min(content_width, stage.held)  # of names and features, at most
        vectors = sizes.number * (stage.held - contents) + 4 * contents
        vectors *= 0 if is_cut else sizes.entities
        held = vectors + (0 if is_cut else SIMILARITY_BYTES * stage.similarities * cells)
        if device.type == "cpu":
            host.append(replace(taken, fixed=base + held + taken.fixed))
        else:
            made = (sizes.number * stage.structure or 4 * stage.contents) * sizes.entities
            host.append(Need(base + held + max(made, SIMILARITY_BYTES * 2 * cells)))
            gpu.append(replace(taken, fixed=GPU_BYTES + taken.fixed))
    return Expected(
        max(each.most for each in host),
        max(each.most for each in gpu),
        max(_least(each) for each in host),
        max(_least(each) for each in gpu),
    )


def _least(need: Need) -> int:
    """With the smallest blocks, and some room: so little is estimated less well."""
    return min(need.most, int(LEAST_ROOM * need.fewest))


def within(
    choose: Callable[[Sequence[str]], Config],
    task: AlignmentTask,
    device: torch.device,
    allowed: int,
) -> Config:
    """The config with mini-batches small enough for a limit on memory.

    Args:
        choose: Makes the config, with these settings before those that the user gave.
        task: Two graphs and the seeds.
        device: Whose memory is limited.
        allowed: Bytes.

    Raises:
        InputError: The limit can't be kept. The message names the smallest one that can.
    """

    def least(batch: int) -> int:
        config = choose([f"sampling.max_batch={batch}"])
        return expected_memory(task, config, device).least_on(device)

    config = choose([])
    if not config.samplers:
        _check(expected_memory(task, config, device).least_on(device), allowed, device)
        return config
    fitting, largest = LEAST_BATCH, max(LEAST_BATCH, largest_batch(allowed, device, config, task))
    if least(largest) <= allowed:
        return choose([f"sampling.max_batch={largest}"])
    _check(least(fitting), allowed, device)
    while largest - fitting > 1:
        middle = (fitting + largest) // 2
        if least(middle) <= allowed:
            fitting = middle
        else:
            largest = middle
    return choose([f"sampling.max_batch={fitting}"])


def _check(needed: int, allowed: int, device: torch.device) -> None:
    if needed > allowed:
        what = "GPU memory" if device.type == "cuda" else "memory"
        raise InputError(
            f"--memory={-(-needed // MEBI)}MiB is the least {what} that this run can keep to. "
            f"Got {readable_size(allowed)} instead."
        )


def expected_disk(benchmark: Benchmark, config: Config, device: torch.device) -> int:
    """The bytes that a run's folder is likely to take."""
    from clusterea.models import output_width

    task = benchmark.task
    sizes = [graph.num_entities for graph in task.graphs]
    entities, triples = sum(sizes), sum(graph.num_triples for graph in task.graphs)
    names = int(sum(side.arrow.nbytes for side in benchmark.names))
    data = 24 * triples + 8 * entities + names // 2  # Parquet halves the names
    num_fits = len(num_held_out(task, config))
    passes = Rounds.of(task, config).passes()
    width = Sizes(task, config, device.type).number * sum(map(output_width, encodings(passes)))
    embeddings = num_fits * entities * width
    translated = (
        config.names.dimensions if task.names is not None and config.names.translates else 0
    )  # anew in each pass
    contents = sum(content_widths(config, task)) + (num_fits * len(passes) - 1) * translated
    embeddings += 4 * entities * contents
    fusions = num_fits * len(passes) + (num_fits > 1)
    cells = CELLS_A_ROW * max(sizes)
    if not config.samplers:
        cells = config.fusion.candidates * sum(task.num_undecided)
    similarity = fusions * (8 * cells + 8 * sizes[0])
    labels = 8 * entities * len(config.samplers) * fusions
    outputs = PAGE_BYTES + 2 * names + CANDIDATE_BYTES * sizes[0]
    return data + embeddings + similarity + labels + outputs
