"""What encoders learn from: who is held out, what folds leave out, and what each weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.config import Config, MatchingConfig, preset
from clusterea.pipeline.learning import (
    FEWEST_SEEDS,
    Encoding,
    Fit,
    Lesson,
    checking_shares,
    fits,
    lessons,
    num_held_out,
    shares,
)
from clusterea.pipeline.store import Made
from clusterea.types import (
    AlignmentTask,
    Embeddings,
    IntArray,
    KnowledgeGraph,
    Links,
    Pair,
)
from small_graphs import random_pair

Listed = list[tuple[int, int]]


def task_of(num_seeds: int, *, entities: int = 400) -> AlignmentTask:
    rng = np.random.default_rng(0)
    seeds = np.stack([rng.permutation(entities)[:num_seeds] for _ in range(2)], 1)
    return AlignmentTask(random_pair(0, entities=entities), seeds)


def listed(links: Any) -> Listed:
    return [(int(source), int(target)) for source, target in links]


def settings(**changes: Any) -> Config:
    """The settings with these of matching; without any of the others."""
    return replace(preset("default", 100), matching=MatchingConfig(**changes))


def fitted(task: AlignmentTask, before: int = 0, **changes: Any) -> list[Fit]:
    return fits(Made.of("task-0", task), settings(**changes), before)


def parted(task: AlignmentTask, before: int = 0, **changes: Any) -> list[tuple[Listed, Listed]]:
    """Who is held out by each fit, and who is left."""
    found = fitted(task, before, **changes)
    return [(listed(each.held), listed(each.known.value.seeds)) for each in found]


@pytest.mark.parametrize(
    ("seeds", "entities", "share", "held"),
    [
        (4500, 15_000, 0.05, [200]),
        (4500, 15_000, 0, [0]),
        (4500, 22_501, 0.05, [200, 200]),  # less than a fifth: few, so there are two fits
        (8000, 15_000, 0.05, [400]),
        (7999, 15_000, 0.05, [283]),  # the number rises in steps
        (2000, 5_000, 0.05, [200]),
        (1999, 5_000, 0.05, [100, 100]),  # a tenth would be too few to tell
        (1500, 15_000, 0.05, [100, 100]),
        (150, 15_000, 0.05, [71, 71]),  # more than half are never held out
        (150, 200, 0.9, [71, 71]),
        (51, 200, 0.05, [25, 25]),
        (50, 50, 0.05, [25, 25]),
        (49, 50, 0.05, [0]),
        (0, 20, 0.5, [0]),
    ],
)
def test_how_many_are_held_out(seeds: int, entities: int, share: float, held: list[int]) -> None:
    nothing = KnowledgeGraph(np.empty((0, 3), np.int64), entities, 1)
    task = AlignmentTask(Pair(nothing, nothing), np.arange(seeds).repeat(2).reshape(-1, 2))
    assert num_held_out(task, settings(held_out=share)) == held
    assert num_held_out(task, settings(held_out=share, fits=1)) == held[:1]


@pytest.mark.parametrize(
    ("seeds", "before", "held"),
    [(150, 0, 71), (150, 25, 71), (150, 35, 71), (150, 36, 36), (150, 71, 71), (51, 71, 25)],
)
def test_a_warm_restart_holds_out_as_many_as_before(seeds: int, before: int, held: int) -> None:
    """Until a full run would hold out twice as many."""
    assert num_held_out(task_of(seeds), settings(held_out=0.05), before) == [held, held]


class TestFits:
    @given(
        st.integers(0, 400), st.floats(0, 1, exclude_max=True), st.integers(1, 2), st.integers(0, 9)
    )
    def test_two_parts_in_the_order_of_the_keys(
        self, num_seeds: int, share: float, most: int, seed: int
    ) -> None:
        """Labels are drawn in that order: who is held out must not change the others' order."""
        everyone = listed(task_of(num_seeds).in_order().seeds)
        config = settings(held_out=share, fits=most, seed=seed)
        found = parted(task_of(num_seeds), held_out=share, fits=most, seed=seed)
        assert [len(held) for held, _ in found] == num_held_out(task_of(num_seeds), config)
        for held, rest in found:
            assert not set(held) & set(rest)
            assert held == [link for link in everyone if link not in set(rest)]
            assert rest == [link for link in everyone if link not in set(held)]

    @given(st.integers(FEWEST_SEEDS, 400))
    def test_no_seed_is_lost(self, num_seeds: int) -> None:
        """What one fit holds out, the other learns."""
        (held, rest), (other_held, other_rest) = parted(task_of(num_seeds), held_out=0.05)
        assert not set(held) & set(other_held)
        assert set(held) <= set(other_rest)
        assert set(other_held) <= set(rest)

    @given(st.integers(FEWEST_SEEDS, 380), st.integers(1, 20), st.integers(1, 2))
    def test_what_was_learned_is_not_held_out_later(
        self, num_seeds: int, more: int, most: int
    ) -> None:
        """If the number of held-out seeds is that of the run before."""
        before = parted(task_of(num_seeds), held_out=0.05, fits=most)
        number = len(before[0][0])
        after = parted(task_of(num_seeds + more), number, held_out=0.05, fits=most)
        for (held, rest), (held_now, _) in zip(before, after, strict=True):
            assert len(held_now) == len(held)
            assert not set(rest) & set(held_now)

    def test_rejected_pairs_are_held_out_alike(self) -> None:
        task = task_of(200)
        rejected = np.stack([np.arange(100), np.roll(np.arange(100), 1)], 1)
        one, other = fitted(replace(task, rejected=rejected), held_out=0.05)
        for fit in (one, other):
            assert 30 < len(fit.held_rejected) < 70
            left = listed(fit.known.value.rejected)
            assert sorted([*listed(fit.held_rejected), *left]) == listed(rejected)
        assert not set(listed(one.held_rejected)) & set(listed(other.held_rejected))

    @given(st.integers(200, 380), st.integers(0, 20), st.integers(0, 90), st.integers(0, 10))
    def test_rejected_pairs_that_were_learned_are_not_held_out_later(
        self, num_seeds: int, more: int, num_rejected: int, more_rejected: int
    ) -> None:
        every = np.stack([np.arange(100), np.roll(np.arange(100), 1)], 1)
        sizes = (num_seeds, num_rejected), (num_seeds + more, num_rejected + more_rejected)
        before, after = (
            fitted(replace(task_of(seeds), rejected=every[:count]), held_out=0.05)
            for seeds, count in sizes
        )
        for old, new in zip(before, after, strict=True):
            assert not set(listed(old.known.value.rejected)) & set(listed(new.held_rejected))

    @given(st.integers(0, 120), st.integers(0, 120), st.integers(0, 120))
    def test_answers_to_chosen_questions_are_held_out_last(
        self, num_chosen: int, num_fair: int, num_presumed: int
    ) -> None:
        """Only if there are too few other seeds, and too few presumed pairs."""
        pairs = task_of(num_chosen + num_fair + num_presumed).seeds
        seeds, presumed = np.split(pairs, [num_chosen + num_fair])
        every = np.stack([np.arange(100), np.roll(np.arange(100), 1)], 1)
        task = replace(
            task_of(0).with_seeds(seeds, presumed),
            rejected=every,
            chosen=np.concatenate([seeds[:num_chosen], every[:50]]),
        )
        own, given, chosen = ({*listed(some)} for some in (presumed, seeds, seeds[:num_chosen]))
        for fit in fitted(task, held_out=0.05):
            held = {*listed(fit.held)}
            assert held <= own if fit.hides else held <= given
            if num_fair >= 50 or num_presumed >= 50:
                assert not held & chosen
                assert not {*listed(fit.held_rejected)} & {*listed(every[:50])}
            assert {*listed(fit.known.value.all_seeds)} == (own | given) - held

    def test_keys_tell_them_apart(self) -> None:
        task = task_of(300)
        one, other = fitted(task, held_out=0.3)
        again = fitted(task, held_out=0.3, seed=1)
        assert len({each.known.key for each in (one, other, *again)}) == 4
        (whole,) = fitted(task, held_out=0)
        assert whole.known.key == "task-0"

    def test_only_its_seed_and_share_decide(self) -> None:
        task = task_of(300)
        one = parted(task, held_out=0.3)
        assert parted(task, held_out=0.3, method="greedy", abstain=False) == one
        assert parted(task, held_out=0.3, seed=1) != one

    def test_neither_ids_nor_graphs_nor_the_order_have_a_say(self) -> None:
        task, rng = task_of(300), np.random.default_rng(1)
        new = Pair(rng.permutation(400), rng.permutation(400))
        seeds = np.stack([new.source[task.seeds[:, 0]], new.target[task.seeds[:, 1]]], 1)
        keys = new.zip(task.tie_keys).map(lambda side: side[1][np.argsort(side[0])])
        other = AlignmentTask(random_pair(9, entities=400), rng.permutation(seeds), keys)
        for here, there in zip(
            *(parted(each, held_out=0.3) for each in (task, other)), strict=True
        ):
            for before, after in zip(here, there, strict=True):
                assert before
                assert after == [(int(new.source[i]), int(new.target[j])) for i, j in before]

    def test_everyone_is_as_likely(self) -> None:
        task, times = task_of(240), np.zeros(400)
        for seed in range(400):
            for held, _ in parted(task, held_out=0.3, seed=seed):
                times[[source for source, _ in held]] += 1
        of_seeds = times[task.seeds[:, 0]]
        assert of_seeds.sum() == 400 * 200
        share = 200 / 240
        assert abs(of_seeds - 400 * share).max() < 5 * (400 * share * (1 - share)) ** 0.5

    def test_graphs_and_keys_stay(self) -> None:
        task = task_of(300)
        known = fitted(task, held_out=0.5)[0].known.value
        assert known.graphs is task.graphs
        assert all(np.array_equal(*side) for side in known.tie_keys.zip(task.tie_keys))


def learned(
    pseudo: IntArray, folds: int, *, seed: int = 0, known: str = "known-0", found: str = "pseudo-0"
) -> list[Lesson]:
    """The lessons of 15 seeds and these pseudo-seeds."""
    fit = Fit(Made.of(known, task_of(15)), task_of(0).seeds, 1)
    links = Made.of(found, Links(torch.from_numpy(pseudo.copy())))
    return lessons(fit, links, 3, folds, seed)


class TestLessons:
    EVERYONE = task_of(100).seeds  # the first 15 are seeds

    def test_without_pseudo_seeds_it_is_the_seeds(self) -> None:
        (only,) = learned(self.EVERYONE[:0], 2)
        assert listed(only.task.value.seeds) == listed(task_of(15).seeds)
        assert (only.round, only.fit, only.left_out) == (0, 1, None)

    @given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 5))
    def test_every_pseudo_seed_is_left_out_once(self, count: int, folds: int, seed: int) -> None:
        """Also where folds are more than pseudo-seeds; parts differ by one at most."""
        pseudo = self.EVERYONE[15 : 15 + count]
        found = learned(pseudo, folds, seed=seed)
        places = [(each.round, each.fit, each.fold) for each in found]
        assert places == [(3, 1, fold) for fold in range(folds)]
        left = [set(listed(pseudo)) - set(listed(each.task.value.seeds)) for each in found]
        if folds == 1:
            assert left == [set()]
            assert found[0].left_out is None
        else:
            assert sorted(link for part in left for link in part) == sorted(listed(pseudo))
            assert max(map(len, left)) - min(map(len, left)) <= 1
        for each, out in zip(found, left, strict=True):
            kept = [link for link in listed(pseudo) if link not in out]
            wanted = sorted([*listed(self.EVERYONE[:15]), *kept])
            assert sorted(listed(each.task.value.seeds)) == wanted
            if each.left_out is not None:
                assert sorted(each.left_out.tolist()) == sorted(source for source, _ in out)

    def test_seeds_are_in_the_order_of_the_keys(self) -> None:
        for each in learned(self.EVERYONE[15:60], 2):
            task = each.task.value
            assert np.array_equal(task.seeds, task.in_order().seeds)

    def test_the_seed_decides_the_folds(self) -> None:
        def seeds(seed: int) -> list[Listed]:
            found = learned(self.EVERYONE[15:60], 3, seed=seed)
            return [listed(each.task.value.seeds) for each in found]

        assert seeds(4) == seeds(4)
        assert seeds(4) != seeds(5)

    def test_pseudo_seeds_against_a_seed_are_dropped(self) -> None:
        seeds = self.EVERYONE
        wrong = np.array([[seeds[0, 0], seeds[50, 1]], [seeds[51, 0], seeds[1, 1]]])
        (only,) = learned(np.concatenate([seeds[2:3], wrong, seeds[20:24]]), 1)
        wanted = sorted(listed([*seeds[:15], *seeds[20:24]]))
        assert sorted(listed(only.task.value.seeds)) == wanted

    def test_keys_tell_them_apart(self) -> None:
        pseudo = self.EVERYONE[15:25]
        keys = [
            [each.task.key for each in learned(pseudo, 2, **changes)]
            for changes in ({}, {"seed": 1}, {"known": "known-1"}, {"found": "pseudo-1"})
        ]
        keys.append([each.task.key for each in learned(pseudo, 3)])
        assert len({key for some in keys for key in some}) == 4 * 2 + 3
        assert [each.task.key for each in learned(pseudo, 2)] == keys[0]


def encoding(encoder: int, left_out: Sequence[int] | None = None) -> Encoding:
    """What an encoder made of a lesson without these sources."""
    without = None if left_out is None else np.array(left_out, dtype=np.int64)
    lesson = Lesson(Made.of("lesson-0", task_of(0)), left_out=without)
    nothing = Embeddings(torch.ones(1, 1), torch.ones(1, 1))
    return Encoding(encoder, lesson, Made.of("train-0", nothing))


def slow_shares(encodings: Sequence[Encoding], source: int) -> list[float]:
    """Every encoder has the same say, shared by those of its encodings that may judge."""
    encoders = {each.encoder for each in encodings}
    is_pseudo = any(
        each.lesson.left_out is not None and source in each.lesson.left_out for each in encodings
    )

    def may_judge(each: Encoding) -> bool:
        left_out = each.lesson.left_out
        return not is_pseudo or left_out is None or source in left_out

    judges = [each.encoder for each in encodings if may_judge(each)]
    return [
        may_judge(each) / len(encoders) / max(judges.count(each.encoder), 1) for each in encodings
    ]


class TestShares:
    @given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
    def test_every_encoder_weighs_the_same(self, encoders: list[int]) -> None:
        found = shares([encoding(encoder) for encoder in encoders])
        for encoder in set(encoders):
            own = [share for share, at in zip(found, encoders, strict=True) if at == encoder]
            assert sum(own) == pytest.approx(1 / len(set(encoders)))
            assert len(set(own)) == 1

    def test_who_has_learned_a_pair_has_no_say_in_it(self) -> None:
        encodings = [encoding(0), encoding(1, [1]), encoding(1, [2])]
        found = checking_shares(encodings, 3)
        assert found.tolist() == [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]

    @given(
        st.integers(0, 2),
        st.integers(1, 3),
        st.integers(2, 4),
        st.lists(st.integers(-1, 3), min_size=1, max_size=12),
    )
    def test_as_a_slow_twin_says(
        self, whole: int, folded: int, folds: int, drawn: list[int]
    ) -> None:
        """`drawn` is the fold that leaves out a source's pseudo-seed, or -1."""
        parts = [
            [source for source, fold in enumerate(drawn) if min(fold, folds - 1) == part]
            for part in range(folds)
        ]
        encodings = [encoding(encoder) for encoder in range(whole)]
        encodings += [encoding(whole + at, part) for at in range(folded) for part in parts]
        found = checking_shares(encodings, len(drawn))
        for source, row in enumerate(found.tolist()):
            assert row == pytest.approx(slow_shares(encodings, source))
            assert sum(row) == pytest.approx(1)
