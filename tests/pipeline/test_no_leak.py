"""No leak: whatever the test links are, every artifact is the same, to its name and its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import CPU, STAGES, benchmark, digests, in_rounds, made, quick

from clusterea.data import load
from clusterea.data.synthetic import SHAPES, LabelShape, generate, write_openea
from clusterea.pipeline import AlignmentResult, align
from clusterea.types import Benchmark, IntArray, Pair
from clusterea.workspace import Workspace, task_key

CONFIGS = {
    "samplers": quick(samplers=("cmcs", "iscs", "vps", "metis-cps")),
    "rounds": in_rounds(),  # two encoders, held-out seeds
    "fits": in_rounds("matching.fits=2", "self_training.rounds=1"),
    "names": in_rounds("names.dimensions=64"),  # and seeds from names
    "names in fits": in_rounds("names.dimensions=64", "matching.fits=2", "self_training.rounds=1"),
}
MADE = {
    "samplers": {"train": 1, "sample": 5, "metis": 2, "fuse": 1, "match": 1},
    "rounds": {"train": 7, "fuse": 3, "pseudo": 2, "match": 1},
    "fits": {"train": 10, "fuse": 5, "pseudo": 2, "match": 1},
    "names": {
        "names": 1,
        "features": 1,
        "translation": 3,
        "trust": 3,
        "train": 7,
        "fuse": 4,
        "pseudo": 2,
        "match": 1,
    },
    "names in fits": {
        "names": 1,
        "features": 1,
        "translation": 4,
        "trust": 4,
        "train": 10,
        "fuse": 7,
        "pseudo": 2,
        "match": 1,
    },
}


def in_another_order(links: IntArray) -> IntArray:
    return np.random.default_rng(0).permutation(links)


def with_other_partners(links: IntArray) -> IntArray:
    return np.stack([links[:, 0], np.roll(links[:, 1], 1)], 1)


def halved(links: IntArray) -> IntArray:
    return links[: len(links) // 2]


def removed(links: IntArray) -> IntArray:
    return links[:0]


CHANGES = [in_another_order, with_other_partners, halved, removed]


def run(given: Benchmark, kind: str, folder: Path) -> AlignmentResult:
    workspace = Workspace(folder)
    workspace.save_benchmark(given)  # as `clusterea align` does
    return align(given.task, CONFIGS[kind], CPU, workspace=workspace)


@pytest.fixture(scope="module", params=CONFIGS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def unnamed() -> Benchmark:
    return benchmark((260, 230), share=0.6)  # so many seeds that some are held out


@pytest.fixture(scope="module")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair with labels, as files."""
    shape = replace(
        SHAPES["demo"], entities=Pair(260, 230), triples=Pair(1560, 1380), relations=Pair(12, 10)
    )
    folder = tmp_path_factory.mktemp("labeled") / "pair"
    write_openea(generate(shape, 0, LabelShape(missing=0.2, noise=0.2)), folder)
    return folder


@pytest.fixture(scope="module")
def named(labeled: Path) -> Benchmark:
    """With names and features, and no seeds but equal names: all links are test links."""
    given = load(labeled, names="labels", seeds_from="names")
    rng = np.random.default_rng(0)
    features = given.task.num_entities.map(
        lambda count: rng.normal(size=(count, 8)).astype(np.float32)
    )
    return replace(given, task=replace(given.task, features=features))


@pytest.fixture(scope="module")
def given(kind: str, unnamed: Benchmark, named: Benchmark) -> Benchmark:
    return named if kind.startswith("names") else unnamed


@pytest.fixture(scope="module")
def folder(given: Benchmark, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "as-it-is"
    run(given, kind, folder)
    return folder


@pytest.mark.parametrize("change", CHANGES)
def test_every_artifact_is_the_same(
    change: Callable[[IntArray], IntArray],
    given: Benchmark,
    kind: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    other = replace(given, test_links=change(given.test_links))
    result = run(other, kind, tmp_path)
    assert made(folder) == dict.fromkeys(STAGES, 0) | MADE[kind]
    assert digests(tmp_path) == digests(folder)
    assert {Path(name).name for name in digests(folder)} == {"recipe.json", "tensors.safetensors"}
    # The data is another, so that a run knows what it is judged by.
    data = [place.name for run in (folder, tmp_path) for place in run.glob("data-*")]
    assert len(set(data)) == 2
    metrics = result.evaluate(given.test_links)
    if len(other.test_links):
        assert (result.evaluate(other.test_links) == metrics) == (change is in_another_order)


def test_other_seeds_do_change_them(
    given: Benchmark, kind: str, folder: Path, tmp_path: Path
) -> None:
    """So that the test above could fail."""
    task = given.task.with_seeds(given.task.seeds[1:], given.task.presumed[1:])
    run(replace(given, task=task), kind, tmp_path)
    assert not set(digests(tmp_path)) & set(digests(folder))


@pytest.mark.parametrize("change", CHANGES)
def test_from_files(
    change: Callable[[IntArray], IntArray], unnamed: Benchmark, tmp_path: Path
) -> None:
    """Nor does reading them: a task's ids, seeds and names come without a look at test links."""
    given = unnamed
    write_openea(given, tmp_path / "pair")
    triples = [tmp_path / "pair" / f"rel_triples_{side}" for side in (1, 2)]

    def written(name: str, links: IntArray) -> Path:
        ends = [names.take(links[:, side]) for side, names in enumerate(given.names)]
        lines = [f"{source}\t{target}\n" for source, target in zip(*ends, strict=True)]
        (tmp_path / name).write_text("".join(lines))
        return tmp_path / name

    seeds = written("seeds", given.task.seeds)
    before = load(*triples, seeds=seeds, test_links=written("test", given.test_links))
    test_links = change(given.test_links)
    path = written("changed", test_links) if len(test_links) else None
    after = load(*triples, seeds=seeds, test_links=path)
    assert len(after.test_links) == len(test_links)
    for one, other in zip(before.task.graphs, after.task.graphs, strict=True):
        assert np.array_equal(one.triples, other.triples)
    assert np.array_equal(before.task.seeds, after.task.seeds)
    for keys, others in before.task.tie_keys.zip(after.task.tie_keys):
        assert np.array_equal(keys, others)


@pytest.mark.parametrize("change", CHANGES)
def test_from_files_with_names(
    change: Callable[[IntArray], IntArray], labeled: Path, tmp_path: Path
) -> None:
    """With seeds from names: the task is the same, whatever the links are."""
    before = load(labeled, names="labels", seeds_from="names")
    assert len(before.task.presumed) > 50
    links = change(before.test_links)
    ends = [names.take(links[:, side]) for side, names in enumerate(before.names)]
    lines = [f"{source}\t{target}\n" for source, target in zip(*ends, strict=True)]
    (tmp_path / "links").write_text("".join(lines))
    graphs = [labeled / f"rel_triples_{side}" for side in (1, 2)]
    tables = labeled / "labels_1", labeled / "labels_2"
    after = load(
        *graphs,
        links=tmp_path / "links" if len(links) else None,
        name_files=tables,
        names="labels",
        seeds_from="names",
    )
    assert len(after.test_links) == len(links)
    assert task_key(after.task) == task_key(before.task)


def test_stages_are_all_there_are(kind: str, folder: Path) -> None:
    """A new kind of artifact must be looked at here too."""
    kinds = {place.name.rpartition("-")[0] for place in folder.iterdir() if place.is_dir()}
    assert kinds - {"data", ""} == set(MADE[kind])
    assert set().union(*MADE.values()) == set(STAGES)
