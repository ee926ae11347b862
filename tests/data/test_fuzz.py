"""A reader reads a file, or refuses it with one message that names it: never another failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.data.formats import read_graph
from clusterea.data.links import read_links
from clusterea.errors import DataError

SUFFIXES = [
    *("", ".nt", ".ttl", ".rdf", ".csv", ".tsv", ".parquet", ".nt.gz", ".sssom.tsv"),
    *(".nq", ".trig", ".n3", ".jsonld", ".json", ".owl", ".zst", ".zip", ".obo"),
]
# Pieces that look like something: far likelier than raw bytes to get deep into a reader.
PIECES = [
    "<http://a>",
    "<http://www.w3.org/2002/07/owl#sameAs>",
    "_:b",
    '"x"@en',
    " .\n",
    "@prefix e: <http://e/> .\n",
    "e:a e:b e:c .\n",
    "<< e:a e:b e:c >>",
    "[ ]",
    "<?xml version='1.0'?>",
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>",
    "</rdf:RDF>",
    "head\trelation\ttail\n",
    "head,relation,tail\n",
    "subject_id\tpredicate_id\tobject_id\n",
    "#curie_map:\n#  e: http://e/\n",
    "#: [\n",
    "e:a\towl:sameAs\te:b\n",
    "source\ttarget\n",
    "a\tb\n",
    "a\tb\tc\n",
    '"a, b",c,d\n',
    '"',
    "\r",
    "\n",
    "\t",
    "\x00",
    "é",
    "\ufeff",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map(lambda parts: "".join(parts).encode())
CONTENTS = st.one_of(TEXTS, st.binary(max_size=60), TEXTS.map(lambda text: text + b"\xff"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(content=CONTENTS)
def test_graphs(tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes) -> None:
    path = tmp_path_factory.mktemp("graph") / f"graph{suffix}"
    path.write_bytes(content)
    try:
        named = read_graph(path)
    except DataError as error:
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        assert named.graph.num_triples > 0
        assert (named.graph.degrees() > 0).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(content=CONTENTS)
def test_links(tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes) -> None:
    path = tmp_path_factory.mktemp("links") / f"links{suffix}"
    path.write_bytes(content)
    try:
        links = read_links(path)
    except DataError as error:
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        assert len(links) > 0


def test_the_path_is_what_the_message_opens_with(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="^/.*nowhere"):
        read_graph(tmp_path / "nowhere")
