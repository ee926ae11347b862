"""The files with links that `clusterea align` writes into a run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from clusterea.data.name_iris import NAMESPACES, to_cells
from clusterea.export.rows import unmatched_batches, write_lines
from clusterea.export.tables import write_tsv
from clusterea.files import replacing
from clusterea.types import Alignment, IntArray, Names, Pair, Similarity

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

CELLS = 1 << 20  # sorted and named at a time


def write_alignment(path: Path, alignment: Alignment, names: Pair[Names]) -> None:
    """Writes `alignment.tsv`: source, target and confidence or score, the highest first."""
    with replacing(path) as beside:
        write_tsv(alignment, names, beside)


def write_unmatched(folder: Path, alignment: Alignment, names: Pair[Names]) -> None:
    """Writes `unmatched_source.tsv` and `unmatched_target.tsv`: entities without a link."""
    files = Pair("unmatched_source.tsv", "unmatched_target.tsv")
    for ids, (name, (side, namespace)) in alignment.unmatched.zip(files.zip(names.zip(NAMESPACES))):
        texts = to_cells(side.arrow, namespace)
        with replacing(folder / name) as beside, beside.open("wb") as file:
            file.write(b"entity\n")
            for entities in unmatched_batches(ids.detach().cpu().numpy(), texts):
                write_lines(file, entities)


def write_candidates(
    path: Path,
    similarity: Similarity,
    names: Pair[Names],
    ties: Pair[Tensor],
    seeds: IntArray | Tensor,
    *,
    seed: int = 0,
    top: int = 10,
    device: torch.device | None = None,
) -> None:
    """Writes `candidates.parquet`: source, target, score, rank; the best of each source entity.

    Args:
        path: The file.
        similarity: Scores of source × target.
        names: The names of the entities.
        ties: (entities,) int64 tie keys of each side.
        seeds: (n, 2): their entities are left out.
        seed: Random seed for ties.
        top: Most candidates per source entity, ranked from 1.
        device: Where to sort; default: the device of the similarity.
    """
    import pyarrow.parquet as pq
    import torch

    from clusterea.numerics.cells import open_entities, opened, row_slabs

    decided = torch.asarray(seeds, dtype=torch.int64, device=similarity.values.device, copy=True)
    is_open = open_entities(similarity, decided[:, 0], decided[:, 1])
    device = torch.device(device or similarity.values.device)
    of_target = ties.target.to(device)
    schema = pa.schema(
        {
            "source": pa.large_string(),
            "target": pa.large_string(),
            "score": pa.float32(),
            "rank": pa.int32(),
        }
    )
    with replacing(path) as beside, pq.ParquetWriter(beside, schema) as writer:
        for rows, slab in row_slabs(similarity, CELLS):
            keys = Pair(ties.source[rows].to(device), of_target)
            source, target, score, rank = _ranked(
                opened(is_open, rows, slab).to(device), keys, seed, top
            )
            columns = [
                names.source.arrow.take(pa.array(source + rows.start)),
                names.target.arrow.take(pa.array(target)),
                pa.array(score),
                pa.array(rank),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _ranked(
    similarity: Similarity, ties: Pair[Tensor], seed: int, top: int
) -> tuple[IntArray, IntArray, NDArray[np.float32], NDArray[np.int32]]:
    """Row, column, score and rank of the best cells of each row."""
    import torch

    from clusterea.numerics.cells import row_order

    rows = similarity.rows()
    order = row_order(similarity, ties, seed)  # within each row, so `rows` still holds
    ranks = torch.arange(len(order), device=order.device) - similarity.row_offsets[rows]
    kept = ranks < top
    cells = order[kept]
    return (
        rows[kept].cpu().numpy(),
        similarity.columns[cells].cpu().numpy(),
        similarity.values[cells].float().cpu().numpy(),
        (ranks[kept] + 1).int().cpu().numpy(),
    )
