"""Operations on edges and their gradients, computed a chunk of edges at a time.

An edge has a sender and a kind. Autograd would keep half a dozen tensors of (edges, channels, dim).
Here tensors are as long as a chunk, which on a CPU fits in the cache. On a GPU, kernels go over the
edges once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.products import has_triton


def edge_dots(states: Tensor, kinds: Tensor, sender: Tensor, kind: Tensor) -> Tensor:
    """(edges, channels): the dot product of each edge's sender with its kind.

    Args:
        states: (nodes, channels, dim).
        kinds: (kinds, dim).
        sender: (edges,): rows of `states`.
        kind: (edges,): rows of `kinds`.
    """
    result: Tensor = _EdgeDots.apply(states, kinds, sender, kind)  # type: ignore[no-untyped-call]
    return result


def reflect_and_sum(
    states: Tensor,
    axes: Tensor,
    attention: Tensor,
    sender: Tensor,
    kind: Tensor,
    receiver: Tensor,
    num_receivers: int,
) -> Tensor:
    """(receivers, channels, dim): the attention-weighted sum of the senders' reflected states.

    The reflection of h at the hyperplane with unit normal a is h - 2 (h·a) a.

    Args:
        states: (nodes, channels, dim).
        axes: (kinds, dim): unit normals.
        attention: (edges, channels).
        sender: (edges,): rows of `states`.
        kind: (edges,): rows of `axes`.
        receiver: (edges,): rows of the result, ascending.
        num_receivers: How many rows the result has.
    """
    result: Tensor = _ReflectAndSum.apply(  # type: ignore[no-untyped-call]
        states, axes, attention, sender, kind, receiver, num_receivers
    )
    return result


def _chunks(edges: int, states: Tensor) -> Iterator[slice]:
    size = max(1, block_size("edges", states.device) // max(states[0].numel(), 1))
    return (slice(start, start + size) for start in range(0, edges, size))


def _has_kernel(states: Tensor) -> bool:
    return states.dtype == torch.float32 and has_triton(states.device)


def _offsets(receiver: Tensor, num_receivers: int) -> Tensor:
    """(receivers + 1,): where the edges of each receiver begin."""
    every = torch.arange(num_receivers + 1, device=receiver.device, dtype=receiver.dtype)
    return torch.searchsorted(receiver, every)


def _dots(left: Tensor, right: Tensor) -> Tensor:
    return (left * right).sum(2, keepdim=True)


class _EdgeDots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, kinds: Tensor, sender: Tensor, kind: Tensor) -> Tensor:
        ctx.save_for_backward(states, kinds, sender, kind)
        dots = states.new_empty(sender.numel(), states.shape[1])
        for chunk in _chunks(sender.numel(), states):
            sent = states.index_select(0, sender[chunk])
            vector = kinds.index_select(0, kind[chunk]).unsqueeze(1)
            dots[chunk] = _dots(sent, vector).squeeze(2)
        return dots

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states, kinds, sender, kind = ctx.saved_tensors
        to_states, to_kinds = torch.zeros_like(states), torch.zeros_like(kinds)
        for chunk in _chunks(sender.numel(), states):
            sent = states.index_select(0, sender[chunk])
            vector = kinds.index_select(0, kind[chunk]).unsqueeze(1)
            slope = gradients[0][chunk].unsqueeze(2)
            to_states.index_add_(0, sender[chunk], slope * vector)
            to_kinds.index_add_(0, kind[chunk], (slope * sent).sum(1))
        return to_states, to_kinds, None, None


class _ReflectAndSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        axes: Tensor,
        attention: Tensor,
        sender: Tensor,
        kind: Tensor,
        receiver: Tensor,
        num_receivers: int,
    ) -> Tensor:
        ctx.save_for_backward(states, axes, attention, sender, kind, receiver)
        if _has_kernel(states):
            from clusterea.numerics.reflection_kernel import reflected_sums

            ctx.offsets = _offsets(receiver, num_receivers)
            return reflected_sums(states, axes, attention, sender, kind, ctx.offsets)
        sums = states.new_zeros(num_receivers, *states.shape[1:])
        for chunk in _chunks(sender.numel(), states):
            message = states.index_select(0, sender[chunk])
            axis = axes.index_select(0, kind[chunk]).unsqueeze(1)
            message.addcmul_(_dots(message, axis), axis, value=-2)
            sums.index_add_(0, receiver[chunk], message.mul_(attention[chunk].unsqueeze(2)))
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states, axes, attention, sender, kind, receiver = ctx.saved_tensors
        if _has_kernel(states):
            from clusterea.numerics.reflection_kernel import reflected_slopes

            inputs = states, axes, attention, sender, kind, ctx.offsets
            return *reflected_slopes(*inputs, gradients[0]), None, None, None, None
        to_states, to_axes = torch.zeros_like(states), torch.zeros_like(axes)
        to_attention = torch.empty_like(attention)
        for chunk in _chunks(sender.numel(), states):
            sent = states.index_select(0, sender[chunk])
            axis = axes.index_select(0, kind[chunk]).unsqueeze(1)
            slope = gradients[0].index_select(0, receiver[chunk])
            # A reflection is its own transpose, so the gradient is reflected like the state.
            sent_dot, slope_dot = _dots(sent, axis), _dots(slope, axis)
            weight = attention[chunk].unsqueeze(2)
            crossed = 2 * sent_dot * slope_dot
            to_attention[chunk] = (_dots(sent, slope) - crossed).squeeze(2)
            to_axis = torch.addcmul(slope * sent_dot, sent, slope_dot).mul_(-2 * weight).sum(1)
            to_axes.index_add_(0, kind[chunk], to_axis)
            slope.addcmul_(slope_dot, axis, value=-2).mul_(weight)
            to_states.index_add_(0, sender[chunk], slope)
        return to_states, to_axes, to_attention, None, None, None, None
