"""`align`: recovers what was planted, and computes nothing twice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from small_runs import CPU, artifacts, benchmark, digests, is_clean, made, quick

import clusterea.fusion
import clusterea.matching
import clusterea.pipeline.cuts
import clusterea.samplers
import clusterea.training
from clusterea.config import config_with
from clusterea.errors import InputError
from clusterea.graph.metis import MetisBeside
from clusterea.pipeline import AlignmentResult, StageCost, align
from clusterea.types import Benchmark
from clusterea.workspace import Workspace

PLACES: dict[str, tuple[Any, str]] = {
    "train": (clusterea.training, "train"),
    "sample": (clusterea.samplers, "sample"),
    "fuse": (clusterea.fusion, "fuse"),
    "match": (clusterea.matching, "match"),
}
THOROUGH = quick(
    "training.epochs=40",
    "training.dimension=32",
    "sampling.gcn_epochs=60",
    "fusion.candidates=20",
    "fusion.sinkhorn_rounds=50",
)
ALL = {"train": 1, "sample": 3, "metis": 2, "fuse": 1, "match": 1}


def forbid(patch: pytest.MonkeyPatch, *stages: str) -> None:
    """Has these stages raise where they would compute."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("not to be computed")

    for stage in stages:
        patch.setattr(*PLACES[stage], refuse)


@pytest.fixture(scope="module")
def given() -> Benchmark:
    return benchmark((160, 130))


@pytest.fixture(scope="module")
def finished(given: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, to be copied."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    align(given.task, quick(), CPU, workspace=Workspace(folder))
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """The same run again, to be spoilt."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def planted() -> Benchmark:
    return benchmark((500, 450))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def result(planted: Benchmark, workspace: Workspace) -> AlignmentResult:
    return align(planted.task, THOROUGH, CPU, workspace=workspace)


@pytest.mark.slow
class TestPlantedTruth:
    def test_most_of_it_is_recovered(self, planted: Benchmark, result: AlignmentResult) -> None:
        metrics = result.evaluate(planted.test_links)
        for ranking in metrics.test_candidates:
            assert ranking.hits[1] > 0.55
            assert ranking.hits[10] > 0.85
        assert metrics.matching is not None
        assert metrics.matching.recall > 0.5
        assert metrics.missing < 0.1 * len(planted.test_links)
        assert sum(bucket.test_links for bucket in metrics.by_degree) == len(planted.test_links)

    def test_fusion_beats_plain_neighbors(
        self, planted: Benchmark, workspace: Workspace, result: AlignmentResult
    ) -> None:
        plain = config_with(replace(THOROUGH, samplers=()), ["fusion.csls=false"])
        neighbors = align(planted.task, plain, CPU, workspace=workspace)
        assert neighbors.keys["train"] == result.keys["train"]
        fused, baseline = (
            each.evaluate(planted.test_links).test_candidates for each in (result, neighbors)
        )
        assert fused.source.hits[1] >= baseline.source.hits[1]
        assert fused.target.hits[1] >= baseline.target.hits[1]

    def test_it_is_one_to_one_and_leaves_the_seeds_alone(
        self, planted: Benchmark, result: AlignmentResult
    ) -> None:
        seeds, sizes = planted.task.seeds, [graph.num_entities for graph in planted.task.graphs]
        for side, unmatched in enumerate(result.alignment.unmatched):
            matched = result.alignment.links[:, side].tolist()
            everybody = [*matched, *seeds[:, side].tolist(), *unmatched.tolist()]
            assert sorted(everybody) == list(range(sizes[side]))
        assert bool((result.alignment.confidence.diff() <= 0).all())

    def test_the_surer_a_link_the_likelier(
        self, planted: Benchmark, result: AlignmentResult
    ) -> None:
        truth = {tuple(link) for link in planted.test_links.tolist()}
        right = np.array([tuple(link) in truth for link in result.alignment.links.tolist()])
        half = len(right) // 2
        assert right[:half].mean() > right[half:].mean() + 0.2


class TestResume:
    def test_nothing_is_made_again(
        self, given: Benchmark, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = digests(run)
        fresh = align(given.task, quick(), CPU)
        forbid(monkeypatch, *PLACES)
        monkeypatch.setattr(clusterea.pipeline.cuts, "MetisBeside", None)
        found = align(given.task, quick(), CPU, workspace=Workspace(run))
        assert all(cost.reused for cost in found.timings)
        assert digests(run) == before
        assert found.keys == fresh.keys
        for one, other in found.embeddings.zip(fresh.embeddings):
            assert torch.equal(one, other)
        assert set(found.partitions) == set(fresh.partitions)
        for sampler, partition in found.partitions.items():
            assert partition.num_batches == fresh.partitions[sampler].num_batches
            for labels, others in partition.labels.zip(fresh.partitions[sampler].labels):
                assert torch.equal(labels, others)
        assert torch.equal(found.similarity.columns, fresh.similarity.columns)
        assert torch.equal(found.similarity.values, fresh.similarity.values)
        assert torch.equal(found.alignment.links, fresh.alignment.links)
        assert torch.equal(found.alignment.confidence, fresh.alignment.confidence)
        assert found.evaluate(given.test_links) == fresh.evaluate(given.test_links)

    @pytest.mark.parametrize(
        ("setting", "kept", "more"),
        [
            ("matching.method=greedy", ("train", "sample", "fuse"), {"match": 2}),
            ("fusion.candidates=7", ("train", "sample"), {"fuse": 2, "match": 2}),
            ("fusion.outside=best", ("train", "sample"), {"fuse": 2, "match": 2}),
            (
                "sampling.gcn_epochs=9",
                ("train",),
                {"sample": 5, "fuse": 2, "match": 2},  # cmcs's stays
            ),
            (
                "sampling.num_batches=4",
                ("train",),
                {"sample": 6, "metis": 4, "fuse": 2, "match": 2},
            ),
            (
                "training.epochs=4",
                (),
                {"train": 2, "sample": 6, "fuse": 2, "match": 2},  # the graph's parts stay
            ),
        ],
    )
    def test_a_setting_changes_what_follows_it(
        self,
        setting: str,
        kept: tuple[str, ...],
        more: dict[str, int],
        given: Benchmark,
        run: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        before = digests(run)
        forbid(monkeypatch, *kept)
        result = align(given.task, quick(setting), CPU, workspace=Workspace(run))
        assert made(run) == ALL | more
        assert before.items() <= digests(run).items()
        assert Workspace(run).current("match") == result.keys["match"]
        reused = {cost.stage for cost in result.timings if cost.reused}
        assert ("training" in reused) == ("train" in kept)
        assert ("fusion" in reused) == ("fuse" in kept)
        assert "matching" not in reused

    def test_samplers_share_what_they_can(
        self, given: Benchmark, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        forbid(monkeypatch, "train", "sample")
        align(given.task, quick(samplers=["cmcs"]), CPU, workspace=Workspace(run))
        assert made(run) == ALL | {"fuse": 2, "match": 2}

    @pytest.mark.parametrize("stage", PLACES)
    def test_after_an_error_it_goes_on(
        self, stage: str, given: Benchmark, finished: Path, tmp_path: Path
    ) -> None:
        with pytest.MonkeyPatch.context() as patch:
            forbid(patch, stage)
            with pytest.raises(RuntimeError, match="not to be computed"):
                align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        stages = list(PLACES)
        later = stages[stages.index(stage) :]
        earlier = stages[: stages.index(stage)]
        there = made(tmp_path)
        assert all(there[each] == 0 for each in later)
        assert all(there[each] == ALL[each] for each in earlier)
        assert is_clean(tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            forbid(patch, *earlier)
            align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        assert digests(tmp_path) == digests(finished)
        assert is_clean(tmp_path)

    def test_an_error_while_writing_leaves_nothing(
        self, given: Benchmark, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for place in [*artifacts(run, "fuse"), *artifacts(run, "match")]:
            shutil.rmtree(place)

        def full(*_: Any) -> NoReturn:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("safetensors.torch.save_file", full)
            with pytest.raises(InputError, match="can't be written: No space left"):
                align(given.task, quick(), CPU, workspace=Workspace(run))
        assert is_clean(run)
        assert made(run)["fuse"] == 0
        forbid(monkeypatch, "train", "sample")
        align(given.task, quick(), CPU, workspace=Workspace(run))
        assert made(run) == ALL

    def test_training_goes_on_from_its_checkpoint(
        self, given: Benchmark, finished: Path, tmp_path: Path
    ) -> None:
        class Stop:
            def begin(self, stage: str) -> None: ...
            def end(self, cost: StageCost) -> None: ...
            def step(self, stage: str, what: str, done: int, total: int) -> None:
                if what.startswith("epoch 3"):
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            align(given.task, quick(), CPU, workspace=Workspace(tmp_path), observer=Stop())
        assert len(list((tmp_path / "checkpoints").glob("*.safetensors"))) == 1
        align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        assert digests(tmp_path) == digests(finished)
        assert not list((tmp_path / "checkpoints").iterdir())


class TestMetis:
    """Its processes run beside training, and never longer than `align`."""

    @pytest.fixture
    def begun(self, monkeypatch: pytest.MonkeyPatch) -> list[MetisBeside]:
        processes: list[MetisBeside] = []

        class Recorded(MetisBeside):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                processes.append(self)

        monkeypatch.setattr(clusterea.pipeline.cuts, "MetisBeside", Recorded)
        return processes

    @staticmethod
    def assert_over(process: MetisBeside) -> None:
        assert process._process.poll() is not None
        assert not Path(process._folder.name).exists()

    @pytest.mark.parametrize("stage", ["train", "sample"])
    def test_they_are_stopped_when_a_stage_raises(
        self,
        stage: str,
        begun: list[MetisBeside],
        given: Benchmark,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        forbid(monkeypatch, stage)
        with pytest.raises(RuntimeError, match="not to be computed"):
            align(given.task, quick(), CPU)
        assert len(begun) == 2
        for process in begun:
            self.assert_over(process)

    def test_they_are_over_in_the_end(self, begun: list[MetisBeside], given: Benchmark) -> None:
        align(given.task, quick(samplers=["iscs-reverse"]), CPU)
        assert len(begun) == 1
        self.assert_over(begun[0])

    def test_none_is_begun_where_none_is_needed(
        self, begun: list[MetisBeside], given: Benchmark
    ) -> None:
        align(given.task, quick(samplers=["cmcs", "vps"]), CPU)
        assert not begun


class TestObserver:
    def test_hears_of_every_stage_in_order(self, given: Benchmark) -> None:
        heard: list[tuple[str, ...]] = []
        steps: dict[str, list[tuple[int, int]]] = {}

        class Ear:
            def begin(self, stage: str) -> None:
                heard.append(("begin", stage))

            def step(self, stage: str, what: str, done: int, total: int) -> None:
                steps.setdefault(stage, []).append((done, total))

            def end(self, cost: StageCost) -> None:
                heard.append(("end", cost.stage))

        result = align(given.task, quick(), CPU, observer=Ear())
        stages = [
            "training",
            *(f"sampling: {sampler}" for sampler in ("cmcs", "iscs", "iscs-reverse")),
            "fusion",
            "matching",
        ]
        assert heard == [(what, stage) for stage in stages for what in ("begin", "end")]
        assert [cost.stage for cost in result.timings] == stages
        assert set(steps) == {"training", "fusion"}
        assert steps["training"][-1][0] == steps["training"][-1][1]
        for cost in result.timings:
            assert cost.seconds > 0
            assert cost.peak_host_bytes > 1 << 20
            assert cost.peak_gpu_bytes is None
            assert not cost.reused
            assert cost.to_dict()["stage"] == cost.stage


def test_the_result_says_what_it_was_made_of(given: Benchmark, finished: Path) -> None:
    result = align(given.task, quick(), CPU, workspace=Workspace(finished))
    assert set(result.keys) == {"train", "cmcs", "iscs", "iscs-reverse", "fuse", "match"}
    for key in result.keys.values():
        assert (finished / key / "tensors.safetensors").is_file()
    for stage in ("train", "fuse", "match"):
        assert Workspace(finished).current(stage) == result.keys[stage]
