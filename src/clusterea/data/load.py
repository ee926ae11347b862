"""`load`: from files to a `Benchmark`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clusterea.data.delimited import read_delimited
from clusterea.data.formats import FAMILIES, FILE_FORMATS, LAYOUT, read_graph, resolve_format
from clusterea.data.id_names import rename_ids
from clusterea.data.inputs import notes, reading, refuse_repeated
from clusterea.data.layouts import LAYOUTS, Layout, find_layout
from clusterea.data.named_graph import NamedGraph
from clusterea.data.seeds import seeds_and_test_links
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
    source_columns: Sequence[str] | None = None,
    target_columns: Sequence[str] | None = None,
    max_input_size: int | None = None,
    split: str | None = None,
    seeds_share: float | None = None,
    split_seed: int | None = None,
    fold: int | None = None,
) -> Benchmark:
    """Two graphs, their seeds and, where some are held back, their test links.

    `source` alone is a folder (OpenEA, ids or DBP1M layout); with `target` both are files of
    triples, and the links come from `links`, or from `seeds` and `test_links`. Formats are told
    from the files unless `format` names one. A file may be a pipe, and `-` is standard input.

    As in the paper, links with an entity that occurs in no triple are dropped, and links are made
    one-to-one in file order; `Benchmark.dropped` counts both.

    Args:
        source: A folder, or the file of the source graph.
        target: The file of the target graph.
        links: All known links; `split` says which of them are seeds.
        seeds: The seeds alone. That an entity has two counterparts here is an error.
        test_links: The links to judge by; they go with `seeds`.
        format: One of `FORMATS`.
        columns: The columns of both tables that are head, relation and tail.
        source_columns: Those of the source's table alone.
        target_columns: Those of the target's table alone.
        max_input_size: The most bytes that one input may have once unpacked; 64 GiB by default.
        split: `given`, `first`, `random` or `fold`; by default `given`, where every link is a
            seed unless the data brings test links of its own.
        seeds_share: The share of links that are seeds; alone it means `first`.
        split_seed: The seed of a random split.
        fold: Which of the data's folds; alone it means `fold`.
    """
    if format is not None and format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
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
        with reading(max_input_size):
            layout = find_layout(Path(source), format)
            graphs = layout.triples.map(lambda path: read_graph(path, LAYOUT))
            return _assemble(layout, graphs, choice)
    for option, names in named_columns.items():
        _check_columns(option, names)
    refuse_repeated(
        [Path(path) for path in (source, target, links, seeds, test_links) if path is not None]
    )
    with reading(max_input_size):
        layout = _files(Pair(Path(source), Path(target)), links, seeds, test_links, format)
        of_side = Pair(source_columns or columns, target_columns or columns)
        graphs = layout.triples.zip(of_side).map(lambda each: read_graph(each[0], format, each[1]))
        return _assemble(layout, graphs, choice)


def _files(
    triples: Pair[Path],
    links: PathLike | None,
    seeds: PathLike | None,
    test_links: PathLike | None,
    format_name: str | None,
) -> Layout:
    """The layout of files given one by one."""
    if format_name in LAYOUTS:
        raise InputError(f"--format {format_name} is a folder's; give one folder, not two files.")
    if (links is None) == (seeds is None):
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


def _check_columns(option: str, columns: Sequence[str] | None) -> None:
    if columns is not None and (len(columns) != 3 or len(set(columns)) != 3 or not all(columns)):
        raise InputError(
            f"{option} must be three names: head,relation,tail. Got {','.join(columns)!r} instead."
        )


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
        notes=notes(),
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
