"""The formats of triples, and how a file's format is detected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from clusterea.data.named_graph import NamedGraph, with_triples
from clusterea.data.ntriples import read_ntriples
from clusterea.data.rdf import SYNTAXES, read_rdf
from clusterea.data.streams import (
    first_bytes,
    first_line,
    first_statement,
    is_parquet,
    open_plain,
    suffix_of,
)
from clusterea.data.tables import TABLES, read_bare_triples, read_table
from clusterea.data.unread import is_json, refuse_unread
from clusterea.errors import DataError, unknown_name

FILE_FORMATS = (*SYNTAXES, *TABLES)
LAYOUT = "layout"  # as the files of a dataset's folder are
FAMILIES = {"rdf": tuple(SYNTAXES), "table": TABLES}  # a family's member is told from the file
SUFFIXES = {
    ".nt": "ntriples",
    ".ntriples": "ntriples",
    ".nq": "nquads",
    ".nquads": "nquads",
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".trig": "trig",
    ".n3": "n3",
    ".jsonld": "jsonld",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
# Suffixes of several formats. The content decides; if it can't, the format is this.
_VAGUE_SUFFIXES = {".rdf": "rdfxml", ".owl": "rdfxml", ".xml": "rdfxml", ".json": "jsonld"}
_TURTLE_STARTS = ("@prefix", "@base", "prefix ", "base ")
_IRI = r"<[^>\s]*>"
_NODE = rf"(?:{_IRI}|_:\S+)"
_LITERAL = rf'"(?:[^"\\]|\\.)*"(?:@\S+|\^\^{_IRI})?'
_END = r"\s*\.\s*(?:#.*)?$"
_QUAD = re.compile(rf"{_NODE}\s+{_IRI}\s+(?:{_NODE}|{_LITERAL})\s+{_NODE}{_END}")
_TRIPLE = re.compile(rf"{_NODE}\s+{_IRI}\s.*{_END}")
_NAMED_GRAPH = re.compile(rf"(?:graph\s+)?{_NODE}\s*\{{", re.IGNORECASE)


def detect_format(path: Path) -> str:
    """The file's format, by its suffix or else by its first line."""
    suffix = suffix_of(path)
    known = SUFFIXES.get(suffix)
    if known:
        with open_plain(path):
            return known
    if is_parquet(path):
        return "parquet"
    refuse_unread(path)
    found = _rdf_format(path) or _VAGUE_SUFFIXES.get(suffix)
    if found:
        return found
    line = _first(path)
    if "\t" in line:
        return "tsv"
    if "," in line:
        return "csv"
    raise DataError(
        path,
        f"can't tell its format; give one with --format: {', '.join(FILE_FORMATS)}.",
        line=1,
    )


def _rdf_format(path: Path) -> str | None:
    """The RDF syntax that the beginning of the file suggests, if any."""
    if is_json(first_bytes(path, 1 << 10)):
        return "jsonld"
    if suffix_of(path) in _VAGUE_SUFFIXES and not first_bytes(path, 1):
        return None  # an empty file is what its suffix says
    line = _first(path)
    if line.startswith(("<?xml", "<rdf:RDF", "<!")):
        return "rdfxml"
    if line.lower().startswith(_TURTLE_STARTS):
        return "turtle"
    if _NAMED_GRAPH.match(line):
        return "trig"
    if _QUAD.match(line):
        return "nquads"
    return "ntriples" if _TRIPLE.match(line) else None


def _first(path: Path) -> str:
    return (first_statement(path) or first_line(path)[1]).strip()


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
    path: Path,
    format_name: str | None = None,
    columns: Sequence[str] | None = None,
    label_properties: Sequence[str] = (),
) -> NamedGraph:
    """The graph in one file of triples.

    Args:
        path: The file.
        format_name: Its format or family; None: told from the file. `LAYOUT` is TSV that has no
            header, whatever its first line says.
        columns: The columns of a table that are head, relation and tail.
        label_properties: Of RDF, beside the usual ones.
    """
    if format_name == LAYOUT:
        named = read_bare_triples(path)
    elif (resolved := resolve_format(path, format_name)) == "ntriples":
        named = read_ntriples(path, label_properties)
    elif resolved in SYNTAXES:
        named = read_rdf(path, resolved, label_properties)
    else:
        named = read_table(path, resolved, columns)
    return with_triples(named, path)
