"""`load`: from files to a `Benchmark`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clusterea.data.blank_nodes import BLANK_NODES, without_blank_nodes
from clusterea.data.delimited import read_delimited
from clusterea.data.formats import FAMILIES, FILE_FORMATS, LAYOUT, read_graph, resolve_format
from clusterea.data.id_names import rename_ids
from clusterea.data.known_pairs import known_pairs, seed_sources
from clusterea.data.layouts import LAYOUTS, Layout, find_layout
from clusterea.data.named_graph import NamedGraph
from clusterea.data.numbering import canonical
from clusterea.data.rdf import SYNTAXES
from clusterea.data.splits import Split, settle
from clusterea.errors import InputError, unknown_name
from clusterea.types import AlignmentTask, Benchmark, IntArray, Names, Pair

FORMATS = (*LAYOUTS, *FILE_FORMATS, *FAMILIES)
PathLike = str | os.PathLike[str]


def load(
    source: PathLike,
    target: PathLike | None = None,
    *,
    links: PathLike | None = None,
    seeds: PathLike | None = None,
    test_links: PathLike | None = None,
    format: str | None = None,  # noqa: A002
    columns: Sequence[str] | None = None,
    seeds_from: str | Sequence[str] | None = None,
    blank_nodes: str = "structure",
    split: str | None = None,
    seeds_share: float | None = None,
    split_seed: int | None = None,
    fold: int | None = None,
) -> Benchmark:
    """Two graphs, their seeds and, where some are held back, their test links.

    `source` alone is a folder (OpenEA, ids or DBP1M layout); with `target` both are files of
    triples, and the links come from `links`, or from `seeds` and `test_links`. Formats are told
    from the files unless `format` names one.

    As in the paper, links with an entity that occurs in no triple are dropped, and links are made
    one-to-one in file order; `Benchmark.dropped` counts both.

    Args:
        source: A folder, or the file of the source graph.
        target: The file of the target graph.
        links: All known links; `split` says which of them are seeds.
        seeds: The seeds alone. That an entity has two counterparts here is an error.
        test_links: The links to judge by; they go with `seeds`.
        format: One of `FORMATS`.
        columns: The columns of a table that are head, relation and tail.
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
        layout = find_layout(Path(source), format)
        sources = seed_sources(seeds_from, is_rdf=False, has_links=True)
        graphs = layout.triples.map(lambda path: read_graph(path, LAYOUT))
    else:
        if format in LAYOUTS:
            raise InputError(f"--format {format} is a folder's; give one folder, not two files.")
        files = Pair(Path(source), Path(target))
        has_links = links is not None or seeds is not None
        is_rdf = all(resolve_format(path, format) in SYNTAXES for path in files)
        sources = seed_sources(seeds_from, is_rdf=is_rdf, has_links=has_links)
        if not has_links and choice.how != "given":
            raise InputError("--split, --seeds-share and --fold divide links; give some: --links.")
        layout = _files(files, links, seeds, test_links, format, needs_links="links" in sources)
        names = _column_names(columns)
        graphs = layout.triples.map(lambda path: read_graph(path, format, names))
    if blank_nodes == "drop":
        graphs = graphs.map(without_blank_nodes)
    return _assemble(layout, graphs, choice, sources, blank_nodes)


def _files(
    triples: Pair[Path],
    links: PathLike | None,
    seeds: PathLike | None,
    test_links: PathLike | None,
    format_name: str | None,
    *,
    needs_links: bool,
) -> Layout:
    """The layout of files given one by one."""
    has_one = (links is None) != (seeds is None)
    may_have_none = not needs_links and links is None and seeds is None
    if not (has_one or may_have_none):
        raise InputError("two files need --links, or else --seeds with or without --test-links.")
    if test_links is not None and seeds is None:
        raise InputError("--test-links goes with --seeds, not with --links.")

    def path_or_none(path: PathLike | None) -> Path | None:
        return None if path is None else Path(path)

    return Layout(
        resolve_format(triples.source, format_name),
        triples,
        links=path_or_none(links),
        seeds=path_or_none(seeds),
        test_links=path_or_none(test_links),
    )


def _column_names(columns: Sequence[str] | None) -> Sequence[str] | None:
    if columns is None:
        return None
    if len(columns) != 3 or len(set(columns)) != 3 or not all(columns):
        raise InputError(
            f"--columns must be three names: head,relation,tail. Got {','.join(columns)!r} instead."
        )
    return columns


def _assemble(
    layout: Layout,
    graphs: Pair[NamedGraph],
    split: Split,
    sources: Sequence[str],
    blank_nodes: str,
) -> Benchmark:
    dropped: Counter[str] = Counter()
    for side, named in (("source", graphs.source), ("target", graphs.target)):
        dropped.update({f"{side} {why}": count for why, count in named.dropped.items()})
    # Links speak of entities as the triples do; where those are ids, names come after.
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
    )
    return canonical(as_read)


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
