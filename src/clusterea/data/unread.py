"""Formats that can't be read, and what to convert them to."""

from __future__ import annotations

import re
from pathlib import Path

from clusterea.data.streams import first_bytes, suffix_of
from clusterea.errors import DataError

_TO_RDF = "convert it to RDF/XML, Turtle or N-Triples"
_TO_TABLE = "save its edges as CSV, TSV or Parquet with the columns head, relation, tail"
_UNPACK = "unpack it, and give the files in it"
# Name, and what to do.
_HDT = ("HDT", _TO_RDF)
_OBO = ("OBO", _TO_RDF)
_FUNCTIONAL = ("OWL functional syntax", _TO_RDF)
_MANCHESTER = ("OWL Manchester syntax", _TO_RDF)
_OWL_XML = ("OWL/XML", _TO_RDF)
_TRIX = ("TriX", _TO_RDF)
_GRAPHML = ("GraphML", _TO_TABLE)
_GEXF = ("GEXF", _TO_TABLE)
_JSON_LINES = ("JSON lines", _TO_TABLE)
_JSON = ("JSON without JSON-LD's @context, @graph or @id", f"{_TO_TABLE}, or give JSON-LD")
_EXCEL = ("a spreadsheet", _TO_TABLE)
_SQLITE = ("SQLite", _TO_TABLE)
_NEO4J = ("a Neo4j dump", _TO_TABLE)
_ARROW = ("an Arrow file", _TO_TABLE)
_ARCHIVE = ("an archive", _UNPACK)

_BY_SUFFIX = {
    ".hdt": _HDT,
    ".obo": _OBO,
    ".ofn": _FUNCTIONAL,
    ".fss": _FUNCTIONAL,
    ".omn": _MANCHESTER,
    ".owx": _OWL_XML,
    ".trix": _TRIX,
    ".graphml": _GRAPHML,
    ".gexf": _GEXF,
    ".gml": ("GML", _TO_TABLE),
    ".dot": ("DOT", _TO_TABLE),
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".xlsx": _EXCEL,
    ".xls": _EXCEL,
    ".ods": _EXCEL,
    ".sqlite": _SQLITE,
    ".sqlite3": _SQLITE,
    ".db": _SQLITE,
    ".dump": _NEO4J,
    ".cypher": ("Cypher", _TO_TABLE),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".orc": ("ORC", _TO_TABLE),
    ".avro": ("Avro", _TO_TABLE),
    ".tar": _ARCHIVE,
    ".tgz": _ARCHIVE,
    ".7z": _ARCHIVE,
    ".rar": _ARCHIVE,
}
_BY_START = (
    (re.compile(rb"\$HDT"), _HDT),
    (re.compile(rb"SQLite format 3\0"), _SQLITE),
    (re.compile(rb"ARROW1\0\0"), _ARROW),
    (re.compile(rb"\s*format-version:"), _OBO),
    (re.compile(rb"\s*(Prefix|Ontology)\("), _FUNCTIONAL),
    (re.compile(rb"\s*(Prefix|Ontology):\s"), _MANCHESTER),
    (re.compile(rb"\s*(di|strict\s+di)?graph\b[^\n]*[\[{]\s*\n"), ("a graph drawing", _TO_TABLE)),
)
_BY_ROOT = {
    b"graphml": _GRAPHML,
    b"gexf": _GEXF,
    b"ontology": _OWL_XML,
    b"trix": _TRIX,
    b"html": ("HTML", "give the file itself, not the page that links to it"),
}
_HEAD_BYTES = 1 << 16
_PROLOG = re.compile(rb"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ELEMENT = re.compile(rb"<(?:[\w.-]+:)?([A-Za-z][\w.-]*)")
_LINKED_DATA = re.compile(rb'"@(context|id|graph|type)"\s*:')


def refuse_unread(path: Path) -> None:
    """Raises if the file has a known format that can't be read."""
    found = _BY_SUFFIX.get(suffix_of(path))
    if found is None:
        head = first_bytes(path, _HEAD_BYTES)
        found = next((kind for start, kind in _BY_START if start.match(head)), None)
        if head.lstrip().startswith(b"<"):
            root = _ELEMENT.search(_PROLOG.sub(b"", head))
            found = _BY_ROOT.get(root[1].lower()) if root else None
        elif is_json(head) and not _LINKED_DATA.search(head):
            found = _JSON
    if found is not None:
        kind, advice = found
        raise DataError(path, f"{kind} is not read; {advice}.")


def is_json(head: bytes) -> bool:
    """Whether a file that begins like this is JSON. A list in Turtle begins alike."""
    return re.match(rb'\s*(\{\s*["}]|\[\s*[\[{"\]])', head) is not None
