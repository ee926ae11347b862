"""Names as IRIs, for formats that hold only IRIs, and back.

A name that is an absolute IRI stands for itself. Any other is written percent-encoded under
`urn:clusterea:source:` or `urn:clusterea:target:`, so that a `Paris` of either graph stays two
things. `to_names` finds the name in such an IRI.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.types import Pair

NAMESPACE = "urn:clusterea:"
NAMESPACES = Pair(f"{NAMESPACE}source:", f"{NAMESPACE}target:")

# RFC 3987: ucschar of the first planes, and all of the planes above but their last two characters.
_PLANES = [(0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF)]
_PLANES += [(plane << 16, (plane << 16) + 0xFFFD) for plane in range(0x1, 0xE)]
_PLANES += [(0xE1000, 0xEFFFD)]
_LETTERS = r"A-Za-z0-9\-._~!$&'()*+,;=" + "".join(chr(a) + "-" + chr(b) for a, b in _PLANES)
_ENCODED = "%[0-9A-Fa-f]{2}"
_SEGMENT = f"(?:[{_LETTERS}:@]|{_ENCODED})"
_AUTHORITY = f"//(?:(?:[{_LETTERS}:]|{_ENCODED})*@)?(?:[{_LETTERS}]|{_ENCODED})*(?::[0-9]*)?"
_IRI = (
    rf"^[A-Za-z][A-Za-z0-9+.\-]*:(?:{_AUTHORITY}(?:/(?:{_SEGMENT}|/)*)?"
    rf"|/?{_SEGMENT}(?:{_SEGMENT}|/)*|/)"
    rf"(?:\?(?:{_SEGMENT}|[/?])*)?(?:#(?:{_SEGMENT}|[/?])*)?$"
)
_OWN = re.compile(f"^{NAMESPACE}(source|target):")
_HIGH = "%[89A-Fa-f][0-9A-Fa-f]"  # a byte of a character beyond ASCII
_HIGH_RUN = re.compile(f"(?:{_HIGH})+")
_ASCII = bytes(range(0x80))
# A URN's own part may have these (RFC 8141); a `/` must not come first, so none comes at all.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@"


def to_iris(names: pa.Array, namespace: str) -> pa.Array:
    """Each name as a valid IRI, in `namespace` if it is none. Different names stay different."""
    are_iris = pc.and_not(
        pc.match_substring_regex(names, _IRI), pc.starts_with(names, pattern=NAMESPACE)
    )
    return _into(namespace, pc.invert(are_iris), names, names)


def to_uris(names: pa.Array, namespace: str) -> pa.Array:
    """As `to_iris`, in ASCII (RFC 3987, section 3.1). Different names stay different."""
    iris = to_iris(names, namespace)
    high = pc.invert(pc.string_is_ascii(iris))
    if not pc.any(high).as_py():
        return iris
    uris = _replaced(iris, high, _percent_encoded(iris.filter(high), _ASCII))
    # The URI of a partly encoded IRI would be ambiguous.
    encoded = pc.match_substring_regex(iris, _HIGH)
    written = iris.filter(pc.and_not(encoded, high))
    unclear = pc.and_(high, pc.or_(encoded, pc.is_in(uris, value_set=written)))
    return _into(namespace, unclear, names, uris)


def to_cells(names: pa.Array, namespace: str) -> pa.Array:
    """Each name as a cell of TSV: itself, or an IRI if it contains a tab or a line end."""
    breaks = pc.match_substring_regex(names, f"^$|^{NAMESPACE}|[\t\r\n]")
    return _into(namespace, breaks, names, names)


def to_names(iris: pa.ChunkedArray) -> pa.ChunkedArray:
    """The names without our namespaces; other names are unchanged."""
    return _changed(iris, _OWN.pattern, lambda iri: unquote(_OWN.sub("", iri)))


def beyond_ascii(uris: pa.ChunkedArray) -> pa.ChunkedArray:
    """The IRIs that `to_uris` encoded; others are unchanged."""
    return _changed(uris, _HIGH, lambda uri: _HIGH_RUN.sub(lambda run: _decoded(run[0]), uri))


@lru_cache(maxsize=1 << 16)  # the same few letters repeat
def _decoded(run: str) -> str:
    try:
        return bytes.fromhex(run.replace("%", "")).decode()
    except UnicodeDecodeError:
        return run


def _into(namespace: str, mask: pa.Array, names: pa.Array, others: pa.Array) -> pa.Array:
    """`others`, with the names of `mask` in `namespace` in their place."""
    encoded = _percent_encoded(names.filter(mask), _PLAIN)
    text = pa.large_string()
    parts = pa.scalar(namespace, text), encoded, pa.scalar("", text)
    return _replaced(others, mask, pc.binary_join_element_wise(*parts))


def _percent_encoded(strings: pa.Array, plain: bytes) -> pa.Array:
    """The strings with each byte that is not `plain` percent-encoded."""
    data = strings.buffers()[2]
    others = set(data.to_pybytes().translate(None, plain)) if data else set()
    bytes_ = strings.cast(pa.large_binary())
    # One pass for each such byte there is, the percent sign before those that bring new ones.
    for byte in sorted(others, key=lambda byte: (byte != ord("%"), byte)):
        bytes_ = pc.replace_substring(bytes_, bytes([byte]), f"%{byte:02X}".encode())
    return bytes_.cast(pa.large_string())


def _changed(
    strings: pa.ChunkedArray, pattern: str, change: Callable[[str], str]
) -> pa.ChunkedArray:
    """The strings, those that match `pattern` changed."""
    chunks = []
    for chunk in strings.chunks:
        matches = pc.match_substring_regex(chunk, pattern)
        new = [change(each) for each in chunk.filter(matches).to_pylist()]
        chunks.append(_replaced(chunk, matches, pa.array(new, pa.large_string())))
    return pa.chunked_array(chunks, pa.large_string())


def _replaced(strings: pa.Array, mask: pa.Array, new: pa.Array) -> pa.Array:
    return pc.replace_with_mask(strings, mask, new) if len(new) else strings
