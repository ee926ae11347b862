"""Sinkhorn against a loop, against its own log-domain form, and against an optimal assignment."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clusterea.errors import InputError
from clusterea.numerics import sinkhorn as module
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.sinkhorn import (
    Potentials,
    sinkhorn,
    sinkhorn_log,
    sinkhorn_of_products,
    values,
)
from clusterea.types import Pair

Form = Callable[..., Potentials]
FORMS = pytest.mark.parametrize("form", [sinkhorn, sinkhorn_log])
OUTSIDE = pytest.mark.parametrize("with_outside", [False, True])
SHAPES = [(1, 1), (1, 7), (7, 1), (5, 5), (13, 9), (9, 13), (2, 1000), (101, 67)]
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def cosines(rows: int, columns: int, seed: int = 0, dim: int = 16) -> Tensor:
    """(rows, columns) in float64, of `unit_vectors`."""
    source, target = unit_vectors(rows, columns, seed, dim)
    return source @ target.T


def unit_vectors(rows: int, columns: int, seed: int = 0, dim: int = 16) -> Pair[Tensor]:
    """(rows, dim) and (columns, dim) in float64, of which the first ones are pairs."""
    draw = torch.Generator().manual_seed(seed)
    source = torch.randn(rows, dim, dtype=torch.float64, generator=draw)
    target = torch.randn(columns, dim, dtype=torch.float64, generator=draw)
    pairs = min(rows, columns)
    target[:pairs] = source[:pairs] + 0.5 * target[:pairs]
    return Pair(source, target).map(torch.nn.functional.normalize)


def parts(potentials: Potentials) -> tuple[Tensor, Tensor]:
    return potentials.source, potentials.target


def own_mean(similarity: Tensor, count: int = 3) -> Pair[Tensor]:
    """The mean of the best few of each row and column."""
    rows, columns = similarity.shape
    return Pair(
        similarity.topk(min(count, columns), dim=1).values.mean(1),
        similarity.topk(min(count, rows), dim=0).values.mean(0),
    )


def scaled(similarity: Tensor, potentials: Potentials, temperature: float) -> Tensor:
    """The whole scaled matrix, in float64."""
    rows, columns = torch.cartesian_prod(*map(torch.arange, similarity.shape)).T
    wide = Potentials(potentials.source.double(), potentials.target.double())
    cells = values(similarity.double().flatten(), rows, columns, wide, temperature)
    return cells.reshape(similarity.shape)


def loop(
    similarity: Tensor, temperature: float, rounds: int, outside: Pair[Tensor] | None
) -> Tensor:
    """The scaled matrix by the definition, cell by cell."""
    rows, columns = similarity.shape
    kernel = [[math.exp((s - 1) / temperature) for s in row] for row in similarity.tolist()]
    u, v, c, d = [1.0] * rows, [1.0] * columns, [0.0] * rows, [0.0] * columns
    if outside is not None:
        c = [math.exp((s - 1) / temperature) for s in outside.source.tolist()]
        d = [math.exp((s - 1) / temperature) for s in outside.target.tolist()]
    for _ in range(rounds):
        for i in range(rows):
            u[i] = 1 / (sum(kernel[i][j] * v[j] for j in range(columns)) + c[i])
        for j in range(columns):
            v[j] = 1 / (sum(kernel[i][j] * u[i] for i in range(rows)) + d[j])
    cells = [[u[i] * kernel[i][j] * v[j] for j in range(columns)] for i in range(rows)]
    return torch.tensor(cells, dtype=torch.float64)


@FORMS
@OUTSIDE
@pytest.mark.parametrize("rounds", [0, 1, 2, 7])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (5, 5), (6, 3), (3, 7)])
def test_is_what_the_loop_computes(
    form: Form, with_outside: bool, rounds: int, shape: tuple[int, int]
) -> None:
    similarity = cosines(*shape)
    outside = own_mean(similarity) if with_outside else None
    found = form(similarity.clone(), 0.05, rounds, outside)
    torch.testing.assert_close(
        scaled(similarity, found, 0.05), loop(similarity, 0.05, rounds, outside)
    )


@OUTSIDE
@pytest.mark.parametrize("temperature", [1e-3, 5e-3, 0.01, 0.02, 0.1, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_float32_agrees_with_the_log_domain_in_float64(
    shape: tuple[int, int], temperature: float, with_outside: bool
) -> None:
    similarity = cosines(*shape).float()
    outside = own_mean(similarity) if with_outside else None
    wide = outside and outside.map(Tensor.double)
    exact = sinkhorn_log(similarity.double(), temperature, 30, wide)
    found = sinkhorn(similarity.clone(), temperature, 30, outside)
    assert found.source.dtype == torch.float32
    tolerance = 1e-5 + 1e-6 / temperature  # a similarity's own rounding, divided by T
    for side in ("source", "target"):
        torch.testing.assert_close(
            getattr(found, side).double(), getattr(exact, side), rtol=0, atol=tolerance
        )


def cross(width: float, temperature: float) -> Tensor:
    """(40, 30): the hardest kernel of its width: one row and column of 1, the rest at e^-width.

    Most rows and columns have to be served by the smallest cells, so u and v span the whole width.
    """
    similarity = torch.full((40, 30), 1.0 - width * temperature, dtype=torch.float64)
    similarity[0] = similarity[:, 0] = 1.0
    return similarity


@pytest.mark.parametrize("level", [None, -3.0, 0.9, 3.0])
@pytest.mark.parametrize("width", [60.0, 109.9, 110.1, 150.0])
def test_holds_to_the_edge_of_float32_and_past_it(
    width: float, level: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    similarity = cross(width, 0.02)
    outside = None
    if level is not None:
        outside = Pair(torch.full((40,), level), torch.linspace(level, 1, 30))
    wide = outside and outside.map(Tensor.double)
    exact = sinkhorn_log(similarity, 0.02, 100, wide)
    if outside is None:
        assert float(exact.source.max() - exact.source.min()) > 0.9 * width
    by_logs = MagicMock(side_effect=module._log_rounds)
    monkeypatch.setattr(module, "_log_rounds", by_logs)
    found = sinkhorn(similarity.float(), 0.02, 100, outside)
    assert by_logs.called == (width > module.WIDEST)  # only where it must be
    for side in ("source", "target"):
        torch.testing.assert_close(
            getattr(found, side).double(), getattr(exact, side), rtol=1e-5, atol=1e-4
        )


def test_cosines_never_need_the_log_domain_at_the_usual_temperature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_log_rounds", None)
    opposite = torch.ones(6, 6)
    opposite[:3, 3:] = opposite[3:, :3] = -1.0
    assert sinkhorn(opposite, 0.02, 100).source.isfinite().all()


matrices = st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(0, 999)).map(
    lambda drawn: cosines(*drawn, dim=4)
)
few = settings(max_examples=15)
warm = st.sampled_from([0.3, 0.5, 1.0])  # where a hundred rounds converge


@few
@given(matrices, warm)
def test_rectangular_columns_sum_to_one_and_rows_to_their_share(
    similarity: Tensor, temperature: float
) -> None:
    rows, columns = similarity.shape
    result = scaled(similarity, sinkhorn(similarity.clone(), temperature, 150), temperature)
    torch.testing.assert_close(result.sum(0), torch.ones_like(result[0]))
    share = torch.full_like(result[:, 0], columns / rows)
    torch.testing.assert_close(result.sum(1), share, rtol=1e-3, atol=0)


@few
@given(matrices, st.sampled_from([0.02, 0.1, 1.0]), st.integers(1, 5), st.floats(-1, 1))
def test_row_offsets_change_nothing(
    similarity: Tensor, temperature: float, rounds: int, offset: float
) -> None:
    offsets = offset * torch.arange(len(similarity), dtype=torch.float64).unsqueeze(1)
    plain = scaled(similarity, sinkhorn(similarity.clone(), temperature, rounds), temperature)
    moved = similarity + offsets
    # The first round begins with v = 1, which an offset of a row does not touch.
    result = scaled(moved, sinkhorn(moved.clone(), temperature, rounds), temperature)
    torch.testing.assert_close(result, plain)


@few
@given(matrices, st.sampled_from([0.1, 0.3, 1.0]), st.floats(0.5, 1))
def test_the_outside_takes_the_rest(similarity: Tensor, temperature: float, level: float) -> None:
    outside = own_mean(similarity).map(lambda own: own.clamp(min=level))
    found = sinkhorn(similarity.clone(), temperature, 150, outside)
    result = scaled(similarity, found, temperature)
    # u c: the kernel at the outside similarity, with the potentials' half of its constant.
    slack = Pair(
        (found.source + (outside.source - 0.5) / temperature).exp(),
        (found.target + (outside.target - 0.5) / temperature).exp(),
    )
    torch.testing.assert_close(result.sum(0) + slack.target, torch.ones_like(result[0]))
    torch.testing.assert_close(
        result.sum(1) + slack.source, torch.ones_like(result[:, 0]), rtol=0, atol=1e-4
    )


@OUTSIDE
@pytest.mark.parametrize("shape", [(6, 6), (9, 6)])
def test_in_the_limit_the_transpose_gives_the_transpose(
    shape: tuple[int, int], with_outside: bool
) -> None:
    similarity = cosines(*shape)
    outside = own_mean(similarity) if with_outside else None
    here = sinkhorn(similarity.clone(), 0.2, 500, outside)
    there = sinkhorn(similarity.T.clone(), 0.2, 500, outside and outside.swap())
    factor = 1.0 if with_outside else shape[0] / shape[1]
    torch.testing.assert_close(
        scaled(similarity.T, there, 0.2), factor * scaled(similarity, here, 0.2).T
    )


@pytest.mark.parametrize("seed", range(3))
def test_is_the_optimal_assignment_as_the_temperature_falls(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    similarity = torch.rand(12, 12, dtype=torch.float64, generator=draw)
    rows, columns = linear_sum_assignment(similarity.numpy(), maximize=True)
    agreement = []
    for temperature in (1.0, 0.1, 0.01, 1e-3):
        result = scaled(similarity, sinkhorn(similarity.clone(), temperature, 600), temperature)
        agreement.append(float(result[rows, columns].mean()))
    assert agreement == sorted(agreement)
    assert agreement[-1] > 0.99
    assert np.array_equal(result.argmax(1).numpy(), columns)


def test_outside_options_are_an_assignment_that_may_leave_some_out() -> None:
    similarity = cosines(8, 6, seed=3, dim=3)
    # A pair costs 1 - S, staying outside 0.03 for each of the two: a square problem with dummies.
    stay = 0.03
    costs = np.zeros((14, 14))
    costs[:8, :6] = 1 - similarity.numpy()
    costs[:8, 6:] = costs[8:, :6] = stay
    rows, columns = linear_sum_assignment(costs)
    wanted = {
        (i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if i < 8 and j < 6
    }
    assert 0 < len(wanted) < 6
    level = torch.tensor(1 - stay)
    found = sinkhorn(similarity.clone(), 1e-3, 1000, Pair(level.expand(8), level.expand(6)))
    held = (scaled(similarity, found, 1e-3) > 0.5).nonzero().tolist()
    assert {(i, j) for i, j in held} == wanted


@FORMS
class TestExtremes:
    @pytest.mark.parametrize("temperature", [1e-3, 0.02, 1.0])
    def test_all_equal(self, form: Form, temperature: float) -> None:
        found = form(torch.full((4, 6), 0.3), temperature, 20)
        result = scaled(torch.full((4, 6), 0.3), found, temperature)
        torch.testing.assert_close(result, torch.full_like(result, 1 / 4), rtol=1e-3, atol=0)

    @OUTSIDE
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
    def test_empty(self, form: Form, shape: tuple[int, int], with_outside: bool) -> None:
        outside = Pair(torch.zeros(shape[0]), torch.zeros(shape[1])) if with_outside else None
        found = form(torch.zeros(shape), 0.02, 10, outside)
        assert (len(found.source), len(found.target)) == shape

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_what_is_not_finite_is_refused(self, form: Form, bad: float, dtype: Any) -> None:
        similarity = cosines(5, 4).to(dtype)
        similarity[3, 1] = bad
        with pytest.raises(ValueError, match="similarity must be finite"):
            form(similarity, 0.02, 10)
        with pytest.raises(ValueError, match="outside must be finite"):
            form(torch.zeros(1, 1), 0.02, 10, Pair(torch.tensor([bad]), torch.zeros(1)))

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_half_precision_is_computed_in_float32(self, form: Form, dtype: Any) -> None:
        similarity = cosines(9, 7).to(dtype)
        found = form(similarity.clone(), 0.02, 10)
        assert found.target.dtype == torch.float32
        exact = sinkhorn_log(similarity.double(), 0.02, 10)
        torch.testing.assert_close(found.target.double(), exact.target, rtol=0, atol=1e-4)

    def test_one_outside_similarity_may_stand_for_all(self, form: Form) -> None:
        similarity, level = cosines(5, 4), torch.tensor(0.9)
        one = form(similarity.clone(), 0.05, 10, Pair(level, level))
        each = form(similarity.clone(), 0.05, 10, Pair(level.expand(5), level.expand(4)))
        torch.testing.assert_close(one.source, each.source)


def test_the_log_domain_keeps_its_argument_and_slabs_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    similarity = cosines(23, 17)
    before = similarity.clone()
    whole = sinkhorn_log(similarity, 0.02, 10)
    assert torch.equal(similarity, before)
    for cells in (1, 17 * 5, 17 * 22 + 1):
        monkeypatch.setitem(BLOCK_SIZES, "sinkhorn logs", {"cpu": cells})
        slabs = sinkhorn_log(similarity, 0.02, 10)
        torch.testing.assert_close(slabs.source, whole.source)
        torch.testing.assert_close(slabs.target, whole.target)


class TestProducts:
    """A kernel of bfloat16, whose cells are rounded by 2^-8 at most."""

    @OUTSIDE
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_agrees_with_the_log_domain(
        self, shape: tuple[int, int], dtype: torch.dtype, with_outside: bool
    ) -> None:
        source, target = unit_vectors(*shape)
        similarity = source @ target.T
        outside = own_mean(similarity) if with_outside else None
        wanted = sinkhorn_log(similarity, 0.02, 50, outside)
        found = sinkhorn_of_products(
            source.to(dtype), target.to(dtype), 0.02, 50, outside, slab_cells=500
        )
        for one, other in zip(parts(found), parts(wanted), strict=True):
            torch.testing.assert_close(one.double(), other, rtol=0, atol=2**-6)
        cells, exact = (scaled(similarity, each, 0.02) for each in (found, wanted))
        torch.testing.assert_close(cells, exact, rtol=0, atol=2**-7)

    @OUTSIDE
    def test_rows_need_no_cell_near_the_bound(self, with_outside: bool) -> None:
        """Some are far from all others, and some vectors are longer than most."""
        source, target = unit_vectors(40, 30)
        source[:5] = -target.mean(0)
        target[3] *= 1.04
        similarity = source @ target.T
        outside = own_mean(similarity) if with_outside else None
        wanted = sinkhorn_log(similarity, 0.02, 50, outside)
        found = sinkhorn_of_products(source.float(), target.float(), 0.02, 50, outside)
        for one, other in zip(parts(found), parts(wanted), strict=True):
            torch.testing.assert_close(one.double(), other, rtol=0, atol=2**-6)

    def test_vectors_whose_products_may_be_too_far_apart(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, target = unit_vectors(9, 7)
        in_float32 = MagicMock(side_effect=sinkhorn)
        monkeypatch.setattr(module, "sinkhorn", in_float32)
        for length in (1.0, 1.2):  # 2 / 0.02 = 100 is less than WIDEST, 120 is more
            found = sinkhorn_of_products(length * source, target, 0.02, 20)
            assert in_float32.called == (length > 1)
            wanted = sinkhorn_log(length * source @ target.T, 0.02, 20)
            torch.testing.assert_close(found.source.double(), wanted.source, rtol=0, atol=2**-6)

    @pytest.mark.parametrize("rounds", [0, 3])
    @pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4, 3)])
    def test_nothing_to_scale(self, shape: tuple[int, int], rounds: int) -> None:
        source, target = unit_vectors(*shape)
        found = sinkhorn_of_products(source, target, 0.02, rounds)
        wanted = sinkhorn_log(source @ target.T, 0.02, rounds)
        for one, other in zip(parts(found), parts(wanted), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=2**-8, check_dtype=False)

    def test_a_temperature_that_no_kernel_holds(self) -> None:
        source, target = unit_vectors(13, 9)
        found = sinkhorn_of_products(source, target, 0.002, 30)
        wanted = sinkhorn_log(source @ target.T, 0.002, 30)
        for one, other in zip(parts(found), parts(wanted), strict=True):
            torch.testing.assert_close(one, other)

    def test_what_is_not_finite_is_refused(self) -> None:
        source, target = unit_vectors(5, 5)
        source[2] = torch.nan
        with pytest.raises(InputError, match=r"similarity must be finite"):
            sinkhorn_of_products(source, target, 0.02, 3)


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the largest tensor that any operation makes in memory of its own."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.own, self.cells = matrix.untyped_storage().data_ptr(), 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if isinstance(made, Tensor) and made.untyped_storage().data_ptr() != self.own:
                self.cells = max(self.cells, made.untyped_storage().nbytes() // made.itemsize)
        return result


@OUTSIDE
@pytest.mark.parametrize("temperature", [0.02, 1e-3])  # by products, and by the fallback
def test_one_copy_of_the_matrix(
    temperature: float, with_outside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BLOCK_SIZES, "sinkhorn logs", {"cpu": 500})
    similarity = cosines(60, 50).float()
    outside = own_mean(similarity) if with_outside else None
    with Largest(similarity) as largest:
        sinkhorn(similarity, temperature, 3, outside)
    assert 60 <= largest.cells <= 500


@gpu
@pytest.mark.gpu
class TestGpu:
    @OUTSIDE
    @pytest.mark.parametrize("temperature", [1e-3, 0.02, 1.0])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_agrees_with_the_cpu(
        self, shape: tuple[int, int], temperature: float, with_outside: bool
    ) -> None:
        similarity = cosines(*shape).float()
        outside = own_mean(similarity) if with_outside else None
        here = sinkhorn(similarity.clone(), temperature, 30, outside)
        there = sinkhorn(similarity.cuda(), temperature, 30, outside and outside.map(Tensor.cuda))
        tolerance = 1e-5 + 1e-6 / temperature
        for side in ("source", "target"):
            torch.testing.assert_close(
                getattr(there, side).cpu(), getattr(here, side), rtol=0, atol=tolerance
            )

    @OUTSIDE
    @pytest.mark.parametrize("shape", [*SHAPES, (2000, 1501)])
    def test_products_agree_with_the_log_domain(
        self, shape: tuple[int, int], with_outside: bool
    ) -> None:
        source, target = unit_vectors(*shape).map(Tensor.half)
        similarity = source.double() @ target.double().T
        outside = own_mean(similarity) if with_outside else None
        wanted = sinkhorn_log(similarity, 0.02, 50, outside)
        on_gpu = outside and outside.map(Tensor.cuda)
        found = sinkhorn_of_products(source.cuda(), target.cuda(), 0.02, 50, on_gpu)
        for one, other in zip(parts(found), parts(wanted), strict=True):
            torch.testing.assert_close(one.double().cpu(), other, rtol=0, atol=2**-6)

    def test_products_take_half_a_copy_of_the_matrix(self) -> None:
        source, target = unit_vectors(20_000, 10_000).map(lambda side: side.half().cuda())
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        sinkhorn_of_products(source, target, 0.02, 3, slab_cells=1 << 22)
        assert torch.cuda.max_memory_allocated() - before < 2.5 * 20_000 * 10_000

    def test_one_copy_of_the_matrix(self) -> None:
        similarity = torch.rand(20_000, 15_000, device="cuda")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        sinkhorn(similarity, 0.02, 3)
        # What is left is the workspaces of products and maxima, some 150 MB whatever the size.
        assert torch.cuda.max_memory_allocated() - before < similarity.nbytes / 5
