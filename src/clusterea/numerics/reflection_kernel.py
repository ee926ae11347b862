"""`reflected_sums` and its gradient: `edges.reflect_and_sum` with one pass over the edges.

torch's own operations would read and write a tensor of (edges, channels, dim) some twenty times.

Import it only where there is a CUDA device: it needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def reflected_sums(
    states: Tensor,
    axes: Tensor,
    attention: Tensor,
    sender: Tensor,
    kind: Tensor,
    offsets: Tensor,
) -> Tensor:
    """(receivers, channels, dim): see `edges.reflect_and_sum`.

    Args:
        states: (nodes, channels, dim) float32 on a GPU.
        axes: (kinds, dim).
        attention: (edges, channels).
        sender: (edges,): rows of `states`.
        kind: (edges,): rows of `axes`.
        offsets: (receivers + 1,): where the edges of each receiver begin.
    """
    _, channels, dim = states.shape
    receivers = len(offsets) - 1
    sums = states.new_empty(receivers, channels, dim)
    if not receivers:
        return sums
    with torch.cuda.device_of(sums):  # else a kernel runs on the current GPU
        _sum[(receivers, channels)](
            states.contiguous(),
            axes.contiguous(),
            attention.contiguous(),
            sender,
            kind,
            offsets,
            sums,
            dim,
            channels,
            block=triton.next_power_of_2(dim),
            num_warps=1,
        )
    return sums


def reflected_slopes(
    states: Tensor,
    axes: Tensor,
    attention: Tensor,
    sender: Tensor,
    kind: Tensor,
    offsets: Tensor,
    gradient: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients with respect to states, axes and attention.

    Args:
        states: As in `reflected_sums`, and so on.
        axes: Likewise.
        attention: Likewise.
        sender: Likewise.
        kind: Likewise.
        offsets: Likewise.
        gradient: (receivers, channels, dim): that with respect to the sums.
    """
    _, channels, dim = states.shape
    to_states, to_axes = (torch.zeros_like(each.contiguous()) for each in (states, axes))
    to_attention = torch.empty_like(attention.contiguous())
    if len(offsets) < 2:
        return to_states, to_axes, to_attention
    with torch.cuda.device_of(to_states):
        _slopes[(len(offsets) - 1,)](
            states.contiguous(),
            axes.contiguous(),
            attention.contiguous(),
            sender,
            kind,
            offsets,
            gradient.contiguous(),
            to_states,
            to_axes,
            to_attention,
            dim,
            channels=channels,
            block=triton.next_power_of_2(dim),
            num_warps=1,
        )
    return to_states, to_axes, to_attention


@triton.jit
def _sum(
    states,
    axes,
    attention,
    sender,
    kind,
    offsets,
    sums,
    dim,
    channels,
    block: tl.constexpr,
):
    row, channel = tl.program_id(0).to(tl.int64), tl.program_id(1)
    some = tl.arange(0, block)
    inside = some < dim
    total = tl.zeros((block,), dtype=tl.float32)
    for edge in range(tl.load(offsets + row), tl.load(offsets + row + 1)):
        at = (tl.load(sender + edge).to(tl.int64) * channels + channel) * dim
        state = tl.load(states + at + some, mask=inside, other=0.0)
        axis = tl.load(
            axes + tl.load(kind + edge).to(tl.int64) * dim + some, mask=inside, other=0.0
        )
        message = state - 2 * tl.sum(state * axis, 0) * axis
        total += tl.load(attention + edge * channels + channel) * message
    tl.store(sums + (row * channels + channel) * dim + some, total, mask=inside)


@triton.jit
def _slopes(
    states,
    axes,
    attention,
    sender,
    kind,
    offsets,
    gradient,
    to_states,
    to_axes,
    to_attention,
    dim,
    channels: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    some = tl.arange(0, block)
    inside = some < dim
    for edge in range(tl.load(offsets + row), tl.load(offsets + row + 1)):
        sent = tl.load(sender + edge).to(tl.int64)
        axis_at = tl.load(kind + edge).to(tl.int64) * dim + some
        axis = tl.load(axes + axis_at, mask=inside, other=0.0)
        to_axis = tl.zeros((block,), dtype=tl.float32)
        for channel in range(channels):
            at = (sent * channels + channel) * dim + some
            state = tl.load(states + at, mask=inside, other=0.0)
            slope_at = (row * channels + channel) * dim + some
            slope = tl.load(gradient + slope_at, mask=inside, other=0.0)
            weight = tl.load(attention + edge * channels + channel)
            # A reflection is its own transpose, so the gradient is reflected like the state.
            state_dot, slope_dot = tl.sum(state * axis, 0), tl.sum(slope * axis, 0)
            gain = tl.sum(state * slope, 0) - 2 * state_dot * slope_dot
            tl.store(to_attention + edge * channels + channel, gain)
            to_axis -= 2 * weight * (slope * state_dot + state * slope_dot)
            back = weight * (slope - 2 * slope_dot * axis)
            tl.atomic_add(to_states + at, back, mask=inside, sem="relaxed")
        tl.atomic_add(to_axes + axis_at, to_axis, mask=inside, sem="relaxed")
