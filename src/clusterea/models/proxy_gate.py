"""`proxy_gate`: the readout of Dual-AMN, with its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.products import linear

SHORTEST = 1e-12  # a shorter state is divided by this instead of its length


def proxy_gate(
    own: Tensor, proxies: Tensor, directions: Tensor, gate: Tensor, bias: Tensor
) -> Tensor:
    """(nodes, channels, width): each state, less a gated part of what proxies share with it.

    In a channel, with x a state, P the proxies, D their directions, W the gate and b its bias:
    m = softmax(D x / |x|) P is the shared part, g = σ((x - m) W + b), and the result is
    g x + (1 - g) (x - m) = x - (1 - g) m.

    Args:
        own: (nodes, channels, width).
        proxies: (channels, proxies, width).
        directions: (channels, proxies, width): rows of unit length.
        gate: (channels, width, width).
        bias: (channels, 1, width).
    """
    result: Tensor = _ProxyGate.apply(  # type: ignore[no-untyped-call]
        own, proxies, directions, gate, bias
    )
    return result


class _ProxyGate(torch.autograd.Function):
    """Written by hand and in blocks of nodes: autograd goes over the states thirty times."""

    @staticmethod
    def forward(
        ctx: Any, own: Tensor, proxies: Tensor, directions: Tensor, gate: Tensor, bias: Tensor
    ) -> Tensor:
        result = torch.empty_like(own)
        gates = torch.empty_like(own)
        shares = own.new_empty(len(own), *proxies.shape[:2])
        ctx.save_for_backward(own, proxies, directions, gate, gates, shares)
        for channel in range(own.shape[1]):
            shared_of, into = proxies[channel].T.contiguous(), gate[channel].T.contiguous()
            for block in _blocks(own):
                state = _copy(own[block, channel])
                nearness = linear(state, directions[channel]).div_(_lengths(state))
                share = nearness.softmax(1)
                shared = linear(share, shared_of)
                open_ = linear(state - shared, into, bias[channel, 0]).sigmoid_()
                result[block, channel] = state.addcmul_(shared, 1 - open_, value=-1)
                gates[block, channel], shares[block, channel] = open_, share
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        own, proxies, directions, gate, gates, shares = ctx.saved_tensors
        to_own = torch.empty_like(own)
        to_proxies, to_directions = torch.zeros_like(proxies), torch.zeros_like(directions)
        to_gate, to_bias = torch.zeros_like(gate), gate.new_zeros(len(gate), 1, gate.shape[2])
        for channel in range(own.shape[1]):
            shared_of, near = proxies[channel].T.contiguous(), directions[channel].T.contiguous()
            for block in _blocks(own):
                state, share = _copy(own[block, channel]), shares[block, channel]
                share, open_ = share.contiguous(), gates[block, channel].contiguous()
                slope = gradients[0][block, channel].contiguous()
                shared = linear(share, shared_of)
                to_shared = slope * (open_ - 1)
                to_sum = -to_shared * shared * open_  # slope · m · g (1 - g)
                to_gate[channel] += linear((state - shared).T.contiguous(), to_sum.T.contiguous())
                to_bias[channel] += to_sum.sum(0)
                to_across = linear(to_sum, gate[channel])
                to_shared -= to_across
                to_proxies[channel].addmm_(share.T, to_shared)
                to_share = linear(to_shared, proxies[channel])
                to_near = share * (to_share - (share * to_share).sum(1, keepdim=True))
                length = _lengths(state)
                state /= length
                to_directions[channel].addmm_(to_near.T, state)
                to_state = linear(to_near, near)
                along = (state * to_state).sum(1, keepdim=True)
                to_state.addcmul_(along, state, value=-1).div_(length)
                to_own[block, channel] = to_state.add_(slope).add_(to_across)
        return to_own, to_proxies, to_directions, to_gate, to_bias


def _blocks(own: Tensor) -> Iterator[slice]:
    size = max(1, block_size("readout", own.device) // max(own.shape[2], 1))
    return (slice(start, start + size) for start in range(0, len(own), size))


def _copy(states: Tensor) -> Tensor:
    return states.clone(memory_format=torch.contiguous_format)


def _lengths(states: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(states, dim=1, keepdim=True)
    return lengths.clamp_(min=SHORTEST)
