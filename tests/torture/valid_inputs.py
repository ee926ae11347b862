"""Small valid inputs of every format and layout: what the fuzzer damages."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]
Case = tuple[Files, list[str], dict[str, Any]]  # files, paths to load, options

COUNT = 12
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
Triples = list[tuple[str, str, str]]


def triples(side: str) -> Triples:
    return [
        (
            f"http://{side}.org/é{n}",
            f"http://{side}.org/r{n % 3}",
            f"http://{side}.org/é{n * 5 % COUNT}",
        )
        for n in range(COUNT)
    ]


SOURCE, TARGET = triples("a"), triples("b")
LINKS = [(f"http://a.org/é{n}", f"http://b.org/é{n}") for n in range(COUNT)]


def delimited(rows: Sequence[tuple[str, ...]], delimiter: str = "\t", header: str = "") -> bytes:
    return (header + "".join(delimiter.join(row) + "\n" for row in rows)).encode()


def ntriples(rows: Triples) -> bytes:
    lines = "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in rows)
    return f'# a comment\n{lines}_:b <{rows[0][1]}> "x\\n\\u00e9"@en .\n'.encode()


def nquads(rows: Triples) -> bytes:
    return "".join(
        f"<{h}> <{r}> <{t}> <http://g/{n % 2}> .\n" for n, (h, r, t) in enumerate(rows)
    ).encode()


def turtle(rows: Triples) -> bytes:
    space = rows[0][0].rsplit("/", 1)[0] + "/"
    lines = "".join(
        f"e:{h[len(space) :]} e:{r[len(space) :]} <{t}> ;\n  a [ e:p ( 1 'x' ) ] .\n"
        for h, r, t in rows
    )
    return f"@prefix e: <{space}> .\n@base <{space}> .\n{lines}".encode()


def trig(rows: Triples) -> bytes:
    half = [rows[: COUNT // 2], rows[COUNT // 2 :]]
    graphs = ("".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in part) for part in half)
    return "".join(f"GRAPH <http://g/{n}> {{\n{part}}}\n" for n, part in enumerate(graphs)).encode()


def rdfxml(rows: Triples) -> bytes:
    space = rows[0][0].rsplit("/", 1)[0] + "/"
    nodes = "".join(
        f'<rdf:Description rdf:about="&e;{h[len(space) :]}">'
        f'<e:{r[len(space) :]} rdf:resource="{t}"/><e:name xml:lang="de">x &amp; y</e:name>'
        "</rdf:Description>\n"
        for h, r, t in rows
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE rdf:RDF [<!ENTITY e "{space}" >\n'
        f'<!ENTITY f "&e;f" >]>\n<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{space}">\n{nodes}</rdf:RDF>\n'
    ).encode()


def jsonld(rows: Triples) -> bytes:
    nodes = ",\n".join(f'{{"@id": "{h}", "{r}": [{{"@id": "{t}"}}, "x"]}}' for h, r, t in rows)
    return f'{{"@context": {{"name": "http://n/"}}, "@graph": [\n{nodes}]}}'.encode()


def parquet(columns: dict[str, list[str]], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def table(rows: Sequence[tuple[str, ...]], names: str) -> dict[str, list[str]]:
    columns = (list(column) for column in zip(*rows, strict=True))
    return dict(zip(names.split(","), columns, strict=True))


def sssom(links: list[tuple[str, str]]) -> bytes:
    head = "#mapping_set_id: http://m\n#curie_map:\n#  A: http://a.org/\n#  B: http://b.org/\n"
    predicates = ["skos:exactMatch", "owl:sameAs", "skos:closeMatch", "skos:broadMatch"]
    rows = [
        (a.replace("http://a.org/", "A:"), predicates[n % 4], b.replace("http://b.org/", "B:"), "")
        for n, (a, b) in enumerate(links)
    ]
    columns = "subject_id\tpredicate_id\tobject_id\tpredicate_modifier\n"
    return head.encode() + delimited(rows, header=columns)


def oaei(links: list[tuple[str, str]]) -> bytes:
    cells = "".join(
        f'<map><Cell><entity1 rdf:resource="{a}"/><entity2 rdf:resource="{b}"/>'
        "<relation>=</relation><measure>1.0</measure></Cell></map>\n"
        for a, b in links
    )
    name = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
    head = f"<rdf:RDF xmlns='{name}' xmlns:rdf='{RDF}'><Alignment>"
    return f"<?xml version='1.0'?>\n{head}{cells}</Alignment></rdf:RDF>".encode()


def zipped(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("content", content)
    return sink.getvalue()


def zstandard(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
    ".zip": zipped,
}
GRAPHS: dict[str, Callable[[Triples], bytes]] = {
    ".nt": ntriples,
    ".nq": nquads,
    ".ttl": lambda rows: turtle(rows) + b"<< e:a e:b e:c >> e:d '''x''' .\n",
    ".n3": turtle,
    ".trig": trig,
    ".rdf": rdfxml,
    ".jsonld": jsonld,
    ".tsv": delimited,
    ".csv": lambda rows: delimited(rows, ",", "Head,Relation,Tail\n"),
    ".parquet": lambda rows: parquet(table(rows, "head,relation,tail")),
}
EXPORTED: dict[str, bytes] = {
    ".tsv": delimited(LINKS),
    ".csv": delimited(LINKS, ",", "left,right\n"),
    ".parquet": parquet(table(LINKS, "source,target"), use_dictionary=False),
    ".nt": "".join(f"<{a}> <{OWL}sameAs> <{b}> .\n" for a, b in LINKS).encode(),
    ".ttl": "".join(f"<{a}> <{SKOS}exactMatch> <{b}> .\n" for a, b in LINKS).encode(),
    ".rdf": oaei(LINKS),
    ".sssom.tsv": sssom(LINKS),
    "": delimited(LINKS),
}


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}

    def pair(source: bytes, suffix: str, links: bytes, links_suffix: str) -> Case:
        names = [f"source{suffix}", "target.tsv", f"links{links_suffix}"]
        files = dict(zip(names, (source, delimited(TARGET), links), strict=True))
        return files, names[:2], {"links": names[2]}

    for suffix, write in GRAPHS.items():
        cases[f"graph{suffix}"] = pair(write(SOURCE), suffix, EXPORTED[".tsv"], ".tsv")
        cases[f"graph without suffix{suffix}"] = pair(write(SOURCE), "", EXPORTED[".tsv"], "")
    for suffix, links in EXPORTED.items():
        cases[f"links{suffix}"] = pair(ntriples(SOURCE), ".nt", links, suffix)
    for suffix, pack in COMPRESSORS.items():
        packed = pack(ntriples(SOURCE))
        cases[f"graph.nt{suffix}"] = pair(packed, f".nt{suffix}", EXPORTED[""], "")
        links = pack(EXPORTED[".tsv"])
        cases[f"links.tsv{suffix}"] = pair(ntriples(SOURCE), ".nt", links, f".tsv{suffix}")
    files, names, _ = cases["graph.csv"]
    files = {**files, "seeds": delimited(LINKS[:6]), "test": delimited(LINKS[6:])}
    cases["seeds and test links"] = (files, names, {"seeds": "seeds", "test_links": "test"})
    cases["openea"] = (
        {
            "rel_triples_1": delimited(SOURCE),
            "rel_triples_2": delimited(TARGET),
            "ent_links": delimited(LINKS),
            "dangling_1": b"",
            "dangling_2": b"",
            "721_5fold/1/train_links": delimited(LINKS[:6]),
            "721_5fold/1/test_links": delimited(LINKS[6:]),
        },
        [""],
        {"fold": 1},
    )
    ids = [(str(n), str(n % 3), str(n * 5 % COUNT)) for n in range(COUNT)]
    cases["ids"] = (
        {
            "triples_1": delimited(ids),
            "triples_2": delimited(ids),
            "ent_ids_1": delimited([(str(n), link[0]) for n, link in enumerate(LINKS)]),
            "ent_ids_2": delimited([(str(n), link[1]) for n, link in enumerate(LINKS)]),
            "sup_ent_ids": delimited([(str(n), str(n)) for n in range(6)]),
            "ref_ent_ids": delimited([(str(n), str(n)) for n in range(6, COUNT)]),
        },
        [""],
        {},
    )
    cases["dbp1m"] = (
        {
            "fr_triples_1": delimited(SOURCE),
            "fr_triples_2": delimited(TARGET),
            "fr_ent_links": delimited(LINKS),
        },
        [""],
        {"seeds_share": 0.3},
    )
    return cases


CASES = _cases()
