"""Sinkhorn: scales the rows and columns of a similarity matrix until their sums are equal.

With S the cosines of m source rows and n target columns, the kernel is K = exp((S - 1) / T): 1 for
equal vectors, less for all others. A cell of the result is u_i K_ij v_j, from `rounds` alternations
that begin with v = 1:

    u = 1 / (K v + c),    v = 1 / (Kᵀ u + d).

c and d are the outside options, which stand for having no partner: the kernel's value at some
similarity, o_i or o_j; 0 in the plain form. As T falls, a pair is matched only where
its cost 1 - S_ij is less than that of leaving both outside, (1 - o_i) + (1 - o_j). With exp(S / T)
instead of K the condition would be S_ij > o_i + o_j, which is nearly never met.

After one round or more:

- plain, m = n: columns sum to 1, and rows approach 1 as rounds grow.
- plain, m ≠ n: columns sum to 1, and rows approach n / m: no scaling makes both 1.
- with outside options: in each column sum + v d = 1, and in each row sum + u c approaches 1. The
  outside takes the rest, so columns sum to at most 1, and rows do in the limit.

Columns are updated last, so the transposed problem gives the transposed result only in the limit of
many rounds (in the plain form with m ≠ n, up to the factor m / n).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.errors import InputError
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.blocks import block_product
from clusterea.types.pair import Pair

SAME = 1.0  # the similarity at which the kernel is 1

# How the kernel fits in float32, whose range is e^-87.3 to e^88.7. Divide every row of the kernel
# by its largest cell, then every column, or all of it by one bound: all cells lie in [e^-R, 1].
# Let R ≤ 110, store cells times e^24, and multiply with vectors whose largest entry is e^lift,
# lift = 64 - log(size). Then
# - a cell is at least e^(24 - 110) = e^-86: none is lost;
# - a sum is at most size · e^(24 + lift) = e^88: none overflows;
# - a sum is at least e^-86 · e^lift, by the cell that meets the largest entry: none vanishes;
# - entries lost below e^-87 take at most size · e^(24 - 87) from it: a share of size² · e^-41,
#   which is 1e-8 at 60,000 and 1e-6 at a million.
# Potentials and outside options have no such bound: between two products they are kept as float64
# logarithms. (float32 would round a logarithm of 80 by more than all the sums do.)
# For cosines R ≤ 2 / T, so a temperature of 1 / 55 = 0.0182 or more always fits.
WIDEST = 110.0
CELL_LIFT = 24.0
SUM_LIFT = 88.0


@dataclass(frozen=True, slots=True)
class Potentials:
    """The scaling of a matrix: the log of a cell is S_ij / temperature + source_i + target_j.

    They are log u and log v, each less half of the kernel's constant 1 / temperature. In the plain
    form a factor is free to move from u to v; it is set so that the means of the two are equal.
    """

    source: Tensor  # (m,)
    target: Tensor  # (n,)


def values(
    similarity: Tensor, rows: Tensor, columns: Tensor, potentials: Potentials, temperature: float
) -> Tensor:
    """(cells,): the scaled values of the cells (rows, columns), given their similarities."""
    source = potentials.source.index_select(0, rows)
    target = potentials.target.index_select(0, columns)
    return (similarity / temperature + source + target).exp()


@torch.no_grad()
def sinkhorn(
    similarity: Tensor, temperature: float, rounds: int, outside: Pair[Tensor] | None = None
) -> Potentials:
    """The potentials after `rounds` rounds. Overwrites `similarity`, to save memory.

    Each round is two matrix-vector products with the kernel. If float32 can't hold the kernel, or
    the matrix is in half precision, rounds are those of `sinkhorn_log`.

    Args:
        similarity: (m, n): cosines. OVERWRITTEN: don't use it afterwards.
        temperature: T; the smaller, the nearer to a one-to-one assignment.
        rounds: How often rows and columns are scaled; 0 leaves the kernel as it is.
        outside: (m,) and (n,): the similarity that stands for having no partner; None for none.

    Raises:
        InputError: A similarity is NaN or infinite.
    """
    if not rounds or not similarity.numel() or similarity.dtype.itemsize < 4:
        return sinkhorn_log(similarity, temperature, rounds, outside)
    row_best = similarity.amax(1)  # (m,)
    similarity.sub_(row_best.unsqueeze(1))
    column_best = similarity.amax(0)  # (n,), of what is left; aminmax would be slow on a CPU
    width = (column_best - similarity.amin(0)).amax().item() / temperature
    if not math.isfinite(width):
        raise _not_finite("similarity")
    if width > WIDEST:
        shifted = None if outside is None else Pair(outside.source - row_best, outside.target)
        source, target = _log_rounds(similarity, temperature, rounds, shifted)
        source = source - row_best.double() / temperature
        return _potentials(source, target, similarity.dtype, outside)

    kernel = similarity.sub_(column_best - CELL_LIFT * temperature).div_(temperature).exp_()
    return _kernel_rounds(kernel, Pair(row_best, column_best), temperature, rounds, outside)


@torch.no_grad()
def sinkhorn_of_products(
    source: Tensor,
    target: Tensor,
    temperature: float,
    rounds: int,
    outside: Pair[Tensor] | None = None,
    slab_cells: int | None = None,
) -> Potentials:
    """`sinkhorn` of the products of all rows, with a kernel of bfloat16: half the memory and time.

    The products are computed in slabs of rows and are never all in memory. bfloat16 has the range
    of float32, so nothing is lost or overflows. A cell is rounded by 0.4 % at most, as if its
    similarity were off by 0.004 T, and potentials are off by about as much. A vector is split into
    two of bfloat16, and sums are in float32.

    No product exceeds that of the longest rows, so the kernel is divided by one number instead of
    the largest cell of each row and column. Where that bound on its width is too large, it is
    computed in float32, as in `sinkhorn`.

    Args:
        source: (m, dim), float16 or float32.
        target: (n, dim), likewise.
        temperature: As in `sinkhorn`.
        rounds: As in `sinkhorn`.
        outside: As in `sinkhorn`.
        slab_cells: Products computed at a time. It changes the result by no more than rounding to
            bfloat16 does.
    """
    rows, columns = len(source), len(target)
    if not (rounds and rows and columns):
        return sinkhorn(block_product(source, target), temperature, rounds, outside)
    most = float(_longest(source) * _longest(target))
    if not 2 * most / temperature <= WIDEST:  # or NaN
        return sinkhorn(block_product(source, target), temperature, rounds, outside)
    # Tensor cores need rows of a multiple of 8.
    kernel = torch.zeros(rows, columns + -columns % 8, dtype=torch.bfloat16, device=source.device)
    lift = torch.tensor(CELL_LIFT - most / temperature)
    cells_at_once = slab_cells or block_size("sinkhorn products", source.device)
    for slab in _slabs(rows, columns, cells_at_once):
        cells = block_product(source[slab], target)
        torch.add(lift, cells, alpha=1 / temperature, out=cells)
        torch.exp(cells, out=kernel[slab, :columns])
        del cells  # frees memory for the next ones
    best = Pair(*(torch.zeros(size, device=source.device) for size in (rows, columns)))
    best.source.fill_(most)
    return _kernel_rounds(kernel, best, temperature, rounds, outside)


def _longest(rows: Tensor) -> Tensor:
    """The length of the longest row."""
    kind = torch.promote_types(rows.dtype, torch.float32)
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=kind)
    return lengths.amax()


def _kernel_rounds(
    kernel: Tensor,
    best: Pair[Tensor],
    temperature: float,
    rounds: int,
    outside: Pair[Tensor] | None,
) -> Potentials:
    """The potentials after `rounds` rounds of products with a kernel.

    Args:
        kernel: (m, n or more): exp((S_ij - row_i - column_j) / T + CELL_LIFT); zeros beyond n.
        best: (m,) and (n,): row_i and column_j.
        temperature: T.
        rounds: One or more.
        outside: As in `sinkhorn`.
    """
    # S_ij / T = log kernel_ij + row_i + column_j. So `source` and `target`, the potentials of the
    # kernel, are those of the similarity plus `row` and `column`.
    row = best.source.double() / temperature - CELL_LIFT
    column = best.target.double() / temperature
    sizes = best.map(len)
    options = _log_options(sizes, kernel.device, temperature, outside)
    by_row, by_column = options.source - row, options.target - column
    lift = SUM_LIFT - CELL_LIFT - math.log(max(sizes))
    aim = _log_row_sum(sizes, outside)
    source, target = row, column - SAME / 2 / temperature
    for _ in range(rounds):
        source = aim - torch.logaddexp(_log_product(kernel, target, lift), by_row)
        target = -torch.logaddexp(_log_product(kernel.T, source, lift)[: len(column)], by_column)
    return _potentials(source - row, target - column, best.source.dtype, outside)


@torch.no_grad()
def sinkhorn_log(
    similarity: Tensor, temperature: float, rounds: int, outside: Pair[Tensor] | None = None
) -> Potentials:
    """`sinkhorn` in the log domain, for any temperature and precision. Keeps `similarity`.

    Each round is one pass over slabs of rows. Half precision is computed in float32.
    """
    if similarity.numel() and not all(bound.isfinite() for bound in similarity.aminmax()):
        raise _not_finite("similarity")
    source, target = _log_rounds(similarity, temperature, rounds, outside)
    return _potentials(source, target, similarity.dtype, outside)


def _log_rounds(
    similarity: Tensor, temperature: float, rounds: int, outside: Pair[Tensor] | None
) -> Pair[Tensor]:
    """(m,) and (n,): the potentials after `rounds` rounds in the log domain."""
    sizes = Pair(*similarity.shape)
    options = _log_options(sizes, similarity.device, temperature, outside)
    source, target = options.map(lambda o: torch.full_like(o, -SAME / 2 / temperature))
    if not similarity.numel():
        return Pair(source, target)
    aim = _log_row_sum(sizes, outside)
    dtype = torch.promote_types(similarity.dtype, torch.float32)
    slab_cells = block_size("sinkhorn logs", similarity.device)
    for _ in range(rounds):
        totals = torch.full_like(target, -torch.inf)
        for rows in _slabs(sizes.source, sizes.target, slab_cells):
            cells = (similarity[rows].to(dtype) / temperature).add_(target.to(dtype))
            source[rows] = aim - torch.logaddexp(cells.logsumexp(1).double(), options.source[rows])
            cells.add_(source[rows].to(dtype).unsqueeze(1))
            totals = torch.logaddexp(totals, cells.logsumexp(0).double())
        target = -torch.logaddexp(totals - target, options.target)
    return Pair(source, target)


def _log_options(
    sizes: Pair[int], device: torch.device, temperature: float, outside: Pair[Tensor] | None
) -> Pair[Tensor]:
    """(m,) and (n,): log c and log d, each less half of the kernel's constant; -inf for none."""
    if outside is None:
        none = torch.full((), -torch.inf, dtype=torch.float64, device=device)
        return sizes.map(none.expand)
    if not all(bool(side.isfinite().all()) for side in outside):
        raise _not_finite("outside")
    logs = outside.map(lambda side: (side.double() - SAME / 2) / temperature)
    return logs.zip(sizes).map(lambda side: side[0].expand(side[1]))


def _log_row_sum(sizes: Pair[int], outside: Pair[Tensor] | None) -> float:
    """The log of the sum of rows: plain, n / m, since with 1 the potentials would drift."""
    return math.log(sizes.target / sizes.source) if outside is None else 0.0


def _log_product(kernel: Tensor, logs: Tensor, lift: float) -> Tensor:
    """log(kernel · exp(logs)), without overflow in float32."""
    top = logs.amax() - lift
    vector = (logs - top).exp_()
    if kernel.dtype == torch.bfloat16:
        return _split_product(kernel, vector).double().log_().add_(top)
    return torch.mv(kernel, vector.to(kernel.dtype)).double().log_().add_(top)


def _split_product(kernel: Tensor, vector: Tensor) -> Tensor:
    """(rows,) float32: a bfloat16 kernel times a vector, split into two of bfloat16."""
    parts = kernel.new_zeros(kernel.shape[1], 8)  # two columns; eight are faster on tensor cores
    high = vector.to(kernel.dtype)
    parts[: len(vector), 0] = high
    parts[: len(vector), 1] = vector - high
    if kernel.device.type == "cuda":
        return torch.mm(kernel, parts, out_dtype=torch.float32).sum(1)
    return torch.mm(kernel.float(), parts.float()).sum(1)


def _potentials(
    source: Tensor, target: Tensor, dtype: torch.dtype, outside: Pair[Tensor] | None
) -> Potentials:
    """The potentials; without outside options, with equal means."""
    if outside is None and len(source) and len(target):
        excess = (source.mean() - target.mean()) / 2
        source, target = source - excess, target + excess
    dtype = torch.promote_types(dtype, torch.float32)
    return Potentials(source.to(dtype), target.to(dtype))


def _slabs(rows: int, columns: int, cells: int) -> Iterator[slice]:
    step = max(1, cells // columns)
    return (slice(begin, begin + step) for begin in range(0, rows, step))


def _not_finite(name: str) -> InputError:
    return InputError(f"{name} must be finite, but holds NaN or infinity.")
