"""`load`: from files to a `Benchmark`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from clusterea.data.blank_nodes import BLANK_NODES, without_blank_nodes
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
from clusterea.data.inputs import notes, reading, refuse_repeated
from clusterea.data.known_pairs import known_pairs, seed_sources
from clusterea.data.layouts import LAYOUTS, Layout, find_layout
from clusterea.data.links import NamedLinks
from clusterea.data.named_graph import NamedGraph, with_triples
from clusterea.data.numbering import canonical
from clusterea.data.rdf import SYNTAXES
from clusterea.data.splits import Split, settle
from clusterea.errors import InputError, cut, unknown_name
from clusterea.sizes import parse_size
from clusterea.types import AlignmentTask, Benchmark, IntArray, Names, Pair

FORMATS = (*LAYOUTS, *FILE_FORMATS, *FAMILIES)
LinkOrigin: TypeAlias = Path | NamedLinks | None
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
    source_columns: Sequence[str] | None = None,
    target_columns: Sequence[str] | None = None,
    max_input_size: int | str | None = None,
    seeds_from: str | Sequence[str] | None = None,
    blank_nodes: str = "structure",
    split: str | None = None,
    seeds_share: float | None = None,
    split_seed: int | None = None,
    fold: int | None = None,
) -> Benchmark:
    """Two graphs, their seeds and, where some are held back, their test links.

    `source` alone is a folder (OpenEA, ids or DBP1M layout); with `target` both are graphs, and
    the links come from `links`, or from `seeds` and `test_links`. Formats are told from the files
    unless `format` names one. A file may be a pipe, and `-` is standard input.

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
        columns: The columns of both tables that are head, relation and tail.
        source_columns: Those of the source's table alone.
        target_columns: Those of the target's table alone.
        max_input_size: The most bytes that one input may have once unpacked, a number or a size as
            "8GB"; 64 GiB by default.
        seeds_from: `links`, `iris` (identical IRIs are known pairs) or both, as "links,iris". By
            default `links`, and `iris` too where both files are RDF. Without `links`, every link
            is a test link.
        blank_nodes: `structure` (they are neighbors like any others, but never linked), `drop`
            (triples with one are left out) or `link` (they are entities like any others).
        split: `given`, `first`, `random` or `fold`; by default `given`, where every link is a
            seed unless the data brings test links of its own.
        seeds_share: The share of links that are seeds; alone it means `first`.
        split_seed: The seed of a random split.
        fold: Which of the data's folds; alone it means `fold`.
    """
    if format is not None and format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    if blank_nodes not in BLANK_NODES:
        raise unknown_name("handling of blank nodes", blank_nodes, BLANK_NODES)
    _check_seeds_from(seeds_from)
    largest = _bytes(max_input_size)
    choice = settle(split, seeds_share, split_seed, fold)
    named_columns = {
        "--columns": columns,
        "--source-columns": source_columns,
        "--target-columns": target_columns,
    }
    if target is None:
        if links is not None or seeds is not None or test_links is not None:
            raise InputError(
                "--links, --seeds and --test-links go with two files, SOURCE and TARGET; "
                "a folder brings its own."
            )
        for option, names in named_columns.items():
            if names is not None:
                raise InputError(f"{option} goes with two tables, SOURCE and TARGET.")
        if format in FILE_FORMATS or format in FAMILIES:
            raise InputError(f"--format {format} goes with two files, SOURCE and TARGET.")
        if not is_path(source):
            raise InputError("one graph alone can't be aligned: give source, target and links.")
        with reading(largest):
            layout = find_layout(Path(source), format)
            sources = seed_sources(seeds_from, is_rdf=False, has_links=True)
            graphs = layout.triples.map(lambda path: read_graph(path, LAYOUT))
            return _assemble(layout, graphs, choice, sources, blank_nodes)
    for option, names in named_columns.items():
        _check_columns(option, names)
    if format in LAYOUTS:
        raise InputError(f"--format {format} is a folder's; give one folder, not two files.")
    given = Pair(source, target)
    refuse_repeated([Path(each) for each in (*given, links, seeds, test_links) if is_path(each)])
    with reading(largest):
        formats = given.map(lambda graph: _format_of(graph, format))
        has_links = links is not None or seeds is not None
        are_rdf = all(each in (*SYNTAXES, IN_MEMORY_RDF) for each in formats)
        sources = seed_sources(seeds_from, is_rdf=are_rdf, has_links=has_links)
        if not has_links and choice.how != "given":
            raise InputError("--split, --seeds-share and --fold divide links; give some: --links.")
        layout = Layout(
            formats.source,
            given.zip(Pair("source", "target")).map(
                lambda side: Path(side[0]) if is_path(side[0]) else Path(side[1])
            ),
            *_links(links, seeds, test_links, needs_links="links" in sources),
        )
        of_side = Pair(source_columns or columns, target_columns or columns)
        graphs = (
            given.zip(layout.triples)
            .zip(of_side)
            .map(lambda side: _graph(*side[0], format, side[1]))
        )
        return _assemble(layout, graphs, choice, sources, blank_nodes)


def _graph(
    graph: GraphSource, origin: Path, format_name: str | None, columns: Sequence[str] | None
) -> NamedGraph:
    """The graph of a file, or the graph in memory that `origin` names."""
    if is_path(graph):
        return read_graph(origin, format_name, columns)
    return graph_in_memory(graph, str(origin), columns)


def _format_of(graph: GraphSource, name: str | None) -> str:
    """The format of a graph's file, or `IN_MEMORY`."""
    if is_path(graph):
        return resolve_format(Path(graph), name)
    return IN_MEMORY_RDF if is_rdf(graph) else IN_MEMORY


def _links(
    links: LinkSource | None,
    seeds: LinkSource | None,
    test_links: LinkSource | None,
    *,
    needs_links: bool,
) -> tuple[LinkOrigin, LinkOrigin, LinkOrigin]:
    """The links, seeds and test links of two graphs; those in memory are read."""
    has_one = (links is None) != (seeds is None)
    may_have_none = not needs_links and links is None and seeds is None
    if not (has_one or may_have_none):
        raise InputError("two graphs need --links, or else --seeds with or without --test-links.")
    if test_links is not None and seeds is None:
        raise InputError("--test-links goes with --seeds, not with --links.")

    def origin(given: LinkSource | None, argument: str) -> LinkOrigin:
        if given is None or is_path(given):
            return None if given is None else Path(given)
        return links_in_memory(given, argument)

    return origin(links, "links"), origin(seeds, "seeds"), origin(test_links, "test_links")


def _check_columns(option: str, columns: Sequence[str] | None) -> None:
    if columns is not None and (len(columns) != 3 or len(set(columns)) != 3 or not all(columns)):
        raise InputError(
            f"{option} must be three names: head,relation,tail. Got {','.join(columns)!r} instead."
        )


def _check_seeds_from(given: object) -> None:
    if given is None or isinstance(given, str):
        return
    if not (isinstance(given, Sequence) and all(isinstance(name, str) for name in given)):
        raise InputError(
            f"--seeds-from must be links, iris or both: links,iris. Got {cut(repr(given))} instead."
        )


def _bytes(size: int | str | None) -> int | None:
    if size is None or (isinstance(size, int) and size > 0):
        return size
    return parse_size(str(size), "--max-input-size")


def _assemble(
    layout: Layout,
    graphs: Pair[NamedGraph],
    split: Split,
    sources: Sequence[str],
    blank_nodes: str,
) -> Benchmark:
    if blank_nodes == "drop":
        graphs = graphs.zip(layout.triples).map(
            lambda side: with_triples(without_blank_nodes(side[0]), side[1])
        )
    dropped: Counter[str] = Counter()
    for side, named in (("source", graphs.source), ("target", graphs.target)):
        dropped.update({f"{side} {why}": count for why, count in named.dropped.items()})
    # Links use the same ids or names as triples; ids are replaced by names afterwards.
    keys = graphs.map(lambda named: named.entities)

    def named_by(files: Pair[Path] | None, ids: Pair[Names]) -> Pair[Names]:
        if files is None:
            return ids
        return files.zip(layout.triples).zip(ids).map(lambda each: rename_ids(*each[0], each[1]))

    entities = named_by(layout.entity_names, keys)
    known = known_pairs(layout, keys, entities, split, sources, blank_nodes, dropped)
    as_read = Benchmark(
        AlignmentTask(
            graphs.map(lambda named: named.graph),
            known.seeds,
            entities.map(Names.keys),
            known.structural,
        ),
        known.test_links,
        entities,
        named_by(layout.relation_names, graphs.map(lambda named: named.relations)),
        _dangling(layout, keys),
        {why: count for why, count in dropped.items() if count},
        layout.format,
        known.seeds_from,
        notes=notes(),
    )
    return canonical(as_read)


def _dangling(layout: Layout, keys: Pair[Names]) -> Pair[IntArray] | None:
    if layout.dangling is None:
        return None

    def read(each: tuple[Path, Names]) -> IntArray:
        path, names = each
        if path.stat().st_size == 0:  # every entity has a counterpart
            return np.empty(0, dtype=np.int64)
        ids = names.ids_of(read_delimited(path, ("entity",), delimiter="\t")["entity"])
        return ids[ids >= 0]

    return layout.dangling.zip(keys).map(read)
