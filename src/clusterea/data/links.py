"""Reads links between two graphs from any supported format, as ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from clusterea.data.delimited import DELIMITERS, read_delimited, split_line
from clusterea.data.equivalences import counted
from clusterea.data.formats import detect_format
from clusterea.data.headers import link_header
from clusterea.data.inputs import note
from clusterea.data.name_iris import to_names
from clusterea.data.rdf import SYNTAXES, read_equivalences
from clusterea.data.sorted_keys import has_repeats
from clusterea.data.sssom import is_sssom, read_sssom
from clusterea.data.streams import text_lines
from clusterea.data.tables import TABLES, read_columns
from clusterea.errors import DataError, cut
from clusterea.types import IntArray, Names, Pair

LINK_COLUMNS = ("source", "target")


@dataclass(frozen=True, slots=True)
class NamedLinks:
    """Links as read: names, in file order."""

    path: Path  # of the file, or the argument's name
    readings: tuple[Pair[pa.ChunkedArray], ...]  # ways to read each link; the first known one holds
    skipped: int = 0  # rows or triples that state no equivalence

    def __len__(self) -> int:
        return len(self.readings[0].source)


def read_bare_links(path: Path) -> NamedLinks:
    """The links in TSV without a header, as in the folders of datasets."""
    hint = "Is this a triples file?"
    table = read_delimited(path, LINK_COLUMNS, delimiter="\t", hint=hint)
    return NamedLinks(path, (Pair(*table.columns),))


def read_links(path: Path) -> NamedLinks:
    """The links in one file of any format."""
    if is_sssom(path):
        readings, others, by_predicate = read_sssom(path)
        note(path, f"{counted(by_predicate)}.")
        return NamedLinks(path, readings, others)
    format_name = _link_format(path)
    if format_name in SYNTAXES:
        iris, others, by_predicate = read_equivalences(path, format_name)
        note(path, f"{counted(by_predicate)}.")
        pairs = iris.map(to_names)
        return NamedLinks(path, (pairs, pairs.swap()), others)  # sameness is symmetric
    table = read_columns(
        path, format_name, link_header, wanted=LINK_COLUMNS, hint="Is this a triples file?"
    )
    if not table.num_rows:
        raise DataError(path, "expected links, got none.")
    return NamedLinks(path, (Pair(*table.columns).map(to_names),))


def _link_format(path: Path) -> str:
    """As for triples, but an unclear file is TSV, the usual format of links."""
    try:
        return detect_format(path)
    except DataError as error:
        if error.line is None:
            raise
        return "tsv"


def to_ids(links: NamedLinks, entities: Pair[Names]) -> tuple[IntArray, int]:
    """(n, 2): ids of the links between known entities, and the number of other links."""
    ids = np.full((len(links), 2), -1, dtype=np.int64)
    for reading in links.readings:
        open_rows = ids[:, 0] < 0
        source, target = entities.zip(reading).map_at_once(lambda side: side[0].ids_of(side[1]))
        now_known = open_rows & (source >= 0) & (target >= 0)
        ids[now_known] = np.stack([source, target], axis=1)[now_known]
    known = ids[:, 0] >= 0
    if not known.any():
        raise DataError(links.path, nothing_known("links between", links.readings[0], entities))
    return ids[known], int((~known).sum())


def nothing_known(what: str, names: Pair[pa.ChunkedArray], entities: Pair[Names]) -> str:
    """The message about a file whose every row names entities that are not in the graphs."""
    source, target = names
    problem = f"expected {what} entities of the two graphs, got none among {len(source):,}"
    turned = entities.source.ids_of(target), entities.target.ids_of(source)
    if all((ids >= 0).any() for ids in turned):
        return f"{problem}. Are source and target the wrong way round?"
    first = " and ".join(cut(repr(names[0].as_py())) for names in (source, target))
    return f"{problem}; the first is of {first}, which are not both in a triple."


def one_to_one(links: IntArray) -> IntArray:
    """One-to-one links: in order, a link is dropped if one of its entities is taken."""
    if not any(map(has_repeats, links.T)):
        return links
    contested = np.zeros(len(links), dtype=bool)
    for ids in links.T:
        _, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
        contested |= (counts > 1)[inverse]
    keep = ~contested
    used_sources: set[int] = set()
    used_targets: set[int] = set()
    # A link depends on all before it, so the few that share an entity are visited in order.
    rows = np.flatnonzero(contested)
    for row, (source, target) in zip(rows.tolist(), links[rows].tolist(), strict=True):
        if source not in used_sources and target not in used_targets:
            used_sources.add(source)
            used_targets.add(target)
            keep[row] = True
    return links[keep]


def find_line(path: Path, source: str, target: str) -> int | None:
    """The last line of a text file that links the two names; None for files without lines."""
    format_name = _link_format(path)
    if format_name not in TABLES or format_name == "parquet":
        return None
    delimiter = DELIMITERS[format_name]
    found = None
    for number, line in text_lines(path):
        cells = split_line(line, delimiter)
        if source in cells and target in cells:
            found = number
    return found
