"""The local view: what a mini-batch's rows and columns sum to, and which cells are kept."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion import local as module
from clusterea.fusion.local import local, local_cosine
from clusterea.fusion.undecided import undecided
from clusterea.numerics.prefetch import prefetch
from clusterea.types import Pair, Partition, Similarity
from dense_fusion import (
    Cells,
    Problem,
    assert_cells,
    dense_mini_batch,
    problem,
    quick,
    view_input,
)


def view(
    given: Problem, config: FusionConfig, outside: Pair[float] | None = None, **options: Any
) -> Similarity:
    entities = undecided([given.embeddings], given.seeds, given.keys, config.seed)
    given = replace(given, partitions=given.partitions[:1])
    constant = (
        None
        if outside is None
        else outside.zip(entities.num_rows).map(lambda side: torch.full((side[1],), side[0]))
    )
    return local(replace(view_input(given, config), outside=constant, **options))


def dense(similarity: Similarity) -> Tensor:
    result = torch.zeros(tuple(similarity.num_entities), device=similarity.values.device)
    result[similarity.rows(), similarity.columns] = similarity.values
    return result


def test_the_union_of_the_best_of_rows_and_columns() -> None:
    given, config = problem(0, num_batches=2), quick(candidates=3)
    cosines = (given.embeddings.source.double() @ given.embeddings.target.double().T).numpy()
    labels = given.partitions[0].labels
    wanted: Cells = {}
    for batch in range(2):
        inside = given.free().zip(labels)
        members = inside.map(lambda side: [i for i in side[0] if side[1][i] == batch])  # noqa: B023
        wanted |= dense_mini_batch(cosines, members, Pair({}, {}), config)
    assert_cells(view(given, config), wanted)
    rows = np.bincount([i for i, _ in wanted], minlength=31)[given.free().source]
    assert rows.min() >= 3
    assert rows.max() > 3


class TestSums:
    def test_plain(self) -> None:
        given = problem(1, (40, 40), num_batches=1, num_seeds=0)
        found = dense(view(given, quick(candidates=40, sinkhorn_rounds=200)))
        torch.testing.assert_close(found.sum(0), torch.ones(40))
        torch.testing.assert_close(found.sum(1), torch.ones(40), rtol=0, atol=1e-3)

    @pytest.mark.parametrize("option", [-1.0, 0.5, 0.99])
    def test_what_is_outside_takes_the_rest(self, option: float) -> None:
        given = problem(1, (50, 20), num_batches=1, num_seeds=0)
        config = quick(candidates=50, sinkhorn_rounds=400)
        found = dense(view(given, config, Pair(option, option)))
        assert float(found.sum(0).max()) <= 1 + 1e-5
        assert float(found.sum(1).max()) <= 1 + 1e-3
        if option == 0.99:
            assert float(found.sum()) < 10  # nearly all of them rather stay alone


class TestSizes:
    def test_one_row_takes_each_column_whole(self) -> None:
        given = problem(0, (1, 5), num_batches=1, num_seeds=0)
        assert dense(view(given, quick())).tolist() == [pytest.approx([1.0] * 5)]
        turned = problem(0, (5, 1), num_batches=1, num_seeds=0)
        assert float(dense(view(turned, quick())).sum()) == pytest.approx(1)

    def test_none_at_all(self) -> None:
        given = problem(0, (6, 5))
        apart = Partition(Pair(torch.zeros(6).long(), torch.ones(5).long()), 4)
        calls: list[tuple[str, int, int]] = []
        found = view(
            replace(given, partitions=[apart]),
            quick(),
            progress=lambda *call: calls.append(call),
        )
        assert found.num_cells == 0
        assert found.num_entities == Pair(6, 5)
        what = "mini-batches of sampler 1 of 1"
        assert calls == [(what, done, 4) for done in range(1, 5)]


def test_without_sinkhorn_they_are_cosines() -> None:
    given = problem(0)
    given = replace(given, partitions=given.partitions[:1])
    found = local_cosine(view_input(given, quick()))
    rows, columns = given.embeddings.source[found.rows()], given.embeddings.target[found.columns]
    torch.testing.assert_close(found.values, (rows * columns).sum(1))


def test_equal_vectors_have_equal_values() -> None:
    given = problem(0, (60, 45), distinct=4, num_batches=1, num_seeds=0)
    found = dense(view(given, quick(candidates=60)))
    kinds = given.embeddings.map(lambda rows: torch.unique(rows, dim=0, return_inverse=True)[1])
    for source in range(4):
        for target in range(4):
            cells = found[kinds.source == source][:, kinds.target == target]
            assert torch.equal(cells, cells.flatten()[0].expand_as(cells))


@pytest.mark.parametrize("outside", [None, 0.5])
def test_rows_read_ahead_change_nothing(
    outside: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where they are read in a thread and every tensor is kept for the other one."""
    given, config = problem(0, num_batches=4), quick(candidates=3)
    options = None if outside is None else Pair(outside, outside)
    wanted = view(given, config, options)
    kept: list[int] = []

    def ahead(arguments: Any, device: torch.device) -> Any:
        def tensors(item: Any) -> list[Tensor]:
            kept.append(len(module._tensors(item)))
            return module._tensors(item)

        for item in prefetch(arguments, device, tensors, module.AHEAD):
            tensors(item)  # `prefetch` asks for them on a GPU only
            yield item

    monkeypatch.setattr(module, "_prefetched", ahead)
    found = view(given, config, options)
    assert torch.equal(dense(found), dense(wanted))
    assert kept == [6 if outside is None else 8] * 4  # vectors, ids, keys and what is outside


def test_no_thread_is_left_if_a_mini_batch_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while someone looks at the error, whose traceback keeps all frames."""

    def ahead(arguments: Any, device: torch.device) -> Any:
        return prefetch(arguments, device, module._tensors, module.AHEAD)

    def failing(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(module, "_prefetched", ahead)
    monkeypatch.setattr(module, "batch_cells", failing)
    with pytest.raises(MemoryError) as error:
        view(problem(0, num_batches=4), quick())
    assert error.tb is not None
    assert not [each for each in threading.enumerate() if each.name == "prefetch"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_agrees() -> None:
    given, config = problem(0, (300, 250), num_batches=5), quick(candidates=5)
    wanted = dense(view(given, config, Pair(0.5, 0.5)))
    moved = replace(
        view_input(replace(given, partitions=given.partitions[:1]), config),
        device=torch.device("cuda"),
        outside=undecided([given.embeddings], given.seeds, given.keys, config.seed).num_rows.map(
            lambda rows: torch.full((rows,), 0.5)
        ),
    )
    found = dense(local(moved)).cpu()
    assert float(((found > 0) == (wanted > 0)).double().mean()) > 0.999
    torch.testing.assert_close(found, wanted, rtol=0, atol=0.02)
