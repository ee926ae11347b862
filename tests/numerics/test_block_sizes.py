"""Block sizes: the usual ones, and smaller ones where little memory is free."""

from __future__ import annotations

import pytest
import torch

from clusterea.numerics import block_sizes
from clusterea.numerics.block_sizes import (
    BLOCK_SIZES,
    FOLLOWING,
    LEAST,
    available,
    block_size,
    fitting_size,
    host_memory_bound,
    is_bounded,
    least_size,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("free", "beside", "wanted"),
    [
        (None, 0, 1 << 23),
        (1 << 40, 0, 1 << 23),
        (1 << 27, 0, 1 << 22),  # a quarter, 8 bytes a cell
        (1 << 27, 1 << 26, 1 << 21),
        (1 << 10, 1 << 30, LEAST),
    ],
)
def test_free_memory_bounds_a_block(
    free: int | None, beside: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_sizes, "available", lambda device: free)
    assert fitting_size("listed", CPU, 8, beside) == wanted
    assert block_size("listed", CPU) == 1 << 23


def test_a_bound_on_the_process_makes_blocks_smaller() -> None:
    usual = {name: block_size(name, CPU) for name in BLOCK_SIZES}
    assert usual == {name: sizes["cpu"] for name, sizes in BLOCK_SIZES.items()}
    with host_memory_bound(1):  # less than the process has
        assert is_bounded(CPU)
        free = available(CPU)
        assert free is None or free < 0
        for name, size in usual.items():
            now = block_size(name, CPU)
            assert now == (min(size, least_size(FOLLOWING[name])) if name in FOLLOWING else size)
        assert fitting_size("nearest", CPU, 8) == LEAST
        assert block_size("inference", CPU, 1 << 16) == 1 << 10
    with host_memory_bound(1 << 50):
        assert {name: block_size(name, CPU) for name in BLOCK_SIZES} == usual
    assert not is_bounded(CPU)


def test_every_kind_of_device_has_one() -> None:
    assert {tuple(sizes) for sizes in BLOCK_SIZES.values()} == {("cpu", "cuda")}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_what_is_free_on_a_gpu() -> None:
    device = torch.device("cuda", 0)
    before = available(device)
    assert before is not None
    held = torch.empty(1 << 28, device=device)  # 1 GiB
    now = available(device)
    assert now is not None
    assert before - now >= held.nbytes
    del held
    later = available(device)  # reserved, but free
    assert later is not None
    assert later > now
