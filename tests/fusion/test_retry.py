"""Where memory is short: smaller blocks, and then one sentence that says what to do."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from clusterea.errors import InputError
from clusterea.fusion.retry import SMALLER, explained, with_smaller_blocks
from clusterea.numerics.blocks import SLAB_CELLS
from clusterea.numerics.knn import BLOCK_CELLS

CPU = torch.device("cpu")
TRIED = list(SMALLER["cpu"])


class Fits:
    """Something that fits into so many cells; it remembers what it was asked."""

    def __init__(self, most: int, error: BaseException) -> None:
        self.most, self.error = most, error
        self.asked: list[int | None] = []

    def __call__(self, block_cells: int | None) -> str:
        self.asked.append(block_cells)
        if block_cells is None or block_cells > self.most:
            raise self.error
        return f"made of {block_cells}"


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
]


@pytest.mark.parametrize("error", ERRORS)
def test_the_largest_that_fits(error: BaseException) -> None:
    assert with_smaller_blocks(lambda cells: cells, CPU) is None
    last = TRIED[-1]
    assert last is not None
    make = Fits(last, error)
    assert with_smaller_blocks(make, CPU) == f"made of {last}"
    assert make.asked == TRIED


@pytest.mark.parametrize("error", ERRORS)
def test_none_does(error: BaseException) -> None:
    make = Fits(0, error)
    with pytest.raises(InputError, match=r"memory of cpu.*--set sampling\.max_batch=\d+"):
        with_smaller_blocks(make, CPU)
    assert make.asked == TRIED


def test_what_an_allocator_really_says() -> None:
    def make(block_cells: int | None) -> torch.Tensor:
        return torch.empty(3) if block_cells else torch.empty(1 << 58)

    assert with_smaller_blocks(make, CPU).shape == (3,)


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes do not match"), ValueError("no"), KeyboardInterrupt()]
)
def test_other_errors_are_not_for_us(error: BaseException) -> None:
    make = Fits(0, error)
    with pytest.raises(type(error)):
        with_smaller_blocks(make, CPU)
    assert make.asked == [None]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_blocks_get_smaller(device: str) -> None:
    first, *others = SMALLER[device]
    usual = min(BLOCK_CELLS[device], SLAB_CELLS[device])  # sums never take more than is usual
    assert first is None
    sizes = [usual, *(cells for cells in others if cells is not None)]
    assert all(less < more for more, less in pairwise(sizes))
    assert len(sizes) == 3


@pytest.mark.parametrize("error", ERRORS)
def test_what_has_no_blocks_is_explained(error: BaseException) -> None:
    with pytest.raises(InputError, match=r"memory of cpu.*fusion\.candidates"), explained(CPU):
        raise error


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(RuntimeError, match="shapes"), explained(CPU):
        raise RuntimeError("shapes do not match")
