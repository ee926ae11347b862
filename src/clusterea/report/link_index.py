"""All links of a run, compressed, for the search in the page."""

from __future__ import annotations

import gzip
from base64 import b64encode
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.name_iris import NAMESPACES, to_cells
from clusterea.report.data import UNKNOWN, ReportData
from clusterea.report.payload import in_steps
from clusterea.types import IntArray

_LONG = "^(.{199})..+$"  # more than 200 characters


@dataclass(frozen=True, slots=True)
class LinkIndex:
    """The packed links, and the row of each link."""

    packed: str  # base64 of gzip
    rows: IntArray  # (links,): link i is row rows[i]


def pack_links(data: ReportData) -> LinkIndex:
    """All links of the report, in about 20 bytes each for names like those of DBpedia.

    Unpacked it holds three columns, one after the other: confidence in steps (16 bits,
    little endian), verdicts (8 bits) and names (UTF-8, one link per line, a tab between source and
    target). If there are labels, two more cells of each line hold those of source and target. Links
    are sorted by source name, which makes the names a fifth smaller.
    """
    cells = data.names.zip(NAMESPACES).map(lambda side: to_cells(*side))
    order = pc.array_sort_indices(cells.source).to_numpy().astype(np.int64)
    confidence = in_steps(data.confidence)
    verdicts = data.correctness
    if verdicts is None:
        verdicts = np.full(data.num_links, UNKNOWN, dtype=np.int8)
    texts = [*cells]
    if data.labels is not None and data.has_labels:
        texts += data.labels.map(_label_cells)
    sorted_texts = [each.take(pa.array(order)) for each in texts]
    lines = pc.binary_join_element_wise(*sorted_texts, pa.scalar("\t", pa.large_string()))
    columns = (
        confidence[order].astype("<u2").tobytes(),
        verdicts[order].astype(np.int8).tobytes(),
        _joined(lines),
    )
    rows = np.empty(data.num_links, dtype=np.int64)
    rows[order] = np.arange(data.num_links)
    packed = gzip.compress(b"".join(columns), compresslevel=6, mtime=0)
    return LinkIndex(b64encode(packed).decode(), rows)


def _joined(lines: pa.Array) -> pa.Buffer:
    """The lines as one text, without a line end after the last."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, pa.scalar("\n", lines.type))[0].as_buffer()


def _label_cells(labels: pa.Array) -> pa.Array:
    """Each label on one line and without tabs, cut if it is long; empty for null."""
    texts = pc.replace_substring_regex(pc.fill_null(labels, ""), "[\t\r\n]+", " ")
    return pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), _LONG, r"\1…")
