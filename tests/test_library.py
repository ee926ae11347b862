"""The package as a library: its documented examples run, and threads don't mind each other."""

from __future__ import annotations

import doctest
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import clusterea
from clusterea import library
from clusterea.data.synthetic import SHAPES, generate, write_openea
from clusterea.errors import DataError, InputError
from clusterea.pipeline import Observer, Silent
from clusterea.types import Benchmark, KnowledgeGraph, Pair

SHAPE = replace(
    SHAPES["demo"], entities=Pair(300, 250), triples=Pair(1500, 1200), relations=Pair(9, 7)
)
FEW: dict[str, int | str] = {
    "training.epochs": 2,
    "training.dimension": 16,
    "propagation.dimension": 32,
    "propagation.features": 48,
    "self_training.rounds": 1,
    "matching.fits": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("library")
    write_openea(generate(SHAPE, seed=0), place / "path/to/openea-folder")
    return place


def test_the_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = doctest.testmod(library)
    assert found.attempted >= 9
    assert found.failed == 0


def test_several_names_in_a_setting(folder: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    for views in (["local", "global"], ("local", "global"), "local,global"):
        result = clusterea.align(
            task, preset="fast", settings={**FEW, "fusion.views": views}, device="cpu"
        )
        assert result.config.fusion.views == ("local", "global")


def test_settings_may_be_a_mapping_or_text(folder: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    one = clusterea.align(task, preset="fast", settings=FEW, device="cpu")
    other = clusterea.align(
        task, preset="fast", settings=[f"{k}={v}" for k, v in FEW.items()], device="cpu"
    )
    assert one.config == other.config
    assert torch.equal(one.alignment.links, other.alignment.links)
    assert one.config.propagation.features == 48


@pytest.mark.parametrize(
    ("preset", "model", "samplers", "stages"),
    [
        ("fast", None, None, ["propagation", "fusion"]),
        ("fast", "dual-amn", ["vps"], ["training", "sampling: vps", "fusion"]),
        ("fast", "label-propagation,dual-amn", None, ["propagation", "training", "fusion"]),
        ("paper", None, ["cmcs"], ["training", "sampling: cmcs", "fusion"]),
        (
            "default",
            None,
            None,
            [
                *("propagation", "fusion", "self-training, round 1"),
                *("training, round 1",) * 2,
                *("propagation, round 1",) * 2,
                "fusion, round 1",
            ],
        ),
    ],
)
def test_encoders_and_samplers_as_asked(
    preset: str, model: str | None, samplers: list[str] | None, stages: list[str], folder: Path
) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    settings = FEW | ({} if preset == "default" else {"self_training.rounds": 0})
    settings |= {"sampling.classifier": "softmax", "self_training.threshold": 0}
    result = clusterea.align(
        task, preset=preset, model=model, samplers=samplers, settings=settings, device="cpu"
    )
    assert [cost.stage for cost in result.timings] == [*stages, "matching"]
    if model is not None:
        assert result.config.models == tuple(model.split(","))


def test_a_run_folder_is_used_again(folder: Path, tmp_path: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    for again in (False, True):
        result = clusterea.align(
            task, preset="default", settings=FEW, device="cpu", run=tmp_path / "run"
        )
        assert all(cost.reused == again for cost in result.timings)


class TestDamage:
    """What is made again is named, whoever listens."""

    @pytest.fixture
    def given(self, folder: Path) -> Benchmark:
        return clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3)

    @pytest.fixture
    def damaged(self, given: Benchmark, tmp_path: Path) -> list[str]:
        """What a run lacks: a file of its data and one of a stage."""
        align_again(given, tmp_path)
        lost = [
            *tmp_path.glob("data-*/source_entities.parquet"),
            *tmp_path.glob("match-*/tensors.safetensors"),
        ]
        for path in lost:
            path.unlink()
        return [f"{path} is damaged or missing: " for path in lost]

    def test_python_warns(self, given: Benchmark, damaged: list[str], tmp_path: Path) -> None:
        with pytest.warns(UserWarning, match="is damaged or missing") as heard:
            align_again(given, tmp_path)
        said = [str(each.message) for each in heard]
        assert len(said) == len(damaged) == 2
        assert all(text.startswith(start) for text, start in zip(said, damaged, strict=True))
        align_again(given, tmp_path)  # it is repaired: a warning would be an error

    def test_an_observer_is_told_instead(
        self, given: Benchmark, damaged: list[str], tmp_path: Path
    ) -> None:
        class Ear(Silent):
            said: ClassVar[list[str]] = []

            def warn(self, message: str) -> None:
                self.said.append(message)

        align_again(given, tmp_path, Ear())
        assert len(Ear.said) == len(damaged) == 2
        assert all(text.startswith(start) for text, start in zip(Ear.said, damaged, strict=True))


def align_again(given: Benchmark, run: Path, observer: Observer | None = None) -> None:
    clusterea.align(given, "fast", settings=FEW, device="cpu", run=run, observer=observer)


def test_an_unknown_sampler_is_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    with pytest.raises(InputError, match="unknown sampler 'cmsc'.*Did you mean 'cmcs'"):
        clusterea.align(task, preset="fast", samplers=["cmsc"], device="cpu", run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_so_is_a_limit_on_memory_that_cannot_be_kept(folder: Path, tmp_path: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    with pytest.raises(InputError, match=r"^memory='\d+MiB' is the least memory ") as refused:
        clusterea.align(task, "fast", settings=FEW, device="cpu", memory=1000, run=tmp_path / "run")
    assert not list(tmp_path.iterdir())
    least = str(refused.value).split("'")[1]
    result = clusterea.align(task, "fast", settings=FEW, device="cpu", memory=least)
    free = clusterea.align(task, "fast", settings=FEW, device="cpu")
    assert torch.equal(result.similarity.values, free.similarity.values)


def test_so_is_an_unknown_model(folder: Path, tmp_path: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task
    for model in ("dual-anm", "label-propagation,dual-anm"):
        with pytest.raises(InputError, match="unknown model 'dual-anm'.*Did you mean 'dual-amn'"):
            clusterea.align(task, preset="fast", model=model, device="cpu", run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_threads_get_what_each_asked_for(preset: str, folder: Path) -> None:
    task = clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3).task

    def run(seed: int) -> torch.Tensor:
        few = FEW | {"sampling.classifier": "softmax", "sampling.gcn_epochs": 5}
        if preset == "paper":
            few["self_training.rounds"] = 0
        result = clusterea.align(task, preset=preset, settings=few, device="cpu", seed=seed)
        return result.alignment.links

    alone = [run(seed) for seed in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, (0, 1)))
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)


class TestFeatures:
    """Vectors of the caller's own: errors say what was wanted."""

    @pytest.fixture
    def given(self, folder: Path) -> Benchmark:
        return clusterea.load(folder / "path/to/openea-folder", seeds_share=0.3)

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (np.zeros((300, 4)), "^features must be two arrays: of the source and of the target"),
            (7, "^features must be two arrays"),
            ((np.zeros((300, 4)),), "^features must be two arrays"),
            (
                (np.zeros((299, 4)), np.zeros((250, 4))),
                r"^features must have a row for each of the 300 source entities\. Got 299 rows",
            ),
            (
                (np.zeros((300, 4)), np.zeros((300, 4))),
                r"^features must have a row for each of the 250 target entities\. Got 300 rows",
            ),
            (
                (np.zeros((300, 4)), np.zeros((250, 5))),
                "^features must have the same number of dimensions on both sides.*4 .*5 ",
            ),
            ((np.zeros(300), np.zeros(250)), "features' source.*expected a matrix.*1-d"),
            (
                (np.zeros((300, 4)), np.full((250, 4), "a")),
                "features' target.*expected a matrix of numbers",
            ),
            (
                (np.zeros((300, 4)), np.full((250, 4), np.nan)),
                "features' target.*expected finite numbers, got another one in row 1",
            ),
        ],
    )
    def test_wrong_ones(
        self, features: Any, message: str, given: Benchmark, tmp_path: Path
    ) -> None:
        with pytest.raises((InputError, DataError), match=message):
            clusterea.align(given, "fast", features=features, device="cpu", run=tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_task_alone_takes_them_too(self, given: Benchmark) -> None:
        features = given.task.num_entities.map(lambda count: np.ones((count, 3)))
        result = clusterea.align(given.task, "fast", features=features, settings=FEW, device="cpu")
        assert result.task.features is not None
        assert given.task.features is None
        assert list(result.made_fits[0].contents) == ["features"]

    def test_a_folder_of_other_features_is_refused(self, given: Benchmark, tmp_path: Path) -> None:
        for seed, error in ((0, None), (0, None), (1, InputError)):
            rng = np.random.default_rng(seed)
            features = Pair(*(rng.normal(size=(count, 3)) for count in given.task.num_entities))
            with nullcontext() if error is None else pytest.raises(error, match="overwrite=True"):
                clusterea.align(
                    given, "fast", features=features, settings=FEW, device="cpu", run=tmp_path
                )


def test_anybodys_embeddings_can_be_fused() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 16))
    order = np.random.default_rng(1).permutation(60)
    similarity = clusterea.fuse(rows, rows[order] * 3, [[order[0], 0]], device="cpu")
    best = [
        int(similarity.columns[a:b][similarity.values[a:b].argmax()]) if b > a else -1
        for a, b in zip(
            similarity.row_offsets[:-1].tolist(), similarity.row_offsets[1:].tolist(), strict=True
        )
    ]
    expected = np.argsort(order)
    expected[order[0]] = -1  # a seed's row is empty
    assert best == expected.tolist()
    with pytest.raises(InputError, match="candidates must be an int"):
        clusterea.fuse(rows, rows, candidates=0, device="cpu")


def test_graphs_bring_neighbor_evidence() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 16))
    graph = KnowledgeGraph(
        np.stack([np.arange(59), np.zeros(59), np.arange(1, 60)], 1).astype(int), 60, 1
    )
    plain = clusterea.fuse(rows, rows, candidates=5, device="cpu")
    chosen = clusterea.fuse(rows, rows, candidates=5, device="cpu", views=["sinkhorn"])
    assert torch.equal(plain.values, chosen.values)
    weighted = clusterea.fuse(rows, rows, graphs=Pair(graph, graph), candidates=5, device="cpu")
    assert torch.equal(plain.columns, weighted.columns)
    assert not torch.equal(plain.values, weighted.values)
    with pytest.raises(InputError, match="the view 'support' needs the graphs"):
        clusterea.fuse(rows, rows, views=["support"], device="cpu")


def test_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    alignment = clusterea.Alignment(
        torch.tensor([[0, 1]]), torch.tensor([0.5]), Pair(torch.tensor([1]), torch.tensor([0]))
    )
    pytest.importorskip("pandas")
    table = alignment.to_pandas()
    assert table.to_dict("list") == {"source": [0], "target": [1], "score": [0.5]}
    table = replace(alignment, examples=130).to_pandas()
    assert table.to_dict("list") == {"source": [0], "target": [1], "confidence": [0.5]}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        alignment.to_pandas()


def test_importing_is_quick_and_silent() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import sys, clusterea; print('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "False\n"
    assert ran.stderr == ""
