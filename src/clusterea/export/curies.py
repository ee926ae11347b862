"""IRIs as CURIEs, with prefixes made for them: SSSOM wants identifiers short, and a `curie_map`."""

from __future__ import annotations

import re
from collections import defaultdict
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
_HOST = re.compile(f"{NAMESPACE}|[^:]*:(?://[^/?#]*/?)?")


def curies(iris: Pair[pa.Array]) -> tuple[Pair[pa.Array], dict[str, str]]:
    """The IRIs of both sides as CURIEs, and the address of each prefix.

    The IRIs of one host share a prefix, which stands for as much as all of them begin with:
    `ns1` for the host that most are of, then `ns2`.
    """
    texts = iris.map(lambda side: side.to_pylist())
    hosts = texts.map(lambda side: [_host(iri) for iri in side])
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for side, hosts_of in texts.zip(hosts):
        for iri, host in zip(side, hosts_of, strict=True):
            groups[host].append(iri)
    prefixes = {address: prefix for prefix, address in VOCABULARIES.items()}
    starts: dict[str, tuple[str, int]] = {}  # host → what to write for how many characters
    for host in sorted(groups, key=lambda host: (-len(groups[host]), host)):
        address = _address(host, min(groups[host]), max(groups[host]))
        prefixes.setdefault(address, f"ns{len(prefixes) - len(VOCABULARIES) + 1}")
        starts[host] = f"{prefixes[address]}:", len(address)

    def shortened(side: tuple[list[str], list[str]]) -> pa.Array:
        parts = ((iri, *starts[host]) for iri, host in zip(*side, strict=True))
        return pa.array([begin + iri[length:] for iri, begin, length in parts], pa.large_string())

    return texts.zip(hosts).map(shortened), {prefix: start for start, prefix in prefixes.items()}


def _host(iri: str) -> str:
    """`http://example.org/` of `http://example.org/a/b`; `urn:` of `urn:isbn:1`."""
    found = _HOST.match(iri)
    assert found is not None
    return found[0]


def _address(host: str, least: str, largest: str) -> str:
    """What all IRIs of a host begin with, up to a delimiter, and shorter than any of them."""
    if host == NAMESPACE:
        return host
    # What the first and the last of them share, all of them do.
    same = takewhile(lambda two: two[0] == two[1], zip(least[:-1], largest, strict=False))
    shared = "".join(character for character, _ in same)
    return shared[: max(shared.rfind(mark) for mark in "/#:") + 1]
