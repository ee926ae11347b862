"""`Rows` against one tensor, and where rows are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics import rows as module
from clusterea.numerics.rows import TILE, Rows, as_rows, bounds


def matrix(size: int, width: int = 3) -> Tensor:
    return torch.randn(size, width, generator=torch.Generator().manual_seed(size))


def in_parts(sizes: list[int]) -> tuple[Tensor, Rows]:
    whole = matrix(sum(sizes))
    return whole, Rows(torch.split(whole, sizes))


part_sizes = st.lists(st.integers(0, 5), min_size=1, max_size=6)


class TestRows:
    @given(part_sizes, st.data())
    def test_reads_as_one_tensor(self, sizes: list[int], data: st.DataObject) -> None:
        whole, found = in_parts(sizes)
        assert len(found) == len(whole)
        assert found.shape == tuple(whole.shape)
        assert (found.dtype, found.device) == (whole.dtype, whole.device)
        assert found.whole().equal(whole)
        start = data.draw(st.integers(0, len(whole)))
        stop = data.draw(st.integers(start, len(whole) + 2))
        assert found.between(start, stop).equal(whole[start:stop])
        some = found.columns(1, 3)
        assert some.whole().equal(whole[:, 1:3])

    @given(part_sizes.filter(any), st.data())
    def test_takes_rows_in_any_order(self, sizes: list[int], data: st.DataObject) -> None:
        whole, found = in_parts(sizes)
        some = st.lists(st.integers(0, len(whole) - 1), max_size=12)
        chosen = torch.tensor(data.draw(some), dtype=torch.int64)
        assert found.take(chosen).equal(whole[chosen])
        assert found.columns(0, 2).take(chosen).equal(whole[chosen, :2])

    def test_takes_none_of_none(self) -> None:
        _, found = in_parts([0, 0])
        assert found.take(torch.empty(0, dtype=torch.int64)).shape == (0, 3)

    @pytest.mark.parametrize("kind", [torch.float16, torch.float64])
    def test_other_precisions(self, kind: torch.dtype) -> None:
        whole = matrix(7).to(kind)
        found = Rows([whole[:3], whole[3:]])
        assert found.dtype == kind
        assert found.take(torch.tensor([6, 0, 3])).equal(whole[[6, 0, 3]])

    def test_one_part_is_not_copied(self) -> None:
        whole = matrix(5)
        found = as_rows(whole)
        assert found.whole() is whole
        assert found.between(1, 3).data_ptr() == whole[1:].data_ptr()
        assert as_rows(found) is found


class TestBounds:
    @given(st.integers(0, 200), st.integers(1, 12), st.integers(1, 20))
    def test_whole_tiles_of_about_equal_number(self, size: int, parts: int, tile: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "TILE", tile)
            found = bounds(size, parts)
        tiles = -(-size // tile)
        assert (found[0], found[-1]) == (0, size)
        assert all(place % tile == 0 for place in found[:-1])
        assert len(found) - 1 == max(1, min(parts, tiles))
        counts = [-(-(stop - start) // tile) for start, stop in pairwise(found)]
        assert sum(counts) == tiles
        assert max(counts) - min(counts) <= 1
        assert all(counts) or not size

    def test_by_hand(self) -> None:
        assert bounds(0, 5) == [0, 0]
        assert bounds(TILE, 5) == [0, TILE]
        assert bounds(TILE + 1, 5) == [0, TILE, TILE + 1]
        assert bounds(5 * TILE, 2) == [0, 2 * TILE, 5 * TILE]
