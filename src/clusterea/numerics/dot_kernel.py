"""`chosen_dots`: products of each row with some rows of another matrix, without a copy of these.

Import it only where there is a CUDA device: it needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

AT_ONCE = 16  # columns
STEP = 128  # dimensions that are multiplied at a time


def chosen_dots(rows: Tensor, others: Tensor, columns: Tensor) -> Tensor:
    """(rows, width) float64: each row's products with its columns of `others`.

    Args:
        rows: (rows, dim) on a GPU, of any float type.
        others: (n, dim): likewise.
        columns: (rows, width) integers.
    """
    count, width = columns.shape
    found = torch.empty(count, width, dtype=torch.float64, device=columns.device)
    grid = (count, triton.cdiv(width, AT_ONCE))
    with torch.cuda.device_of(found):  # else a kernel runs on the current GPU
        _dots[grid](
            rows.contiguous(),
            others.contiguous(),
            columns.contiguous(),
            found,
            width,
            others.shape[1],
            at_once=AT_ONCE,
            step=STEP,
        )
    return found


@triton.jit
def _dots(
    rows,
    others,
    columns,
    found,
    width,
    dim: tl.constexpr,
    at_once: tl.constexpr,
    step: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * at_once + tl.arange(0, at_once)
    is_cell = place < width
    column = tl.load(columns + row * width + place, mask=is_cell, other=0).to(tl.int64)
    total = tl.zeros((at_once,), dtype=tl.float64)
    for start in range(0, dim, step):
        some = start + tl.arange(0, step)
        own = tl.load(rows + row * dim + some, mask=some < dim, other=0.0).to(tl.float64)
        near = tl.load(
            others + column[:, None] * dim + some[None, :],
            mask=is_cell[:, None] & (some[None, :] < dim),
            other=0.0,
        ).to(tl.float64)
        total += tl.sum(own[None, :] * near, 1)
    tl.store(found + row * width + place, total, mask=is_cell)
