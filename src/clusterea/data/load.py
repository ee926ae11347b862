"""`load`: from files to a `Benchmark`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clusterea.data.delimited import read_delimited
from clusterea.data.formats import FAMILIES, FILE_FORMATS, LAYOUT, read_graph, resolve_format
from clusterea.data.id_names import rename_ids
from clusterea.data.in_memory import (
    GraphSource,
    LinkSource,
    graph_in_memory,
    is_path,
    is_rdf,
    links_in_memory,
)
from clusterea.data.layouts import LAYOUTS, Layout, find_layout
from clusterea.data.links import NamedLinks
from clusterea.data.named_graph import NamedGraph
from clusterea.data.seeds import seeds_and_test_links
from clusterea.data.splits import Split, settle
from clusterea.errors import InputError, unknown_name
from clusterea.types import AlignmentTask, Benchmark, IntArray, Names, Pair

FORMATS = (*LAYOUTS, *FILE_FORMATS, *FAMILIES)
IN_MEMORY = "memory"  # the format of graphs that were given as Python values
IN_MEMORY_RDF = "rdf"


def load(
    source: GraphSource,
    target: GraphSource | None = None,
    *,
    links: LinkSource | None = None,
    seeds: LinkSource | None = None,
    test_links: LinkSource | None = None,
    format: str | None = None,  # noqa: A002
    columns: Sequence[str] | None = None,
    split: str | None = None,
    seeds_share: float | None = None,
    split_seed: int | None = None,
    fold: int | None = None,
) -> Benchmark:
    """Two graphs, their seeds and, where some are held back, their test links.

    `source` alone is a folder (OpenEA, ids or DBP1M layout); with `target` both are graphs, and
    the links come from `links`, or from `seeds` and `test_links`. Formats are told from the files
    unless `format` names one.

    A graph is a file, or a value in memory: a pandas, polars or Arrow table, rows of head, relation
    and tail, a networkx or an rdflib graph. Links are a file, a table, a dict of source to target,
    or rows of source and target. Names are strings or integers.

    As in the paper, links with an entity that occurs in no triple are dropped, and links are made
    one-to-one in file order; `Benchmark.dropped` counts both.

    Args:
        source: A folder, or the source graph.
        target: The target graph.
        links: All known links; `split` says which of them are seeds.
        seeds: The seeds alone. That an entity has two counterparts here is an error.
        test_links: The links to judge by; they go with `seeds`.
        format: One of `FORMATS`.
        columns: The columns of a table that are head, relation and tail.
        split: `given`, `first`, `random` or `fold`; by default `given`, where every link is a
            seed unless the data brings test links of its own.
        seeds_share: The share of links that are seeds; alone it means `first`.
        split_seed: The seed of a random split.
        fold: Which of the data's folds; alone it means `fold`.
    """
    if format is not None and format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    choice = settle(split, seeds_share, split_seed, fold)
    if target is None:
        if links is not None or seeds is not None or test_links is not None:
            raise InputError(
                "--links, --seeds and --test-links go with two files, SOURCE and TARGET; "
                "a folder brings its own."
            )
        if columns is not None:
            raise InputError("--columns goes with two tables, SOURCE and TARGET.")
        if format in FILE_FORMATS or format in FAMILIES:
            raise InputError(f"--format {format} goes with two files, SOURCE and TARGET.")
        if not is_path(source):
            raise InputError("one graph alone can't be aligned: give source, target and links.")
        layout = find_layout(Path(source), format)
        graphs = layout.triples.map(lambda path: read_graph(path, LAYOUT))
    else:
        given = Pair(source, target)
        layout = _files(given, links, seeds, test_links, format)
        names = _column_names(columns)
        graphs = given.zip(layout.triples).map(
            lambda side: (
                read_graph(side[1], format, names)
                if is_path(side[0])
                else graph_in_memory(side[0], str(side[1]), names)
            )
        )
    return _assemble(layout, graphs, choice)


def _files(
    graphs: Pair[GraphSource],
    links: LinkSource | None,
    seeds: LinkSource | None,
    test_links: LinkSource | None,
    format_name: str | None,
) -> Layout:
    """The layout of graphs and links given one by one; a value in memory has no path but a name."""
    if format_name in LAYOUTS:
        raise InputError(f"--format {format_name} is a folder's; give one folder, not two files.")
    if (links is None) == (seeds is None):
        raise InputError("two graphs need --links, or else --seeds with or without --test-links.")
    if test_links is not None and seeds is None:
        raise InputError("--test-links goes with --seeds, not with --links.")

    def place(given: LinkSource | None, argument: str) -> Path | NamedLinks | None:
        if given is None or is_path(given):
            return None if given is None else Path(given)
        return links_in_memory(given, argument)

    source = graphs.source
    if is_path(source):
        resolved = resolve_format(Path(source), format_name)
    else:
        resolved = IN_MEMORY_RDF if is_rdf(source) else IN_MEMORY
    return Layout(
        resolved,
        graphs.zip(Pair("source", "target")).map(
            lambda side: Path(side[0]) if is_path(side[0]) else Path(side[1])
        ),
        links=place(links, "links"),
        seeds=place(seeds, "seeds"),
        test_links=place(test_links, "test_links"),
    )


def _column_names(columns: Sequence[str] | None) -> Sequence[str] | None:
    if columns is None:
        return None
    if len(columns) != 3 or len(set(columns)) != 3 or not all(columns):
        raise InputError(
            f"--columns must be three names: head,relation,tail. Got {','.join(columns)!r} instead."
        )
    return columns


def _assemble(layout: Layout, graphs: Pair[NamedGraph], split: Split) -> Benchmark:
    dropped: Counter[str] = Counter()
    for side, named in (("source", graphs.source), ("target", graphs.target)):
        dropped.update({f"{side} {why}": count for why, count in named.dropped.items()})
    # Links speak of entities as the triples do; where those are ids, names come after.
    keys = graphs.map(lambda named: named.entities)
    seeds, test_links = seeds_and_test_links(layout, keys, split, dropped)

    def named_by(files: Pair[Path] | None, ids: Pair[Names]) -> Pair[Names]:
        if files is None:
            return ids
        return files.zip(layout.triples).zip(ids).map(lambda each: rename_ids(*each[0], each[1]))

    entities = named_by(layout.entity_names, keys)
    return Benchmark(
        AlignmentTask(graphs.map(lambda named: named.graph), seeds, entities.map(Names.keys)),
        test_links,
        entities,
        named_by(layout.relation_names, graphs.map(lambda named: named.relations)),
        _dangling(layout, keys),
        {why: count for why, count in dropped.items() if count},
        layout.format,
    )


def _dangling(layout: Layout, keys: Pair[Names]) -> Pair[IntArray] | None:
    if layout.dangling is None:
        return None

    def read(each: tuple[Path, Names]) -> IntArray:
        path, names = each
        if path.stat().st_size == 0:  # nobody is without a counterpart
            return np.empty(0, dtype=np.int64)
        ids = names.ids_of(read_delimited(path, ("entity",), delimiter="\t")["entity"])
        return ids[ids >= 0]

    return layout.dangling.zip(keys).map(read)
