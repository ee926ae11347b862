"""What a file of triples may be, and how its format is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from clusterea.data.named_graph import NamedGraph, with_triples
from clusterea.data.rdf import SYNTAXES, read_rdf
from clusterea.data.streams import (
    first_line,
    first_statement,
    is_parquet,
    open_plain,
    suffix_of,
)
from clusterea.data.tables import TABLES, read_bare_triples, read_table
from clusterea.errors import DataError, unknown_name

FILE_FORMATS = (*SYNTAXES, *TABLES)
LAYOUT = "layout"  # as the files of a dataset's folder are
FAMILIES = {"rdf": tuple(SYNTAXES), "table": TABLES}  # a family's member is told from the file
SUFFIXES = {
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".rdf": "rdfxml",
    ".owl": "rdfxml",
    ".xml": "rdfxml",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_TURTLE_STARTS = ("@prefix", "@base", "prefix ", "base ")


def detect_format(path: Path) -> str:
    """The file's format, by its suffix or else by its first line."""
    known = SUFFIXES.get(suffix_of(path))
    if known:
        with open_plain(path):
            return known
    if is_parquet(path):
        return "parquet"
    line = (first_statement(path) or first_line(path)[1]).strip()
    if line.startswith(("<?xml", "<rdf:RDF", "<!")):
        return "rdfxml"
    if line.lower().startswith(_TURTLE_STARTS):
        return "turtle"
    if re.match(r"(<[^>\s]*>|_:\S+)\s+<[^>\s]*>\s.*\.\s*(#.*)?$", line):
        return "ntriples"
    if "\t" in line:
        return "tsv"
    if "," in line:
        return "csv"
    raise DataError(
        path,
        f"can't tell its format; give one with --format: {', '.join(FILE_FORMATS)}.",
        line=1,
    )


def resolve_format(path: Path, name: str | None) -> str:
    """The format called `name`, or the one detected; a family narrows what may be detected."""
    if name is None:
        return detect_format(path)
    if name in FAMILIES:
        detected = detect_format(path)
        if detected not in FAMILIES[name]:
            raise DataError(
                path,
                f"expected one of {', '.join(FAMILIES[name])}, got what looks like {detected}.",
            )
        return detected
    if name not in FILE_FORMATS:
        raise unknown_name("format", name, (*FILE_FORMATS, *FAMILIES))
    return name


def read_graph(
    path: Path, format_name: str | None = None, columns: Sequence[str] | None = None
) -> NamedGraph:
    """The graph in one file of triples.

    Args:
        path: The file.
        format_name: Its format or family; None: told from the file. `LAYOUT` is TSV that has no
            header, whatever its first line says.
        columns: The columns of a table that are head, relation and tail.
    """
    if format_name == LAYOUT:
        named = read_bare_triples(path)
    elif (resolved := resolve_format(path, format_name)) in SYNTAXES:
        named = read_rdf(path, resolved)
    else:
        named = read_table(path, resolved, columns)
    return with_triples(named, path)
