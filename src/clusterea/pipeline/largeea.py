"""The structure channel of LargeEA (VLDB 2022), the paper's baseline for large graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from clusterea.config import FusionConfig, SamplingConfig, TrainingConfig
from clusterea.types import AlignmentTask, Similarity

if TYPE_CHECKING:
    import torch

METIS_CPS = "metis-cps"


def largeea(
    task: AlignmentTask,
    training: TrainingConfig,
    sampling: SamplingConfig,
    fusion: FusionConfig,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
) -> Similarity:
    """The similarity of LargeEA: one model per METIS-CPS mini-batch, and nearest neighbors there.

    An entity has candidates only in its own mini-batch. A mini-batch without seeds is not trained
    and has no cells.

    Args:
        task: Two graphs and the seeds.
        training: Settings of each model.
        sampling: Settings of METIS-CPS.
        fusion: Only `candidates` and `search` are used.
        device: Where to compute; also the device of the result.
        progress: Called with the number of finished mini-batches, and of all.
    """
    import torch

    from clusterea.engines import InMemory
    from clusterea.fusion.undecided import undecided
    from clusterea.graph.subtask import subtask
    from clusterea.numerics.cells import from_cells, union_of_directions
    from clusterea.samplers import Resources, sample
    from clusterea.sharded.search import search, whole
    from clusterea.training import train

    nothing = task.graphs.map(lambda graph: torch.empty(graph.num_entities, 0))
    partition = sample(METIS_CPS, task, nothing, sampling, Resources(device))
    rows, columns, values = [], [], []
    for number, batch in enumerate(partition.mini_batches()):
        part = subtask(task, batch.map(lambda ids: ids.numpy()))
        if part.num_seeds:
            own = replace(training, seed=training.seed + number)
            embeddings = train(part, own, device=device)
            entities = undecided(
                [embeddings],
                part.seeds,
                part.tie_keys,
                fusion.seed,
                device,
                structural=part.structural,
            )
            entities, _, shards = search(InMemory(), entities, fusion, device)
            found = whole(InMemory(), shards).map(lambda side: side.first(fusion.candidates))
            cells = union_of_directions(
                found, entities=entities.entities, num_entities=entities.num_entities, twice=False
            )
            rows.append(batch.source.to(device)[cells.rows()])
            columns.append(batch.target.to(device)[cells.columns])
            values.append(cells.values)
        if progress:
            progress(number + 1, partition.num_batches)
    sizes = task.graphs.map(lambda graph: graph.num_entities)
    if not rows:
        none = torch.empty(0, dtype=torch.int64, device=device)
        return from_cells(none, none, none.float(), sizes)
    return from_cells(torch.cat(rows), torch.cat(columns), torch.cat(values), sizes)
