"""The real datasets load with exactly the counts that their README states."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import clusterea

COUNTS = {
    "ids15k-en-fr": ((15_000, 15_000), (267, 210), (47_334, 40_864), 15_000),
    "ids15k-en-de": ((15_000, 15_000), (215, 131), (47_676, 50_419), 15_000),
    "dbp15k-fr-en": ((19_661, 19_993), (903, 1_208), (105_998, 115_722), 15_000),
    "dbp15k-zh-en": ((19_388, 19_572), (1_701, 1_323), (70_414, 95_142), 15_000),
    "contea-fr-en": ((94_451, 142_234), (903, 1_208), (318_115, 465_126), 43_182),
    "debian-100k": ((153_338, 193_206), (28, 28), (1_398_822, 1_569_193), 129_431),
    "debian-1m": ((1_349_986, 1_519_203), (31, 31), (6_942_733, 7_833_854), 1_044_792),
}
SLOW = {"debian-1m"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in COUNTS]
)
def test_counts(name: str, shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / name
    if not folder.exists():
        with tarfile.open(shared_data / f"{name}.tar.xz") as archive:
            # Debian's Python 3.11.2 has no filters yet; later ones warn without.
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(tmp_path, **safely)  # type: ignore[arg-type]
        folder = tmp_path / name
    benchmark = clusterea.load(folder)
    graphs = benchmark.task.graphs
    counts = (
        tuple(graphs.map(lambda graph: graph.num_entities)),
        tuple(graphs.map(lambda graph: graph.num_relations)),
        tuple(graphs.map(lambda graph: graph.num_triples)),
        len(benchmark.task.seeds) + len(benchmark.test_links),
    )
    assert counts == COUNTS[name]
    assert benchmark.dropped == {}
    assert all((graph.degrees() > 0).all() for graph in graphs)


@pytest.mark.parametrize("name", ["dbp15k-fr-en", "dbp15k-zh-en"])
def test_dbp15k_brings_its_own_split(name: str, shared_data: Path) -> None:
    benchmark = clusterea.load(shared_data / name)
    assert (len(benchmark.task.seeds), len(benchmark.test_links)) == (4_500, 10_500)
    assert benchmark.names.source[0].startswith("http://")


@pytest.mark.parametrize("fold", [1, 5])
def test_ids15k_folds(fold: int, shared_data: Path) -> None:
    benchmark = clusterea.load(shared_data / "ids15k-en-fr", fold=fold)
    assert (len(benchmark.task.seeds), len(benchmark.test_links)) == (3_000, 10_500)


def test_ids15k_first_links_are_the_papers_seeds(shared_data: Path) -> None:
    benchmark = clusterea.load(shared_data / "ids15k-en-fr", seeds_share=0.3)
    assert (len(benchmark.task.seeds), len(benchmark.test_links)) == (4_500, 10_500)
    first = (shared_data / "ids15k-en-fr" / "ent_links").read_text().splitlines()[0].split("\t")
    source, target = benchmark.task.seeds[0].tolist()
    assert [benchmark.names.source[source], benchmark.names.target[target]] == first
