"""`file_metrics`: how many links of one file are in another file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.markup import escape

from clusterea.cli.console import ERRORS
from clusterea.data.inputs import notes, reading, refuse_repeated
from clusterea.data.links import NamedLinks, read_links
from clusterea.evaluation import judge
from clusterea.types import IntArray, Pair

NamedPairs: TypeAlias = Pair[pa.ChunkedArray]


def file_metrics(alignment: Path, test_links: Path, *, quiet: bool) -> dict[str, Any]:
    """Precision, recall and F1 of the links in a file; unless quiet, prints notes on the files."""
    refuse_repeated([alignment, test_links])
    with reading():
        given, truth = read_links(alignment), read_links(test_links)
        for told in () if quiet else notes():
            ERRORS.print(escape(told), soft_wrap=True)
    wanted = _read_as(truth, _names(given.readings))
    returned = _read_as(given, _names([wanted]))
    ids: dict[tuple[str, str], int] = {}

    def numbered(pairs: NamedPairs) -> IntArray:
        columns = [
            [ids.setdefault((side, name), len(ids)) for name in names.to_pylist()]
            for side, names in (("source", pairs.source), ("target", pairs.target))
        ]
        return np.array(columns, dtype=np.int64).T.reshape(-1, 2)

    scores = judge(numbered(returned), numbered(wanted))
    return {"matching": scores.to_dict(), "links": len(given), "test_links": len(truth)}


def _names(readings: Iterable[NamedPairs]) -> NamedPairs:
    """All names of each side, over all readings."""
    sources, targets = zip(*((each.source, each.target) for each in readings), strict=True)
    return Pair(sources, targets).map(
        lambda side: pa.chunked_array([chunk for names in side for chunk in names.chunks])
    )


def _read_as(links: NamedLinks, known: NamedPairs) -> NamedPairs:
    """Each link in the first reading whose two names are known, else in the first reading.

    owl:sameAs has no direction, and SSSOM may spell a name in several ways.
    """
    first = links.readings[0]
    chosen = Pair(first.source, first.target)
    is_open = pa.chunked_array([pa.array(np.ones(len(links), dtype=bool))])
    for each in links.readings:
        holds = is_open
        for names, of_side in ((each.source, known.source), (each.target, known.target)):
            holds = pc.and_(holds, pc.is_in(names, value_set=of_side.combine_chunks()))
        chosen = Pair(
            pc.if_else(holds, each.source, chosen.source),
            pc.if_else(holds, each.target, chosen.target),
        )
        is_open = pc.and_not(is_open, holds)
    return chosen
