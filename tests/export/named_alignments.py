"""Alignments of entities with nasty names, and what comes back when they are loaded as links."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from hypothesis import strategies as st

import clusterea
from clusterea.types import Alignment, Names, Pair

Named = tuple[Alignment, Pair[Names]]
SUFFIXES = {
    "tsv": ".tsv",
    "parquet": ".parquet",
    "ntriples": ".nt",
    "sssom": ".sssom.tsv",
    "oaei": ".rdf",
}


def aligned(
    *links: tuple[str, str, float], source: str = "", target: str = "", examples: int = 0
) -> Named:
    """Links by name and confidence; the words of `source` and `target` are left unmatched."""
    lone = Pair(source.split(), target.split())
    names = Pair(
        Names([link[0] for link in links] + lone.source),
        Names([link[1] for link in links] + lone.target),
    )
    ids = torch.arange(len(links))
    unmatched = names.map(lambda side: torch.arange(len(links), len(side)))
    confidence = torch.tensor([link[2] for link in links])
    return Alignment(torch.stack([ids, ids], 1), confidence, unmatched, examples), names


def triples(path: Path, names: Names) -> Path:
    """A graph in which every name occurs, in a format that holds any name."""
    heads = names.arrow
    pq.write_table(pa.table({"head": heads, "relation": ["r"] * len(heads), "tail": heads}), path)
    return path


def loaded(path: Path, names: Pair[Names], folder: Path) -> set[tuple[str, str]]:
    """The links that `clusterea.load` finds in a file, by name."""
    benchmark = clusterea.load(
        triples(folder / "source.parquet", names.source),
        triples(folder / "target.parquet", names.target),
        links=path,
    )
    source, target = benchmark.names
    return {(source[a], target[b]) for a, b in benchmark.task.seeds.tolist()}


def links_of(named: Named) -> set[tuple[str, str]]:
    alignment, (source, target) = named
    return {(source[a], target[b]) for a, b in alignment.links.tolist()}


NASTY = "\"'<>\\%|&^`{}[]#?/:@ ;,=+~.\u00a0\u200b\u2028\u0085\x00\x1f\ufffd\ue000\u00e9東😀"
#: Whatever TSV can hold: all but tabs and line ends.
WORDS = st.text(
    st.sampled_from(NASTY + "ab%4E") | st.characters(codec="utf-8", exclude_characters="\t\r\n")
)
IRIS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["http://ex.org/", "http://ex.org/a/b?", "https://été.fr/", "urn:x:", "e:"]),
    st.lists(st.sampled_from([*"aé東😀-._~!$&'()*+,;=:@", "/b", "%C3", "%A9"]), min_size=1).map(
        "".join
    ),
    st.sampled_from(["", "?q=1&r=a/b", "#frag", "%20", "%c3%a9"]),
)


@st.composite
def alignments(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> Named:
    def side() -> Names:
        words = texts.filter(lambda text: text and not text.startswith("urn:clusterea:"))
        return Names(draw(st.lists(words, min_size=1, max_size=8, unique=True)))

    names = Pair(side(), side())
    most = min(len(side) for side in names)
    count = draw(st.integers(1, most))
    links = torch.stack(
        [
            torch.tensor(draw(st.permutations(range(len(side))))[:count], dtype=torch.int64)
            for side in names
        ],
        dim=1,
    )
    confidence = torch.tensor(draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    unmatched = Pair(*links.T).zip(names).map(_others)
    examples = draw(st.sampled_from([0, 30, 130]))  # a score, or a confidence
    return Alignment(links, confidence, unmatched, examples), names


def _others(side: tuple[torch.Tensor, Names]) -> torch.Tensor:
    linked, names = side
    return torch.tensor(sorted(set(range(len(names))) - set(linked.tolist())), dtype=torch.int64)
