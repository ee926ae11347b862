"""IRIs as CURIEs with generated prefixes, for SSSOM and its `curie_map`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from itertools import takewhile

import pyarrow as pa

from clusterea.data.name_iris import NAMESPACE
from clusterea.types import Pair

VOCABULARIES = {
    "clusterea": NAMESPACE,
    "owl": "http://www.w3.org/2002/07/owl#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "sssom": "https://w3id.org/sssom/",
}
_PREFIX = re.compile(r"(?!https?$)[A-Za-z_][\w.-]*", re.ASCII)
_HOST = re.compile(f"{NAMESPACE}|[^:]*:(?://[^/?#]*/?)?")


def curies(iris: Pair[pa.Array]) -> tuple[Pair[pa.Array], dict[str, str]]:
    """The IRIs of both sides as CURIEs, and the expansion of each prefix.

    The IRIs of one host share a prefix, which expands to their longest common start. The host with
    most IRIs has the prefix `ns1`, the next one `ns2`.
    """
    texts = iris.map(lambda side: side.to_pylist())
    hosts = texts.map(lambda side: [_host(iri) for iri in side])
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for side, hosts_of in texts.zip(hosts):
        for iri, host in zip(side, hosts_of, strict=True):
            groups[host].append(iri)
    prefixes = {address: prefix for prefix, address in VOCABULARIES.items()}
    starts: dict[str, tuple[str, int]] = {}  # host → prefix, and length of what it replaces
    for host in sorted(groups, key=lambda host: (-len(groups[host]), host)):
        address = _address(host, min(groups[host]), max(groups[host]))
        prefixes.setdefault(address, f"ns{len(prefixes) - len(VOCABULARIES) + 1}")
        starts[host] = f"{prefixes[address]}:", len(address)

    def shortened(side: tuple[list[str], list[str]]) -> pa.Array:
        parts = ((iri, *starts[host]) for iri, host in zip(*side, strict=True))
        return pa.array([begin + iri[length:] for iri, begin, length in parts], pa.large_string())

    return texts.zip(hosts).map(shortened), {prefix: start for start, prefix in prefixes.items()}


def is_prefix(text: str) -> bool:
    """Whether CURIEs may begin with the text: a word, and no scheme of web addresses."""
    return _PREFIX.fullmatch(text) is not None


def shortener(curie_map: dict[str, str]) -> Callable[[str], str | None]:
    """A function from an IRI to its CURIE by the longest address that fits; None if none does."""
    prefixes = {address: prefix for prefix, address in curie_map.items() if is_prefix(prefix)}
    lengths = sorted({len(address) for address in prefixes if address}, reverse=True)

    def shortened(iri: str) -> str | None:
        for length in lengths:
            if length < len(iri) and iri[:length] in prefixes:
                return f"{prefixes[iri[:length]]}:{iri[length:]}"
        return None

    return shortened


def _host(iri: str) -> str:
    """`http://example.org/` of `http://example.org/a/b`; `urn:` of `urn:isbn:1`."""
    found = _HOST.match(iri)
    assert found is not None
    return found[0]


def _address(host: str, least: str, largest: str) -> str:
    """The common start of the IRIs of a host, up to a delimiter, shorter than any of them."""
    if host == NAMESPACE:
        return host
    # A common start of the first and the last is common to all.
    same = takewhile(lambda two: two[0] == two[1], zip(least[:-1], largest, strict=False))
    shared = "".join(character for character, _ in same)
    return shared[: max(shared.rfind(mark) for mark in "/#:") + 1]
