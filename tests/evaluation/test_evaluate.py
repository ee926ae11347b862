"""Ranks against full sorts in which every order of tied candidates is gone through."""

from __future__ import annotations

from itertools import permutations
from statistics import mean
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.errors import InputError
from clusterea.evaluation import evaluate
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.lookup import find_cells
from clusterea.types import Alignment, Pair, Similarity

NAN = float("nan")  # no cell
NO_SEEDS = torch.empty(0, 2, dtype=torch.int64)


def sparse(dense: Tensor) -> Similarity:
    """The cells of `dense` that are numbers."""
    present = ~dense.isnan()
    offsets = torch.cat([present.new_zeros(1, dtype=torch.int64), present.sum(1).cumsum(0)])
    return Similarity(offsets, present.nonzero()[:, 1], dense[present], Pair(*dense.shape))


def ranks(scores: list[float], truth: int) -> list[int]:
    """The rank of the truth in every order that the scores allow."""
    if scores[truth] != scores[truth]:
        return []
    slack = 1e-6 * max(abs(scores[truth]), 1e-12)
    ahead = sum(score > scores[truth] + slack for score in scores)
    tied = [i for i, score in enumerate(scores) if abs(score - scores[truth]) <= slack]
    return [ahead + 1 + order.index(truth) for order in permutations(tied)]


def twin(dense: Tensor, links: Tensor, candidates: set[int]) -> dict[str, float]:
    """The obvious way: row by row, order by order."""
    all_ranks = []
    for source, target in links.tolist():
        kept = sorted(candidates)
        all_ranks.append(ranks(dense[source, kept].tolist(), kept.index(target)))

    def hits(k: int) -> float:
        return mean(mean(rank <= k for rank in each) if each else 0 for each in all_ranks)

    mrr = mean(1 / mean(each) if each else 0 for each in all_ranks)
    return {"hits@1": hits(1), "hits@10": hits(10), "mrr": mrr}


SCORES = st.sampled_from([NAN, NAN, 0.0, 0.5, 0.5 + 2e-7, 0.75, -1.0, -0.5])


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    """Scores with many ties and gaps, test links, and seeds of other entities."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    cells = draw(st.lists(SCORES, min_size=rows * columns, max_size=rows * columns))
    sources = draw(st.permutations(range(rows)))
    targets = draw(st.permutations(range(columns)))
    pairs = torch.tensor(list(zip(sources, targets, strict=False)))
    cut = draw(st.integers(1, len(pairs)))
    dense = torch.tensor(cells, dtype=torch.float64).reshape(rows, columns)
    return dense, pairs[:cut], pairs[cut : cut + draw(st.integers(0, 2))]


@given(problems())
def test_figures_are_those_of_every_possible_order(problem: tuple[Tensor, Tensor, Tensor]) -> None:
    dense, links, seeds = problem
    found = evaluate(sparse(dense), links, seeds).to_dict()
    for direction, scores, side in (
        ("source_to_target", dense, 1),
        ("target_to_source", dense.T, 0),
    ):
        pairs = links if side else links.flip(1)
        tested = set(links[:, side].tolist())
        free = set(range(scores.shape[1])) - set(seeds[:, side].tolist())
        for candidates, name in ((tested, "test_candidates"), (free, "all_candidates")):
            assert found[name][direction] == pytest.approx(twin(scores, pairs, candidates))
    assert found["missing"] == int(dense[links[:, 0], links[:, 1]].isnan().sum())
    assert found["test_links"] == len(links)


@given(problems(), st.randoms(use_true_random=False))
def test_ids_do_not_matter(problem: tuple[Tensor, Tensor, Tensor], random: Any) -> None:
    dense, links, seeds = problem
    degrees = torch.arange(dense.shape[0])
    rows, columns = (torch.tensor(random.sample(range(n), n)) for n in dense.shape)
    shuffled = torch.empty_like(dense)
    shuffled[rows[:, None], columns] = dense
    new = [torch.stack([rows[ids[:, 0]], columns[ids[:, 1]]], 1) for ids in (links.flip(0), seeds)]
    before = evaluate(sparse(dense), links, seeds, degrees=degrees)
    after = evaluate(sparse(shuffled), *new, degrees=rows.argsort())
    assert before == after


@given(problems())
def test_chunks_change_nothing(problem: tuple[Tensor, Tensor, Tensor]) -> None:
    dense, links, seeds = problem
    whole = evaluate(sparse(dense), links, seeds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BLOCK_SIZES, "rivals", {"cpu": 3})
        assert evaluate(sparse(dense), links, seeds) == whole


@given(problems())
def test_find_cells_finds_what_is_there(problem: tuple[Tensor, Tensor, Tensor]) -> None:
    dense, _, _ = problem
    similarity = sparse(dense)
    sources, targets = torch.ones_like(dense).nonzero().T
    at = find_cells(similarity, sources, targets)
    assert (at < 0).tolist() == dense.flatten().isnan().tolist()
    assert similarity.rows()[at[at >= 0]].equal(sources[at >= 0])
    assert similarity.columns[at[at >= 0]].equal(targets[at >= 0])


def test_all_equal_scores_are_a_guess() -> None:
    links = torch.arange(40).repeat(2, 1).T
    found = evaluate(sparse(torch.ones(40, 40)), links, NO_SEEDS)
    for side in found.test_candidates:
        assert side.hits == {1: pytest.approx(1 / 40), 10: pytest.approx(1 / 4)}
        assert side.mrr == pytest.approx(1 / 20.5)


def test_no_cell_at_all() -> None:
    found = evaluate(sparse(torch.full((3, 2), NAN)), torch.tensor([[0, 1], [2, 0]]), NO_SEEDS)
    assert found.missing == 2
    assert [side.mrr for side in found.all_candidates] == [0, 0]


def test_by_degree() -> None:
    degrees = torch.tensor([0, 1, 2, 3, 4, 16, 17, 90, 7])
    links = torch.arange(8).repeat(2, 1).T
    scores = torch.eye(9).where(torch.arange(9)[:, None] != 3, NAN)
    found = evaluate(sparse(scores), links, NO_SEEDS, degrees=degrees.numpy())
    assert [(b.least, b.most, b.test_links) for b in found.by_degree] == [
        (0, 0, 1),
        (1, 1, 1),
        (2, 2, 1),
        (3, 4, 2),
        (9, 16, 1),
        (17, 90, 2),
    ]
    assert [b.ranking.hits[1] for b in found.by_degree] == [1, 1, 1, 0.5, 1, 1]


def test_an_alignment_is_judged() -> None:
    none = torch.empty(0, dtype=torch.int64)
    alignment = Alignment(torch.tensor([[0, 0], [1, 2], [2, 1]]), torch.ones(3), Pair(none, none))
    links = torch.tensor([[0, 0], [1, 1]])
    found = evaluate(sparse(torch.eye(3)), links.numpy(), NO_SEEDS, alignment=alignment)
    assert found.matching is not None
    assert found.matching.precision == pytest.approx(1 / 3)
    assert found.matching.recall == 1 / 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_precision_of_the_scores_is_theirs(dtype: torch.dtype) -> None:
    links = torch.arange(4).repeat(2, 1).T
    found = evaluate(sparse(torch.eye(4, dtype=dtype)), links, NO_SEEDS)
    assert found.test_candidates.source.hits[1] == 1


@pytest.mark.parametrize(
    ("links", "error", "message"),
    [
        ([], InputError, "there are no test links to judge by"),
        ([[0, 0], [0, 1]], ValueError, "test_links must be one-to-one"),
        ([[0, 3]], ValueError, "test links' target"),
    ],
)
def test_what_can_not_be_judged_by_is_refused(
    links: list[list[int]], error: type[Exception], message: str
) -> None:
    given = torch.tensor(links, dtype=torch.int64).reshape(-1, 2)
    with pytest.raises(error, match=message):
        evaluate(sparse(torch.eye(3)), given, NO_SEEDS)


def test_degrees_of_other_entities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"degrees must have shape \(3,\). Got \(2,\)"):
        evaluate(sparse(torch.eye(3)), torch.tensor([[0, 0]]), NO_SEEDS, degrees=torch.ones(2))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_the_same_figures() -> None:
    draw = torch.Generator().manual_seed(0)
    dense = torch.randint(0, 9, (60, 50), generator=draw).float()
    dense[dense == 0] = NAN
    links, seeds = torch.arange(40).repeat(2, 1).T, torch.tensor([[45, 45], [46, 49]])
    there = sparse(dense.cuda())
    assert evaluate(there, links, seeds) == evaluate(sparse(dense), links, seeds)
