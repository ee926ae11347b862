"""Nearest neighbors against brute force: with many ties, in blocks of any size, in any order."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics import knn
from clusterea.numerics.block_sizes import host_memory_bound
from clusterea.numerics.knn import Nearest, Neighbors, _chunks, best_cells
from clusterea.numerics.rows import TILE
from clusterea.numerics.ties import tie_vectors
from clusterea.types import Pair
from vector_problems import assert_same, keys_of, problem
from whole_runs import nearest

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def by_brute_force(
    source: Tensor, target: Tensor, k: int, ties: Pair[Tensor], seed: int
) -> Nearest:
    """The whole matrix in float64, sorted as a whole."""
    values = (source.double() @ target.double().T).float()
    vectors = tie_vectors(ties, seed).map(lambda side: side.double())
    tied = vectors.source @ vectors.target.T

    def best(values: Tensor, tied: Tensor) -> Neighbors:
        order = tied.argsort(1, descending=True)
        ranked = values.gather(1, order).sort(stable=True, dim=1, descending=True)
        return Neighbors(order.gather(1, ranked.indices)[:, :k], ranked.values[:, :k])

    return Pair(best(values, tied), best(values.T, tied.T))


@pytest.mark.parametrize("distinct", [None, 40, 1])
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (70, 333), (500, 410)])
def test_brute_force_agrees(shape: tuple[int, int], distinct: int | None) -> None:
    source, target, ties = problem(*shape, distinct=distinct)
    found = nearest(source, target, 10, ties, 0)
    assert found.source.indices.shape == (shape[0], min(10, shape[1]))
    assert found.target.values.dtype == torch.float32
    assert_same(found, by_brute_force(source, target, 10, ties, 0))


@pytest.mark.parametrize("whole", [0, 1000])
def test_rows_are_scored_one_by_one_or_with_all(
    whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knn, "WHOLE", whole)
    monkeypatch.setattr(knn, "suits", lambda *_: False)
    source, target, ties = problem(300, 200, 9, distinct=60)
    assert_same(nearest(source, target, 7, ties, 0), by_brute_force(source, target, 7, ties, 0))


@pytest.mark.parametrize("block", [Pair(64, 1024), Pair(1024, 64), Pair(192, 320)])
def test_groups_of_every_size(block: Pair[int]) -> None:
    source, target, ties = problem(700, 1500, distinct=900)
    found = nearest(source, target, 3, ties, 0, block=block, spare=2)
    assert_same(found, by_brute_force(source, target, 3, ties, 0))


def test_late_blocks_that_are_better_by_far() -> None:
    """Sorted so that each block beats all before it, more than buffers hold at a time."""
    target = torch.linspace(0.1, 1, 2000)
    target = torch.stack([target, (1 - target.square()).sqrt()], dim=1)
    source = torch.tensor([[1.0, 0.0]]).repeat(130, 1)
    ties = Pair(keys_of(130, 1), keys_of(2000, 2))
    found = nearest(source, target, 8, ties, 0, block=Pair(64, 256), spare=4)
    assert found.source.indices[7].tolist() == list(range(1999, 1991, -1))
    assert_same(found, by_brute_force(source, target, 8, ties, 0))


@given(
    rows=st.integers(1, 200),
    columns=st.integers(1, 200),
    distinct=st.integers(1, 60),
    k=st.integers(1, 6),
    block=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    group=st.sampled_from([1, 2, 4, 8]),
    seed=st.integers(0, 5),
)
@settings(max_examples=60)
def test_neither_blocks_nor_ids_change_anything(
    rows: int,
    columns: int,
    distinct: int,
    k: int,
    block: tuple[int, int],
    group: int,
    seed: int,
) -> None:
    source, target, ties = problem(rows, columns, 4, distinct)
    whole = nearest(source, target, k, ties, seed, spare=4)
    draw = torch.Generator().manual_seed(seed)
    new = Pair(torch.randperm(rows, generator=draw), torch.randperm(columns, generator=draw))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knn, "GROUP", group)
        shuffled = nearest(
            source[new.source],
            target[new.target],
            k,
            Pair(ties.source[new.source], ties.target[new.target]),
            seed,
            block=Pair(*block),
            spare=4,
        )
    # Where entity i now stands, its neighbors are the same entities as before.
    assert torch.equal(new.target[shuffled.source.indices], whole.source.indices[new.source])
    assert torch.equal(new.source[shuffled.target.indices], whole.target.indices[new.target])
    assert torch.equal(shuffled.source.values, whole.source.values[new.source])
    assert torch.equal(shuffled.target.values, whole.target.values[new.target])


def test_equal_vectors_have_equal_values_and_a_seeded_order() -> None:
    source, target, ties = problem(50, 200, distinct=1)
    found = nearest(source, target, 20, ties, 0)
    assert found.source.values.unique().numel() == 1  # type: ignore[no-untyped-call]
    other = nearest(source, target, 20, ties, 1)
    assert not torch.equal(found.source.indices, other.source.indices)
    assert found.source.indices.unique().numel() > 100  # type: ignore[no-untyped-call]


def test_rows_of_zeros_tie_with_everything() -> None:
    source, target, ties = problem(20, 300)
    source[3] = 0
    found = nearest(source, target, 10, ties, 0)
    assert not found.source.values[3].any()
    assert_same(found, by_brute_force(source, target, 10, ties, 0))


def test_the_given_rows_decide_and_not_their_rounding() -> None:
    source, target, ties = problem(40, 300)
    target[150:] = torch.nn.functional.normalize(target[:150] + 1e-6 * target[150:])
    assert_same(nearest(source, target, 10, ties, 0), by_brute_force(source, target, 10, ties, 0))


def test_cells_that_are_close_are_all_scored() -> None:
    """A tie vector may move a cell by as much as its bound, and another one the other way."""
    cells = torch.tensor([[0.5, 0.5 - 7e-5, 0.5 - 2e-4, 0.9], [0.0, 0.0, 0.0, 0.0]])
    wanted = knn._may_be_best(cells, 2)
    assert wanted.tolist() == [[True, True, False, True], [True] * 4]


def test_half_precision_rows() -> None:
    source, target, ties = problem(40, 300)
    source, target = source.half(), target.half()
    assert_same(nearest(source, target, 10, ties, 0), by_brute_force(source, target, 10, ties, 0))


@pytest.mark.parametrize(("rows", "columns", "k"), [(0, 5, 3), (5, 0, 3), (0, 0, 3), (4, 5, 0)])
def test_nothing_to_find(rows: int, columns: int, k: int) -> None:
    source, target, ties = problem(rows, columns)
    found = nearest(source, target, k, ties, 0)
    assert found.source.indices.shape == (rows, 0)
    assert found.target.values.shape == (columns, 0)


def test_numbers_that_are_none() -> None:
    source, target, ties = problem(5, 5)
    target[2, 1] = torch.nan
    with pytest.raises(ValueError, match="embeddings must be finite"):
        nearest(source, target, 2, ties, 0)


def test_arguments_stay_as_they_are() -> None:
    source, target, ties = problem(100, 80)
    before = source.clone(), target.clone()
    nearest(source, target, 5, ties, 0)
    assert torch.equal(source, before[0])
    assert torch.equal(target, before[1])


def test_rows_without_columns_have_no_products() -> None:
    """A graph of which every entity is in a seed has no candidate left."""
    found = knn.row_dots(torch.ones(3, 4), torch.ones(5, 4), torch.empty(3, 0, dtype=torch.int64))
    assert found.shape == (3, 0)


@pytest.mark.parametrize("are_few", [False, True])
def test_a_product_is_the_same_in_every_shard(are_few: bool) -> None:
    draw = torch.Generator().manual_seed(0)
    rows, others = (torch.randn(size, 64, generator=draw) for size in (1000, 5000))
    columns = torch.rand(1000, 5000, generator=draw).topk(10, dim=1).indices
    whole = knn.row_dots(rows, others, columns, are_few=are_few)
    for start, stop in [(0, 400), (400, 1000), (998, 1000)]:
        part = knn.row_dots(rows[start:stop], others, columns[start:stop], are_few=are_few)
        assert torch.equal(part, whole[start:stop])
    with host_memory_bound(1):
        assert torch.equal(knn.row_dots(rows, others, columns, are_few=are_few), whole)


def test_progress_counts_blocks() -> None:
    source, target, ties = problem(150, 100)
    calls: list[tuple[int, int]] = []
    best_cells(
        source,
        target,
        Pair(5, 5),
        tie_vectors(ties, 0),
        block=Pair(64, 64),
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 6) for done in range(1, 7)]


def test_means_are_of_the_best() -> None:
    neighbors = Neighbors(torch.zeros(1, 3).long(), torch.tensor([[0.9, 0.5, 0.1]]))
    torch.testing.assert_close(neighbors.mean(2), torch.tensor([0.7]))
    torch.testing.assert_close(neighbors.mean(10), torch.tensor([0.5]))


@gpu
@pytest.mark.gpu
class TestGpu:
    @pytest.mark.parametrize("distinct", [None, 300])
    @pytest.mark.parametrize("on_host", [True, False])
    def test_agrees_with_the_cpu(self, distinct: int | None, on_host: bool) -> None:
        source, target, ties = problem(1500, 3000, 64, distinct)
        wanted = nearest(source, target, 50, ties, 0)
        device = torch.device("cuda")
        if not on_host:
            source, target, ties = source.cuda(), target.cuda(), ties.map(lambda keys: keys.cuda())
        found = nearest(source, target, 50, ties, 0, device=device)
        assert found.source.indices.device.type == "cuda"
        assert_same(found, wanted)

    @pytest.mark.parametrize("distinct", [30, 1])
    def test_many_ties_have_the_same_cosines(self, distinct: int) -> None:
        """Which of a hundred equal ones are taken, the rounding of the block product decides.

        Also which hundred, where two are nearly as near: that of float16 is some 1e-4.
        """
        source, target, ties = problem(1500, 3000, 64, distinct)
        wanted = nearest(source, target, 50, ties, 0)
        found = nearest(source, target, 50, ties, 0, device=torch.device("cuda"))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one.values.cpu(), other.values, rtol=0, atol=5e-4)

    def test_blocks_change_nothing(self) -> None:
        source, target, ties = problem(3000, 5000, 64, 2000)
        device = torch.device("cuda")
        wanted = nearest(source, target, 50, ties, 0, device=device)
        for block in (Pair(512, 4096), Pair(2048, 640), Pair(64, 64)):
            assert_same(nearest(source, target, 50, ties, 0, device=device, block=block), wanted)


@pytest.mark.parametrize("numbers", [1, 100, 255, 256, 257, 5000, 1 << 30])
def test_chunks_are_the_same_in_all_shards(numbers: int) -> None:
    """A product may round otherwise with another number of rows."""
    step = next(_chunks(10, numbers, torch.device("cpu"))).stop
    assert step % TILE == 0 or TILE % step == 0
