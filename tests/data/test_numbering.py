"""Numbers follow from the structure, not from the order of rows, and hardly from names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clusterea import in_threads as in_threads_module
from clusterea.data import load, numbering, sorted_keys
from clusterea.data.numbering import canonical
from clusterea.data.synthetic import SHAPES, generate
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair
from clusterea.workspace import fingerprint


def pair(entities: int = 300, seeds: int = 80, density: int = 6) -> Benchmark:
    """A generated pair with seeds, test links and entities that are never linked."""
    shape = replace(
        SHAPES["demo"],
        entities=Pair(entities, entities - 20),
        triples=Pair(density * entities, density * entities - 100),
        relations=Pair(12, 10),
    )
    whole = generate(shape, 0)
    links, dangling = whole.task.seeds, whole.dangling
    assert dangling is not None
    task = replace(
        whole.task, seeds=links[:seeds], structural=dangling.map(lambda ids: np.sort(ids)[:5])
    )
    return replace(whole, task=task, test_links=links[seeds:])


def written(
    benchmark: Benchmark,
    folder: Path,
    shuffle: Callable[[IntArray], IntArray] = lambda rows: rows,
    rename: Callable[[str], str] = lambda name: name,
) -> Benchmark:
    """The pair as text, read back."""
    folder.mkdir()
    for file, graph, names, relations in zip(
        ("source", "target"),
        benchmark.task.graphs,
        benchmark.names,
        benchmark.relation_names,
        strict=True,
    ):
        rows = shuffle(graph.triples).tolist()
        lines = [
            f"{rename(names[h])}\t{rename(relations[r])}\t{rename(names[t])}\n" for h, r, t in rows
        ]
        (folder / file).write_text("".join(lines))
    for file, links in (("seeds", benchmark.task.seeds), ("test", benchmark.test_links)):
        ends = [map(rename, names.take(links[:, at])) for at, names in enumerate(benchmark.names)]
        (folder / file).write_text("".join(f"{s}\t{t}\n" for s, t in zip(*ends, strict=True)))
    files = [folder / name for name in ("source", "target", "seeds", "test")]
    return load(files[0], files[1], seeds=files[2], test_links=files[3], format="tsv")


def by_name(benchmark: Benchmark) -> list[object]:
    """All there is, by name."""
    triples = [
        {(names[h], relations[r], names[t]) for h, r, t in graph.triples.tolist()}
        for graph, names, relations in zip(
            benchmark.task.graphs, benchmark.names, benchmark.relation_names, strict=True
        )
    ]
    links = [
        [tuple(names[i] for names, i in zip(benchmark.names, row, strict=True)) for row in rows]
        for rows in (benchmark.task.seeds.tolist(), benchmark.test_links.tolist())
    ]
    assert benchmark.dangling is not None
    sets = [
        set(names.take(ids))
        for side in (benchmark.dangling, benchmark.task.structural)
        for names, ids in benchmark.names.zip(side)
    ]
    return [*triples, *links, *sets]


def test_nothing_but_the_numbers_changes() -> None:
    before = pair()
    after = canonical(before)
    assert by_name(after) == by_name(before)
    assert list(after.names.source) != list(before.names.source)


@pytest.mark.parametrize("seed", range(2))
def test_rows_in_another_order_are_numbered_the_same(seed: int, tmp_path: Path) -> None:
    benchmark, rng = pair(), np.random.default_rng(seed)
    one = written(benchmark, tmp_path / "one")
    other = written(benchmark, tmp_path / "other", rng.permutation)
    for before, after in zip(
        [*one.task.graphs, *one.names, *one.task.tie_keys],
        [*other.task.graphs, *other.names, *other.task.tie_keys],
        strict=True,
    ):
        if isinstance(before, KnowledgeGraph):
            assert isinstance(after, KnowledgeGraph)
            assert np.array_equal(before.triples, after.triples)
        else:
            assert list(before) == list(after)


def test_other_names_are_numbered_the_same_unless_entities_look_alike(tmp_path: Path) -> None:
    benchmark = pair()
    one = written(benchmark, tmp_path / "one")
    other = written(benchmark, tmp_path / "other", rename=lambda name: name[::-1])
    for (keys, again), (graph, other_graph) in zip(
        one.task.tie_keys.zip(other.task.tie_keys),
        one.task.graphs.zip(other.task.graphs),
        strict=True,
    ):
        assert np.array_equal(keys, again)
        same = (graph.triples == other_graph.triples).all(1)
        assert same.mean() > 0.9
    assert not set(one.task.tie_keys.source) & set(one.task.tie_keys.target)


def star(leaves: int) -> KnowledgeGraph:
    rows = [[0, 0, leaf] for leaf in range(1, leaves + 1)]
    return KnowledgeGraph(np.array(rows), leaves + 1, 1)


def test_names_tell_apart_what_looks_alike_but_not_alike_on_both_sides() -> None:
    """Else entities of one name would be at the same place."""
    names = Names([f"e{i}" for i in range(41)])
    task = AlignmentTask(
        Pair(star(40), star(40)), np.empty((0, 2), np.int64), Pair(names.keys(), names.keys())
    )
    nothing = np.empty((0, 2), np.int64)
    found = canonical(
        Benchmark(task, nothing, Pair(names, names), Pair(Names(["r"]), Names(["r"])))
    )
    for keys in found.task.tie_keys:
        assert len(set(keys.tolist())) == 41
    assert not set(found.task.tie_keys.source) & set(found.task.tie_keys.target)
    orders = found.names.map(lambda side: [name for name in side if name != "e0"])
    assert sorted(orders.source) == sorted(orders.target)
    ranks = [orders.target.index(name) for name in orders.source]
    assert abs(np.corrcoef(ranks, range(40))[0, 1]) < 0.4


def test_alike_graphs_are_not_numbered_alike() -> None:
    whole = pair()
    same = replace(
        whole,
        task=AlignmentTask(
            Pair(whole.task.graphs.source, whole.task.graphs.source), np.empty((0, 2), np.int64)
        ),
        test_links=np.empty((0, 2), np.int64),
        names=Pair(whole.names.source, whole.names.source),
        relation_names=Pair(whole.relation_names.source, whole.relation_names.source),
        dangling=None,
    )
    found = canonical(same)
    places = found.names.target.ids_of(found.names.source.arrow)
    assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 0.2


def test_many_rows_are_numbered_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pair()
    whole = canonical(before)
    monkeypatch.setattr(numbering, "_ROWS", 50)
    monkeypatch.setattr(sorted_keys, "LEAST", 1)
    monkeypatch.setattr(sorted_keys, "_SAMPLE", 100)
    monkeypatch.setattr(sorted_keys, "available_cpus", lambda: 4)
    monkeypatch.setattr(in_threads_module, "available_cpus", lambda: 4)
    apart = canonical(before)
    assert fingerprint(apart) == fingerprint(whole)


@pytest.mark.parametrize("values", [1, 40, 10**9])
def test_the_order_is_by_hash_and_then_by_name(values: int) -> None:
    names = Names([f"e{number}" for number in range(300)])
    hashes = np.random.default_rng(0).integers(values, size=300, dtype=np.uint64)
    found = numbering._order(hashes, names, np.uint64(1))
    by_name = numbering._mix(names.keys().view(np.uint64) + np.uint64(1))
    assert np.array_equal(found.old, np.lexsort((by_name, hashes)))
    assert np.array_equal(found.new[found.old], np.arange(300))
    assert len(set(found.keys.tolist())) == 300
