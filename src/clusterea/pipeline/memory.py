"""The memory and disk that a run is expected to take, and limits on memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterea.config import (
    Config,
    EncoderConfig,
    PropagationConfig,
    SamplingConfig,
)
from clusterea.pipeline.learning import num_held_out
from clusterea.pipeline.rounds import Rounds, encodings
from clusterea.types import AlignmentTask, Benchmark

if TYPE_CHECKING:
    import torch

CELL_BYTES = 12  # of a sparse similarity
PART_BYTES = 20  # of a cell of a view while it is computed
CELLS_A_ROW = 130  # of the fused similarity, measured on IDS15K with three samplers
PAGE_BYTES = 1 << 20  # of report.html, however few links there are
CANDIDATE_BYTES = 100  # of candidates.parquet per source entity
BLOCK_SHARE = 0.9  # of the free memory that a mini-batch's matrix may take


def limit_memory(device: torch.device, allowed: int | None) -> None:
    """Limits the memory of a GPU to this many bytes; None: no limit."""
    if device.type == "cuda":
        import torch

        total = torch.cuda.mem_get_info(device)[1]
        share = 1.0 if allowed is None else min(1.0, allowed / total)
        torch.cuda.set_per_process_memory_fraction(share, device)


def cell_bytes(device: torch.device, temperature: float = 1.0) -> int:
    """Bytes per cell of a mini-batch: float64 on a CPU; bfloat16 or float32 on a GPU."""
    from clusterea.numerics.sinkhorn import WIDEST

    if device.type != "cuda":
        return 8
    return 2 if temperature >= 2 / WIDEST else 4


def content_widths(config: Config, task: AlignmentTask | None) -> list[int]:
    """The dimensions of the vectors of names, features and translated names."""
    if task is None:
        return []
    own = [] if task.names is None else [config.names.dimensions] * (1 + config.names.translates)
    return own if task.features is None else [*own, task.features.source.shape[1]]


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
    cell = cell_bytes(device, config.fusion.sinkhorn_temperature)
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
    neighbors = CELL_BYTES * max(fusion.candidates, fusion.hubness_neighbors)
    views = fusion.candidates * (CELL_BYTES * (len(config.samplers) - 1) + PART_BYTES)
    return entities * (vectors + neighbors + (views if config.samplers else 0))


@dataclass(frozen=True, slots=True)
class Expected:
    """Approximate bytes on host and GPU."""

    host: int
    gpu: int


def expected_memory(task: AlignmentTask, config: Config, device: torch.device) -> Expected:
    """The memory that a run is likely to take, to about a factor of two."""
    entities = sum(graph.num_entities for graph in task.graphs)
    triples = sum(graph.num_triples for graph in task.graphs)
    embeddings = 4 * sum(widths(config, task)) * entities
    free = sum(task.num_undecided)
    cells = CELLS_A_ROW * max(graph.num_entities for graph in task.graphs)
    if not config.samplers:
        cells = config.fusion.candidates * free  # those of both directions
    similarity = 3 * PART_BYTES * cells
    cell = cell_bytes(device, config.fusion.sinkhorn_temperature)
    block = _largest_block(task, config.sampling) * cell if config.samplers else 0
    table = entities * max((4 * _working(each) for each in config.encoders()), default=0)
    graph = 8 * 16 * triples
    base = 700 << 20  # the interpreter and its libraries
    if device.type == "cuda":
        fused = max(_beside_a_block(free, config, device, task) + block, similarity)
        gpu = max(table + graph + embeddings // 2, fused)
        return Expected(base + graph + 2 * embeddings + similarity // 2, gpu)
    return Expected(base + graph + 2 * embeddings + max(table, block, similarity), 0)


def expected_disk(benchmark: Benchmark, config: Config) -> int:
    """The bytes that a run's folder is likely to take."""
    from clusterea.models import output_width

    task = benchmark.task
    sizes = [graph.num_entities for graph in task.graphs]
    entities, triples = sum(sizes), sum(graph.num_triples for graph in task.graphs)
    names = int(sum(side.arrow.nbytes for side in benchmark.names))
    data = 24 * triples + 8 * entities + names // 2  # Parquet halves the names
    num_fits = len(num_held_out(task, config))
    passes = Rounds.of(task, config).passes()
    embeddings = num_fits * 4 * entities * sum(map(output_width, encodings(passes)))
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


def _largest_block(task: AlignmentTask, config: SamplingConfig) -> int:
    """Estimated cells of the largest mini-batch, which has no rows and columns for seeds."""
    most = max(graph.num_entities for graph in task.graphs)
    cells = 1.0
    for graph, undecided in task.graphs.zip(task.num_undecided):
        # The larger side reaches the bound first; the other is smaller in proportion.
        bound = (config.max_batch or math.inf) * graph.num_entities / most
        largest = graph.num_entities * config.largest_share / config.num_batches
        share = undecided / max(graph.num_entities, 1)
        cells *= share * min(largest, bound, graph.num_entities)
    return int(cells)


def _working(config: EncoderConfig) -> int:
    """Numbers that an encoder keeps per entity while it runs."""
    if isinstance(config, PropagationConfig):
        return config.dimension + config.features
    return 3 * config.dimension  # rows, and Adam's two moments of each
