"""What encoders learn from: who is held out, what folds leave out, and what each weighs."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_runs import benchmark

from clusterea.config import MatchingConfig, SelfTrainingConfig
from clusterea.pipeline.artifacts import Artifacts, read_artifact
from clusterea.pipeline.encoding import (
    FEWEST_HELD,
    MOST_HELD,
    Encoding,
    Known,
    checking_shares,
    folds,
    held_out_stage,
    num_held_out,
    shares_of,
    without_seeds,
)
from clusterea.types import AlignmentTask, Pair
from clusterea.workspace import Workspace
from small_graphs import random_pair


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return benchmark(share=0.6).task


@pytest.mark.parametrize(
    ("seeds", "share", "held"),
    [
        (4500, 0.05, 225),
        (4500, 0, 0),
        (600, 0.05, 50),  # so few as 30 tell nothing
        (500, 0.05, 50),
        (499, 0.05, 0),  # and more than a tenth is not asked for
        (100, 0.5, 50),
        (99, 0.5, 0),
        (0, 0.5, 0),
    ],
)
def test_how_many_are_held_out(seeds: int, share: float, held: int) -> None:
    assert num_held_out(seeds, share) == held


class TestHeldOut:
    def test_they_are_seeds_and_the_task_has_the_others(self, task: AlignmentTask) -> None:
        key, held, free = held_out_stage(
            Artifacts(None), "task-0", task, MatchingConfig(held_out=0.5)
        )
        assert key.startswith("held-")
        assert held is not None
        both = np.concatenate([held.numpy(), free.seeds])
        assert sorted(map(tuple, both.tolist())) == sorted(map(tuple, task.seeds.tolist()))
        assert len(held) == task.num_seeds // 2
        assert np.array_equal(without_seeds(task.in_order(), held).seeds, free.seeds)

    def test_another_seed_holds_out_others(self, task: AlignmentTask) -> None:
        found = [
            held_out_stage(
                Artifacts(None), "task-0", task, MatchingConfig(held_out=0.5, seed=seed)
            )[1]
            for seed in (0, 0, 1)
        ]
        assert all(each is not None for each in found)
        one, same, other = (torch.as_tensor(each) for each in found)
        assert torch.equal(one, same)
        assert not torch.equal(one, other)

    def test_none(self, task: AlignmentTask) -> None:
        assert held_out_stage(Artifacts(None), "task-0", task, MatchingConfig()) == ("", None, task)


class TestFolds:
    PSEUDO = torch.tensor([[200, 100], [201, 101], [202, 102], [203, 103], [204, 104]])

    def learned(self, task: AlignmentTask, count: int, seed: int = 0) -> list[Known]:
        seeds = task.with_seeds(task.seeds[:3])
        known = Known(seeds, {"task": "task-0"})
        config = SelfTrainingConfig(folds=count, seed=seed)
        return folds(known, "pseudo-0", self.PSEUDO, config)[0]

    def test_one_learns_from_everything(self, task: AlignmentTask) -> None:
        (only,) = self.learned(task, 1)
        everyone = [*task.seeds[:3].tolist(), *self.PSEUDO.tolist()]
        assert sorted(only.task.seeds.tolist()) == sorted(everyone)
        assert only.parents == {"task": "task-0", "pseudo": "pseudo-0"}
        assert only.fold == ""

    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_of_several_each_leaves_out_a_part(self, count: int, task: AlignmentTask) -> None:
        found = self.learned(task, count)
        assert [each.fold for each in found] == [f"{n + 1} of {count}" for n in range(count)]
        everything = {tuple(link) for link in self.PSEUDO.tolist()}
        seeds = {tuple(link) for link in task.seeds[:3].tolist()}
        left_out = []
        for each in found:
            learned = {tuple(link) for link in each.task.seeds.tolist()}
            assert seeds <= learned <= seeds | everything
            left_out += sorted(everything - learned)
        assert sorted(left_out) == sorted(everything)  # each once


@pytest.mark.parametrize(
    ("places", "shares"),
    [
        ([0], None),
        ([0, 1], None),
        ([0, 0, 1, 1], None),
        ([0, 1, 1], [0.5, 0.25, 0.25]),
        ([0, 1, 2, 2], [1 / 3, 1 / 3, 1 / 6, 1 / 6]),
    ],
)
def test_every_encoder_weighs_the_same(places: list[int], shares: list[float] | None) -> None:
    rows = Pair(torch.ones(1, 1), torch.ones(1, 1))
    found = shares_of([Encoding(place, "train-0", rows) for place in places])
    assert found == (None if shares is None else pytest.approx(shares))


# -- any number of seeds -------------------------------------------------------------------------

Links = list[tuple[int, int]]


def task_of(num_seeds: int, *, entities: int = 400) -> AlignmentTask:
    rng = np.random.default_rng(0)
    seeds = np.stack([rng.permutation(entities)[:num_seeds] for _ in range(2)], 1)
    return AlignmentTask(random_pair(0, entities=entities), seeds)


def listed(links: Any) -> Links:
    return [(int(source), int(target)) for source, target in links]


def held_out(task: AlignmentTask, **changes: Any) -> tuple[Links, Links]:
    """Who is held out, and who is left."""
    config = MatchingConfig(**changes)
    _, held, free = held_out_stage(Artifacts(None), "task-0", task, config)
    return [] if held is None else listed(held), listed(free.seeds)


class TestAnyTask:
    @given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
    def test_enough_to_tell_and_not_too_many_to_lack(self, num_seeds: int, share: float) -> None:
        count = num_held_out(num_seeds, share)
        assert count == 0 or FEWEST_HELD <= count <= max(share, MOST_HELD) * num_seeds
        if int(share * num_seeds) >= FEWEST_HELD:
            assert count == int(share * num_seeds)  # what was asked for, where it is enough

    @given(st.integers(0, 400), st.floats(0, 1, exclude_max=True), st.integers(0, 9))
    def test_two_parts_in_the_order_of_the_keys(
        self, num_seeds: int, share: float, seed: int
    ) -> None:
        """Labels are drawn in that order: who is held out must not change the others' order."""
        task = task_of(num_seeds).in_order()
        held, rest = held_out(task_of(num_seeds), held_out=share, seed=seed)
        rest = listed(Known(task.with_seeds(np.reshape(rest, (-1, 2))), {}).task.seeds)
        assert len(held) == num_held_out(num_seeds, share)
        assert not set(held) & set(rest)
        assert held == [link for link in listed(task.seeds) if link not in set(rest)]
        assert rest == [link for link in listed(task.seeds) if link not in set(held)]
        found = without_seeds(task, torch.tensor(held, dtype=torch.int64).reshape(-1, 2))
        assert listed(found.seeds) == rest

    def test_neither_ids_nor_graphs_nor_the_order_have_a_say(self) -> None:
        task, rng = task_of(300), np.random.default_rng(1)
        new = Pair(rng.permutation(400), rng.permutation(400))
        seeds = np.stack([new.source[task.seeds[:, 0]], new.target[task.seeds[:, 1]]], 1)
        keys = new.zip(task.tie_keys).map(lambda side: side[1][np.argsort(side[0])])
        other = AlignmentTask(random_pair(9, entities=400), rng.permutation(seeds), keys)
        here, there = (held_out(each, held_out=0.3) for each in (task, other))
        for before, after in zip(here, there, strict=True):
            assert before
            assert after == [(int(new.source[i]), int(new.target[j])) for i, j in before]

    def test_nor_how_links_are_matched(self) -> None:
        task = task_of(300)
        one = held_out(task, held_out=0.3)
        assert held_out(task, held_out=0.3, method="greedy", abstain=False) == one

    def test_everyone_is_as_likely(self) -> None:
        task, times = task_of(200), np.zeros(400)
        for seed in range(400):
            held, _ = held_out(task, held_out=0.3, seed=seed)
            times[[source for source, _ in held]] += 1
        of_seeds = times[task.seeds[:, 0]]
        assert of_seeds.sum() == 400 * 60
        assert abs(of_seeds - 120).max() < 5 * (400 * 0.3 * 0.7) ** 0.5  # five deviations

    def test_graphs_and_keys_stay(self, task: AlignmentTask) -> None:
        _, held, free = held_out_stage(Artifacts(None), "", task, MatchingConfig(held_out=0.5))
        assert held is not None
        for found in (free, without_seeds(task, held)):
            assert found.graphs is task.graphs
            assert all(np.array_equal(*side) for side in found.tie_keys.zip(task.tie_keys))

    def test_it_is_kept_in_the_runs_folder(self, tmp_path: Path) -> None:
        task, workspace = task_of(300), Workspace(tmp_path)
        config = MatchingConfig(held_out=0.25, seed=3)
        first, second = Artifacts(workspace), Artifacts(workspace)
        key, held, _ = held_out_stage(first, "task-0", task, config)
        assert held is not None
        assert first.made == {key}
        assert workspace.current("held") == key
        assert torch.equal(read_artifact(workspace, key, itemgetter("links")), held)
        again, found, _ = held_out_stage(second, "task-0", task, config)
        assert found is not None
        assert again == key
        assert torch.equal(found, held)
        assert not second.made

    def test_keys_tell_shares_seeds_and_tasks_apart(self) -> None:
        def key(task_key: str, **changes: Any) -> str:
            config = MatchingConfig(**changes)
            return held_out_stage(Artifacts(None), task_key, task_of(300), config)[0]

        one = key("a", held_out=0.2)
        others = [key("b", held_out=0.2), key("a", held_out=0.3), key("a", held_out=0.2, seed=1)]
        assert len({one, *others}) == 4
        assert key("a", held_out=0.2, method="greedy", abstain=False) == one


class TestAnyFolds:
    @given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 5))
    def test_every_pseudo_seed_is_left_out_once(self, count: int, parts: int, seed: int) -> None:
        """Also where folds are more than pseudo-seeds; parts differ by one at most."""
        everyone = listed(task_of(100).seeds)
        known = Known(task_of(15), {"task": "task-0", "held": "held-0"})
        pseudo = everyone[15 : 15 + count]
        links = torch.tensor(pseudo, dtype=torch.int64).reshape(-1, 2)
        config = SelfTrainingConfig(folds=parts, seed=seed)
        found, part_of = folds(known, "pseudo-0", links, config)
        assert len(found) == parts
        left = [set(pseudo) - set(listed(each.task.seeds)) for each in found]
        if parts == 1:
            assert left == [set()]
        else:
            assert sorted(link for part in left for link in part) == sorted(pseudo)
            assert max(map(len, left)) - min(map(len, left)) <= 1
            fold_of = {source: fold for fold, part in enumerate(left) for source, _ in part}
            assert part_of.tolist() == [fold_of.get(source, -1) for source in range(400)]
        for each, out in zip(found, left, strict=True):
            kept = [link for link in pseudo if link not in out]
            assert sorted(listed(each.task.seeds)) == sorted([*everyone[:15], *kept])
            assert each.parents == {"task": "task-0", "held": "held-0", "pseudo": "pseudo-0"}
        assert known.task.num_seeds == 15

    def test_the_seed_decides(self) -> None:
        links = torch.tensor(task_of(100).seeds[15:60])

        def seeds(seed: int) -> list[Links]:
            config = SelfTrainingConfig(folds=3, seed=seed)
            found, _ = folds(Known(task_of(15), {}), "pseudo-0", links, config)
            return [listed(each.task.seeds) for each in found]

        assert seeds(4) == seeds(4)
        assert seeds(4) != seeds(5)

    def test_pseudo_seeds_against_a_seed_are_dropped(self) -> None:
        """Seeds that rejoin were matched before, rightly or not."""
        known, everyone = Known(task_of(15), {}), task_of(100).seeds
        wrong = np.array([[everyone[0, 0], everyone[50, 1]], [everyone[51, 0], everyone[1, 1]]])
        links = torch.tensor(np.concatenate([everyone[2:3], wrong, everyone[20:24]]))
        (only,), _ = folds(known, "pseudo-0", links, SelfTrainingConfig())
        assert sorted(listed(only.task.seeds)) == sorted(listed([*everyone[:15], *everyone[20:24]]))


class TestCheckingShares:
    ROWS = Pair(torch.ones(1, 1), torch.ones(1, 1))

    def test_who_has_learned_a_pair_has_no_say_in_it(self) -> None:
        encodings = [
            Encoding(0, "train-0", self.ROWS),
            Encoding(1, "train-1", self.ROWS, 0),
            Encoding(1, "train-2", self.ROWS, 1),
        ]
        found = checking_shares(encodings, torch.tensor([-1, 0, 1]))
        assert found.tolist() == [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]

    @given(st.integers(1, 3), st.integers(2, 4), st.lists(st.integers(-1, 3), min_size=1))
    def test_every_encoder_weighs_the_same_in_every_row(
        self, encoders: int, parts: int, drawn: list[int]
    ) -> None:
        part_of = torch.tensor([min(part, parts - 1) for part in drawn])
        encodings = [
            Encoding(place, "train-0", self.ROWS, fold)
            for place in range(encoders)
            for fold in range(parts)
        ]
        found = checking_shares(encodings, part_of).view(-1, encoders, parts)
        assert found.sum(2).tolist() == pytest.approx(torch.full(found.shape[:2], 1 / encoders))
        for row, part in zip(found, part_of.tolist(), strict=True):
            for fold in range(parts):
                if part >= 0 and fold != part:
                    assert not row[:, fold].any()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_shares_sum_to_one_and_each_encoders_to_the_same(places: list[int]) -> None:
    rows = Pair(torch.ones(1, 1), torch.ones(1, 1))
    found = shares_of([Encoding(place, "train-0", rows) for place in places])
    shares = found or [1 / len(places)] * len(places)
    for place in set(places):
        own = [share for share, at in zip(shares, places, strict=True) if at == place]
        assert sum(own) == pytest.approx(1 / len(set(places)))
