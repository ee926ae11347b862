"""Refuses RDF that would exhaust memory or the stack, and RDF/XML that is cut off.

An XML entity that stands for ten others, which each stand for ten others, and so on, grows without
bound: the "billion laughs". Triples inside triples inside triples overflow the parser's stack, and
objects inside objects of JSON-LD take it hours.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from clusterea.errors import DataError, cut

# Ontologies declare a few dozen namespaces as entities, and their text is about twice as long with
# these expanded.
MOST_ENTITIES = 1_000
LONGEST_ENTITY = 300  # bytes, with the entities in it expanded
MOST_GROWTH = 10  # times the text, of what all references expand to
_SMALL = 1 << 20  # bytes of expanded references that are never too much
DEEPEST_TRIPLE = 100
DEEPEST_JSON = 200  # brackets
_LONGEST_DECLARATION = 4_096
_CHUNK_BYTES = 1 << 16
_DECLARATION = re.compile(rb'<!ENTITY([^"<]*)"([^"<]*)"')
_UNFINISHED = re.compile(rb'<(?:!(?:E(?:N(?:T(?:I(?:T(?:Y[^"<]*(?:"[^"<]*)?)?)?)?)?)?)?)?\Z')
_ELEMENT = re.compile(rb"<([^\s<>/!?][^\s<>/]*)[\s<>/]")
# Comments, processing instructions and CDATA, where "<" starts no tag, or the start of one.
_NO_TAGS = re.compile(
    rb"<(?:!--.*?(?:-->|(\Z))|\?.*?(?:\?>|(\Z))|!\[CDATA\[.*?(?:\]\]>|(\Z))"
    rb"|((?:!-?|!\[[CDAT]*)?\Z))",
    re.DOTALL,
)
_LONGEST_NAME = 256  # bytes of the root's name that are compared
_KEPT_BYTES = 300  # of a long text, at its start and at its end
_ADVICE = "Save it as Turtle, which has no entities."
_REFERENCE = re.compile(rb"&([^;&]*);")
_PREDEFINED = {b"lt", b"gt", b"amp", b"apos", b"quot"}
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|(\Z))', re.DOTALL)  # or the start of one
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TRIPLE_ENDS = re.compile(rb"<<\(|\)>>")


def guarded(file: io.BufferedReader, path: Path, format_name: str) -> io.BufferedReader:
    """The file's content. Reading raises a `DataError` if it is an attack or is cut off."""
    kind = {"rdfxml": _Xml, "jsonld": _Json}.get(format_name, _Nesting)
    return io.BufferedReader(kind(file, path), _CHUNK_BYTES)


class _Guard(io.RawIOBase):
    """Passes bytes on after it has checked them."""

    def __init__(self, file: io.BufferedReader, path: Path) -> None:
        self._file = file
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        if data:
            self._check(data)
        else:
            self._check_end()
        buffer[: len(data)] = data
        return len(data)

    def _check(self, data: bytes) -> None:
        """Raises if the next bytes make the content an attack."""
        raise NotImplementedError

    def _check_end(self) -> None:
        """Raises if the file is cut off."""


class _Xml(_Guard):
    """Bounds what entities expand to, and wants the root to be closed.

    The parser takes declarations of entities anywhere, and a file that ends between two elements.
    """

    def __init__(self, file: io.BufferedReader, path: Path) -> None:
        super().__init__(file, path)
        self._sizes: dict[bytes, int] = {}  # of entities, expanded
        self._read = self._expanded = 0  # bytes
        self._root: bytes | None = None
        self._last_tag = b""  # the last one so far, and the text after it, both shortened
        self._open = b""  # a comment or the like that goes on in the next bytes, shortened
        self._unfinished = b""  # a declaration that goes on in the next bytes

    def _check(self, data: bytes) -> None:
        self._follow_tags(data)
        text = self._unfinished + data
        for declaration in _DECLARATION.finditer(text):
            self._declare(*declaration.groups())
        self._read += len(data)
        if self._sizes:
            references = _REFERENCE.findall(data)
            self._expanded += sum(self._sizes.get(name, 0) for name in references)
        if self._expanded > max(_SMALL, MOST_GROWTH * self._read):
            problem = f"expected XML entities to make it at most {MOST_GROWTH} times as long"
            raise DataError(self._path, f"{problem}, got more. {_ADVICE}")
        last = text[text.rfind(b"<") :]
        self._unfinished = last if _UNFINISHED.match(last) else b""
        if len(self._unfinished) > _LONGEST_DECLARATION:
            raise self._too_much("a longer one")

    def _follow_tags(self, data: bytes) -> None:
        """Finds the root's name and the last tag so far."""
        text, self._open = self._last_tag + self._open + data, b""
        if b"<!" in text or b"<?" in text or text.endswith(b"<"):
            text = _NO_TAGS.sub(self._leave_out, text)
        if self._root is None:
            root = _ELEMENT.search(text)
            self._root = root[1][:_LONGEST_NAME] if root else None
        self._last_tag = _shortened(text[max(text.rfind(b"<"), 0) :])

    def _leave_out(self, found: re.Match[bytes]) -> bytes:
        if found.lastindex:  # it ends in the next bytes
            self._open = _shortened(found[0])
        return b""

    def _check_end(self) -> None:
        last = self._last_tag.rstrip()
        closed = last.startswith(b"</") or last.endswith(b"/>")
        if self._root and not (closed and last.strip(b"</> \t\r\n").startswith(self._root)):
            name = cut(self._root.decode("utf-8", "replace"))
            raise DataError(self._path, f"expected </{name}> at its end; the file is cut off.")

    def _declare(self, before: bytes, value: bytes) -> None:
        name = before.replace(b"%", b" ").split()[-1:] or [b""]
        size = len(value)
        for reference in _REFERENCE.findall(value):
            if reference in _PREDEFINED or reference.startswith(b"#"):
                continue
            if reference not in self._sizes:
                unknown = cut(reference.decode("utf-8", "replace"))
                raise DataError(self._path, f"expected known XML entities, got &{unknown};.")
            size += self._sizes[reference]
        if size > LONGEST_ENTITY:
            raise self._too_much("a longer one")
        self._sizes[name[0]] = size
        if len(self._sizes) > MOST_ENTITIES:
            raise self._too_much("more")

    def _too_much(self, got: str) -> DataError:
        return DataError(
            self._path,
            f"expected at most {MOST_ENTITIES:,} XML entities of at most {LONGEST_ENTITY} "
            f"characters once expanded, got {got}. {_ADVICE}",
        )


def _shortened(text: bytes) -> bytes:
    """The start and the end of a long text; white space at the end counts as one space."""
    stripped = text.rstrip()
    space = b" " if len(stripped) < len(text) else b""
    if len(stripped) > 2 * _KEPT_BYTES:
        stripped = stripped[:_KEPT_BYTES] + b" " + stripped[-_KEPT_BYTES:]
    return stripped + space


class _Nesting(_Guard):
    """Bounds the nesting of triples in triples."""

    _depth = 0
    _rest = b""  # may be the start of a bracket

    def _check(self, data: bytes) -> None:
        text, end = self._rest + data, 0
        if b"<<(" not in text and b")>>" not in text:  # nearly always, and much faster
            self._rest = text[-2:]
            return
        for found in _TRIPLE_ENDS.finditer(text):
            self._depth = self._depth + 1 if found[0] == b"<<(" else max(self._depth - 1, 0)
            end = found.end()
            if self._depth > DEEPEST_TRIPLE:
                problem = f"expected triples in triples at most {DEEPEST_TRIPLE} deep, got more."
                raise DataError(self._path, problem)
        self._rest = text[max(end, len(text) - 2) :]


class _Json(_Guard):
    """Bounds the nesting of objects and lists."""

    _depth = 0
    _in_string = False
    _rest = b""  # a backslash whose character comes with the next bytes

    def _check(self, data: bytes) -> None:
        text = self._rest + data
        escapes = (len(text) - len(text.rstrip(b"\\"))) % 2
        self._rest = text[len(text) - escapes :]
        text = text[: len(text) - escapes]
        text = b'"' + text if self._in_string else text
        self._in_string = False
        for bracket in _STRING.sub(self._leave_out, text).translate(None, _NO_BRACKETS):
            self._depth += 1 if bracket in b"[{" else -1
            if self._depth > DEEPEST_JSON:
                problem = f"expected JSON at most {DEEPEST_JSON} brackets deep, got more."
                raise DataError(self._path, problem)

    def _leave_out(self, string: re.Match[bytes]) -> bytes:
        self._in_string = string[1] is not None
        return b""
