from __future__ import annotations

from itertools import pairwise
from math import log, log1p

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_similarities import NAN, NO_SEEDS, held
from torch import Tensor

from clusterea.matching.features import FEATURES, edges_of, link_features
from clusterea.types import AlignmentTask, KnowledgeGraph
from small_graphs import HAND, pairs, random_pair


def neighbors(graph: KnowledgeGraph) -> list[set[int]]:
    result: list[set[int]] = [set() for _ in range(graph.num_entities)]
    for head, _, tail in graph.triples.tolist():
        if head != tail:
            result[head].add(tail)
            result[tail].add(head)
    return result


def rival(line: list[float], at: int) -> float | None:
    return max((value for i, value in enumerate(line) if i != at and value == value), default=None)


def gain(source: int, target: int) -> float:
    """A gain by names that differs from link to link."""
    return (3 * source - 7 * target) / 8


def gains(links: Tensor) -> Tensor:
    return torch.tensor([gain(s, t) for s, t in links.tolist()])


def twin(
    dense: Tensor, links: Tensor, task: AlignmentTask, *, has_gains: bool
) -> list[list[float]]:
    """The features, link by link."""
    near = task.graphs.map(neighbors)
    table = dense.tolist()
    partner = dict([*links.tolist(), *task.seeds.tolist()])
    numbers = [value for row in table for value in row if value == value]
    result = []
    for s, t in links.tolist():
        score = table[s][t] if table[s][t] == table[s][t] else min(numbers, default=0.0)
        rivals = rival(table[s], t), rival([line[t] for line in table], s)
        support = rare = 0.0
        for n in near.source[s]:
            other = partner.get(n, -1)
            if other in near.target[t]:
                support += 1
                rare += 1 / log(2 + len(near.source[n]) + len(near.target[other]))
        degrees = len(near.source[s]), len(near.target[t])
        result.append(
            [score]
            + [score if other is None else score - other for other in rivals]
            + [float(other is None or score >= other) for other in rivals]
            + [log1p(degree) for degree in degrees]
            + [log1p(support), log1p(rare)]
            + [support / max(degree, 1) for degree in degrees]
            + [gain(s, t) if has_gains else 0.0]
        )
    return result


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor, AlignmentTask]:
    """Scores, some of them no cell; links, each entity in one at most; and a few seeds."""
    graphs = draw(pairs())
    rows, columns = graphs.map(lambda graph: graph.num_entities)
    score = st.sampled_from([NAN, 0.25, 0.5, 1.0, -0.5])
    scores = draw(st.lists(score, min_size=rows * columns, max_size=rows * columns))
    sources, targets = (draw(st.permutations(range(size))) for size in (rows, columns))
    known = list(zip(sources, targets, strict=False))
    seeds, links = (known[slice(*cut)] for cut in pairwise((0, draw(st.integers(0, 2)), None)))
    task = AlignmentTask(graphs, np.array(seeds, dtype=np.int64).reshape(-1, 2))
    found = torch.tensor(links, dtype=torch.int64).reshape(-1, 2)
    return torch.tensor(scores).reshape(rows, columns), found, task


@given(problems(), st.booleans())
def test_features_are_those_of_the_loop(
    problem: tuple[Tensor, Tensor, AlignmentTask], has_gains: bool
) -> None:
    dense, links, task = problem
    found = link_features(held(dense), links, task, gains if has_gains else None)
    edges = edges_of(task, links.device)
    again = link_features(held(dense), links, task, gains if has_gains else None, edges)
    assert torch.equal(found, again)
    assert found.shape == (len(links), len(FEATURES))
    assert found.dtype == torch.float32
    assert found.flatten().tolist() == pytest.approx(
        [value for row in twin(dense, links, task, has_gains=has_gains) for value in row], abs=1e-6
    )


def example(seed: int = 3) -> tuple[Tensor, Tensor, AlignmentTask]:
    """Thirty entities a side, ten seeds, and links of the rest."""
    graphs = random_pair(seed)
    draw = torch.Generator().manual_seed(seed)
    dense = torch.rand(30, 30, generator=draw)
    dense[torch.rand(30, 30, generator=draw) < 0.5] = NAN
    known = torch.stack([torch.randperm(30, generator=draw) for _ in range(2)], dim=1)
    return dense, known[10:], AlignmentTask(graphs, known[:10].numpy())


def test_matched_neighbors_come_from_seeds_and_links() -> None:
    # Source 0 has neighbors 1 and 3, target 0 has 1, 2 and 3.
    task = AlignmentTask(HAND, np.array([[1, 1]]))
    links = torch.tensor([[0, 0], [3, 2], [5, 3]])
    features = link_features(held(torch.ones(6, 4)), links, task)
    column = {name: features[:, at].tolist() for at, name in enumerate(FEATURES)}
    assert column["matched neighbors"][0] == pytest.approx(log1p(2))
    assert column["source share"][0] == 1
    assert column["target share"][0] == pytest.approx(2 / 3)
    assert (
        column["matched neighbors"][2] == column["source share"][2] == 0
    )  # entity 5 is in no triple


def test_nothing_is_needed() -> None:
    task = AlignmentTask(HAND, np.empty((0, 2), dtype=np.int64))
    nothing = held(torch.full((6, 4), NAN))
    assert link_features(nothing, NO_SEEDS, task).shape == (0, len(FEATURES))
    assert link_features(nothing, torch.tensor([[0, 0]]), task)[0, :3].tolist() == [0, 0, 0]


def test_half_precision_scores_will_do() -> None:
    dense, links, task = example()
    half = link_features(held(dense.half()), links, task)
    torch.testing.assert_close(half, link_features(held(dense.half().float()), links, task))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_gpu_finds_the_same() -> None:
    dense, links, task = example()
    found = link_features(held(dense.cuda()), links.cuda(), task)
    assert found.device.type == "cuda"
    torch.testing.assert_close(found.cpu(), link_features(held(dense), links, task))
