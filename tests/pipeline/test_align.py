"""`align`: recovers what was planted, and computes nothing twice."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_runs import (
    CPU,
    STAGES,
    Ear,
    artifacts,
    assert_same,
    benchmark,
    digests,
    in_rounds,
    is_clean,
    made,
    quick,
    reused,
    stages,
)

import clusterea.matching
import clusterea.pipeline.cuts
import clusterea.samplers
import clusterea.sharded
import clusterea.training
from clusterea.config import Config, config_with
from clusterea.errors import InputError
from clusterea.graph.metis import RunningMetis, begin
from clusterea.pipeline import AlignmentResult, Stage, align, fits, num_held_out
from clusterea.pipeline.store import Made
from clusterea.types import Benchmark, Similarity
from clusterea.workspace import Workspace

PLACES: dict[str, tuple[Any, str]] = {
    "train": (clusterea.training, "train"),
    "sample": (clusterea.samplers, "sample"),
    "fuse": (clusterea.sharded, "fuse"),
    "match": (clusterea.sharded, "match"),
}
OF_ROUNDS: dict[str, tuple[Any, str]] = {
    "propagate": (clusterea.sharded, "propagate"),
    "pseudo": (clusterea.matching, "pseudo_seeds"),
    "calibrate": (clusterea.matching, "calibrated"),
}
THOROUGH = quick(
    "training.epochs=40",
    "training.dimension=32",
    "sampling.gcn_epochs=60",
    "fusion.candidates=20",
    "fusion.sinkhorn_rounds=50",
)
NONE = dict.fromkeys(STAGES, 0)
ALL = NONE | {"train": 1, "sample": 3, "metis": 2, "fuse": 1, "match": 1}
# Label propagation first, and in the next round; both encoders in the last. Rounds have two folds.
ALL_ROUNDS = NONE | {"train": 1 + 2 + 4, "fuse": 3, "pseudo": 2, "match": 1}
BOTH = ("dual-amn", "label-propagation")
ONE_PASS = [
    "training",
    *(f"sampling: {sampler}" for sampler in ("cmcs", "iscs", "iscs-reverse")),
    *("fusion", "matching"),
]
FIRST_ROUND = ["propagation", "fusion"]
ROUNDS = [
    *FIRST_ROUND,
    "self-training, round 1",
    *("propagation, round 1", "propagation, round 1"),
    "fusion, round 1",
    "self-training, round 2",
    *("training, round 2", "training, round 2", "propagation, round 2", "propagation, round 2"),
    "fusion, round 2",
    "matching",
]


def forbid(patch: pytest.MonkeyPatch, *stages: str) -> None:
    """Has these stages raise where they would compute."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("not to be computed")

    for stage in stages:
        patch.setattr(*(PLACES | OF_ROUNDS)[stage], refuse)


def dense(similarity: Similarity) -> NDArray[np.float64]:
    """With 0 where there is no cell."""
    cells = np.zeros(tuple(similarity.num_entities))
    cells[similarity.rows().numpy(), similarity.columns.numpy()] = similarity.values.numpy()
    return cells


@pytest.fixture(scope="module")
def given() -> Benchmark:
    return benchmark((160, 130))


@pytest.fixture(scope="module")
def finished(given: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, to be copied."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    align(given.task, quick(), CPU, workspace=Workspace(folder))
    return folder


@pytest.fixture(scope="module")
def many() -> Benchmark:
    """With so many seeds that some are held out."""
    return benchmark((260, 230), share=0.6)


@pytest.fixture(scope="module")
def of_rounds(many: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of several rounds; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "rounds"
    align(many.task, in_rounds(), CPU, workspace=Workspace(folder))
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

    def test_rounds_beat_a_single_one(self, tmp_path: Path) -> None:
        """Where seeds are few; with three times as many there is little left to learn."""
        planted = benchmark((500, 450), share=0.14)
        several = in_rounds(
            "training.epochs=40",
            "training.dimension=32",
            "propagation.dimension=256",
            "propagation.features=512",
            "fusion.candidates=20",
            "fusion.sinkhorn_rounds=50",
            "self_training.threshold=0.5",
        )
        once = config_with(several, ["self_training.rounds=0"])
        better, baseline = (
            align(planted.task, config, CPU, workspace=Workspace(tmp_path))
            .evaluate(planted.test_links)
            .test_candidates
            for config in (several, once)
        )
        for more, less in better.zip(baseline):
            assert more.hits[1] > less.hits[1] + 0.03

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
        monkeypatch.setattr(clusterea.pipeline.cuts, "begin", None)
        found = align(given.task, quick(), CPU, workspace=Workspace(run))
        assert all(cost.reused for cost in found.timings)
        assert digests(run) == before
        assert_same(found, fresh)
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
        assert ("training" in reused(result)) == ("train" in kept)
        assert ("fusion" in reused(result)) == ("fuse" in kept)
        assert "matching" not in reused(result)

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
        at = list(PLACES).index(stage)
        earlier, later = list(PLACES)[:at], list(PLACES)[at:]
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
            patch.setattr("os.pwrite", full)
            with pytest.raises(
                InputError,
                match=r"run/fuse-\w+/tensors.safetensors: can't be written: the disk is full",
            ):
                align(given.task, quick(), CPU, workspace=Workspace(run))
        assert is_clean(run)
        assert made(run)["fuse"] == 0
        forbid(monkeypatch, "train", "sample")
        align(given.task, quick(), CPU, workspace=Workspace(run))
        assert made(run) == ALL

    def test_large_results_are_on_disk_at_the_end(
        self, given: Benchmark, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Writing them is part of the time."""
        save = Workspace.save_tensors
        writers: set[str] = set()

        def slow(*arguments: Any) -> None:
            time.sleep(0.2)
            save(*arguments)
            writers.add(threading.current_thread().name)

        monkeypatch.setattr("clusterea.pipeline.store.LARGE", 0)
        monkeypatch.setattr(Workspace, "save_tensors", slow)
        result = align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        assert digests(tmp_path) == digests(finished)
        assert is_clean(tmp_path)
        assert not (tmp_path / "checkpoints").exists()
        assert len(writers) == 1
        assert threading.current_thread().name not in writers
        assert result.timings[-1].seconds > 0.2

    def test_a_disk_that_is_full_beside_a_stage(
        self, given: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save = Workspace.save_tensors

        def full(*_: Any) -> NoReturn:
            raise OSError(28, "No space left on device")

        def save_there(*arguments: Any) -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("os.pwrite", full)
                save(*arguments)

        monkeypatch.setattr("clusterea.pipeline.store.LARGE", 0)
        monkeypatch.setattr(Workspace, "save_tensors", save_there)
        with pytest.raises(InputError, match=r"train-\w+/tensors.safetensors: can't be written"):
            align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        assert made(tmp_path)["train"] == 0
        assert is_clean(tmp_path)
        assert len(list((tmp_path / "checkpoints").iterdir())) == 1  # of what is not stored

    def test_training_goes_on_from_its_checkpoint(
        self, given: Benchmark, finished: Path, tmp_path: Path
    ) -> None:
        stop = Ear("training", "epoch 3")
        with pytest.raises(KeyboardInterrupt):
            align(given.task, quick(), CPU, workspace=Workspace(tmp_path), observer=stop)
        assert len(list((tmp_path / "checkpoints").glob("*.safetensors"))) == 1
        align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        assert digests(tmp_path) == digests(finished)
        assert not (tmp_path / "checkpoints").exists()


class TestRounds:
    """Self-training with two encoders, and some seeds held out: as the default preset has it."""

    def test_the_stages_are_heard_in_order(self, many: Benchmark) -> None:
        """Labels are propagated in every round; training is for the last."""
        ear = Ear()
        result = align(many.task, in_rounds(), CPU, observer=ear)
        assert ear.begun == stages(result) == ROUNDS
        assert ear.ended == list(result.timings)
        assert not ear.warned
        silent = {stage for stage in ROUNDS if stage.startswith(("self-training", "matching"))}
        assert set(ear.steps) == set(ROUNDS) - silent
        for stage, said in ear.steps.items():
            assert said[-1][1] == said[-1][2]
            assert all(what for what, _, _ in said)
            assert (said[0][0] == "labels") == stage.startswith("propagation")

    def test_only_the_last_round_has_what_is_trained(
        self, many: Benchmark, of_rounds: Path
    ) -> None:
        workspace = Workspace(of_rounds)
        models = []
        for place in artifacts(of_rounds, "fuse"):
            parents = workspace.recipe(place.name)["parents"]
            encoders = [key for name, key in parents.items() if name.startswith("train")]
            models.append(sorted(workspace.recipe(key)["config"]["model"] for key in encoders))
        labels, trained = ["label-propagation"], ["dual-amn"]
        assert sorted(models) == [2 * trained + 2 * labels, labels, 2 * labels]

    @pytest.mark.parametrize("config", [quick(), in_rounds()], ids=["mini-batches", "rounds"])
    def test_embeddings_may_be_half_precision(
        self, config: Config, many: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As those that a GPU makes are."""
        place = "clusterea.training.inference.vector_type"
        monkeypatch.setattr(place, lambda device: torch.float16)
        half = align(many.task, config, CPU, workspace=Workspace(tmp_path))
        assert half.embeddings.source.dtype == torch.float16
        assert_same(half, align(many.task, config, CPU, workspace=Workspace(tmp_path)))
        monkeypatch.undo()
        found, wanted = (
            {tuple(link) for link in each.alignment.links.tolist()}
            for each in (half, align(many.task, config, CPU))
        )
        assert len(found & wanted) > 0.9 * len(found | wanted)

    def test_two_trained_rounds_count_the_same(self, many: Benchmark, tmp_path: Path) -> None:
        """The embeddings of both are fused, those of the rounds before are not."""
        config = in_rounds("self_training.rounds=3", "self_training.trained_rounds=2")
        result = align(many.task, config, CPU, workspace=Workspace(tmp_path))
        assert [stage for stage in stages(result) if stage.startswith("training")] == [
            *2 * ["training, round 2"],
            *2 * ["training, round 3"],
        ]
        recipe = Workspace(tmp_path).recipe(result.keys["fuse"])
        fused = [key for name, key in recipe["parents"].items() if name.startswith("train")]
        assert len(set(fused)) == 8
        assert set(fused) >= {made.key for made in result.made_embeddings.values()}
        assert recipe["config"]["shares"] == [1 / 8] * 8

    @pytest.mark.parametrize(
        ("settings", "models", "found"),
        [
            ([], ("label-propagation",), FIRST_ROUND),
            (
                ["self_training.rounds=0"],
                ("dual-amn", "label-propagation"),
                ["training", *FIRST_ROUND],
            ),
            (
                ["self_training.folds=1"],
                BOTH,
                [
                    *(*FIRST_ROUND, "self-training, round 1"),
                    *("training, round 1", "propagation, round 1", "fusion, round 1"),
                ],
            ),
        ],
    )
    def test_where_seeds_are_plenty_rounds_are_for_trained_encoders(
        self, settings: list[str], models: tuple[str, ...], found: list[str], many: Benchmark
    ) -> None:
        config = replace(in_rounds("self_training.few=0", *settings), models=models)
        assert stages(align(many.task, config, CPU)) == [*found, "matching"]

    def test_few_is_a_share_of_the_smaller_side(self, many: Benchmark) -> None:
        task, labels = many.task, ("label-propagation",)
        share = task.num_seeds / min(task.num_entities)
        for few, rounds in ((share - 0.01, 0), (share + 0.01, 2)):
            config = replace(in_rounds(f"self_training.few={few}"), models=labels)
            assert len(align(task, config, CPU).rounds) == rounds

    def test_features_are_for_few_seeds(self, many: Benchmark) -> None:
        for few, width in ((0, 48), (1, 32)):
            settings = ["self_training.features=32", f"self_training.few={few}"]
            config = replace(in_rounds(*settings), models=("label-propagation",))
            assert align(many.task, config, CPU).embeddings.source.shape[1] == width

    def test_where_all_are_trained_every_round_trains(self, many: Benchmark) -> None:
        config = replace(in_rounds("self_training.folds=1"), models=("dual-amn",))
        found = [stage for stage in stages(align(many.task, config, CPU)) if "train" in stage[:6]]
        assert found == ["training", "training, round 1", "training, round 2"]

    def test_what_is_learned_from(self, many: Benchmark, of_rounds: Path) -> None:
        result = align(many.task, in_rounds(), CPU, workspace=Workspace(of_rounds))
        (fit,) = fits(Made.of("", many.task), in_rounds())
        held, known = fit.held, fit.known.value
        assert len(held) == num_held_out(many.task, in_rounds())[0] >= 50
        assert len(result.rounds) == 2
        before: set[tuple[int, ...]] = set()
        for each in result.rounds:
            found = set(map(tuple, each.pseudo_seeds.tolist()))
            assert each.num_new == len(found - before)
            for side in (0, 1):  # one-to-one, and never against a seed that was learned from
                ends = each.pseudo_seeds[:, side].tolist()
                assert len(set(ends)) == len(ends)
                assert not set(ends) & set(known.seeds[:, side].tolist())
            before = found
        # Held-out seeds are scored like other entities; those that were learned are not.
        scored = (result.similarity.row_offsets.diff() > 0).numpy()
        assert scored[held[:, 0]].any()
        assert not scored[known.seeds[:, 0]].any()

    def test_held_out_seeds_are_no_links_and_not_unmatched(
        self, many: Benchmark, of_rounds: Path
    ) -> None:
        result = align(many.task, in_rounds(), CPU, workspace=Workspace(of_rounds))
        assert result.alignment.examples > 0
        for side, graph in enumerate(many.task.graphs):
            matched = result.alignment.links[:, side].tolist()
            unmatched = list(result.alignment.unmatched)[side].tolist()
            decided = many.task.seeds[:, side].tolist()
            assert sorted([*matched, *decided, *unmatched]) == list(range(graph.num_entities))

    def test_the_result_says_what_it_was_made_of(self, many: Benchmark, of_rounds: Path) -> None:
        result = align(many.task, in_rounds(), CPU, workspace=Workspace(of_rounds))
        encoders = ["train", "train-2", "train-3", "train-4"]  # two, in two folds
        assert set(result.keys) == {*encoders, "pseudo-1", "pseudo-2", "fuse-1", "fuse", "match"}
        assert all((of_rounds / key).is_dir() for key in result.keys.values())
        assert [each.source.shape[1] for each in result.encodings] == [96, 96, 48, 48]
        assert result.embeddings is result.encodings[0]

    def test_nothing_is_made_again(
        self, many: Benchmark, of_rounds: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = digests(of_rounds)
        fresh = align(many.task, in_rounds(), CPU)
        forbid(monkeypatch, *PLACES, *OF_ROUNDS)
        found = align(many.task, in_rounds(), CPU, workspace=Workspace(of_rounds))
        assert all(cost.reused for cost in found.timings)
        assert digests(of_rounds) == before
        assert_same(found, fresh)

    @pytest.mark.parametrize(
        ("setting", "kept", "more"),
        [
            ("matching.method=greedy", ROUNDS[:-1], {"match": 1}),
            ("matching.abstain=false", ROUNDS[:-1], {"match": 1}),
            (
                "self_training.threshold=0.2",
                FIRST_ROUND,
                {"pseudo": 2, "train": 6, "fuse": 2, "match": 1},
            ),
            ("self_training.folds=1", ROUNDS[:3], {"pseudo": 1, "train": 3, "fuse": 2, "match": 1}),
            (
                "self_training.rounds=1",
                ROUNDS[:5],
                {"train": 2, "fuse": 1, "match": 1},  # the round that is now the last trains
            ),
            ("self_training.rounds=0", ROUNDS[:1], {"train": 1, "fuse": 1, "match": 1}),
            (
                "self_training.check=false",
                ROUNDS[:5],
                {"fuse": 2, "pseudo": 1, "train": 4, "match": 1},
            ),
            (
                "self_training.epochs=2",
                [*ROUNDS[:7], *ROUNDS[9:11]],
                {"train": 2, "fuse": 1, "match": 1},
            ),
            (
                "fusion.candidates=7",
                ROUNDS[:1],
                {"fuse": 3, "pseudo": 2, "train": 6, "match": 1},
            ),
            ("propagation.rounds=2", [], {"train": 7, "fuse": 3, "pseudo": 2, "match": 1}),
            (
                "training.epochs=4",
                [*ROUNDS[:7], *ROUNDS[9:11]],
                {"train": 2, "fuse": 1, "match": 1},
            ),
            ("matching.seed=1", [], {"train": 7, "fuse": 3, "pseudo": 2, "match": 1}),
        ],
    )
    def test_a_setting_changes_what_follows_it(
        self,
        setting: str,
        kept: list[str],
        more: dict[str, int],
        many: Benchmark,
        of_rounds: Path,
        tmp_path: Path,
    ) -> None:
        run = Path(shutil.copytree(of_rounds, tmp_path / "run"))
        before = digests(of_rounds)
        result = align(many.task, in_rounds(setting), CPU, workspace=Workspace(run))
        assert reused(result) == kept
        assert made(run) == {
            stage: count + more.get(stage, 0) for stage, count in made(of_rounds).items()
        }
        assert before.items() <= digests(run).items()

    @pytest.mark.parametrize("stage", dict.fromkeys(ROUNDS[1:]))
    def test_stopped_at_a_stage_it_goes_on(
        self, stage: str, many: Benchmark, of_rounds: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(KeyboardInterrupt):
            align(many.task, in_rounds(), CPU, workspace=Workspace(tmp_path), observer=Ear(stage))
        assert is_clean(tmp_path)
        result = align(many.task, in_rounds(), CPU, workspace=Workspace(tmp_path))
        assert reused(result) == ROUNDS[: ROUNDS.index(stage)]
        assert made(tmp_path) == ALL_ROUNDS
        assert digests(tmp_path) == digests(of_rounds)
        assert is_clean(tmp_path)

    def test_training_in_a_later_round_goes_on_from_its_checkpoint(
        self, many: Benchmark, of_rounds: Path, tmp_path: Path
    ) -> None:
        stop = Ear("training, round 2", "epoch 3")
        with pytest.raises(KeyboardInterrupt):
            align(many.task, in_rounds(), CPU, workspace=Workspace(tmp_path), observer=stop)
        assert len(list((tmp_path / "checkpoints").glob("*.safetensors"))) == 1
        align(many.task, in_rounds(), CPU, workspace=Workspace(tmp_path))
        assert digests(tmp_path) == digests(of_rounds)
        assert not (tmp_path / "checkpoints").exists()

    def test_without_anything_sure_the_seeds_are_learned_again(self, many: Benchmark) -> None:
        """After the first pass the most probable pairs are taken, as many as there are seeds."""
        config = in_rounds("self_training.threshold=1", "self_training.trained_rounds=2")
        result = align(many.task, config, CPU)
        (fit,) = fits(Made.of("", many.task), config)
        found = [len(each.pseudo_seeds) for each in result.rounds]
        assert found == [fit.known.value.num_seeds, 0]
        again = ["training", "propagation", "fusion"]  # on the seeds
        assert stages(result)[-4:] == [*again, "matching"]
        assert len(result.encodings) == 2

    @pytest.mark.parametrize(("gain", "rounds"), [(1, [1]), (0, [2, 3, 4, 5])])
    def test_rounds_go_on_while_they_gain(
        self, gain: int, rounds: list[int], many: Benchmark
    ) -> None:
        config = in_rounds(f"self_training.least_gain={gain}", "self_training.rounds=5")
        result = align(many.task, config, CPU)
        assert len(result.rounds) in rounds
        trained = [stage for stage in stages(result) if stage.startswith("training")]
        assert trained == 2 * [f"training, round {len(result.rounds)}"]
        assert result.rounds[0].num_new == len(result.rounds[0].pseudo_seeds)

    def test_a_folder_changes_nothing_where_there_are_samplers_too(
        self, many: Benchmark, tmp_path: Path
    ) -> None:
        config = in_rounds(samplers=["cmcs"])
        kept = align(many.task, config, CPU, workspace=Workspace(tmp_path))
        assert_same(kept, align(many.task, config, CPU))


TWO_FITS = in_rounds("matching.fits=2", "self_training.rounds=1")


@pytest.fixture(scope="module")
def of_fits(many: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of two fits; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "fits"
    align(many.task, TWO_FITS, CPU, workspace=Workspace(folder))
    return folder


@pytest.fixture
def found(many: Benchmark, of_fits: Path) -> AlignmentResult:
    return align(many.task, TWO_FITS, CPU, workspace=Workspace(of_fits))


class TestFits:
    """Two fits, each with other seeds held out."""

    def test_the_stages_say_which_fit(self, found: AlignmentResult) -> None:
        names = stages(found)
        first = [name for name in names if not name.endswith((", fit 2", "fits", "matching"))]
        second = [name.removesuffix(", fit 2") for name in names if name.endswith(", fit 2")]
        assert names == [
            *first,
            *(f"{name}, fit 2" for name in second),
            "fusion of both fits",
            "matching",
        ]
        assert first == second
        assert [each.fit for each in found.rounds] == [0, 1]

    def test_a_seed_is_held_out_once_at_most(self, many: Benchmark, found: AlignmentResult) -> None:
        one, other = fits(Made.of("", many.task), TWO_FITS)
        seeds = {tuple(link) for link in many.task.seeds.tolist()}
        held = [{tuple(link) for link in each.held.tolist()} for each in (one, other)]
        assert not held[0] & held[1]
        assert held[0] | held[1] <= seeds
        assert len(held[0]) == len(held[1]) == num_held_out(many.task, TWO_FITS)[0] >= 50
        for fit, fitted in zip((one, other), found.made_fits, strict=True):
            scored = (fitted.similarity.value.row_offsets.diff() > 0).numpy()
            assert scored[fit.held[:, 0]].any()
            assert not scored[fit.known.value.seeds[:, 0]].any()
        assert found.alignment.is_calibrated
        assert found.alignment.examples >= 90

    def test_the_similarity_is_their_mean(self, many: Benchmark, found: AlignmentResult) -> None:
        one, other = (dense(each.similarity.value) for each in found.made_fits)
        mean = (one + other) / 2
        mean[many.task.seeds[:, 0]] = 0
        mean[:, many.task.seeds[:, 1]] = 0
        assert np.allclose(dense(found.similarity), mean)

    def test_keys(self, found: AlignmentResult, of_fits: Path) -> None:
        encoders = ["train", "train-2", "train-3", "train-4"]
        pseudo = ["pseudo-1", "pseudo-2"]
        assert set(found.keys) == {*encoders, *pseudo, "fuse-1", "fuse-2", "fuse", "match"}
        assert all((of_fits / key).is_dir() for key in found.keys.values())

    def test_everyone_is_linked_once_or_unmatched(
        self, many: Benchmark, found: AlignmentResult
    ) -> None:
        for side, graph in enumerate(many.task.graphs):
            linked = found.alignment.links[:, side].tolist()
            unmatched = list(found.alignment.unmatched)[side].tolist()
            decided = many.task.seeds[:, side].tolist()
            assert sorted([*linked, *decided, *unmatched]) == list(range(graph.num_entities))

    def test_a_folder_changes_nothing(self, many: Benchmark, found: AlignmentResult) -> None:
        assert all(cost.reused for cost in found.timings)
        assert_same(found, align(many.task, TWO_FITS, CPU))

    @pytest.mark.parametrize(
        "stage", ["fusion, fit 2", "training, round 1, fit 2", "fusion of both fits", "matching"]
    )
    def test_stopped_at_a_stage_it_goes_on(
        self, stage: str, many: Benchmark, of_fits: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(KeyboardInterrupt):
            align(many.task, TWO_FITS, CPU, workspace=Workspace(tmp_path), observer=Ear(stage))
        align(many.task, TWO_FITS, CPU, workspace=Workspace(tmp_path))
        assert digests(tmp_path) == digests(of_fits)

    @pytest.mark.parametrize("until", ["train", "sample", "fuse"])
    def test_it_may_stop_early(self, until: Stage, many: Benchmark, of_fits: Path) -> None:
        run = Workspace(of_fits)
        result = align(many.task, TWO_FITS, CPU, workspace=run, until=until)
        assert all(cost.reused for cost in result.timings)
        assert result.made_alignment is None
        assert (result.made_similarity is not None) == (until == "fuse")


class TestTooFewSeeds:
    @pytest.mark.parametrize("count", [1, 5, 49])
    def test_only_links_next_to_a_seed_are_given(self, count: int, many: Benchmark) -> None:
        task, ear = many.task.with_seeds(many.task.seeds[:count]), Ear()
        result = align(task, in_rounds(), CPU, observer=ear)
        assert [f"Too few seeds ({count})" in said for said in ear.warned] == [True]
        every = align(task, in_rounds("matching.abstain=false"), CPU).alignment
        assert 0 < len(result.alignment.links) < len(every.links)
        edges = task.graphs.map(
            lambda graph: {frozenset((head, tail)) for head, _, tail in graph.triples.tolist()}
        )
        for source, target in result.alignment.links.tolist():
            assert any(
                {source, seed} in edges.source and {target, partner} in edges.target
                for seed, partner in task.seeds.tolist()
            )
        assert result.alignment.measure == "score"

    def test_one_more_and_a_fit_holds_out_half(self, many: Benchmark) -> None:
        task, ear = many.task.with_seeds(many.task.seeds[:50]), Ear()
        result = align(task, in_rounds("matching.fits=2"), CPU, observer=ear)
        assert len(result.made_fits) == 2
        assert result.alignment.examples >= 20
        assert not ear.warned
        assert result.alignment.measure == "score"


class TestMetis:
    """Its processes run beside training, and never longer than `align`."""

    @pytest.fixture
    def begun(self, monkeypatch: pytest.MonkeyPatch) -> list[RunningMetis]:
        processes: list[RunningMetis] = []

        def recorded(*arguments: Any) -> RunningMetis:
            processes.append(begin(*arguments))
            return processes[-1]

        monkeypatch.setattr(clusterea.pipeline.cuts, "begin", recorded)
        return processes

    @pytest.mark.parametrize("stage", ["train", "sample"])
    def test_they_are_stopped_when_a_stage_raises(
        self,
        stage: str,
        begun: list[RunningMetis],
        given: Benchmark,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        forbid(monkeypatch, stage)
        with pytest.raises(RuntimeError, match="not to be computed"):
            align(given.task, quick(), CPU)
        assert len(begun) == 2
        assert all(each._process.poll() is not None for each in begun)

    def test_they_are_over_in_the_end(self, begun: list[RunningMetis], given: Benchmark) -> None:
        align(given.task, quick(samplers=["iscs-reverse"]), CPU)
        assert len(begun) == 1
        assert begun[0]._process.poll() is not None

    def test_none_is_begun_where_none_is_needed(
        self, begun: list[RunningMetis], given: Benchmark
    ) -> None:
        align(given.task, quick(samplers=["cmcs", "vps"]), CPU)
        assert not begun


class TestUntil:
    """Stopping early and going on is the same as going all the way."""

    @pytest.mark.parametrize(
        ("until", "places"),
        [("train", 1), ("sample", 4), ("fuse", 5)],
    )
    def test_nothing_runs_after(
        self,
        until: Stage,
        places: int,
        given: Benchmark,
        finished: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        after = list(PLACES)[list(PLACES).index(until) + 1 :]
        with monkeypatch.context() as patch:
            forbid(patch, *after)
            part = align(given.task, quick(), CPU, workspace=Workspace(tmp_path), until=until)
        assert stages(part) == ONE_PASS[:places]
        assert all(not made(tmp_path)[stage] for stage in after)
        assert (part.made_similarity is None) == (until != "fuse")
        assert part.made_alignment is None
        whole = align(given.task, quick(), CPU, workspace=Workspace(tmp_path))
        assert reused(whole) == ONE_PASS[:places]
        assert digests(tmp_path) == digests(finished)
        assert_same(whole, align(given.task, quick(), CPU, workspace=Workspace(finished)))

    @pytest.mark.parametrize("until", ["train", "sample", "fuse"])
    def test_of_the_last_round(
        self, until: Stage, many: Benchmark, of_rounds: Path, tmp_path: Path
    ) -> None:
        """No sampler is asked for here, so `sample` ends where `train` does."""
        part = align(many.task, in_rounds(), CPU, workspace=Workspace(tmp_path), until=until)
        done = ROUNDS[:-1] if until == "fuse" else ROUNDS[:-2]
        assert stages(part) == done
        assert len(part.rounds) == 2
        assert (part.made_similarity is None) == (until != "fuse")  # not that of an earlier round
        assert set(part.keys) >= {"train", "train-4", "pseudo-1", "pseudo-2"}
        assert made(tmp_path)["match"] == 0
        whole = align(many.task, in_rounds(), CPU, workspace=Workspace(tmp_path))
        assert reused(whole) == done
        assert digests(tmp_path) == digests(of_rounds)


def test_an_observer_hears_of_every_stage_in_order(given: Benchmark) -> None:
    ear = Ear()
    result = align(given.task, quick(), CPU, observer=ear)
    assert ear.begun == stages(result) == ONE_PASS
    assert set(ear.steps) == {"training", "fusion"}
    assert ear.steps["training"][-1] == ("epoch 3 of 3", 3, 3)
    for cost in result.timings:
        assert cost.seconds > 0
        assert cost.peak_host_bytes is not None
        assert cost.peak_host_bytes > 1 << 20
        assert cost.peak_gpu_bytes is None
        assert not cost.reused
        assert cost.to_dict()["stage"] == cost.stage


@pytest.mark.parametrize("stage", ["train", "fuse", "match"])
def test_a_damaged_artifact_is_made_again_when_it_is_needed(
    stage: str, given: Benchmark, run: Path
) -> None:
    before = digests(run)
    (place,) = artifacts(run, stage)
    (place / "tensors.safetensors").write_bytes(b"half")
    ear = Ear()
    result = align(given.task, quick(), CPU, workspace=Workspace(run), observer=ear)
    assert not ear.warned  # nobody has asked for it yet
    assert_same(result, align(given.task, quick(), CPU))
    what = f"{place}/tensors.safetensors is damaged or missing: the stage {stage} is run again."
    assert ear.warned == [what]
    assert digests(run) == before
    assert not (run / "checkpoints").exists()  # also those of a training that was made again


def test_a_view_that_can_not_be_made_is_refused_before_any_work(given: Benchmark) -> None:
    ear = Ear()
    config = quick("fusion.views=local", samplers=())
    with pytest.raises(InputError, match="nothing to fuse: there are no mini-batches for local"):
        align(given.task, config, CPU, observer=ear)
    assert not ear.begun


def test_mini_batches_that_no_view_uses_are_not_made(given: Benchmark) -> None:
    config = quick("fusion.views=global")
    assert not align(given.task, config, CPU).partitions
    assert align(given.task, config, CPU, until="sample").partitions.keys() == {
        *("cmcs", "iscs", "iscs-reverse")
    }


def test_training_alone_starts_no_metis(given: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterea.pipeline.cuts.begin", None)
    assert align(given.task, quick(), CPU, until="train").made_similarity is None


def test_the_result_says_what_it_was_made_of(given: Benchmark, finished: Path) -> None:
    result = align(given.task, quick(), CPU, workspace=Workspace(finished))
    samplers = {"cmcs", "iscs", "iscs-reverse"}
    assert set(result.keys) == {"train", *samplers, "fuse-1", "fuse", "match"}
    assert result.keys["fuse-1"] == result.keys["fuse"]  # a single fit
    for key in result.keys.values():
        assert (finished / key / "tensors.safetensors").is_file()


def test_settings_of_names_are_no_part_of_a_run_without_names(
    given: Benchmark, finished: Path
) -> None:
    workspace = Workspace(finished)
    plain = align(given.task, quick(), CPU, workspace=workspace)
    other = align(given.task, quick("names.dimensions=64"), CPU, workspace=workspace)
    assert other.keys == plain.keys
