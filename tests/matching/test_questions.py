from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_similarities import NAN, sparse
from torch import Tensor

from clusterea.matching.questions import (
    NEAR_VALUE,
    OWN_VALUE,
    UNLINKED,
    questions,
    random_order,
)
from clusterea.types import Alignment, AlignmentTask, Answer, KnowledgeGraph, Pair, Question
from small_graphs import graph, labeled_edges, random_pair

NOBODY = torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True)
class Problem:
    """A task, dense scores (NaN: no cell), and links with their confidence."""

    task: AlignmentTask
    dense: Tensor
    links: dict[tuple[int, int], float]

    def alignment(self) -> Alignment:
        links = torch.tensor([*self.links], dtype=torch.int64).reshape(-1, 2)
        sure = torch.tensor([*self.links.values()], dtype=torch.float64)
        return Alignment(links, sure, Pair(NOBODY, NOBODY))

    def ask(
        self,
        count: int,
        answers: Sequence[Answer] = (),
        random_share: float = 0.25,
        pending: Sequence[Question] = (),
    ) -> list[Question]:
        return questions(
            sparse(self.dense),
            self.alignment(),
            self.task,
            count,
            answers=answers,
            pending=pending,
            random_share=random_share,
        )


def near(of: KnowledgeGraph) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(of.num_entities)]
    for entity, _, other in labeled_edges(of):
        found[entity].add(other)
    return found


def problem(seed: int, *, entities: int = 40, steps: int | None = None) -> Problem:
    """Five seeds, two entities a side that are never linked, and links of most others.

    With `steps`, scores and confidences are multiples of 1 / steps, so that many values tie.
    """
    rng = np.random.default_rng(seed)
    graphs = random_pair(seed, entities=entities, triples=3 * entities)

    def numbers(*shape: int) -> np.ndarray:
        drawn = rng.random(shape)
        return drawn if steps is None else np.round(drawn * steps) / steps

    dense = torch.from_numpy(numbers(entities, entities))
    dense[torch.from_numpy(rng.random((entities, entities)) < 0.7)] = NAN
    known = np.stack([rng.permutation(entities), rng.permutation(entities)], axis=1)
    keys = Pair(*(rng.integers(-(2**62), 2**62, entities) for _ in range(2)))
    lone = int(known[-1, 0])  # has no link; its best candidate was rejected
    task = AlignmentTask(
        graphs,
        known[:5],
        keys,
        structural=Pair(known[5:6, 0], known[5:6, 1]),
        alone=Pair(known[6:7, 0], known[6:7, 1]),
        rejected=np.array([[lone, int(dense[lone].nan_to_num(-1).argmax())]]),
    )
    sure = numbers(entities).tolist()
    links = {(int(s), int(t)): sure[s] for s, t in known[7 : entities * 3 // 4]}
    return Problem(task, dense, links)


def twin(of: Problem, count: int, random_share: float) -> list[Question]:
    """The questions without earlier answers, by loops."""
    task = of.task
    hashes = random_order(task).tolist()
    closed = [
        {*task.seeds[:, side].tolist(), *never.tolist()}
        for side, never in enumerate(task.never_linked)
    ]
    rejected = set(map(tuple, task.rejected.tolist()))
    link = {s: (t, sure) for (s, t), sure in of.links.items()}
    owner = {t: sure for (_, t), sure in of.links.items()}
    neighbors = task.graphs.map(near)
    doubts = [
        [0 if e in closed[0] else 1 - link[e][1] if e in link else 1 for e in range(len(hashes))],
        [
            0 if e in closed[1] else 1 - owner[e] if e in owner else 1
            for e in range(task.num_entities.target)
        ],
    ]
    asked: dict[int, tuple[int, float, bool]] = {}
    value: dict[int, float] = {}
    for s in range(len(hashes)):
        if s in closed[0]:
            continue
        row = {
            t: float(of.dense[s, t])
            for t in range(task.num_entities.target)
            if not torch.isnan(of.dense[s, t]) and t not in closed[1] and (s, t) not in rejected
        }
        if s in link:
            asked[s] = (*link[s], True)
        elif row:
            best = max(row, key=lambda t: row[t])
            asked[s] = best, row[best], False
        else:
            continue
        t, p, is_link = asked[s]
        p = min(max(p, 0), 1) * (1 if is_link else UNLINKED * doubts[1][t])
        dependent = sum(doubts[0][n] / len(neighbors.source[n]) for n in neighbors.source[s])
        dependent += sum(doubts[1][n] / len(neighbors.target[n]) for n in neighbors.target[t])
        value[s] = p * (1 - p) * (OWN_VALUE + sqrt(dependent))
    reserved = {s for s in asked if asked[s][2] and hashes[s] < random_share * 2**64}
    left = {s: each for s, each in value.items() if s not in reserved}
    sample = sorted((s for s in asked if asked[s][2]), key=lambda s: hashes[s])
    found: list[Question] = []
    credit = 0.0
    while len(found) < count and (left or (sample and random_share)):
        credit += random_share
        is_random = bool(sample) and random_share > 0 and (credit > 1 - 1e-9 or not left)
        if not is_random and not left:
            break
        s = sample[0] if is_random else max(left, key=lambda s: (left[s], value[s], -hashes[s]))
        credit -= is_random
        t, sure, is_link = asked[s]
        found.append(Question(s, t, sure, is_link, is_random))
        sample = [each for each in sample if each != s]
        left = {each: left[each] for each in left if each != s and asked[each][0] != t}
        for each in left:
            if each in neighbors.source[s] or asked[each][0] in neighbors.target[t]:
                left[each] *= NEAR_VALUE
    return found


def rounded(found: list[Question]) -> list[Question]:
    return [replace(each, confidence=round(each.confidence, 6)) for each in found]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@given(seed=st.integers(0, 1000), count=st.integers(0, 45))
def test_questions_are_those_of_the_loop(share: float, seed: int, count: int) -> None:
    made = problem(seed)
    assert rounded(made.ask(count, random_share=share)) == rounded(twin(made, count, share))


@given(st.integers(0, 1000), st.integers(0, 45), st.integers(0, 45))
def test_a_longer_list_begins_with_the_shorter(seed: int, one: int, other: int) -> None:
    made = problem(seed, steps=3)
    one, other = sorted([one, other])
    assert made.ask(other)[:one] == made.ask(one)


@given(st.integers(0, 1000), st.integers(0, 12))
def test_pending_questions_are_not_asked_again(seed: int, count: int) -> None:
    """What follows them is what would follow in one list."""
    made = problem(seed, steps=3)
    pending = made.ask(count)
    assert made.ask(10, pending=pending) == made.ask(count + 10)[count:]


def test_pending_questions_may_be_decided_meanwhile() -> None:
    made = problem(3)
    pending = made.ask(5)
    first = pending[0]
    left = made.ask(100, [Answer(first.source, first.target, "same")], pending=pending)
    assert not {each.source for each in left} & {each.source for each in pending}


@given(st.integers(0, 1000))
def test_who_is_asked_about(seed: int) -> None:
    """No seed and no entity that is never linked; no source twice, and no rejected pair."""
    made = problem(seed)
    task, found = made.task, made.ask(1000)
    sources = [each.source for each in found]
    assert len({*sources}) == len(sources)
    closed = np.concatenate([task.seeds[:, 0], task.never_linked.source])
    assert not {*sources} & {*closed.tolist()}
    others = {each.target for each in found if not each.is_link}
    assert not others & {*task.seeds[:, 1].tolist(), *task.never_linked.target.tolist()}
    asked = {(each.source, each.target) for each in found}
    assert not asked & set(map(tuple, task.rejected.tolist()))
    assert {*made.links} <= asked | {(s, t) for s, t in made.links if s in closed}


@given(st.integers(0, 1000), st.sampled_from([None, 2, 4]))
def test_ids_decide_nothing(seed: int, steps: int | None) -> None:
    """Renumbered entities give the same questions, also where values tie."""
    made = problem(seed, steps=steps)
    rng = np.random.default_rng(seed)
    task = made.task
    to = task.num_entities.map(rng.permutation)  # old id → new id
    both = np.stack(list(to), axis=1)

    def moved(pairs: np.ndarray) -> np.ndarray:
        return np.stack([to.source[pairs[:, 0]], to.target[pairs[:, 1]]], axis=1)

    def renumbered(of: KnowledgeGraph, ids: np.ndarray) -> KnowledgeGraph:
        triples = np.stack([ids[of.heads], of.relations, ids[of.tails]], axis=1)
        return KnowledgeGraph(rng.permutation(triples), of.num_entities, of.num_relations)

    back = both.argsort(axis=0)
    other = Problem(
        AlignmentTask(
            task.graphs.zip(to).map(lambda side: renumbered(*side)),
            moved(task.seeds),
            task.tie_keys.zip(Pair(*back.T)).map(lambda side: side[0][side[1]]),
            structural=task.structural.zip(to).map(lambda side: side[1][side[0]]),
            rejected=moved(task.rejected),
            alone=task.alone.zip(to).map(lambda side: side[1][side[0]]),
        ),
        made.dense[back[:, 0]][:, back[:, 1]],
        {
            (int(to.source[s]), int(to.target[t])): sure
            for (s, t), sure in reversed([*made.links.items()])
        },
    )
    expected = [
        replace(each, source=int(to.source[each.source]), target=int(to.target[each.target]))
        for each in made.ask(40)
    ]
    assert other.ask(40) == expected


class TestRandomShare:
    def test_every_fourth_is_a_link_in_the_order_of_hashes(self) -> None:
        made = problem(0)
        found = made.ask(20)
        assert [each.is_random for each in found] == [False, False, False, True] * 5
        hashes = random_order(made.task)
        first = sorted((s for s, _ in made.links), key=lambda s: hashes[s])[:5]
        assert [each.source for each in found if each.is_random] == first
        assert all(each.is_link for each in found if each.is_random)

    def test_it_continues_where_it_stopped(self) -> None:
        """Whatever the answers are, and though they leave a list in the middle."""
        made = problem(1)
        whole = [each.source for each in made.ask(40, random_share=0.5) if each.is_random]
        answers: list[Answer] = []
        seen: list[int] = []
        while len(seen) < 10:
            first, *_ = made.ask(3, answers, random_share=0.5)
            seen += [first.source] if first.is_random else []
            answers.append(
                Answer(first.source, first.target, "different", is_random=first.is_random)
            )
        assert seen == whole[:10]
        assert sum(each.is_random for each in answers) == len(answers) // 2

    def test_a_new_link_is_asked_again(self) -> None:
        made = problem(2)
        first = next(each for each in made.ask(4) if each.is_random)
        answers = [Answer(first.source, first.target, "different", is_random=True)]
        assert first.source not in {each.source for each in made.ask(100, answers)}
        free = {*range(40)} - {t for _, t in made.links} - {*made.task.seeds[:, 1].tolist()}
        free -= {*made.task.never_linked.target.tolist()}
        links = {(s, min(free) if s == first.source else t): c for (s, t), c in made.links.items()}
        again = replace(made, links=links).ask(4, answers)
        asked = next(each for each in again if each.is_random)
        assert (asked.source, asked.target) == (first.source, min(free))

    def test_another_seed_gives_another_order(self) -> None:
        task = problem(0).task
        orders = [random_order(task, seed).argsort().tolist() for seed in (0, 0, 1)]
        assert orders[0] == orders[1] != orders[2]

    def test_a_share_beyond_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"random_share must be a number in \[0, 1\]. Got 2"):
            problem(0).ask(1, random_share=2)


class TestAnswers:
    def test_what_is_answered_is_not_asked_again(self) -> None:
        made = problem(3)
        first, second, third, *_ = made.ask(5)
        answers = [
            Answer(first.source, first.target, "same"),
            Answer(second.source, second.target, "unsure"),
            Answer(third.source, None, "none"),
        ]
        left = made.ask(100, answers)
        assert not {each.source for each in left} & {first.source, second.source, third.source}
        assert first.target not in {each.target for each in left}

    def test_an_undone_answer_is_asked_again(self) -> None:
        made = problem(3)
        first, *_ = made.ask(5)
        answers = [Answer(first.source, first.target, each) for each in ("same", "undone")]
        assert first.source in {each.source for each in made.ask(100, answers)}


class TestValues:
    """Links of the star 0 – 1, 2, 3 and of the pair 4 – 5 to targets of the same numbers."""

    STAR = graph([(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 0, 5)], 7, 1)

    def made(self, sure: Sequence[float]) -> Problem:
        task = AlignmentTask(Pair(self.STAR, self.STAR), np.empty((0, 2), np.int64))
        dense = torch.full((7, 7), NAN)
        return Problem(task, dense, {(e, e): each for e, each in enumerate(sure)})

    def first(self, *sure: float) -> int:
        return self.made(sure).ask(1, random_share=0)[0].source

    def test_the_least_sure(self) -> None:
        assert self.first(0.95, 0.95, 0.6, 0.95, 0.95, 0.95, 0.95) == 2
        assert self.first(0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.4) == 6

    def test_the_center_before_its_neighbors(self) -> None:
        assert self.first(*[0.5] * 7) == 0

    def test_neighbors_that_are_sure_depend_on_nothing(self) -> None:
        assert self.first(0.5, 1, 1, 1, 0.5, 0.9, 1) == 4

    def test_neighbors_of_what_is_asked_come_later(self) -> None:
        sources = [each.source for each in self.made([0.5] * 7).ask(7, random_share=0)]
        assert sources[0] == 0
        assert {*sources[1:3]} <= {4, 5, 6}
        assert len({*sources}) == 7

    def test_one_question_for_a_target(self) -> None:
        made = self.made([0.5])
        dense = made.dense.clone()
        dense[1:4, 6] = torch.tensor([0.3, 0.4, 0.5])
        found = replace(made, dense=dense).ask(7, random_share=0)
        assert [(each.source, each.target) for each in found] == [(0, 0), (3, 6)]
        assert found[1].confidence == pytest.approx(0.5)


def test_nothing_to_ask() -> None:
    empty = graph([], 3, 1)
    task = AlignmentTask(Pair(empty, empty), np.empty((0, 2), np.int64))
    assert Problem(task, torch.full((3, 3), NAN), {}).ask(5) == []


def test_half_precision_scores_will_do() -> None:
    made = problem(4)
    half = replace(made, dense=made.dense.half())
    same = replace(made, dense=made.dense.half().double())
    assert half.ask(40) == same.ask(40)
