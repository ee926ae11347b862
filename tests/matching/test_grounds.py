"""What content and neighbors say about links: a feature of confidence, and the grounds of links."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_similarities import held as scores_of
from torch import Tensor

from clusterea.matching import has_matched_neighbors
from clusterea.matching.calibrated import Trial, calibrated, chances, fit_confidence
from clusterea.matching.features import FEATURES, link_features
from clusterea.sharded import HeldScores
from clusterea.types import Alignment, AlignmentTask, KnowledgeGraph, Pair, Similarity
from clusterea.types.alignment import BY_FEATURES, BY_NAMES, BY_STRUCTURE
from small_graphs import HAND, pairs, random_pair

AT = list(FEATURES).index("content")


class TestContentFeature:
    def test_it_is_the_gain_of_each_link(self) -> None:
        task = AlignmentTask(HAND, np.array([[1, 1]]))
        links = torch.tensor([[0, 0], [3, 2], [5, 3]])
        similarity = scores_of(torch.ones(6, 4))

        def gains(asked: Tensor) -> Tensor:
            assert torch.equal(asked, links)
            return torch.tensor([0.5, 7.0, 0.0], dtype=torch.float64)

        found = link_features(similarity, links, task, gains)
        assert found[:, AT].tolist() == [0.5, 7, 0]
        plain = link_features(similarity, links, task)
        assert plain[:, AT].tolist() == [0, 0, 0]
        others = [at for at in range(len(FEATURES)) if at != AT]
        assert torch.equal(found[:, others], plain[:, others])

    def test_confidence_follows_it(self) -> None:
        """Links whose scores are all alike, of which those with a gain are right."""
        count = 300
        graphs = random_pair(0, entities=count, triples=400)
        task = AlignmentTask(graphs, np.empty((0, 2), dtype=np.int64))
        is_right = torch.rand(count, generator=torch.Generator().manual_seed(0)) < 0.6
        truth = torch.arange(count).repeat(2, 1).T
        wrong = torch.arange(count)[~is_right].roll(1)
        links = truth.clone()
        links[~is_right, 1] = wrong

        def gains(asked: Tensor) -> Tensor:
            return 6.0 * (asked[:, 0] == asked[:, 1]).float()

        similarity = Similarity(
            torch.arange(count + 1),
            links[:, 1].clone(),
            torch.full((count,), 0.5),
            Pair(count, count),
        )
        scores = HeldScores.of(similarity)
        everyone = Alignment(
            links, similarity.values, Pair(*[torch.empty(0, dtype=torch.int64)] * 2)
        )
        held = truth[::2]
        fitted = {
            name: fit_confidence([Trial(everyone, scores, task, held, each)])
            for name, each in (("gains", gains), ("none", None))
        }
        assert fitted["gains"] is not None
        assert fitted["none"] is not None
        found = calibrated(everyone, [scores], task, fitted["gains"], abstain=False, gains=[gains])
        right = found.links[:, 0] == found.links[:, 1]
        assert float(found.confidence[right].min()) > float(found.confidence[~right].max())
        assert float(found.confidence[right].mean()) > 0.8
        plain = calibrated(everyone, [scores], task, fitted["none"], abstain=False)
        right = plain.links[:, 0] == plain.links[:, 1]
        gap = plain.confidence[right].mean() - plain.confidence[~right].mean()
        assert abs(float(gap)) < 0.2
        sure = chances(links, similarity.values, scores, task, held, gains)
        assert float(sure[is_right].mean()) > float(sure[~is_right].mean()) + 0.4


def near(graph: KnowledgeGraph) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(graph.num_entities)]
    for head, _, tail in graph.triples.tolist():
        if head != tail:
            found[head].add(tail)
            found[tail].add(head)
    return found


def loop(links: Tensor, task: AlignmentTask) -> list[bool]:
    """Link by link, neighbor by neighbor."""
    partner = dict([*links.tolist(), *task.seeds.tolist()])
    source, target = task.graphs.map(near)
    return [any(partner.get(n) in target[t] for n in source[s]) for s, t in links.tolist()]


class TestMatchedNeighbors:
    @given(pairs(), st.data())
    def test_against_a_loop(self, graphs: Pair[KnowledgeGraph], data: st.DataObject) -> None:
        sizes = graphs.map(lambda graph: graph.num_entities)
        ends = [data.draw(st.permutations(range(size))) for size in sizes]
        known = torch.tensor(list(zip(*ends, strict=False)), dtype=torch.int64).reshape(-1, 2)
        cut = data.draw(st.integers(0, 2))
        task = AlignmentTask(graphs, known[:cut].numpy())
        found = has_matched_neighbors(known[cut:], task)
        assert found.dtype == torch.bool
        assert found.tolist() == loop(known[cut:], task)

    def test_some_have_and_some_have_not(self) -> None:
        graphs = random_pair(3)
        order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
        known = torch.stack([torch.arange(30), order], 1)
        task = AlignmentTask(graphs, known[:5].numpy())
        found = has_matched_neighbors(known[5:], task).tolist()
        assert found == loop(known[5:], task)
        assert 0 < sum(found) < len(found)

    def test_presumed_pairs_are_no_partners(self) -> None:
        """Only if they were found, and then they are links."""
        task = AlignmentTask(HAND, np.empty((0, 2), dtype=np.int64), presumed=np.array([[1, 1]]))
        links = torch.tensor([[0, 0]])
        assert has_matched_neighbors(links, task).tolist() == [False]
        more = torch.tensor([[0, 0], [1, 1]])
        assert has_matched_neighbors(more, task).tolist() == [True, True]

    def test_no_links(self) -> None:
        task = AlignmentTask(HAND, np.array([[1, 1]]))
        assert has_matched_neighbors(torch.empty(0, 2, dtype=torch.int64), task).shape == (0,)


ALIGNMENT = Alignment(
    torch.tensor([[0, 3], [1, 2], [4, 0], [2, 1]]),
    torch.tensor([0.9, 0.2, 0.8, 0.4]),
    Pair(torch.tensor([3]), torch.tensor([4])),
    grounds=torch.tensor(
        [BY_STRUCTURE | BY_NAMES, 0, BY_FEATURES, BY_STRUCTURE], dtype=torch.uint8
    ),
)


def by_link(alignment: Alignment) -> dict[tuple[int, ...], int]:
    assert alignment.grounds is not None
    assert alignment.grounds.dtype == torch.uint8
    links = map(tuple, alignment.links.tolist())
    return dict(zip(links, alignment.grounds.tolist(), strict=True))


class TestGrounds:
    WHOLE = by_link(ALIGNMENT)

    def test_bits_are_distinct(self) -> None:
        assert sorted(self.WHOLE.values()) == [0, 1, 3, 4]

    @pytest.mark.parametrize(
        ("some", "kept"),
        [
            (ALIGNMENT.only(torch.tensor([False, True, True, False])), [(1, 2), (4, 0)]),
            (ALIGNMENT.top(2), [(0, 3), (4, 0)]),
            (ALIGNMENT.at_least(0.4), [(0, 3), (4, 0), (2, 1)]),
            (ALIGNMENT.bounded(0.3, 1), [(0, 3)]),
            (ALIGNMENT.to("cpu"), list(WHOLE)),
        ],
    )
    def test_they_stay_with_their_links(self, some: Alignment, kept: list[tuple[int, int]]) -> None:
        assert by_link(some) == {link: self.WHOLE[link] for link in kept}

    def test_turned(self) -> None:
        assert by_link(ALIGNMENT.swap()) == {(t, s): bits for (s, t), bits in self.WHOLE.items()}

    def test_stored_and_read_again(self) -> None:
        again = Alignment.from_tensors(ALIGNMENT.tensors(), Pair(5, 5))
        assert by_link(again) == self.WHOLE
        plain = Alignment(ALIGNMENT.links, ALIGNMENT.confidence, ALIGNMENT.unmatched)
        assert "grounds" not in plain.tensors()
        assert Alignment.from_tensors(plain.tensors(), Pair(5, 5)).grounds is None
        assert plain.top(2).grounds is None

    def test_one_for_each_link(self) -> None:
        with pytest.raises(ValueError, match=r"grounds must have shape \(4,\)\. Got \(3,\)"):
            Alignment(
                ALIGNMENT.links,
                ALIGNMENT.confidence,
                ALIGNMENT.unmatched,
                grounds=torch.zeros(3, dtype=torch.uint8),
            )
