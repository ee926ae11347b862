"""`total_hardness`: how far seeds are from standing out among other entities, with its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.products import linear
from clusterea.numerics.segments import offsets_of, segment_sum
from clusterea.numerics.sparse_matmul import SparseMatrix

# A term of less than e^-20 of the largest is left out on a CPU: ten thousand of them add 2e-5.
NEGLIGIBLE = 20.0
# Rows with more than this share of cells left are multiplied as dense ones.
SPARSE_SHARE = 0.15


def total_hardness(
    everyone: Tensor,
    source: Tensor,
    target: Tensor,
    *,
    sharpness: float,
    margin: float,
    mixed_precision: bool = False,
) -> Tensor:
    """The sum over both ends a of all seeds of log Σ_z exp(λ · standardized gap of a and z).

    The gap of a and z is d(s, t) + γ - d(a, z), with d the squared distance; that of a and the two
    ends of its seed is the constant 0. The mean and the deviation of an end's gaps, by which they
    are standardized, are constants too.

    Args:
        everyone: (nodes, dim).
        source: (seeds,): the positions of the seeds' source entities in `everyone`.
        target: (seeds,): the positions of their target entities.
        sharpness: λ.
        margin: γ.
        mixed_precision: Multiply in bfloat16 and add in float32; for GPUs only.
    """
    total: Tensor = _TotalHardness.apply(  # type: ignore[no-untyped-call]
        everyone, source, target, sharpness, margin, mixed_precision
    )
    return total


class _TotalHardness(torch.autograd.Function):
    """Written by hand: autograd would write the matrix of gaps, a step's largest, a dozen times.

    The gradient is computed with the value, a block of rows at a time, so nothing of that matrix is
    kept. The gradient of a row with respect to its gaps is its softmax times λ / deviation. At the
    usual sharpness all but a few dozen of ten thousand cells of a row are negligible.
    """

    @staticmethod
    def forward(
        ctx: Any,
        everyone: Tensor,
        source: Tensor,
        target: Tensor,
        sharpness: float,
        margin: float,
        mixed: bool,
    ) -> Tensor:
        ends = torch.cat([source, target])
        anchors = everyone.index_select(0, ends)  # (2 · seeds, dim)
        left, right = anchors.chunk(2)
        apart = left - right
        own = torch.stack([source, target], dim=1).repeat(2, 1)
        # d(a, z) = |a|² + |z|² - 2 a·z. What is the same in a whole row of gaps does not change the
        # standardized ones. So it is not added there, but taken away where gaps are the constant 0.
        constant = apart.square().sum(1).repeat(2) + margin - anchors.square().sum(1)
        own_gaps = -constant.unsqueeze(1).expand_as(own)
        lengths = everyone.square().sum(1)
        slopes = _Slopes(anchors, everyone, mixed)
        total = everyone.new_zeros(())
        size = max(1, block_size("hardness", everyone.device) // len(everyone))
        for start in range(0, len(anchors), size):
            block = slice(start, start + size)
            gaps = _less(2 * anchors[block], everyone, lengths, mixed)
            gaps.scatter_(1, own[block], own_gaps[block])
            gaps.sub_(gaps.mean(1, keepdim=True))
            deviation = torch.linalg.vector_norm(gaps, dim=1, keepdim=True) / len(everyone) ** 0.5
            scale = sharpness / deviation.clamp(min=1e-12)
            total += slopes.add(block, gaps, scale, own[block])
        to_anchors, to_everyone, by_anchor = slopes.gradients()
        # That of d(s, t), which is in all gaps of both ends.
        to_apart = apart.mul_(by_anchor.view(2, -1, 1).sum(0))
        to_anchors.add_(torch.cat([to_apart, -to_apart]))
        ctx.save_for_backward(to_everyone.index_add_(0, ends, to_anchors))
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * gradients[0], None, None, None, None, None


class _Slopes:
    """The gradient of each row's value with respect to its gaps, and the sums that it enters."""

    def __init__(self, anchors: Tensor, everyone: Tensor, mixed: bool) -> None:
        self._anchors, self._everyone, self._mixed = anchors, everyone, mixed
        self._to_anchors = torch.zeros_like(anchors)  # Σ_z slope · z
        self._to_everyone = torch.zeros_like(everyone)  # Σ_a slope · a
        self._by_anchor = anchors.new_zeros(len(anchors), 1)  # Σ_z slope
        self._by_other = everyone.new_zeros(len(everyone), 1)  # Σ_a slope
        self._counts = torch.zeros(len(anchors), dtype=torch.int64, device=anchors.device)
        self._cells: list[tuple[Tensor, Tensor]] = []  # columns and slopes, row by row

    def add(self, block: slice, gaps: Tensor, scale: Tensor, own: Tensor) -> Tensor:
        """Takes in a block of rows, which it changes, and returns the sum of their values."""
        largest = gaps.amax(1, keepdim=True)
        if gaps.device.type == "cpu":
            near = gaps > largest - NEGLIGIBLE / scale
            cells = near.view(-1).nonzero().flatten()
            if len(cells) <= SPARSE_SHARE * gaps.numel():
                return self._add_sparse(block, gaps, scale, own, largest, cells)
        # Below e^-60 come denormal numbers, which make a CPU seven times slower.
        terms = gaps.sub_(largest).mul_(scale).clamp_(min=-60).exp_()
        sums = terms.sum(1, keepdim=True)
        slopes = terms.mul_(scale / sums).scatter_(1, own, 0.0)
        self._to_anchors[block] = _product(slopes, self._everyone, self._mixed)
        self._to_everyone += _product(slopes.T, self._anchors[block], self._mixed)
        self._by_anchor[block] = slopes.sum(1, keepdim=True)
        self._by_other += slopes.sum(0).unsqueeze(1)
        return (largest * scale + sums.log()).sum()

    def _add_sparse(
        self,
        block: slice,
        gaps: Tensor,
        scale: Tensor,
        own: Tensor,
        largest: Tensor,
        cells: Tensor,
    ) -> Tensor:
        count, width = gaps.shape
        row = cells.div(width, rounding_mode="floor")
        column = cells - row * width
        each = scale.view(-1).index_select(0, row)
        terms = gaps.view(-1).index_select(0, cells) - largest.view(-1).index_select(0, row)
        terms.mul_(each).exp_()
        counts = torch.bincount(row, minlength=count)
        sums = segment_sum(terms, offsets_of(counts))
        slopes = terms * each / sums.index_select(0, row)
        slopes[(column.unsqueeze(1) == own.index_select(0, row)).any(1)] = 0.0
        self._counts[block] = counts
        self._cells.append((column, slopes))
        return (largest * scale).sum() + sums.log().sum()

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Those with respect to the anchors, everyone, and the distance of each anchor's seed."""
        anchors, everyone = self._anchors, self._everyone
        if self._cells:
            columns, slopes = (torch.cat(parts) for parts in zip(*self._cells, strict=True))
            matrix = SparseMatrix(offsets_of(self._counts), columns, slopes, len(everyone))
            self._to_anchors += matrix.apply(everyone)
            self._to_everyone += matrix.transpose.apply(anchors)
            self._by_anchor += matrix.apply(torch.ones_like(self._by_other))
            self._by_other += matrix.transpose.apply(torch.ones_like(self._by_anchor))
        self._to_anchors.addcmul_(self._by_anchor, anchors, value=-1)
        self._to_everyone.addcmul_(self._by_other, everyone, value=-1)
        return self._to_anchors.mul_(2), self._to_everyone.mul_(2), self._by_anchor.mul_(2)


def _less(rows: Tensor, others: Tensor, taken: Tensor, mixed: bool) -> Tensor:
    """The products of all rows with all others, less a number for each other."""
    if mixed:
        return _product(rows, others.T, mixed).sub_(taken)
    return linear(rows, others, -taken)


def _product(left: Tensor, right: Tensor, mixed: bool) -> Tensor:
    """The matrix product; `mixed` rounds the factors to bfloat16 but adds in float32."""
    if not mixed:
        return left @ right
    return torch.mm(left.bfloat16(), right.bfloat16(), out_dtype=torch.float32)
