"""`read_ntriples`: N-Triples, of which most lines are read as columns of text.

A triple of three ordinary IRIs and a literal that can't be a label take no Python object. All other
lines (blank nodes, labels, escapes, comments, errors) go to pyoxigraph. Memory follows the number
of names and triples, not the length of the text.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.named_graph import NamedGraph
from clusterea.data.rdf import Statements, TripleColumns, parsed, read_rdf
from clusterea.data.streams import (
    LONGEST_LINE,
    UNPACK_ERRORS,
    UTF8_BOM,
    open_stream,
    refuse_utf16,
)
from clusterea.threads import available_cpus

BLOCK = 1 << 24  # bytes of text that are read at a time
# Stricter than RFC 3987, so that no line is taken here that pyoxigraph would refuse or change.
_CHARACTER = (
    r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}-]"
    r"|%[0-9A-Fa-f]{2})*"
)
_IRI = rf"(?:https?://[A-Za-z0-9.-]+(?:/{_CHARACTER})?(?:#{_CHARACTER})?)"
_XSD = r"http://www\.w3\.org/2001/XMLSchema#"
_SPACE, _END = r"[ \t]+", r"[ \t]*\.[ \t]*\r?\n$"
_TRIPLE = rf"^<(?P<head>{_IRI})>{_SPACE}<(?P<relation>{_IRI})>{_SPACE}<(?P<tail>{_IRI})>{_END}"
_LITERAL = (
    rf"^<{_IRI}>{_SPACE}<(?P<relation>{_IRI})>{_SPACE}"
    rf'"[^"\\\r\n]*"(?:@[a-zA-Z]{{2,3}}(?:-[A-Z]{{2}})?|\^\^<{_XSD}[A-Za-z]+>)?{_END}'
)


def read_ntriples(path: Path, label_properties: Sequence[str] = ()) -> NamedGraph:
    """As `read_rdf`, which reads a file with an error or a very long line once more."""
    others = Statements(keep_ids=True, label_properties=label_properties)
    triples, literals = [], 0
    try:
        for block in _blocks(path, others.labels.properties):
            triples.append(block.triples)
            literals += block.literals
            rest = io.BufferedReader(io.BytesIO(block.others))
            others.add(parsed(rest, path, "ntriples"))
    except (SyntaxError, pa.ArrowInvalid, *UNPACK_ERRORS):
        return read_rdf(path, "ntriples", label_properties)
    return others.graph(path, triples, literals)


@dataclass(frozen=True, slots=True)
class _Block:
    """What a block of lines says."""

    triples: TripleColumns
    literals: int  # triples with a literal
    others: bytes  # lines for pyoxigraph


def _blocks(path: Path, label_properties: Sequence[str]) -> Iterator[_Block]:
    """All blocks, in their order; about as many at a time as there are CPUs."""
    labels = pa.array(label_properties, pa.large_string())
    width = available_cpus()
    with open_stream(path) as file, ThreadPoolExecutor(width) as pool:
        start = file.peek(len(UTF8_BOM))
        refuse_utf16(start, path)
        if start.startswith(UTF8_BOM):
            file.read(len(UTF8_BOM))
        ahead: deque[Future[_Block]] = deque()
        while text := file.read(BLOCK):
            rest = file.readline(LONGEST_LINE)
            if len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
                raise SyntaxError("a line that is too long to be held")
            ahead.append(pool.submit(_block, text + rest, labels))
            if len(ahead) > width:
                yield ahead.popleft().result()
        for each in ahead:
            yield each.result()


def _block(text: bytes, labels: pa.Array) -> _Block:
    lines = _lines(text)
    found = pc.extract_regex(lines, _TRIPLE)
    is_triple = found.is_valid()
    triples = (column.dictionary_encode() for column in found.filter(is_triple).flatten())
    lines = lines.filter(pc.invert(is_triple))
    [relations] = pc.extract_regex(lines, _LITERAL).flatten()
    is_literal = pc.and_(relations.is_valid(), pc.invert(pc.is_in(relations, labels)))
    others = lines.filter(pc.invert(is_literal))
    return _Block(TripleColumns(*triples), len(lines) - len(others), _text(others))


def _lines(text: bytes) -> pa.LargeStringArray:
    """The lines with their ends. Raises if the text is not UTF-8."""
    if not text.endswith(b"\n"):
        text += b"\n"
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends])
    buffers = pa.py_buffer(offsets), pa.py_buffer(text)
    lines = pa.LargeStringArray.from_buffers(len(ends), *buffers)
    lines.validate(full=True)
    return lines


def _text(lines: pa.LargeStringArray) -> bytes:
    """The text of all lines, which are no part of another array."""
    if not len(lines):
        return b""
    _, offsets, text = lines.buffers()
    return memoryview(text)[: np.frombuffer(offsets, dtype=np.int64)[len(lines)]].tobytes()
