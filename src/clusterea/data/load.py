"""`load`: from files to a `Benchmark`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from clusterea.data.blank_nodes import BLANK_NODES, without_blank_nodes
from clusterea.data.delimited import read_delimited
from clusterea.data.entity_names import NAMES_FROM, entity_names
from clusterea.data.features import Floats, read_features
from clusterea.data.formats import FAMILIES, FILE_FORMATS, LAYOUT, read_graph, resolve_format
from clusterea.data.id_names import rename_ids
from clusterea.data.in_memory import (
    GraphSource,
    LinkSource,
    PathLike,
    graph_in_memory,
    is_path,
    is_rdf,
    links_in_memory,
)
from clusterea.data.inputs import both_at_once, is_stream, notes, reading, refuse_repeated
from clusterea.data.known_pairs import known_pairs, seed_sources
from clusterea.data.layouts import LAYOUTS, Layout, find_layout
from clusterea.data.links import NamedLinks
from clusterea.data.name_tables import NameTable, bare_name_table, name_table
from clusterea.data.named_graph import NamedGraph, with_triples
from clusterea.data.numbering import canonical
from clusterea.data.rdf import SYNTAXES
from clusterea.data.splits import Split, settle
from clusterea.data.tables import TABLES
from clusterea.errors import InputError, cut, unknown_name
from clusterea.sizes import parse_size
from clusterea.types import AlignmentTask, Benchmark, IntArray, Names, Pair, Texts

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
    names: str | None = None,
    label_properties: str | Sequence[str] = (),
    name_files: tuple[LinkSource, LinkSource] | None = None,
    features: tuple[PathLike, PathLike] | None = None,
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
        names: Which names of the entities are compared: `labels`, `iris` (the readable part of
            their ids), `auto` (labels, and ids where there is no label) or `none`. By default
            `none` for the folders of datasets, unless `name_files` is given, and otherwise `auto`.
        label_properties: The IRI of an RDF property whose values are labels, beside the usual ones,
            or several.
        name_files: Tables of entity and name for each side; an entity may have several names.
        features: A file of vectors for each side (`.npy`, `.parquet`, `.safetensors`). Rows are in
            the order of `name_files`, or else of the files `ent_ids_1` and `ent_ids_2`, or else of
            the entities' first appearance in the graph;
            Parquet may have a column of entities instead.
        seeds_from: Which pairs are seeds: `links`, `names` (equal names that no other entity has),
            `iris` (identical IRIs), or several, as "links,iris". By default `links`, and `iris` too
            where both files are RDF; `names,iris` if there are no links. Without `links`, every
            link is a test link.
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
    if isinstance(label_properties, str):
        label_properties = (label_properties,)
    contents = _Contents(names, tuple(label_properties), name_files, features)
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
        for option, given_columns in named_columns.items():
            if given_columns is not None:
                raise InputError(f"{option} goes with two tables, SOURCE and TARGET.")
        if format in FILE_FORMATS or format in FAMILIES:
            raise InputError(f"--format {format} goes with two files, SOURCE and TARGET.")
        _check_label_properties(contents.label_properties, is_rdf=False)
        if not is_path(source):
            raise InputError("one graph alone can't be aligned: give source, target and links.")
        with reading(largest):
            layout = find_layout(Path(source), format)
            sources = seed_sources(
                seeds_from,
                is_rdf=False,
                has_links=True,
                has_names=contents.how(layout.format) != "none",
            )
            graphs = both_at_once(lambda path: read_graph(path, LAYOUT), layout.triples)
            return _assemble(layout, graphs, choice, sources, blank_nodes, contents)
    for option, given_columns in named_columns.items():
        _check_columns(option, given_columns)
    if format in LAYOUTS:
        raise InputError(f"--format {format} is a folder's; give one folder, not two files.")
    given = Pair(source, target)
    refuse_repeated([Path(each) for each in (*given, links, seeds, test_links) if is_path(each)])
    with reading(largest):
        formats = given.map(lambda graph: _format_of(graph, format))
        has_links = links is not None or seeds is not None
        is_each_rdf = [each in (*SYNTAXES, IN_MEMORY_RDF) for each in formats]
        _check_label_properties(contents.label_properties, is_rdf=any(is_each_rdf))
        sources = seed_sources(
            seeds_from,
            is_rdf=all(is_each_rdf),
            has_links=has_links,
            has_names=contents.how(formats.source) != "none",
        )
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
        sides = given.zip(layout.triples).zip(of_side)

        def graph(side: tuple[tuple[GraphSource, Path], Sequence[str] | None]) -> NamedGraph:
            return _graph(*side[0], format, side[1], contents.label_properties)

        # Other formats take Python's lock, or are objects that may belong to this thread.
        are_tables = all(each in TABLES for each in formats)
        waits = any(map(is_stream, layout.triples))  # a pipe may never get what it waits for
        graphs = both_at_once(graph, sides) if are_tables and not waits else sides.map(graph)
        return _assemble(layout, graphs, choice, sources, blank_nodes, contents)


@dataclass(frozen=True, slots=True)
class _Contents:
    """What the caller said about names and features."""

    names: str | None
    label_properties: tuple[str, ...]
    name_files: tuple[LinkSource, LinkSource] | None
    features: tuple[PathLike, PathLike] | None

    def __post_init__(self) -> None:
        if self.names is not None and self.names not in NAMES_FROM:
            raise unknown_name("source of names", cut(self.names), NAMES_FROM)
        if self.names in ("none", "iris") and self.name_files is not None:
            raise InputError(f"--name-files goes with --names auto or labels, not {self.names}.")
        _check_two("--name-files", self.name_files, "tables")
        _check_two("--features", self.features, "files")
        if not all(is_path(each) for each in self.features or ()):
            raise InputError("--features must be two files; only `align` takes arrays.")

    def how(self, format_name: str) -> str:
        """Which names are compared, in data of this format."""
        if self.names is not None:
            return self.names
        return "none" if format_name in LAYOUTS and self.name_files is None else "auto"

    def absent(self, graphs: Pair[NamedGraph]) -> list[str]:
        """A note on each label property that neither graph has."""
        present = graphs.source.label_properties | graphs.target.label_properties
        return [
            f"Neither graph has a literal with the label property {cut(repr(iri))}. "
            "Is this its full IRI?"
            for iri in dict.fromkeys(self.label_properties)
            if iri not in present
        ]

    def tables(self) -> Pair[NameTable | None]:
        """The tables of names, if any."""
        if self.name_files is None:
            return Pair(None, None)
        arguments = Pair("the first of name_files", "the second of name_files")
        return Pair(*self.name_files).zip(arguments).map(lambda side: name_table(*side))


def _check_two(option: str, given: object, what: str) -> None:
    """Raises unless nothing or two values were given."""
    if given is not None and not (isinstance(given, (tuple, list, Pair)) and len(list(given)) == 2):
        raise InputError(
            f"{option} must be two {what}: of the source and of the target. "
            f"Got {cut(repr(given))} instead."
        )


def _check_label_properties(properties: Sequence[str], *, is_rdf: bool) -> None:
    if properties and not is_rdf:
        raise InputError("--label-property goes with RDF. For other data, use --name-files.")


def _graph(
    graph: GraphSource,
    origin: Path,
    format_name: str | None,
    columns: Sequence[str] | None,
    label_properties: Sequence[str],
) -> NamedGraph:
    """The graph of a file, or the graph in memory that `origin` names."""
    if is_path(graph):
        return read_graph(origin, format_name, columns, label_properties)
    return graph_in_memory(graph, str(origin), columns, label_properties)


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
            "--seeds-from must be one or more of links, names and iris. "
            f"Got {cut(repr(given))} instead."
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
    contents: _Contents,
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
    tables = contents.tables()
    labels = graphs.zip(tables).zip(entities).map(lambda side: _labels(*side[0], side[1]))
    if layout.labels is not None:
        labels = (
            labels.zip(layout.labels)
            .zip(entities)
            .map(lambda side: side[0][0] or bare_name_table(side[0][1]).labels_of(side[1]))
        )
    absent = contents.absent(graphs)
    found = entity_names(contents.how(layout.format), entities, labels)
    known = known_pairs(
        layout,
        graphs.map(lambda named: named.graph),
        keys,
        entities,
        found,
        split,
        sources,
        blank_nodes,
        dropped,
    )
    as_read = Benchmark(
        AlignmentTask(
            graphs.map(lambda named: named.graph),
            known.seeds,
            structural=known.structural,
            presumed=known.presumed,
            names=found.texts,
            features=_features(contents.features, tables, layout, keys, entities),
        ),
        known.test_links,
        entities,
        named_by(layout.relation_names, graphs.map(lambda named: named.relations)),
        _dangling(layout, keys),
        {why: count for why, count in dropped.items() if count},
        layout.format,
        known.seeds_from,
        notes=(*notes(), *absent, *filter(None, [found.note]), *known.notes),
        labels=_both(labels, entities),
    )
    numbered = canonical(as_read)
    pa.default_memory_pool().release_unused()  # or pages that held the files' text would stay
    return numbered


def _labels(named: NamedGraph, table: NameTable | None, entities: Names) -> Texts | None:
    """The labels in a table of names, and those of the graph where the table has none."""
    if table is None:
        return named.labels
    given = table.labels_of(entities)
    return given if named.labels is None else given.or_else(named.labels)


def _both(labels: Pair[Texts | None], entities: Pair[Names]) -> Pair[Texts] | None:
    """The labels of both sides; None if neither has any."""
    if not any(side is not None for side in labels):
        return None
    return labels.zip(entities).map(
        lambda side: side[0] if side[0] is not None else Texts.of_lists([[]] * len(side[1]))
    )


def _features(
    files: tuple[PathLike, PathLike] | None,
    tables: Pair[NameTable | None],
    layout: Layout,
    keys: Pair[Names],
    entities: Pair[Names],
) -> Pair[Floats] | None:
    """The vectors of the user's own; see `load` for the order of their rows."""
    if files is None:
        return None
    rows = entities
    if layout.entity_names is not None:
        rows = layout.entity_names.zip(keys.zip(entities)).map(
            lambda side: _in_file_order(side[0], *side[1])
        )
    rows = tables.zip(rows).map(
        lambda side: side[1] if side[0] is None else Names(side[0].entities.unique())
    )
    return read_features(Pair(*files).map(Path), rows, entities)


def _in_file_order(path: Path, keys: Names, entities: Names) -> Names:
    """The entities in the order of a file of ids and names; an unused id stands for itself."""
    ids = read_delimited(path, ("id", "name"), delimiter="\t")["id"]
    found = keys.ids_of(ids)
    names = iter(entities.take(found[found >= 0]))
    texts = ids.to_pylist()
    return Names(
        next(names) if number >= 0 else f"id {text}"
        for number, text in zip(found.tolist(), texts, strict=True)
    )


def _dangling(layout: Layout, keys: Pair[Names]) -> Pair[IntArray] | None:
    if layout.dangling is None:
        return None

    def read(each: tuple[Path, Names]) -> IntArray:
        path, names = each
        if path.stat().st_size == 0:  # every entity has a counterpart
            return np.empty(0, dtype=np.int64)
        ids = names.ids_of(read_delimited(path, ("entity",), delimiter="\t")["entity"])
        return ids[ids >= 0]

    return both_at_once(read, layout.dangling.zip(keys))
