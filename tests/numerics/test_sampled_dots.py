"""Products of rows with chosen rows of another matrix, against whole products in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.numerics import sampled_dots as module
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.rows import Rows
from clusterea.numerics.sampled_dots import sampled_dots


def problem(rows: int, others: int, width: int, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(rows)
    left, right = torch.randn(rows, dim, generator=draw), torch.randn(others, dim, generator=draw)
    columns = torch.rand(rows, others, generator=draw).topk(width, dim=1).indices
    return left, right, columns.int()


def whole(left: Tensor, right: Tensor, columns: Tensor) -> Tensor:
    return (left.double() @ right.double().T).gather(1, columns.long())


@pytest.mark.parametrize("shape", [(1, 1, 1, 2), (7, 90, 5, 3), (150, 40, 11, 33), (3, 1, 1, 4)])
def test_whole_products_agree(shape: tuple[int, int, int, int]) -> None:
    left, right, columns = problem(*shape)
    found = sampled_dots(left, Rows([right]), columns, torch.ones_like(columns, dtype=torch.bool))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, whole(left, right, columns), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("numbers", [1, 33, 40 * 33, 97 * 33])
def test_neither_chunks_nor_tiles_nor_parts_show(
    numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right, columns = problem(150, 97, 6, 33)
    every = torch.ones_like(columns, dtype=torch.bool)
    expected = sampled_dots(left, Rows([right]), columns, every)
    monkeypatch.setattr(module, "TILE_NUMBERS", numbers)
    assert torch.equal(sampled_dots(left, Rows(torch.split(right, 10)), columns, every), expected)
    monkeypatch.setitem(BLOCK_SIZES, "sampled rows", {"cpu": numbers})
    assert torch.equal(sampled_dots(left, Rows([right]), columns, every), expected)


def test_only_the_wanted_are_computed() -> None:
    left, right, columns = problem(60, 50, 8, 16)
    wanted = torch.rand(60, 8, generator=torch.Generator().manual_seed(0)) < 0.5
    wanted[3] = False
    found = sampled_dots(left, Rows([right]), columns, wanted)
    expected = torch.where(wanted, whole(left, right, columns), 0)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_rows_of_half_precision_and_parts_of_columns() -> None:
    left, right, columns = problem(20, 30, 4, 12)
    every = torch.ones_like(columns, dtype=torch.bool)
    left, right = left.half(), right.half()
    found = sampled_dots(left[:, 2:9], Rows([right[:, 2:9]]), columns, every)
    expected = whole(left[:, 2:9], right[:, 2:9], columns)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_equal_vectors_have_equal_products() -> None:
    left, right, columns = problem(30, 40, 7, 96)
    left[:], right[:] = left[0].clone(), right[0].clone()
    every = torch.ones_like(columns, dtype=torch.bool)
    assert len(torch.unique(sampled_dots(left, Rows([right]), columns, every))) == 1
