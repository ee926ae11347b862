"""Ways to damage a file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable, Sequence

import pyarrow as pa

# Pieces that mean something to a reader: far likelier than random bytes to get deep into it.
TOKENS = [
    *(b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80"),
    b"\xf4\x90\x80\x80",
    *(b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b",", b" ", b'"', b"'", b'"""', b"\\", b"\\u"),
    b"\x1b[2J",
    *("\u2028".encode(), "\u0085".encode(), "\u202e".encode(), "\ufffe".encode()),
    "é".encode("latin-1"),
    *(b"<", b">", b"<<", b">>", b"<<(", b")>>", b"{|", b"|}", b"[", b"]", b"(", b")", b"{", b"}"),
    *(b".", b";", b"_:", b"_:b", b"<>", b"<a b>", b"<http://[>", b"@prefix", b"@base <x> .\n"),
    b"PREFIX : <",
    *(b"&", b"&a;", b"&e;", b"&#0;", b"&#x110000;", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?"),
    b"?>",
    *(b'<!ENTITY a "', b'<!ENTITY a "&a;&a;">', b"<!DOCTYPE x [", b"]>", b"<x xmlns:y=''>"),
    b"</rdf:RDF>",
    *(b'rdf:parseType="Collection"', b'rdf:ID="', b'rdf:nodeID="1"', b'xml:base="http://["'),
    *(b'"@context":', b'"@context": "http://x"', b'"@id":', b'"@graph":', b'"@type": 1,'),
    b'"@reverse":',
    *(b"null", b"1e999", b"-1", b"NaN", b"99999999999999999999", b"=HYPERLINK()", b"#", b"# "),
    *(b"%", b"%FF"),
    *(b"#curie_map:\n#  a: [", b"#a: &a [*a, *a]\n", b"#- x\n", b"#!!python/object:os.system\n"),
    b"#\t:\n",
    *(b"subject_id\tpredicate_id\tobject_id\n", b"source\ttarget\n", b"head,relation,tail\n"),
    b"h,r,t\n",
    *(b"owl:sameAs", b"<http://www.w3.org/2002/07/owl#sameAs>", b"sssom:NoTermFound", b"Not"),
    b"http://knowledgeweb.semanticweb.org/heterogeneity/alignment#relation",
    b"urn:clusterea:source:%FF",
    *(b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"$HDT"),
]
COMPRESSORS: list[Callable[[bytes], bytes]] = [
    *(gzip.compress, bz2.compress, lzma.compress),
    lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
]
Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def _span(rng: random.Random, content: bytes) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice([1, 2, 4, 8, 30, 200]))


def _flip(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8]) if content else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _delete(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + content[end:]


def _insert(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    start, _ = _span(rng, content)
    token = rng.choice(TOKENS) * rng.choice([1, 1, 1, 1, 2, 50, 5_000])
    return content[:start] + token + content[start:]


def _replace(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + rng.choice(TOKENS) + content[end:]


def _noise(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + rng.randbytes(end - start) + content[end:]


def _repeat(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + content[start:end] * rng.choice([2, 3, 100, 20_000]) + content[end:]


def _splice(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def _swap_lines(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    lines = content.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def _long_cell(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    start, _ = _span(rng, content)
    return content[:start] + rng.choice([b"x", b"\xc3\xa9", b"["]) * 200_000 + content[start:]


def _encode(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    encoding = rng.choice(["utf-16", "utf-16-be", "utf-32", "latin-1", "cp037", "utf-7"])
    return content.decode("utf-8", "replace").encode(encoding, "replace")


def _compress(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    return rng.choice(COMPRESSORS)(content)


def _garbage(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    return rng.randbytes(rng.choice([0, 1, 10, 1_000]))


CHANGES: list[Change] = [
    *(_flip, _flip, _flip, _insert, _insert, _insert, _replace, _replace, _delete, _noise),
    *(_cut, _repeat, _splice, _swap_lines, _long_cell, _encode, _compress, _garbage),
]


def damaged(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """The content after one to four changes; `others` are files to splice with."""
    for _ in range(rng.choice([1, 1, 2, 3, 4])):
        content = rng.choice(CHANGES)(rng, content, others)
    return content
