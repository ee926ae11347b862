"""`EntityTable`: one trained row for each entity. A step updates only the rows that it read."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.products import has_triton

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class EntityTable:
    """Rows with Adam's two moments, on the host or on the device.

    A step copies the rows it reads, so the cost of gradients and updates grows with these rows and
    not with the table. This is lazy Adam: rows that a step does not read keep their moments, which
    plain Adam would let decay.
    """

    def __init__(self, rows: Tensor, learning_rate: float, device: torch.device) -> None:
        self.rows = rows  # (entities, dim)
        self._learning_rate = learning_rate
        self._device = device
        self._first = torch.zeros_like(rows)
        self._second = torch.zeros_like(rows)
        self._steps = 0

    def take(self, nodes: Tensor) -> Tensor:
        """(nodes, dim): a copy of the rows on the computing device, which collects a gradient."""
        rows = self.rows.index_select(0, nodes.to(self.rows.device))
        return rows.to(self._device, non_blocking=True).requires_grad_()

    @torch.no_grad()
    def update(self, nodes: Tensor, taken: Tensor) -> None:
        """One Adam step on rows that `take` returned, with the gradient they collected."""
        if taken.grad is None:
            raise ValueError("taken must have collected a gradient.")
        nodes = nodes.to(self.rows.device)
        gradient = taken.grad.to(self.rows.device)
        self._steps += 1
        scale = self._learning_rate / (1 - BETAS[0] ** self._steps)
        correction = 1 - BETAS[1] ** self._steps
        if has_triton(self.rows.device):
            from clusterea.numerics.adam_kernel import adam_rows

            adam_rows(
                self.rows,
                self._first,
                self._second,
                nodes,
                gradient,
                betas=BETAS,
                scale=scale,
                correction=correction,
                epsilon=EPSILON,
            )
            return
        first = self._first.index_select(0, nodes).lerp_(gradient, 1 - BETAS[0])
        self._first.index_copy_(0, nodes, first)
        second = self._second.index_select(0, nodes).mul_(BETAS[1])
        second.addcmul_(gradient, gradient, value=1 - BETAS[1])
        self._second.index_copy_(0, nodes, second)
        root = second.div_(correction).sqrt_().add_(EPSILON)
        rows = taken.detach().to(self.rows.device).addcdiv_(first, root, value=-scale)
        self.rows.index_copy_(0, nodes, rows)

    def state(self) -> dict[str, Tensor]:
        """Everything needed to resume training."""
        return {
            "rows": self.rows,
            "first": self._first,
            "second": self._second,
            "steps": torch.tensor(self._steps),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restores what `state` returned."""
        for name, now in (("rows", self.rows), ("first", self._first), ("second", self._second)):
            check_shape(name, state[name], now)
            now.copy_(state[name])
        self._steps = int(state["steps"])

    def forget_moments(self) -> None:
        """Frees the moments, which only training needs."""
        self._first = self._second = self.rows.new_zeros(0)


def check_shape(name: str, saved: Tensor, now: Tensor) -> None:
    """Raises unless a saved tensor has the shape of the one it replaces."""
    if saved.shape != now.shape:
        raise ValueError(
            f"{name} must have shape {tuple(now.shape)}. Got {tuple(saved.shape)} instead."
        )
