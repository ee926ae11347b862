"""`train` end to end: it learns, it repeats itself, it can be killed, and it says when it fails."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from planted_pairs import hits_at_1, planted_pair, unrelated_pair
from torch import Tensor

from clusterea.config import TrainingConfig, training_config
from clusterea.errors import InputError
from clusterea.graph.union import union
from clusterea.models import ENCODERS
from clusterea.training import EncoderProgress, train
from clusterea.training.losses import nhsm_loss
from clusterea.training.train import Trainer, TrainingDivergedError, _dropout
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair
from small_graphs import random_pair

MODULE = sys.modules[Trainer.__module__]  # `clusterea.training.train` is the function
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

#: Enough to tell whether training works at all, in a second or two each.
FULL_GRAPH_EPOCHS = {"dual-amn": 20, "rrea": 40, "gcn-align": 150}
STOCHASTIC_EPOCHS = {"dual-amn": 15, "rrea": 20, "gcn-align": 50}


@pytest.fixture(scope="module")
def planted() -> tuple[AlignmentTask, IntArray]:
    return planted_pair()


@pytest.fixture(scope="module")
def small() -> AlignmentTask:
    return unrelated_pair()


def quick(model: str, *, full_graph: bool = False, **changes: Any) -> TrainingConfig:
    changes = {"dimension": 8, "epochs": 3, "seeds_per_step": 5, **changes}
    if not full_graph:
        changes = {"negatives_per_step": 6, "fanout": 2, **changes}
    return training_config(model, full_graph=full_graph, **changes)


def same_bytes(one: Pair[Tensor], other: Pair[Tensor]) -> bool:
    return torch.equal(one.source, other.source) and torch.equal(one.target, other.target)


#: Every optimizer, both losses, and each model both ways.
KINDS = {
    "dual-amn, stochastic": quick("dual-amn"),
    "rrea, stochastic": quick("rrea"),
    "gcn-align, stochastic": quick("gcn-align"),
    "rrea, stochastic, margin": quick("rrea", loss="margin"),
    "dual-amn, stochastic, every entity": quick("dual-amn", negatives_per_step=None),
    "dual-amn, full graph, adam": quick("dual-amn", full_graph=True, optimizer="adam"),
    "dual-amn, full graph, rmsprop": quick("dual-amn", full_graph=True),
    "dual-amn, full graph, some negatives": quick(
        "dual-amn", full_graph=True, negatives_per_step=7
    ),
    "rrea, full graph, rmsprop, margin": quick("rrea", full_graph=True),
    "gcn-align, full graph, sgd, margin": quick("gcn-align", full_graph=True, learning_rate=0.5),
}


@pytest.fixture(params=KINDS)
def config(request: pytest.FixtureRequest) -> TrainingConfig:
    return KINDS[request.param]


class TestLearns:
    @pytest.mark.parametrize("full_graph", [False, True])
    @pytest.mark.parametrize("model", ENCODERS)
    def test_a_planted_alignment(
        self, planted: tuple[AlignmentTask, IntArray], model: str, full_graph: bool
    ) -> None:
        task, links = planted
        epochs = (FULL_GRAPH_EPOCHS if full_graph else STOCHASTIC_EPOCHS)[model]
        config = training_config(model, full_graph=full_graph, dimension=32, epochs=epochs)
        embeddings = train(task, config)
        assert hits_at_1(embeddings, links) > 0.25  # chance: 1 in 210
        assert hits_at_1(embeddings, task.seeds) > 0.8

    def test_seeds_are_what_it_learns_from(self, planted: tuple[AlignmentTask, IntArray]) -> None:
        task, links = planted
        shuffled = np.stack([task.seeds[:, 0], np.roll(task.seeds[:, 1], 1)], 1)
        config = training_config("rrea", dimension=32, epochs=15)
        misled = train(AlignmentTask(task.graphs, shuffled), config)
        assert hits_at_1(misled, links) < 0.15


class TestResult:
    def test_unit_rows_for_every_entity(self, small: AlignmentTask, config: TrainingConfig) -> None:
        embeddings = train(small, config)
        for side, graph in zip(embeddings, small.graphs, strict=True):
            assert len(side) == graph.num_entities
            torch.testing.assert_close(side.norm(dim=1), torch.ones(len(side)))
            assert not side.requires_grad

    def test_sides_of_different_sizes(self) -> None:
        one, other = random_pair(1, entities=20), random_pair(2, entities=35)
        seeds = np.stack([np.arange(5), np.arange(5) + 20], 1)
        embeddings = train(AlignmentTask(Pair(one.source, other.target), seeds), quick("rrea"))
        assert [len(side) for side in embeddings] == [20, 35]

    def test_the_same_seed_gives_the_same_bytes(
        self, small: AlignmentTask, config: TrainingConfig
    ) -> None:
        one = train(small, config)
        torch.rand(3)  # the state of the process has no say
        assert same_bytes(one, train(small, config))
        assert not torch.allclose(one.source, train(small, replace(config, seed=1)).source)

    def test_the_global_random_state_is_left_alone(
        self, small: AlignmentTask, config: TrainingConfig
    ) -> None:
        torch.manual_seed(3)
        before = torch.get_rng_state()
        train(small, config)
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.mark.parametrize("model", ENCODERS)
    def test_a_large_fanout_trains_as_the_full_graph_does(
        self, small: AlignmentTask, model: str
    ) -> None:
        largest = int(union(small.graphs).offsets.diff().max())
        settings: dict[str, Any] = {"negatives_per_step": None, "learning_rate": 0.01}
        drawn = train(small, quick(model, fanout=largest, **settings))
        full = train(small, quick(model, fanout=None, **settings))
        torch.testing.assert_close(drawn.source, full.source, rtol=0, atol=1e-4)
        torch.testing.assert_close(drawn.target, full.target, rtol=0, atol=1e-4)

    def test_dropout_is_only_for_training(self, small: AlignmentTask) -> None:
        # With nothing learned, the result must not depend on it.
        kinds = [quick("rrea", dropout=d, epochs=1, learning_rate=1e-30) for d in (0.0, 0.5)]
        one, other = (train(small, kind) for kind in kinds)
        assert same_bytes(one, other)

    def test_dropout_is_drawn_anew_for_each_step(self) -> None:
        outputs, config = torch.ones(40, 50), quick("rrea", dropout=0.4)
        masks = [_dropout(outputs, config, epoch, step) for epoch in (0, 1) for step in (1, 2)]
        for number, mask in enumerate(masks):
            torch.testing.assert_close(
                mask[mask > 0], torch.full_like(mask[mask > 0], 1 / 0.6), rtol=1e-4, atol=0
            )
            assert 0.55 < float((mask > 0).double().mean()) < 0.65
            assert not any(torch.equal(mask, other) for other in masks[:number])
        assert torch.equal(_dropout(outputs, config, 1, 2), masks[-1])

    def test_dropout_changes_what_is_learned(self, small: AlignmentTask) -> None:
        one, other = (train(small, quick("rrea", dropout=d)) for d in (0.0, 0.5))
        assert not torch.allclose(one.source, other.source)


class TestOddTasks:
    @pytest.mark.parametrize("model", ENCODERS)
    @pytest.mark.parametrize("seeds", [1, 9])
    def test_one_seed_and_only_seeds(self, model: str, seeds: int) -> None:
        everyone = np.arange(9)[-seeds:]
        pair = random_pair(5, entities=9, triples=30)
        task = AlignmentTask(pair, np.stack([everyone, everyone], 1))
        assert train(task, quick(model)).source.isfinite().all()

    @pytest.mark.parametrize("model", ENCODERS)
    @pytest.mark.parametrize("full_graph", [False, True])
    def test_entities_and_seeds_in_no_triple(self, model: str, full_graph: bool) -> None:
        def lonely(graph: KnowledgeGraph) -> KnowledgeGraph:
            return KnowledgeGraph(graph.triples, graph.num_entities + 3, graph.num_relations)

        task = AlignmentTask(
            random_pair(5).map(lonely), np.array([[0, 0], [1, 1], [30, 30], [31, 4]])
        )
        embeddings = train(task, quick(model, full_graph=full_graph))
        assert embeddings.source.isfinite().all()
        assert len(embeddings.source) == 33

    def test_no_seeds(self) -> None:
        task = AlignmentTask(random_pair(5), np.empty((0, 2), dtype=np.int64))
        with pytest.raises(InputError, match="training needs seeds. Got none."):
            train(task, quick("rrea"))

    def test_an_unknown_model(self, small: AlignmentTask) -> None:
        with pytest.raises(InputError, match="unknown model 'rea'.*Did you mean 'rrea'"):
            train(small, TrainingConfig(model="rea"))


class TestProgress:
    def test_counts(self, small: AlignmentTask, config: TrainingConfig) -> None:
        seen: list[EncoderProgress] = []
        train(small, config, progress=seen.append)
        nodes = sum(graph.num_entities for graph in small.graphs)
        steps = -(-12 // (config.seeds_per_step or 12))
        assert [(p.epoch, p.step) for p in seen] == [
            (epoch, step) for epoch in range(1, 4) for step in range(1, steps + 1)
        ]
        assert all((p.epochs, p.steps) == (3, steps) for p in seen)
        assert all(0 < p.rows_touched <= nodes for p in seen)
        assert all(p.loss is not None and p.loss > 0 for p in seen)  # so few steps: each is told

    def test_few_rows_are_touched_in_a_large_graph(self) -> None:
        pair = random_pair(3, entities=2000, triples=3000)
        ids = np.arange(15)
        task = AlignmentTask(pair, np.stack([ids, ids], 1))
        seen: list[EncoderProgress] = []
        for fanout in (1, None):
            config = quick("gcn-align", epochs=1, fanout=fanout)
            train(task, config, progress=seen.append)
        assert all(p.rows_touched <= 22 * 4 for p in seen[:3])  # 5 + 5 + 6 + 6, doubled twice
        assert all(p.rows_touched == 4000 for p in seen[3:])

    def test_the_loss_is_told_twenty_times_an_epoch_and_at_its_end(self) -> None:
        ids = np.arange(47)
        task = AlignmentTask(random_pair(5, entities=60), np.stack([ids, ids], 1))
        seen: list[EncoderProgress] = []
        config = quick("gcn-align", seeds_per_step=1)
        Trainer(task, config, torch.device("cpu")).run_epoch(0, seen.append)
        told = [p.step for p in seen if p.loss is not None]
        assert told == [*range(2, 47, 2), 47]


class KilledError(Exception):
    """What a kill looks like from inside."""


class Memory:
    """Checkpoints in memory, which may stop training once some epochs are saved."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.saved: dict[str, Tensor] | None = None
        self.epochs: list[int] = []
        self.kill_after = kill_after
        self.rejected = 0

    def latest(self) -> Mapping[str, Tensor] | None:
        if self.saved is None:
            return None
        return {name: value.clone() for name, value in self.saved.items()}

    def reject(self) -> None:
        self.saved = None
        self.rejected += 1

    def save(self, state: Mapping[str, Tensor]) -> None:
        self.saved = {name: value.clone() for name, value in state.items()}
        self.epochs.append(int(state["epochs"]))
        if len(self.epochs) == self.kill_after:
            raise KilledError


def killed(task: AlignmentTask, config: TrainingConfig, after: int = 1) -> Memory:
    """The checkpoints of a run that was killed after some epochs."""
    memory = Memory(kill_after=after)
    with pytest.raises(KilledError):
        train(task, config, checkpoints=memory)
    assert memory.saved is not None
    return memory


class TestResume:
    @pytest.mark.parametrize("epochs", [1, 2, 3])
    def test_a_kill_after_some_epochs(
        self, small: AlignmentTask, config: TrainingConfig, epochs: int
    ) -> None:
        unbroken = train(small, config)
        memory = killed(small, config, epochs)
        seen: list[EncoderProgress] = []
        resumed = train(small, config, checkpoints=memory, progress=seen.append)
        assert same_bytes(resumed, unbroken)
        assert {p.epoch for p in seen} == set(range(epochs + 1, 4))  # only the rest
        assert memory.epochs == [1, 2, 3]

    def test_a_kill_within_an_epoch(self, small: AlignmentTask, config: TrainingConfig) -> None:
        unbroken = train(small, config)
        memory = Memory()

        def kill(progress: EncoderProgress) -> None:
            if (progress.epoch, progress.step) == (2, progress.steps):
                raise KilledError

        with pytest.raises(KilledError):
            train(small, config, checkpoints=memory, progress=kill)
        assert memory.epochs == [1]
        assert same_bytes(train(small, config, checkpoints=memory), unbroken)

    def test_a_finished_run_only_embeds(self, small: AlignmentTask, config: TrainingConfig) -> None:
        memory = Memory()
        first = train(small, config, checkpoints=memory)
        seen: list[EncoderProgress] = []
        again = train(small, config, checkpoints=memory, progress=seen.append)
        assert not seen
        assert same_bytes(first, again)

    @pytest.mark.parametrize("full_graph", [False, True])
    @pytest.mark.parametrize("damage", ["missing", "shorter", "wider", "epochs"])
    def test_a_state_that_does_not_fit_is_rejected_and_training_begins_anew(
        self, small: AlignmentTask, damage: str, full_graph: bool
    ) -> None:
        config = quick("dual-amn", full_graph=full_graph)
        unbroken = train(small, config)
        whole = killed(small, config).latest()
        assert whole is not None
        names = ["epochs"] if damage == "epochs" else [n for n in whole if n != "first_loss"]
        for name in names:
            state = dict(whole)
            if damage == "missing":
                del state[name]
            elif damage == "epochs":
                state[name] = torch.tensor(99)
            elif whole[name].ndim == 0:
                continue
            elif damage == "shorter":
                state[name] = whole[name][:1]
            else:
                state[name] = torch.cat([whole[name], whole[name]], -1)
            if name in state and damage != "epochs" and state[name].shape == whole[name].shape:
                continue  # it has one row
            again = Memory()
            again.saved = state
            assert same_bytes(train(small, config, checkpoints=again), unbroken), name
            assert again.rejected == 1, name

    @pytest.mark.parametrize("number", [-1, 99])
    def test_moments_of_no_parameter_are_rejected(self, small: AlignmentTask, number: int) -> None:
        config = quick("dual-amn")
        state = killed(small, config).latest()
        assert state is not None
        last = max(name.split(".")[1] for name in state if name.startswith("optimizer."))
        old, new = f"optimizer.{last}.", f"optimizer.{number}."
        again = Memory()
        again.saved = {name.replace(old, new): value for name, value in state.items()}
        assert same_bytes(train(small, config, checkpoints=again), train(small, config))
        assert again.rejected == 1

    def test_resuming_leaves_the_saved_state_alone(self, small: AlignmentTask) -> None:
        config = quick("dual-amn")
        saved = killed(small, config).latest()
        assert saved is not None
        before = {name: value.clone() for name, value in saved.items()}
        trainer = Trainer(small, config, torch.device("cpu"))
        trainer.run_epoch(trainer.restore(saved), None)
        assert [name for name in saved if not torch.equal(saved[name], before[name])] == []


class TestDivergence:
    @pytest.mark.parametrize("seeds_per_step", [None, 5], ids=["one step", "three steps"])
    def test_a_learning_rate_far_too_large(
        self, small: AlignmentTask, seeds_per_step: int | None
    ) -> None:
        # With several steps an epoch, the first epoch's mean has the explosion in it.
        config = quick(
            "gcn-align",
            full_graph=True,
            learning_rate=1e6,
            epochs=10,
            seeds_per_step=seeds_per_step,
        )
        with pytest.raises(
            TrainingDivergedError,
            match=r"training failed: the loss is .* in epoch \d+, step \d+\. "
            r"Try another learning rate than 1e\+06, usually a smaller one, "
            r"or more epochs than 10\.",
        ):
            train(small, config)

    def test_graphs_without_common_structure_are_named_as_the_cause(self) -> None:
        graphs = random_pair(1, entities=60, triples=240)
        seeds = np.stack([np.arange(30)] * 2, axis=1)
        task = AlignmentTask(graphs, seeds, Pair(np.arange(60), np.arange(60)))
        trainer = Trainer(task, quick("dual-amn"), torch.device("cpu"))
        draw = torch.Generator().manual_seed(0)
        strangers = graphs.map(lambda side: torch.randn(side.num_entities, 8, generator=draw))
        with pytest.raises(TrainingDivergedError, match="no neighbors in common.*check") as raised:
            trainer._check_use(strangers)
        assert "learning rate" not in str(raised.value)

    @pytest.mark.parametrize("model", ENCODERS)
    def test_embeddings_that_are_all_the_same(
        self, planted: tuple[AlignmentTask, IntArray], model: str
    ) -> None:
        task, _ = planted
        config = training_config(model, dimension=8, epochs=1)
        trainer = Trainer(task, config, torch.device("cpu"))
        state = {name: torch.zeros_like(value) for name, value in trainer.state(1).items()}
        memory = Memory()
        memory.save({**state, "epochs": torch.tensor(1)})
        with pytest.raises(TrainingDivergedError, match="no nearer to each other than"):
            train(task, config, checkpoints=memory)

    def test_it_is_an_input_error(self) -> None:
        assert issubclass(TrainingDivergedError, InputError)

    @pytest.mark.parametrize("full_graph", [False, True])
    @pytest.mark.parametrize("model", ENCODERS)
    def test_a_number_that_is_none_stops_training(
        self, small: AlignmentTask, model: str, full_graph: bool
    ) -> None:
        config = quick(model, full_graph=full_graph)
        memory = killed(small, config)
        assert memory.saved is not None
        memory.saved["rows" if full_graph else "table.rows"][:] = torch.nan
        with pytest.raises(TrainingDivergedError, match="the loss is nan in epoch 2, step 1"):
            train(small, config, checkpoints=memory)

    @pytest.mark.parametrize("model", ENCODERS)
    def test_nor_does_it_come_out(self, small: AlignmentTask, model: str) -> None:
        config = quick(model)
        memory = Memory()
        train(small, config, checkpoints=memory)
        assert memory.saved is not None
        memory.saved["table.rows"][7, 3] = torch.nan
        with pytest.raises(TrainingDivergedError, match="an embedding is not a number"):
            train(small, config, checkpoints=memory)

    def test_an_exploded_loss_is_told_by_the_first_epochs(self, small: AlignmentTask) -> None:
        # Also after a resume, which has not seen the first epoch itself.
        config = quick("gcn-align", full_graph=True)
        memory = killed(small, config)
        assert memory.saved is not None
        memory.saved["rows"] *= 1e6
        with pytest.raises(TrainingDivergedError, match="in epoch 2, step 1"):
            train(small, config, checkpoints=memory)


@gpu
@pytest.mark.gpu
class TestGpu:
    """Dropout and device-side draws differ from a CPU's, so agreement is tested without them."""

    @pytest.mark.parametrize("full_graph", [False, True])
    @pytest.mark.parametrize("model", ENCODERS)
    def test_agrees_with_the_cpu(
        self,
        small: AlignmentTask,
        model: str,
        full_graph: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def full_precision(*tensors: Tensor, mixed_precision: bool, **others: Any) -> Tensor:
            return nhsm_loss(*tensors, **others)

        monkeypatch.setattr(MODULE, "nhsm_loss", full_precision)
        monkeypatch.setattr(MODULE, "_fits", lambda num_bytes, device: False)
        config = quick(model, full_graph=full_graph, dropout=0.0)
        here, there = (train(small, config, device=device) for device in ("cpu", "cuda"))
        assert there.source.device.type == "cpu"
        assert there.source.dtype == torch.float16
        for one, other in there.zip(here):
            torch.testing.assert_close(one.float(), other, rtol=0, atol=1e-2)

    @pytest.mark.parametrize("fits", [False, True], ids=["host", "device"])
    @pytest.mark.parametrize("model", ENCODERS)
    def test_learns_a_planted_alignment(
        self,
        planted: tuple[AlignmentTask, IntArray],
        model: str,
        fits: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(MODULE, "_fits", lambda num_bytes, device: fits)
        task, links = planted
        config = training_config(model, dimension=32, epochs=STOCHASTIC_EPOCHS[model])
        assert hits_at_1(train(task, config, device="cuda"), links) > 0.25

    def test_resumes_nearly_the_same(self, small: AlignmentTask) -> None:
        config = quick("dual-amn")
        unbroken = train(small, config, device="cuda")
        memory = Memory(kill_after=1)
        with pytest.raises(KilledError):
            train(small, config, device="cuda", checkpoints=memory)
        resumed = train(small, config, device="cuda", checkpoints=memory)
        torch.testing.assert_close(resumed.source, unbroken.source, rtol=0, atol=1e-2)
