"""`calibrated`: what it does to an alignment, and that its confidences are chances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from small_similarities import NAN, calibration_error, keys_of, sparse
from torch import Tensor

from clusterea.matching import Trial, calibrated, chances, fit_confidence, supported
from clusterea.matching.calibration import FEWEST
from clusterea.sharded import HeldScores, match
from clusterea.types import Alignment, AlignmentTask, IntArray, KnowledgeGraph, Pair, Similarity

SWITCH = pytest.mark.parametrize("abstain", [False, True])


@dataclass(frozen=True)
class World:
    """Two graphs in which source i and target i are a pair for i < `matchable`."""

    similarity: Similarity
    keys: Pair[Tensor]
    task: AlignmentTask  # its seeds are those that were learned from
    held: Tensor  # (n, 2)
    matchable: int

    @property
    def scores(self) -> HeldScores:
        return HeldScores.of(self.similarity)

    @property
    def all_seeds(self) -> Tensor:
        return torch.cat([torch.tensor(self.task.seeds), self.held])

    def matched(self, seeds: Tensor) -> Alignment:
        return match(self.scores, self.keys, seeds)

    def trial(self) -> Alignment:
        """Held-out entities are matched like any others."""
        return self.matched(torch.tensor(self.task.seeds))

    def plain(self) -> Alignment:
        """The alignment before it is calibrated: all seeds are known."""
        return self.matched(self.all_seeds)

    def calibrated(self, *, abstain: bool, pairs: Tensor | None = None) -> Alignment:
        pairs = self.held if pairs is None else pairs
        confidence = fit_confidence([self.tried(pairs)])
        if confidence is None:
            return self.plain()
        known = np.concatenate([self.task.seeds, pairs.numpy()])
        whole = self.task.with_seeds(known)
        return calibrated(self.plain(), [self.scores], whole, confidence, abstain=abstain)

    def tried(self, pairs: Tensor | None = None) -> Trial:
        pairs = self.held if pairs is None else pairs
        return Trial(self.trial(), self.scores, self.task, pairs)

    def is_right(self, links: Tensor) -> Tensor:
        return (links[:, 0] == links[:, 1]) & (links[:, 0] < self.matchable)


def world(
    matchable: int = 400,
    others: int = 0,
    *,
    seeds: int = 60,
    held: int = 100,
    clarity: float = 0.4,
    seed: int = 0,
) -> World:
    """Each pair's score among those of eight random rivals, and graphs that share most edges."""
    draw, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    size = matchable + others
    scores = torch.full((size, size), NAN)
    rows = torch.arange(size).repeat_interleave(8)
    scores[rows, torch.randint(size, (len(rows),), generator=draw)] = torch.rand(
        len(rows), generator=draw
    )
    pairs = torch.arange(matchable)
    scores[pairs, pairs] = clarity + torch.rand(matchable, generator=draw)
    lowest, highest = scores[~scores.isnan()].aminmax()
    scores = (scores - lowest) / (highest - lowest)
    shared = rng.integers(0, matchable, (2 * matchable, 2))

    def side() -> KnowledgeGraph:
        own = rng.integers(0, size, (size, 2))
        ends = np.concatenate([shared[rng.random(len(shared)) < 0.7], own])
        triples = np.stack([ends[:, 0], np.zeros(len(ends), dtype=np.int64), ends[:, 1]], 1)
        return KnowledgeGraph(np.unique(triples, axis=0), size, 1)

    known = torch.from_numpy(rng.permutation(matchable))[: seeds + held]
    known = torch.stack([known, known], 1)
    task = AlignmentTask(Pair(side(), side()), known[:seeds].numpy())
    return World(sparse(scores), keys_of(scores), task, known[seeds:], matchable)


@pytest.fixture(scope="module")
def some() -> World:
    """Half of the entities have no counterpart: reason enough to abstain."""
    return world(400, 400, clarity=0.6)


def confidences(alignment: Alignment) -> dict[tuple[int, int], float]:
    links = zip(*alignment.links.T.tolist(), strict=True)
    return dict(zip(links, alignment.confidence.tolist(), strict=True))


class TestResult:
    @SWITCH
    def test_confidence_is_a_chance_and_falls(self, some: World, abstain: bool) -> None:
        found = some.calibrated(abstain=abstain)
        listed = found.confidence.tolist()
        assert 0 <= min(listed) < max(listed) <= 1
        assert listed == sorted(listed, reverse=True)

    @SWITCH
    @pytest.mark.parametrize("held", [100, 3, 0])
    def test_every_undecided_entity_is_linked_once_or_unmatched(
        self, abstain: bool, held: int
    ) -> None:
        given = world(200, 200, held=held, clarity=0.6)
        found = given.calibrated(abstain=abstain)
        for side, unmatched in enumerate(found.unmatched):
            linked = found.links[:, side].tolist()
            known = given.all_seeds[:, side].tolist()
            assert sorted([*linked, *unmatched.tolist(), *known]) == list(range(400))
            assert unmatched.tolist() == sorted(unmatched.tolist())

    def test_without_abstaining_all_links_stay(self, some: World) -> None:
        before, after = some.plain(), some.calibrated(abstain=False)
        assert set(confidences(after)) == set(confidences(before))
        for one, other in after.unmatched.zip(before.unmatched):
            assert torch.equal(one, other)

    def test_abstaining_leaves_out_the_least_sure(self, some: World) -> None:
        whole, part = some.calibrated(abstain=False), some.calibrated(abstain=True)
        kept = len(part.links)
        assert 0 < kept < len(whole.links)
        assert torch.equal(part.links, whole.links[:kept])
        assert torch.equal(part.confidence, whole.confidence[:kept])
        left = whole.links[kept:]
        for side, (fewer, more) in enumerate(whole.unmatched.zip(part.unmatched)):
            assert more.tolist() == sorted([*fewer.tolist(), *left[:, side].tolist()])

    @SWITCH
    def test_arguments_stay_as_they_are(self, some: World, abstain: bool) -> None:
        plain = some.plain()
        before = plain.links.clone(), plain.confidence.clone(), some.held.clone()
        confidence = fit_confidence([some.tried()])
        assert confidence is not None
        calibrated(plain, [some.scores], some.task, confidence, abstain=abstain)
        assert torch.equal(plain.links, before[0])
        assert torch.equal(plain.confidence, before[1])
        assert torch.equal(some.held, before[2])


class TestFewPairs:
    """Too few to tell anything: the alignment stays as it is."""

    @SWITCH
    @pytest.mark.parametrize("count", [0, 1, FEWEST // 2])
    def test_of_which_few_links_tell(self, some: World, abstain: bool, count: int) -> None:
        """A wrong link for each end of a pair makes two of one pair, and no more."""
        found, plain = some.calibrated(abstain=abstain, pairs=some.held[:count]), some.plain()
        assert torch.equal(found.links, plain.links)
        assert torch.equal(found.confidence, plain.confidence)
        assert all(torch.equal(*side) for side in found.unmatched.zip(plain.unmatched))

    @SWITCH
    def test_that_no_link_touches(self, abstain: bool) -> None:
        """Held-out entities without a cell: found by nobody, however many they are."""
        dense = torch.full((90, 90), NAN)
        near = torch.arange(30)
        dense[near, near] = 1.0
        triples = np.array([[i, 0, (i + 1) % 90] for i in range(90)])
        graphs = Pair(KnowledgeGraph(triples, 90, 1), KnowledgeGraph(triples, 90, 1))
        held = torch.arange(40, 80).repeat(2, 1).T
        task = AlignmentTask(graphs, np.array([[0, 0]]))
        given = World(sparse(dense), keys_of(dense), task, held, matchable=90)
        found = given.calibrated(abstain=abstain)
        assert torch.equal(found.confidence, given.plain().confidence)
        assert sorted(found.links[:, 0].tolist()) == list(range(1, 30))
        assert [side.numel() for side in found.unmatched] == [20, 20]

    @SWITCH
    def test_enough_that_are_all_right_are_about_as_sure_as_their_number(
        self, abstain: bool
    ) -> None:
        given = world(300, held=FEWEST, clarity=9.0)
        found = given.calibrated(abstain=abstain)
        assert len(found.links) == 240 - FEWEST
        share = (FEWEST + 1) / (FEWEST + 2)
        assert float(found.confidence.mean()) == pytest.approx(share, abs=0.02)
        assert float(found.confidence.min()) > 0.7

    @SWITCH
    def test_no_links(self, abstain: bool) -> None:
        given = world(30, seeds=5, held=5)
        nothing = sparse(torch.full((30, 30), NAN))
        found = replace(given, similarity=nothing).calibrated(abstain=abstain)
        assert found.links.shape == (0, 2)
        assert [side.numel() for side in found.unmatched] == [20, 20]


class TestSeveralFits:
    def test_all_trials_are_examples(self, some: World) -> None:
        halves = [some.tried(some.held[start::2]) for start in (0, 1)]
        one, other, both, whole, twice = (
            fit_confidence(trials)
            for trials in (halves[:1], halves[1:], halves, [some.tried()], [some.tried()] * 2)
        )
        assert one is not None
        assert other is not None
        assert both is not None
        assert whole is not None
        assert twice is not None
        assert both.examples == one.examples + other.examples > 0
        assert twice.examples == 2 * whole.examples
        # The same trial twice is the same population, with every example twice.
        ours, theirs = (
            calibrated(some.plain(), [some.scores], some.task, fitted, abstain=False)
            for fitted in (whole, twice)
        )
        changes = [
            abs(confidences(ours)[link] - sure) for link, sure in confidences(theirs).items()
        ]
        assert max(changes) < 0.15

    def test_no_trial_is_no_confidence(self) -> None:
        assert fit_confidence([]) is None

    def test_the_fit_that_is_surer_counts(self, some: World) -> None:
        confidence = fit_confidence([some.tried()])
        assert confidence is not None
        halves = replace(some.similarity, values=some.similarity.values / 2)
        flat = HeldScores.of(halves)

        def found(*similarities: HeldScores) -> dict[tuple[int, int], float]:
            given = calibrated(some.plain(), similarities, some.task, confidence, abstain=False)
            return confidences(given)

        first, second, both = found(some.scores), found(flat), found(some.scores, flat)
        assert first != second
        assert both == {link: max(first[link], second[link]) for link in first}


def test_supported_are_the_links_next_to_a_seed() -> None:
    """By an edge of either direction, which both sides have; a seed's neighbors alone won't do."""
    source = KnowledgeGraph(np.array([[0, 0, 1], [2, 1, 0], [3, 0, 4], [5, 0, 0]]), 6, 2)
    target = KnowledgeGraph(np.array([[0, 0, 1], [0, 0, 2], [3, 0, 4], [4, 0, 5]]), 6, 2)
    task = AlignmentTask(Pair(source, target), np.array([[0, 0]]))
    links = torch.arange(1, 6).repeat(2, 1).T
    nobody = torch.empty(0, dtype=torch.int64)
    found = supported(Alignment(links, torch.full((5,), 0.5), Pair(nobody, nobody)), task)
    assert found.links.tolist() == [[1, 1], [2, 2]]
    assert found.unmatched.map(Tensor.tolist) == Pair([3, 4, 5], [3, 4, 5])


def renumbered(given: World, new: Pair[IntArray]) -> World:
    """The same, where entity i of a side is number new[i]. Who is right is no longer told."""
    source, target = new.map(torch.from_numpy)
    dense = torch.full(tuple(given.similarity.num_entities), NAN)
    rows, columns = source[given.similarity.rows()], target[given.similarity.columns]
    dense[rows, columns] = given.similarity.values

    def moved(side: tuple[KnowledgeGraph, IntArray]) -> KnowledgeGraph:
        graph, ids = side
        triples = graph.triples.copy()
        triples[:, [0, 2]] = ids[triples[:, [0, 2]]]
        return KnowledgeGraph(triples, graph.num_entities, graph.num_relations)

    def links(known: Tensor) -> Tensor:
        return torch.stack([source[known[:, 0]], target[known[:, 1]]], 1)

    return World(
        sparse(dense),
        Pair(given.keys.source[source.argsort()], given.keys.target[target.argsort()]),
        AlignmentTask(
            given.task.graphs.zip(new).map(moved), links(torch.tensor(given.task.seeds)).numpy()
        ),
        links(given.held),
        given.matchable,
    )


@SWITCH
def test_no_numbering_shows(some: World, abstain: bool) -> None:
    rng = np.random.default_rng(3)
    new = Pair(rng.permutation(800), rng.permutation(800))
    found = some.calibrated(abstain=abstain)
    other = renumbered(some, new).calibrated(abstain=abstain)
    old = new.map(np.argsort)
    back = {
        (int(old.source[i]), int(old.target[j])): sure
        for (i, j), sure in confidences(other).items()
    }
    assert back == pytest.approx(confidences(found), abs=1e-5)


class TestChances:
    """Simulated pairs of which everything is known."""

    @pytest.mark.parametrize("clarity", [0.3, 0.5])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_of_links_at_nine_tenths_nine_of_ten_are_right(self, seed: int, clarity: float) -> None:
        """Where few are held out: the links that are given have some fewer rivals than the trial's,
        and no support from the held-out ones."""
        given = world(2000, seeds=500, held=150, clarity=clarity, seed=seed)
        found = given.calibrated(abstain=False)
        right = given.is_right(found.links)
        assert 0.4 < float(right.float().mean()) < 0.97
        assert calibration_error(found.confidence, right) < 0.07
        assert float(found.confidence.mean() - right.float().mean()) == pytest.approx(0, abs=0.05)
        # What scores alone say of their rivals is no chance.
        plain = given.plain()
        assert calibration_error(plain.confidence, given.is_right(plain.links)) > 0.07

    @pytest.mark.parametrize("seed", [0, 1])
    def test_abstaining_is_worth_it_where_half_have_none(self, seed: int) -> None:
        given = world(600, 600, held=200, seed=seed)
        whole, part = (given.calibrated(abstain=abstain) for abstain in (False, True))
        exist = given.matchable - len(given.all_seeds)

        def f1(alignment: Alignment) -> float:
            right = float(given.is_right(alignment.links).sum())
            return 2 * right / (len(alignment.links) + exist)

        assert f1(part) > f1(whole) + 0.02

    def test_pairs_in_another_order_say_the_same(self, some: World) -> None:
        other = some.calibrated(abstain=True, pairs=some.held.flip(0))
        assert confidences(other) == pytest.approx(
            confidences(some.calibrated(abstain=True)), abs=1e-6
        )


class TestHowSureLinksAre:
    """What pseudo-seeds are chosen by."""

    def test_are_chances(self, some: World) -> None:
        """Of the links that are given so much, as many are right."""
        trial = some.trial()
        found = chances(trial.links, trial.confidence, some.scores, some.task, some.held)
        right = some.is_right(trial.links)
        for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
            inside = (found >= low) & (found <= high)
            assert int(inside.sum()) > 20
            assert float(right[inside].float().mean()) == pytest.approx(
                float(found[inside].mean()), abs=0.15
            )

    def test_tell_more_than_scores(self, some: World) -> None:
        """Of as many links, more are right: neighbors have a say."""
        trial = some.trial()
        found = chances(trial.links, trial.confidence, some.scores, some.task, some.held)
        right = some.is_right(trial.links)
        count = int(right.sum())
        by_chance, by_score = (
            int(right[sure.argsort(descending=True)[:count]].sum())
            for sure in (found, trial.confidence)
        )
        assert by_chance > by_score

    def test_are_the_scores_where_too_few_seeds_are_held_out(self, some: World) -> None:
        trial = some.trial()
        found = chances(trial.links, trial.confidence, some.scores, some.task, some.held[:2])
        assert found is trial.confidence

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    def test_a_gpu_agrees(self, some: World) -> None:
        trial = some.trial()
        here = chances(trial.links, trial.confidence, some.scores, some.task, some.held)
        on_gpu = HeldScores.of(some.similarity.to("cuda"))
        there = chances(trial.links.cuda(), trial.confidence.cuda(), on_gpu, some.task, some.held)
        torch.testing.assert_close(there.cpu(), here, rtol=0, atol=1e-4)

    def test_a_held_out_pair_has_no_say_about_itself(self, some: World) -> None:
        """Its own links are judged as others teach: a pair that is moved changes only theirs."""
        trial = some.trial()
        arguments = trial.links, trial.confidence, some.scores, some.task
        before = chances(*arguments, some.held)
        wrong = some.held.clone()
        wrong[0, 1] = wrong[2, 1]  # of the same half
        wrong[2, 1] = some.held[0, 1]
        after = chances(*arguments, wrong)
        own = torch.isin(trial.links[:, 0], some.held[[0, 2], 0])
        own |= torch.isin(trial.links[:, 1], some.held[[0, 2], 1])
        assert int(own.sum())
        torch.testing.assert_close(after[own], before[own])
        assert not torch.equal(after[~own], before[~own])
