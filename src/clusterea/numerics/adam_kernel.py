"""`adam_rows`: a step of Adam on some rows of a table, in one pass over them.

Import it only where there is a CUDA device: it needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # numbers


def adam_rows(
    rows: Tensor,
    first: Tensor,
    second: Tensor,
    chosen: Tensor,
    gradient: Tensor,
    *,
    betas: tuple[float, float],
    scale: float,
    correction: float,
    epsilon: float,
) -> None:
    """Changes the chosen rows and their moments.

    Args:
        rows: (n, dim) float32 on a GPU.
        first: (n, dim): the mean of the gradients.
        second: (n, dim): the mean of their squares.
        chosen: (m,): different rows.
        gradient: (m, dim): that of the chosen rows.
        betas: How much of the means is kept.
        scale: The learning rate, over the weight that the first mean has got so far.
        correction: The weight that the second mean has got so far.
        epsilon: Added to the root of the second mean.
    """
    numbers, dim = gradient.numel(), rows.shape[1]
    if not numbers:
        return
    with torch.cuda.device_of(rows):  # else a kernel runs on the current GPU
        _step[(triton.cdiv(numbers, BLOCK),)](
            rows,
            first,
            second,
            chosen,
            gradient.contiguous(),
            numbers,
            dim,
            *betas,
            scale,
            correction,
            epsilon,
            block=BLOCK,
        )


@triton.jit
def _step(
    rows,
    first,
    second,
    chosen,
    gradient,
    numbers,
    dim,
    keep_first,
    keep_second,
    scale,
    correction,
    epsilon,
    block: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = place < numbers
    row = tl.load(chosen + place // dim, mask=inside, other=0).to(tl.int64)
    at = row * dim + place % dim
    slope = tl.load(gradient + place, mask=inside, other=0.0)
    mean = tl.load(first + at, mask=inside, other=0.0)
    mean += (1 - keep_first) * (slope - mean)
    tl.store(first + at, mean, mask=inside)
    square = keep_second * tl.load(second + at, mask=inside, other=0.0)
    square += (1 - keep_second) * slope * slope
    tl.store(second + at, square, mask=inside)
    moved = scale * mean / (tl.sqrt(square / correction) + epsilon)
    tl.store(rows + at, tl.load(rows + at, mask=inside, other=0.0) - moved, mask=inside)
