"""Rows of unit length, with ties if asked for, and what it means that two searches agree."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.knn import Nearest
from clusterea.types import Pair


def unit_rows(rows: int, dim: int, seed: int, distinct: int | None = None) -> Tensor:
    """Rows of unit length, of which only so many are distinct."""
    draw = torch.Generator().manual_seed(seed)
    vectors = torch.randn(distinct or rows, dim, generator=draw)
    vectors = torch.nn.functional.normalize(vectors)
    return (
        vectors if distinct is None else vectors[torch.randint(distinct, (rows,), generator=draw)]
    )


def keys_of(rows: int, seed: int) -> Tensor:
    return torch.randint(-(2**62), 2**62, (rows,), generator=torch.Generator().manual_seed(seed))


def problem(
    rows: int, columns: int, dim: int = 6, distinct: int | None = None
) -> tuple[Tensor, Tensor, Pair[Tensor]]:
    both = unit_rows(rows + columns, dim, 0, distinct)
    return both[:rows], both[rows:], Pair(keys_of(rows, 1), keys_of(columns, 2))


def assert_same(one: Nearest, other: Nearest) -> None:
    for left, right in zip(one, other, strict=True):
        assert torch.equal(left.indices.cpu(), right.indices.cpu())
        torch.testing.assert_close(left.values.cpu(), right.values.cpu(), rtol=0, atol=1e-7)
