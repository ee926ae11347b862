"""Sparse Sinkhorn against a loop over its cells, and against the dense form on a full pattern."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.errors import InputError
from clusterea.numerics.sinkhorn import sinkhorn_log, values
from clusterea.numerics.sparse_sinkhorn import row_sums
from clusterea.sharded import sinkhorn as module
from clusterea.types import Pair, Similarity
from whole_runs import sparse_sinkhorn

OUTSIDE = pytest.mark.parametrize("with_outside", [False, True])
NARROW = 0.02  # the temperature of fusion: with options, products with the kernel
COLD = 2e-3  # cosines over it span more than `WIDEST`: the log domain
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def sparse(dense: Tensor) -> Similarity:
    """The cells of `dense` that are not -inf."""
    present = dense.isfinite()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), present.sum(1).cumsum(0)])
    return Similarity(offsets, present.nonzero()[:, 1], dense[present], Pair(*dense.shape))


def matrix(rows: int, columns: int, seed: int = 0, share: float = 1.0) -> Tensor:
    """(rows, columns) in float64: numbers in [-1, 1], of which a share is there and others -inf."""
    draw = torch.Generator().manual_seed(seed)
    cells = 2 * torch.rand(rows, columns, dtype=torch.float64, generator=draw) - 1
    absent = torch.rand(rows, columns, generator=draw) >= share
    return cells.masked_fill(absent, -torch.inf)


def options(rows: int, columns: int, seed: int = 0) -> Pair[Tensor]:
    draw = torch.Generator().manual_seed(100 + seed)
    return Pair(
        *(torch.rand(size, dtype=torch.float64, generator=draw) for size in (rows, columns))
    )


def dense_of(similarity: Similarity) -> Tensor:
    """In float64, with 0 where there is no cell."""
    result = torch.zeros(*similarity.num_entities, dtype=torch.float64)
    result[similarity.rows(), similarity.columns] = similarity.values.double()
    return result


def loop(
    dense: Tensor, temperature: float, rounds: int, outside: Pair[Tensor] | None = None
) -> Tensor:
    """u K v by the definition, cell by cell, of a matrix that is -inf where nothing is."""
    rows, columns = dense.shape
    kernel = ((dense - 1) / temperature).numpy()  # logarithms, as is all that follows
    u, v = [0.0] * rows, [0.0] * columns
    c, d = [-math.inf] * rows, [-math.inf] * columns
    if outside is not None:
        c, d = (((side - 1) / temperature).tolist() for side in outside)

    def less(terms: list[float]) -> float:
        """The logarithm of 1 / sum; whoever has nothing to sum has no cell to scale either."""
        total = float(np.logaddexp.reduce(terms))
        return -total if math.isfinite(total) else 0.0

    for _ in range(rounds):
        for i in range(rows):
            u[i] = less([c[i], *(kernel[i, j] + v[j] for j in range(columns))])
        for j in range(columns):
            v[j] = less([d[j], *(kernel[i, j] + u[i] for i in range(rows))])
    cells = [[math.exp(kernel[i, j] + u[i] + v[j]) for j in range(columns)] for i in range(rows)]
    return torch.tensor(cells, dtype=torch.float64).reshape(rows, columns)


def assert_near(found: Similarity, wanted: Tensor) -> None:
    """As near as float32 tells."""
    torch.testing.assert_close(dense_of(found), wanted, rtol=1e-5, atol=1e-7)


class TestFullPattern:
    @OUTSIDE
    @pytest.mark.parametrize("rounds", [0, 1, 2, 30])
    @pytest.mark.parametrize("temperature", [1e-3, COLD, NARROW, 0.1, 1.0])
    @pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (7, 7), (12, 5), (5, 12)])
    def test_is_the_dense_form(
        self, shape: tuple[int, int], temperature: float, rounds: int, with_outside: bool
    ) -> None:
        dense = matrix(*shape)
        outside = options(*shape) if with_outside else None
        potentials = sinkhorn_log(dense, temperature, rounds, outside)
        rows, columns = torch.cartesian_prod(*map(torch.arange, shape)).T
        wanted = values(dense.flatten(), rows, columns, potentials, temperature).reshape(shape)
        assert_near(sparse_sinkhorn(sparse(dense), temperature, rounds, outside), wanted)


sizes = st.integers(1, 7)
seeds = st.integers(0, 999)
shares = st.sampled_from([0.1, 0.3, 0.6, 1.0])
temperatures = st.sampled_from([COLD, NARROW, 0.3, 1.0])


class TestTwin:
    @settings(max_examples=80)
    @given(sizes, sizes, seeds, shares, temperatures, st.integers(0, 6), st.booleans())
    def test_is_what_the_loop_computes(
        self,
        rows: int,
        columns: int,
        seed: int,
        share: float,
        temperature: float,
        rounds: int,
        with_outside: bool,
    ) -> None:
        dense = matrix(rows, columns, seed, share)
        outside = options(rows, columns, seed) if with_outside else None
        found = sparse_sinkhorn(sparse(dense), temperature, rounds, outside)
        assert_near(found, loop(dense, temperature, rounds, outside))

    @settings(max_examples=40)
    @given(sizes, sizes, seeds, shares, st.sampled_from([0.011, NARROW, 0.3]), st.integers(1, 60))
    def test_both_ways_to_sum_agree(
        self, rows: int, columns: int, seed: int, share: float, temperature: float, rounds: int
    ) -> None:
        """Options as low as cosines are: what is lost beside the largest must not matter."""
        dense = matrix(rows, columns, seed, share)
        outside = options(rows, columns, seed).map(lambda side: 2 * side - 1)
        narrow = sparse_sinkhorn(sparse(dense), temperature, rounds, outside)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "WIDEST", -1.0)
            wide = sparse_sinkhorn(sparse(dense), temperature, rounds, outside)
        torch.testing.assert_close(narrow.values, wide.values, rtol=1e-5, atol=1e-30)

    @pytest.mark.parametrize(
        ("temperature", "with_outside", "is_narrow"),
        [(NARROW, True, True), (NARROW, False, False), (COLD, True, False), (1.0, True, True)],
    )
    def test_the_kernel_is_used_where_float64_holds_it(
        self,
        temperature: float,
        with_outside: bool,
        is_narrow: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        sums = MagicMock(side_effect=row_sums)
        monkeypatch.setattr(module, "row_sums", sums)
        outside = options(9, 8) if with_outside else None
        sparse_sinkhorn(sparse(matrix(9, 8, share=0.5)), temperature, 3, outside)
        (_, _, shift), _ = sums.call_args
        assert (shift is not None) == is_narrow


class TestSums:
    @settings(max_examples=30)
    @given(sizes, sizes, seeds, shares, temperatures, st.integers(1, 9))
    def test_plain_columns_sum_to_one(
        self, rows: int, columns: int, seed: int, share: float, temperature: float, rounds: int
    ) -> None:
        dense = matrix(rows, columns, seed, share)
        found = dense_of(sparse_sinkhorn(sparse(dense), temperature, rounds))
        has_cell = dense.isfinite().any(0)
        torch.testing.assert_close(found.sum(0), has_cell.double(), rtol=0, atol=1e-5)

    @settings(max_examples=20)
    @given(sizes, sizes, seeds, shares, st.sampled_from([0.1, 0.3, 1.0]))
    def test_with_options_nobody_hands_out_more_than_one(
        self, rows: int, columns: int, seed: int, share: float, temperature: float
    ) -> None:
        dense = matrix(rows, columns, seed, share)
        found = sparse_sinkhorn(sparse(dense), temperature, 200, options(rows, columns, seed))
        assert float(dense_of(found).sum(0).max()) <= 1 + 1e-6
        assert float(dense_of(found).sum(1).max()) <= 1 + 1e-3  # only in the limit


class TestExtremes:
    @OUTSIDE
    @pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (3, 4)])
    def test_no_cells(self, shape: tuple[int, int], with_outside: bool) -> None:
        nothing = sparse(torch.full(shape, -torch.inf))
        outside = options(*shape) if with_outside else None
        found = sparse_sinkhorn(nothing, 0.02, 10, outside)
        assert found.num_cells == 0
        assert found.num_entities == Pair(*shape)

    @OUTSIDE
    @pytest.mark.parametrize("temperature", [COLD, NARROW, 1.0])
    def test_rows_and_columns_without_cells(self, temperature: float, with_outside: bool) -> None:
        dense = torch.full((5, 4), -torch.inf, dtype=torch.float64)
        dense[1:3, 1:3] = torch.tensor([[0.9, 0.2], [0.1, 0.7]])
        outside = options(5, 4) if with_outside else None
        found = sparse_sinkhorn(sparse(dense), temperature, 20, outside)
        assert_near(found, loop(dense, temperature, 20, outside))
        # Those without a cell have no say.
        inner = outside and Pair(outside.source[1:3], outside.target[1:3])
        alone = sparse_sinkhorn(sparse(dense[1:3, 1:3]), temperature, 20, inner)
        torch.testing.assert_close(found.values, alone.values)

    def test_more_rows_than_columns_for_many_rounds(self) -> None:
        """Plain potentials of a part without balance drift; the cells don't."""
        dense = torch.full((9, 4), -torch.inf, dtype=torch.float64)
        dense[:8, 0] = 0.3  # eight rows for one column
        dense[8, 1:] = 0.3  # and one for three
        found = dense_of(sparse_sinkhorn(sparse(dense), 0.02, 1000))
        wanted = torch.zeros(9, 4, dtype=torch.float64)
        wanted[:8, 0], wanted[8, 1:] = 1 / 8, 1
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)

    @pytest.mark.parametrize("level", [-100.0, 0.3, 100.0])
    @OUTSIDE
    def test_similarities_that_are_no_cosines(self, level: float, with_outside: bool) -> None:
        dense = matrix(6, 5, share=0.6)
        outside = options(6, 5).map(lambda side: side + level) if with_outside else None
        found = sparse_sinkhorn(sparse(dense + level), 0.1, 9, outside)
        assert_near(found, loop(dense + level, 0.1, 9, outside))

    @OUTSIDE
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("temperature", [COLD, 1.0])
    def test_what_is_not_finite_is_refused(
        self, bad: float, temperature: float, with_outside: bool
    ) -> None:
        similarity = sparse(matrix(5, 4))
        similarity.values[7] = bad  # behind its back: `Similarity` itself would refuse it
        outside = options(5, 4) if with_outside else None
        with pytest.raises(InputError, match="a similarity must be a finite number"):
            sparse_sinkhorn(similarity, temperature, 3, outside)

    def test_a_quotient_that_is_not_finite_is_refused(self) -> None:
        huge = sparse(torch.tensor([[1e308, 0.0]], dtype=torch.float64))
        with pytest.raises(InputError, match="finite"):
            sparse_sinkhorn(huge, 0.02, 3)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_any_precision_comes_back_in_float32(self, dtype: Any) -> None:
        dense = matrix(6, 5, share=0.6).to(dtype)
        outside = options(6, 5).map(lambda side: side.to(dtype))
        found = sparse_sinkhorn(sparse(dense), 0.02, 9, outside)
        assert found.values.dtype == torch.float32
        assert_near(found, loop(dense.double(), 0.02, 9, outside.map(Tensor.double)))

    def test_arguments_stay_as_they_are(self) -> None:
        similarity, outside = sparse(matrix(6, 5, share=0.6)), options(6, 5)
        before = similarity.values.clone(), outside.map(torch.clone)
        found = sparse_sinkhorn(similarity, 0.02, 9, outside)
        assert torch.equal(similarity.values, before[0])
        assert all(torch.equal(*side) for side in outside.zip(before[1]))
        assert torch.equal(found.columns, similarity.columns)
        assert torch.equal(found.row_offsets, similarity.row_offsets)


@gpu
@pytest.mark.gpu
class TestGpu:
    @OUTSIDE
    @pytest.mark.parametrize("temperature", [1e-3, COLD, NARROW, 1.0])
    @pytest.mark.parametrize("share", [0.1, 1.0])
    def test_agrees_with_the_cpu(
        self, share: float, temperature: float, with_outside: bool
    ) -> None:
        similarity = sparse(matrix(80, 60, share=share))
        outside = options(80, 60) if with_outside else None
        here = sparse_sinkhorn(similarity, temperature, 30, outside)
        there = sparse_sinkhorn(
            similarity.to("cuda"), temperature, 30, outside and outside.map(Tensor.cuda)
        )
        assert there.values.device.type == "cuda"
        torch.testing.assert_close(there.values.cpu(), here.values, rtol=1e-5, atol=1e-7)


def test_who_has_no_cells_changes_nothing() -> None:
    """At a low temperature an outside option alone is far above everything else."""
    cells = Similarity(
        torch.tensor([0, 1, 2, 2]), torch.tensor([0, 0]), torch.tensor([0.9, 0.9]), Pair(3, 1)
    )
    outside = Pair(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.5]))
    scaled = sparse_sinkhorn(cells, 1e-3, 50, outside)
    torch.testing.assert_close(scaled.values, torch.tensor([0.5, 0.5]))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_options_must_be_finite(wrong: float) -> None:
    outside = Pair(torch.tensor([wrong, 0.5]), torch.tensor([0.5, 0.5]))
    with pytest.raises(InputError, match="outside must be finite"):
        sparse_sinkhorn(sparse(torch.eye(2)), 0.02, 5, outside)
