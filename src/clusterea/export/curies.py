"""IRIs as CURIEs, with prefixes made for them: SSSOM wants identifiers short, and a `curie_map`."""

from __future__ import annotations

from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.name_iris import NAMESPACE
from clusterea.types import Pair

VOCABULARIES = {
    "clusterea": NAMESPACE,
    "owl": "http://www.w3.org/2002/07/owl#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "sssom": "https://w3id.org/sssom/",
}


def curies(iris: Pair[pa.Array]) -> tuple[Pair[pa.Array], dict[str, str]]:
    """The IRIs of both sides as CURIEs, and the address of each prefix.

    The IRIs of one host share a prefix, which stands for as much as all of them begin with:
    `ns1` for the host that most are of, then `ns2`.
    """
    both = pa.chunked_array([iris.source, iris.target])
    groups = pa.table({"host": _hosts(both), "iri": both}).group_by("host")
    hosts = groups.aggregate([("iri", "min"), ("iri", "max"), ("iri", "count")])
    hosts = hosts.sort_by([("iri_count", "descending"), ("host", "ascending")])
    addresses = [
        _address(host, least, largest)
        for host, least, largest in zip(
            *(hosts[name].to_pylist() for name in ("host", "iri_min", "iri_max")), strict=True
        )
    ]
    prefixes = {address: prefix for prefix, address in VOCABULARIES.items()}
    for address in addresses:
        prefixes.setdefault(address, f"ns{len(prefixes) - len(VOCABULARIES) + 1}")
    begins = [f"{prefixes[address]}:" for address in addresses]
    lengths = [len(address) for address in addresses]
    known = pa.array(hosts["host"].to_pylist(), pa.large_string())

    def shortened(side: pa.Array) -> pa.Array:
        numbers = pc.index_in(_hosts(side), value_set=known).to_pylist()
        texts = [
            begins[number] + iri[lengths[number] :]
            for iri, number in zip(side.to_pylist(), numbers, strict=True)
        ]
        return pa.array(texts, pa.large_string())

    return iris.map(shortened), {prefix: address for address, prefix in prefixes.items()}


def _hosts(iris: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`http://example.org/` of `http://example.org/a/b`; `urn:` of `urn:isbn:1`."""
    return pc.replace_substring_regex(
        iris, pattern=f"^({NAMESPACE}|[^:]*:(?://[^/?#]*/?)?).*$", replacement=r"\1"
    )


def _address(host: str, least: str, largest: str) -> str:
    """What all IRIs of a host begin with, up to a delimiter, and shorter than any of them."""
    if host == NAMESPACE:
        return host
    # What the first and the last of them share, all of them do.
    same = takewhile(lambda two: two[0] == two[1], zip(least[:-1], largest, strict=False))
    shared = "".join(character for character, _ in same)
    return shared[: max(shared.rfind(mark) for mark in "/#:") + 1]
