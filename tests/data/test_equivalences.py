"""Which predicates are links, in RDF and in SSSOM, and what the user is told of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import clusterea
from clusterea.data.links import read_links
from clusterea.errors import InputError
from conftest import Ran, WriteFiles

Command = Callable[..., Ran]
PREDICATES = {
    "owl:sameAs": "http://www.w3.org/2002/07/owl#sameAs",
    "owl:equivalentClass": "http://www.w3.org/2002/07/owl#equivalentClass",
    "owl:equivalentProperty": "http://www.w3.org/2002/07/owl#equivalentProperty",
    "skos:exactMatch": "http://www.w3.org/2004/02/skos/core#exactMatch",
    "skos:closeMatch": "http://www.w3.org/2004/02/skos/core#closeMatch",
}
OTHER = "http://www.w3.org/2004/02/skos/core#broadMatch"


def triples(side: str) -> str:
    return "".join(f"<http://{side}/{n}> <http://r> <http://{side}/{n + 1}> .\n" for n in range(9))


def statement(source: int, predicate: str, target: int) -> str:
    return f"<http://a/{source}> <{predicate}> <http://b/{target}> .\n"


@pytest.fixture
def pair(write_files: WriteFiles) -> Path:
    return write_files({"a.nt": triples("a"), "b.nt": triples("b")})


def test_links_of_each_predicate_are_counted(pair: Path, clusterea_command: Command) -> None:
    stated = "".join(statement(n, iri, n) for n, iri in enumerate(PREDICATES.values()))
    (pair / "links.nt").write_text(stated + statement(7, PREDICATES["owl:sameAs"], 7))
    with (pair / "links.nt").open("a") as file:
        file.write(statement(8, OTHER, 8) + f"<http://a/8> <{PREDICATES['owl:sameAs']}> _:x .\n")
    ran = clusterea_command("info", pair / "a.nt", pair / "b.nt", "--links", pair / "links.nt")
    assert ran.code == 0, ran.err
    assert (
        f"{pair / 'links.nt'}: 6 links: 2 by owl:sameAs, 1 by owl:equivalentClass, 1 by "
        "owl:equivalentProperty, 1 by skos:exactMatch, 1 by skos:closeMatch (a close match is "
        "taken for a link).\n" in ran.err
    )
    assert "Links: 6, all of them seeds" in ran.out
    assert "2 statements that are no link" in ran.out


@pytest.mark.parametrize("as_sssom", [False, True])
def test_an_exact_match_comes_before_a_close_one(pair: Path, as_sssom: bool) -> None:
    stated = [(1, "skos:closeMatch", 2), (1, "skos:exactMatch", 1), (3, "skos:closeMatch", 3)]
    if as_sssom:
        path = pair / "links.sssom.tsv"
        rows = (f"http://a/{s}\t{predicate}\thttp://b/{t}\n" for s, predicate, t in stated)
        path.write_text("subject_id\tpredicate_id\tobject_id\n" + "".join(rows))
    else:
        path = pair / "links.nt"
        path.write_text("".join(statement(s, PREDICATES[p], t) for s, p, t in stated))
    benchmark = clusterea.load(pair / "a.nt", pair / "b.nt", links=path)
    source, target = benchmark.names
    seeds = [(source[left], target[right]) for left, right in benchmark.task.seeds.tolist()]
    assert seeds == [("http://a/1", "http://b/1"), ("http://a/3", "http://b/3")]
    assert benchmark.dropped["links of an entity already linked"] == 1
    assert benchmark.notes == (
        f"{path}: 3 links: 1 by skos:exactMatch, 2 by skos:closeMatch "
        "(a close match is taken for a link).",
        "No names are used: ids such as '0' are not readable.",
    )


@pytest.mark.parametrize("predicate", [*PREDICATES, *PREDICATES.values()])
def test_sssom_has_the_same_predicates(predicate: str, write_files: WriteFiles) -> None:
    header = "subject_id\tpredicate_id\tobject_id\n"
    rows = f"e:a\t{predicate}\te:b\ne:c\tskos:broadMatch\te:d\n"
    links = read_links(write_files({"l.sssom.tsv": header + rows}) / "l.sssom.tsv")
    assert (len(links), links.skipped) == (1, 1)


def test_nothing_that_is_a_link(pair: Path) -> None:
    (pair / "links.nt").write_text(statement(1, OTHER, 1))
    with pytest.raises(InputError) as refused:
        clusterea.load(pair / "a.nt", pair / "b.nt", links=pair / "links.nt")
    assert str(refused.value) == (
        f"{pair / 'links.nt'}: expected links by {', '.join(PREDICATES)}; "
        "got none (1 other statements)."
    )
