"""Copies arrive whole, wherever they come from."""

from __future__ import annotations

import pytest
import torch

from clusterea.numerics.copies import host_copies, on_host, rows_on

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sizes", [[], [4], [3, 0, 9, 1, 700, 20_000, 5]])
def test_to_the_host(sizes: list[int], device: str) -> None:
    draw = torch.Generator().manual_seed(0)
    wanted = [torch.randn(size, 64, generator=draw) for size in sizes]
    whole = torch.full((sum(sizes), 64), torch.nan)
    with host_copies() as copies:
        for place, part in zip(torch.split(whole, sizes), wanted, strict=True):
            there = part.to(device) + 0  # freed before the copy has ended
            copies.put(place, there)
            del there
            if device == "cuda":
                torch.empty(part.shape, device=device).fill_(-1)  # takes the memory that was freed
    assert torch.equal(whole, torch.cat([whole[:0], *wanted]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(0,), (), (7,), (1001, 3), (0, 4)])
def test_a_whole_tensor(
    shape: tuple[int, ...], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterea.numerics.copies.PIECE", 160)
    for kind in (torch.float32, torch.bfloat16, torch.int64):
        wanted = torch.randint(100, shape).to(kind)
        found = on_host(wanted.to(device))
        assert found.dtype == kind
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_an_error_is_told(device: str) -> None:
    with pytest.raises(RuntimeError), host_copies() as copies:
        copies.put(torch.zeros(3, 2), torch.ones(2, 3, device=device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("count", [0, 1, 100, 1001])
def test_some_rows(count: int, kind: torch.dtype, device: str) -> None:
    draw = torch.Generator().manual_seed(count)
    table = torch.randint(1000, (500, 40), generator=draw).to(kind)
    rows = torch.randint(500, (count,), generator=draw)
    place = torch.device(device)
    found = [(part, some.clone()) for part, some in rows_on(place, table, rows, 100)]
    assert [part.start for part, _ in found] == list(range(0, count, 100))
    assert all(some.device.type == device for _, some in found)
    joined = torch.cat([table[:0].to(device), *(some for _, some in found)])
    assert torch.equal(joined.cpu(), table[rows])
