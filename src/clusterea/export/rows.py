"""The links of an alignment as rows of text, in batches, the best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.types import Alignment, Pair, Texts

BATCH = 1 << 16


def columns(alignment: Alignment) -> tuple[str, str, str]:
    """The names of the columns: source, target, and confidence or score."""
    return ("source", "target", alignment.measure)


def link_labels(alignment: Alignment, labels: Pair[Texts] | None) -> dict[str, pa.Array]:
    """The columns `source_label` and `target_label` of the links, null where there is no label.

    Without labels there are no such columns.
    """
    if labels is None:
        return {}
    source, target = labels.zip(Pair(*alignment.links.detach().cpu().numpy().T)).map(
        lambda side: side[0].first(side[1])
    )
    return {"source_label": source, "target_label": target}


def link_batches(
    alignment: Alignment, texts: Pair[pa.Array], more: Mapping[str, pa.Array] | None = None
) -> Iterator[pa.Table]:
    """The `columns` of the links and more, by descending confidence.

    Links of equal confidence keep their order, which depends on a hash of names only.

    Args:
        alignment: The links.
        texts: The text of each entity of each side.
        more: Further columns, (links,) each, in the order of the alignment.
    """
    more = more or {}
    sure = alignment.confidence.detach().cpu()
    sure = sure if sure.element_size() == 8 else sure.float()  # Arrow has no bfloat16
    order = sure.argsort(descending=True, stable=True)
    links = alignment.links.detach().cpu()[order].numpy()
    places = order.numpy()
    confidence = sure[order].numpy()
    for start in range(0, len(links), BATCH):
        rows = slice(start, start + BATCH)
        source, target = links[rows].T
        arrays = [
            texts.source.take(pa.array(source)),
            texts.target.take(pa.array(target)),
            pa.array(confidence[rows]),
            *(column.take(pa.array(places[rows])) for column in more.values()),
        ]
        yield pa.table(arrays, names=[*columns(alignment), *more])


def unmatched_batches(ids: np.ndarray, texts: pa.Array) -> Iterator[pa.Array]:
    """The texts of the unmatched entities `ids` of one side, in batches."""
    for start in range(0, len(ids), BATCH):
        yield texts.take(pa.array(ids[start : start + BATCH]))


def write_lines(file: IO[bytes], *parts: pa.Array | pa.ChunkedArray | str) -> None:
    """Writes one line per row: its parts joined. Numbers are as short as possible."""
    text = pa.large_string()
    cells = [
        pa.scalar(part, text) if isinstance(part, str) else part.cast(text)
        for part in (*parts, "\n", "")  # the last is the separator
    ]
    lines = pc.binary_join_element_wise(*cells)
    for chunk in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
        _, offsets, bytes_ = chunk.buffers()
        if bytes_ is not None:  # the strings lie one after the other in memory
            ends = np.frombuffer(offsets, np.int64)[[chunk.offset, chunk.offset + len(chunk)]]
            file.write(memoryview(bytes_)[ends[0] : ends[1]])
