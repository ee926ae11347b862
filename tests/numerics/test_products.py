"""`linear` against torch's product, for layouts that a library may not expect."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

from clusterea.numerics import products
from clusterea.numerics.products import has_triton, linear


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 9])
def test_product(kind: torch.dtype, has_bias: bool, rows: int) -> None:
    draw = torch.Generator().manual_seed(1)
    left, right = (torch.randn(n, 6, dtype=kind, generator=draw) for n in (rows, 5))
    bias = torch.randn(5, dtype=kind, generator=draw) if has_bias else None
    wanted = left @ right.T + (0 if bias is None else bias)
    torch.testing.assert_close(linear(left, right, bias), wanted)


def test_no_weights() -> None:
    assert linear(torch.ones(3, 4), torch.ones(0, 4)).shape == (3, 0)
    assert torch.equal(linear(torch.ones(3, 0), torch.ones(2, 0)), torch.zeros(3, 2))


def test_rows_and_weights_with_gaps_between_them() -> None:
    draw = torch.Generator().manual_seed(2)
    left, right = torch.randn(8, 12, generator=draw), torch.randn(6, 5, generator=draw)
    torch.testing.assert_close(linear(left[::2, 1:7], right.T), left[::2, 1:7] @ right)


class TestHasTriton:
    @pytest.fixture(autouse=True)
    def new_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(products, "find_spec", lambda _: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
        for make in (torch.ones, torch.zeros):
            monkeypatch.setattr(torch, make.__name__, self.on_host(make))
        products._runs_triton.cache_clear()

    def on_host(self, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *size, **_: make(*size)

    def kernel(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
        """Puts a module in place of the one with the kernel; it raises the error, if any."""

        def chosen_dots(rows: Tensor, others: Tensor, columns: Tensor) -> object:
            if error is not None:
                raise error
            return (rows @ others.T).gather(1, columns)

        fake = ModuleType("dot_kernel")
        vars(fake)["chosen_dots"] = chosen_dots
        monkeypatch.setitem(sys.modules, "clusterea.numerics.dot_kernel", fake)

    def test_a_first_kernel_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel(monkeypatch, None)
        assert has_triton(torch.device("cuda", 0))

    def test_kernels_cannot_be_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As where there is no C compiler; torch alone needs none."""
        self.kernel(monkeypatch, RuntimeError("Failed to find C compiler."))
        with pytest.warns(RuntimeWarning, match=r"slower: Failed to find C compiler"):
            assert not has_triton(torch.device("cuda", 0))
        assert not has_triton(torch.device("cuda", 0))  # told once

    def test_too_little_memory_says_nothing_about_triton(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.kernel(monkeypatch, torch.OutOfMemoryError("CUDA out of memory."))
        with pytest.raises(torch.OutOfMemoryError):
            has_triton(torch.device("cuda", 0))

    def test_other_devices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel(monkeypatch, None)
        assert not has_triton(torch.device("cpu"))
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
        assert not has_triton(torch.device("cuda", 0))
