"""`SparseMatrix` against dense matrices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics.sparse_matmul import SparseMatrix

ROWS, COLUMNS = 5, 4
# Rows 0 and 3 and column 2 are empty; row 1 is out of order; row 4 holds one cell twice.
CELLS = [(1, 3, 2.0), (1, 0, -1.0), (2, 1, 0.5), (4, 1, 3.0), (4, 1, 4.0), (4, 3, -2.0)]


@pytest.fixture
def matrix() -> SparseMatrix:
    rows, columns, values = zip(*CELLS, strict=True)
    counts = torch.bincount(torch.tensor(rows), minlength=ROWS)
    return SparseMatrix(
        torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]),
        torch.tensor(columns),
        torch.tensor(values),
        COLUMNS,
    )


def dense(matrix: SparseMatrix) -> Tensor:
    result = torch.zeros(matrix.num_rows, matrix.num_columns, dtype=torch.float64)
    for row in range(matrix.num_rows):
        for cell in range(int(matrix.offsets[row]), int(matrix.offsets[row + 1])):
            result[row, matrix.columns[cell]] += matrix.values[cell]
    return result


@pytest.fixture
def other() -> Tensor:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(COLUMNS, 3, dtype=torch.float64, generator=draw).requires_grad_()


def test_product(matrix: SparseMatrix, other: Tensor) -> None:
    assert (matrix.num_rows, matrix.num_columns) == (ROWS, COLUMNS)
    torch.testing.assert_close(matrix @ other, dense(matrix) @ other)
    torch.testing.assert_close(matrix.apply(other.detach()), (matrix @ other).detach())


def test_gradient_of_a_gradient_that_is_not_contiguous(matrix: SparseMatrix, other: Tensor) -> None:
    slope = torch.randn(3, ROWS, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(matrix @ other, other, slope.T)
    torch.testing.assert_close(gradient, dense(matrix).T @ slope.T)


def test_transpose(matrix: SparseMatrix) -> None:
    turned = matrix.transpose
    assert (turned.num_rows, turned.num_columns) == (COLUMNS, ROWS)
    torch.testing.assert_close(dense(turned), dense(matrix).T)
    assert turned.columns.tolist() == [1, 2, 4, 4, 1, 4]  # rows in order within each column
    torch.testing.assert_close(dense(turned.transpose), dense(matrix))
    assert matrix.transpose is turned  # computed once


def test_float32_stays_float32(matrix: SparseMatrix, other: Tensor) -> None:
    assert (matrix @ other.float()).dtype == torch.float32


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-4, 4)), max_size=12))
def test_any_matrix(cells: list[tuple[int, int, int]]) -> None:
    cells = sorted(cells, key=lambda cell: cell[0])
    counts = torch.bincount(torch.tensor([row for row, _, _ in cells], dtype=torch.int64), None, 4)
    matrix = SparseMatrix(
        torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]),
        torch.tensor([column for _, column, _ in cells], dtype=torch.int64),
        torch.tensor([value for _, _, value in cells], dtype=torch.float32),
        6,
    )
    right = torch.arange(12, dtype=torch.float64).reshape(6, 2).requires_grad_()
    product = matrix @ right
    torch.testing.assert_close(product, dense(matrix) @ right)
    (gradient,) = torch.autograd.grad(product.sum(), right)
    torch.testing.assert_close(gradient, dense(matrix).T @ torch.ones_like(product))


def test_moving_to_where_it_is_moves_nothing(matrix: SparseMatrix) -> None:
    assert matrix.to(torch.device("cpu")) is matrix


class TestSelect:
    @pytest.mark.parametrize("rows", [[4, 0, 1], [1, 1, 4, 1], [0, 3], [], [0, 1, 2, 3, 4]])
    def test_rows_in_the_order_asked_for(self, matrix: SparseMatrix, rows: list[int]) -> None:
        chosen = matrix.select(torch.tensor(rows, dtype=torch.int64))
        assert (chosen.num_rows, chosen.num_columns) == (len(rows), COLUMNS)
        torch.testing.assert_close(dense(chosen), dense(matrix)[rows])

    def test_cells_keep_their_order(self, matrix: SparseMatrix) -> None:
        chosen = matrix.select(torch.tensor([4, 1]))
        assert chosen.columns.tolist() == [1, 1, 3, 3, 0]
        assert chosen.values.tolist() == [3.0, 4.0, -2.0, 2.0, -1.0]


class TestCompact:
    def test_empty_columns_go(self, matrix: SparseMatrix) -> None:
        small, kept = matrix.compact()
        assert kept.tolist() == [0, 1, 3]
        assert (small.num_rows, small.num_columns) == (ROWS, 3)
        torch.testing.assert_close(dense(small), dense(matrix)[:, kept])

    @pytest.mark.parametrize("rows", [[2], [1, 2], [0, 3], []])
    def test_of_some_rows(self, matrix: SparseMatrix, other: Tensor, rows: list[int]) -> None:
        small, kept = matrix.select(torch.tensor(rows, dtype=torch.int64)).compact()
        torch.testing.assert_close(small @ other[kept], (dense(matrix) @ other)[rows])
        assert len(kept) == small.num_columns


def test_small_integers_give_the_same_bytes(matrix: SparseMatrix, other: Tensor) -> None:
    small = SparseMatrix(matrix.offsets, matrix.columns.int(), matrix.values, matrix.num_columns)
    assert torch.equal(small.apply(other), matrix.apply(other))
