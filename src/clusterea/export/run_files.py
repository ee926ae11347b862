"""The files with links that `clusterea align` writes into a run's folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from clusterea.beside import in_order
from clusterea.data.name_iris import NAMESPACES, to_cells
from clusterea.export.rows import unmatched_batches, write_lines
from clusterea.export.tables import write_tsv
from clusterea.files import replacing
from clusterea.threads import available_cpus
from clusterea.types import Alignment, IntArray, Names, Pair, Similarity

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

CELLS = 1 << 20  # sorted and named at a time
GPU_THREADS = 3  # that sort and name cells, beside the one that writes them
SCHEMA = pa.schema(
    {
        "source": pa.large_string(),
        "target": pa.large_string(),
        "score": pa.float32(),
        "rank": pa.int32(),
    }
)


def write_alignment(path: Path, alignment: Alignment, names: Pair[Names]) -> None:
    """Writes `alignment.tsv`: source, target and confidence or score, the highest first."""
    with replacing(path) as beside:
        write_tsv(alignment, names, beside)


def write_unmatched(folder: Path, alignment: Alignment, names: Pair[Names]) -> None:
    """Writes `unmatched_source.tsv` and `unmatched_target.tsv`: entities without a link."""
    files = Pair("unmatched_source.tsv", "unmatched_target.tsv")
    for ids, (name, (side, namespace)) in alignment.unmatched.zip(files.zip(names.zip(NAMESPACES))):
        with replacing(folder / name) as beside, beside.open("wb") as file:
            file.write(b"entity\n")
            for entities in unmatched_batches(ids.detach().cpu().numpy(), side.arrow):
                write_lines(file, to_cells(entities, namespace))


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

    from clusterea.numerics.cells import cuts_of_rows, open_entities, opened, some_rows

    decided = torch.asarray(seeds, dtype=torch.int64, device=similarity.values.device, copy=True)
    to = torch.device(device or similarity.values.device)
    is_open = open_entities(similarity, decided[:, 0], decided[:, 1]).map(lambda side: side.to(to))
    ties = ties.map(lambda side: side.to(to))

    def table(rows: tuple[int, int]) -> pa.Table:
        own = slice(*rows)
        slab = opened(is_open, own, some_rows(similarity, *rows, to))
        keys = Pair(ties.source[own], ties.target)
        source, target, score, rank = _ranked(slab, keys, seed, top)
        columns = [
            names.source.arrow.take(pa.array(source + own.start)),
            names.target.arrow.take(pa.array(target)),
            pa.array(score),
            pa.array(rank),
        ]
        return pa.table(columns, schema=SCHEMA)

    # A source stands in up to `top` rows, one after the other; a target seldom comes again soon.
    # The order of names is that of hashes, so their least and greatest would tell nothing.
    encoded, counted = ["source", "rank"], ["score", "rank"]
    threads = 1 if to.type == "cpu" else min(GPU_THREADS, available_cpus())
    with (
        replacing(path) as beside,
        pq.ParquetWriter(
            beside, SCHEMA, use_dictionary=encoded, write_statistics=counted
        ) as writer,
        closing(in_order(table, cuts_of_rows(similarity.row_offsets, CELLS), threads)) as tables,
    ):
        for each in tables:
            writer.write_table(each)


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
