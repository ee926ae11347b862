"""The pairs that are known in advance, and the entities that are never linked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterea.data.blank_nodes import is_blank
from clusterea.data.entity_names import EntityNames
from clusterea.data.equal_names import equal_names
from clusterea.data.identical_iris import identical_iris, is_vocabulary
from clusterea.data.layouts import LAYOUTS, Layout
from clusterea.data.rdf import SYNTAXES
from clusterea.data.seeds import seeds_and_test_links
from clusterea.data.splits import Split
from clusterea.errors import InputError, unknown_name
from clusterea.graph.seed_check import agreement
from clusterea.types import IntArray, KnowledgeGraph, Names, Pair

SEED_SOURCES = ("links", "names", "iris")
OF_BLANK_NODE = "links of a blank node"
OF_IDENTICAL = "test links of entities that identical IRIs decide"
OF_TERM = "test links of RDF's own terms"


@dataclass(frozen=True, slots=True)
class KnownPairs:
    """The seeds and their origin, the test links, and the entities that are never linked."""

    seeds: IntArray  # (n, 2)
    presumed: IntArray  # (n, 2): seeds from equal names
    test_links: IntArray  # (m, 2)
    seeds_from: dict[str, int]  # source → how many
    structural: Pair[IntArray]
    notes: tuple[str, ...]  # which sources of seeds were dropped


def seed_sources(
    asked: str | Sequence[str] | None, *, is_rdf: bool, has_links: bool, has_names: bool
) -> tuple[str, ...]:
    """The origins of seeds: as asked for, else the links, and for RDF identical IRIs too.

    Without links: equal names, if names are compared, and identical IRIs.
    """
    if asked is None:
        if not has_links:
            return ("names", "iris") if has_names else ("iris",)
        return ("links", "iris") if is_rdf else ("links",)
    names = [name.strip() for name in asked.split(",")] if isinstance(asked, str) else list(asked)
    for name in names:
        if name not in SEED_SOURCES:
            raise unknown_name("source of seeds", name, SEED_SOURCES)
    if not names:
        raise InputError(
            f"--seeds-from must be one or more of {', '.join(SEED_SOURCES)}. Got none."
        )
    if "names" in names and not has_names:
        raise InputError(
            "--seeds-from names needs names that are compared, but --names is none, the default "
            "for a dataset's folder. Use --names auto, labels or iris."
        )
    return tuple(dict.fromkeys(names))


def known_pairs(
    layout: Layout,
    graphs: Pair[KnowledgeGraph],
    keys: Pair[Names],
    entities: Pair[Names],
    names: EntityNames,
    split: Split,
    sources: Sequence[str],
    blank_nodes: str,
    dropped: Counter[str],
) -> KnownPairs:
    """Seeds and test links, and the entities that are never linked; counts what it drops.

    A seed among the links counts more than an identical IRI. A test link does not: it would tell
    which IRIs mislead. An identical pair that is itself a test link is held back, as a split holds
    back any test link; every other one is a seed, and test links that it contradicts are dropped.
    Pairs of equal names decide nothing, so test links of their entities stay.

    Identical IRIs and equal names are checked against the structure of the graphs. A source of
    seeds that is mostly wrong is dropped, with a note.

    Args:
        layout: Where the data's own links are.
        graphs: Both graphs.
        keys: The entities as the layout's files call them.
        entities: What they are called.
        names: The names that are compared, if any.
        split: Which links are seeds.
        sources: Of `SEED_SOURCES`. Without `links`, every link of the data is a test link.
        blank_nodes: With `link`, blank nodes are entities like any others.
        dropped: Counts by reason, which this function adds to.
    """
    chose_seeds = layout.seeds is not None and layout.format not in LAYOUTS
    if "links" not in sources and (chose_seeds or split.how != "given"):
        raise InputError(
            "--seeds-from without links takes every link for a test link. Leave out --seeds, "
            "--split, --seeds-share and --fold, or add links to --seeds-from."
        )
    nothing = np.empty((0, 2), dtype=np.int64)
    has_links = not (layout.links is None and layout.seeds is None)
    links, test_links = nothing, nothing
    if has_links:
        links, test_links = seeds_and_test_links(layout, keys, split, dropped)
    never = entities.map(is_blank)
    if blank_nodes == "link":
        never = never.map(np.zeros_like)
    links = _without(links, never, OF_BLANK_NODE, dropped)
    test_links = _without(test_links, never, OF_BLANK_NODE, dropped)
    if "links" not in sources:
        links, test_links = nothing, np.concatenate([links, test_links])
    identical = nothing
    notes: dict[str, str] = {}
    if "iris" in sources:
        identical = _without(identical_iris(entities), never)
        identical = _checked(graphs, identical, "iris", notes)
        if "links" in sources:
            identical = _without(identical, _ends(links, entities))
            identical = identical[~_are_among(identical, test_links)]
        test_links = _without(test_links, _ends(identical, entities), OF_IDENTICAL, dropped)
    seeds = np.concatenate([links, identical])
    terms = entities.map(is_vocabulary)
    presumed = nothing
    if "names" in sources and names.texts is not None:
        taken = never.zip(terms.zip(_ends(seeds, entities))).map(
            lambda side: side[0] | side[1][0] | side[1][1]
        )
        presumed = _checked(graphs, equal_names(names.texts, taken), "names", notes)
    _refuse_no_seeds(
        np.concatenate([seeds, presumed]),
        terms,
        sources,
        notes,
        names,
        has_links=has_links,
        is_rdf=layout.format in (*SYNTAXES, "rdf"),
    )
    if layout.format not in LAYOUTS:  # the pairs of benchmarks stay as they are published
        never = never.zip(terms.zip(_ends(seeds, entities))).map(
            lambda side: side[0] | (side[1][0] & ~side[1][1])
        )
        test_links = _without(test_links, never, OF_TERM, dropped)
    counts = {"links": len(links), "names": len(presumed), "iris": len(identical)}
    return KnownPairs(
        seeds,
        presumed,
        test_links,
        {source: counts[source] for source in sources},
        never.map(np.flatnonzero),
        tuple(notes.values()),
    )


def _checked(
    graphs: Pair[KnowledgeGraph], pairs: IntArray, source: str, notes: dict[str, str]
) -> IntArray:
    """The pairs of one source of seeds, or none if they are mostly wrong; then with a note."""
    found = agreement(graphs, pairs)
    if not found.is_mostly_wrong:
        return pairs
    what = {"names": "Equal names", "iris": "Identical IRIs"}[source]
    notes[source] = (
        f"{what} are not used as seeds: most of the {len(pairs):,} pairs are wrong. "
        f"The neighbors of {found.checked:,} of them were compared, and they are paired with each "
        "other hardly more often than by chance."
    )
    return pairs[:0]


def _without(
    links: IntArray,
    ends: Pair[NDArray[np.bool_]],
    why: str = "",
    dropped: Counter[str] | None = None,
) -> IntArray:
    """The links without any of these entities. Counts the others as `why`."""
    kept = ~(ends.source[links[:, 0]] | ends.target[links[:, 1]])
    if dropped is not None:
        dropped[why] += int((~kept).sum())
    return links[kept]


def _are_among(links: IntArray, others: IntArray) -> NDArray[np.bool_]:
    """(links,): whether each is also among the others."""
    width = int(max(links[:, 1].max(initial=0), others[:, 1].max(initial=0))) + 1
    return np.isin(links @ [width, 1], others @ [width, 1])


def _ends(links: IntArray, entities: Pair[Names]) -> Pair[NDArray[np.bool_]]:
    """For each side, whether each entity is in a link."""

    def side(each: tuple[Names, IntArray]) -> NDArray[np.bool_]:
        names, ids = each
        found = np.zeros(len(names), dtype=bool)
        found[ids] = True
        return found

    return entities.zip(Pair(links[:, 0], links[:, 1])).map(side)


def _refuse_no_seeds(
    seeds: IntArray,
    terms: Pair[NDArray[np.bool_]],
    sources: Sequence[str],
    notes: Mapping[str, str],
    names: EntityNames,
    *,
    has_links: bool,
    is_rdf: bool,
) -> None:
    """Raises if the only known pairs are terms of RDF's own vocabularies.

    Args:
        seeds: The known pairs of all sources.
        terms: For each side, which entities are such terms.
        sources: Of `SEED_SOURCES`: where pairs were looked for.
        notes: Source → why its pairs were dropped.
        names: The names that are compared, if any.
        has_links: Whether there are links, be they seeds or test links.
        is_rdf: Whether labels may be found by a property.
    """
    num_terms = int((terms.source[seeds[:, 0]] & terms.target[seeds[:, 1]]).sum())
    if len(seeds) > num_terms:
        return
    beside = f" but {num_terms:,} terms of RDF's own vocabularies" if num_terms else ""
    tried = {
        "links": "no link is a seed",
        "names": f"{_of(names.nameless)} have no names that can be compared"
        if names.nameless
        else "no name belongs to exactly one entity in each graph",
        "iris": f"no IRI is in both graphs{beside}",
    }
    missing = "; ".join(tried[source] for source in sources if source not in notes)
    helps = "Give pairs that are known with --links"
    if has_links and "links" not in sources:
        helps = "Add links to --seeds-from"
    if names.nameless:
        helps += ", or names with --name-files" + (" or --label-property" if is_rdf else "")
    elif names.texts is None:
        helps += ", or use equal names with --names auto --seeds-from names"
    elif "names" not in sources:
        helps += ", or use equal names with --seeds-from names"
    told = ["there is no known pair to learn from" + (f": {missing}." if missing else ".")]
    raise InputError(" ".join([*told, *notes.values(), f"{helps}."]))


def _of(sides: Sequence[str]) -> str:
    """The entities of one side or of both, in words."""
    return f"the entities of the {sides[0]}" if len(sides) == 1 else "the entities"
