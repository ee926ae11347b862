"""`Optimizer`: Adam, RMSprop or plain gradient descent.

The numbers are those of `torch.optim`, whose functions it calls. Its classes import the compiler of
torch when they are first used, which takes one to four seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

MOMENTS: dict[str, tuple[str, ...]] = {  # of a parameter, beside the number of its steps
    "adam": ("exp_avg", "exp_avg_sq"),
    "rmsprop": ("square_avg",),
    "sgd": (),
}


class Optimizer:
    """Updates parameters by their gradients. A parameter without one is left alone.

    Args:
        name: In `MOMENTS`.
        parameters: Updated in place.
        learning_rate: The same for all.
    """

    def __init__(self, name: str, parameters: Sequence[Tensor], learning_rate: float) -> None:
        self._name = name
        self.parameters = list(parameters)
        self._rate = learning_rate
        self.state: dict[int, dict[str, Tensor]] = {}  # of each parameter that was updated

    def zero_grad(self) -> None:
        """Drops the gradients."""
        for each in self.parameters:
            each.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Updates the parameters."""
        given = [number for number, each in enumerate(self.parameters) if each.grad is not None]
        parameters = [self.parameters[number] for number in given]
        if not parameters:
            return
        gradients = [each.grad for each in parameters if each.grad is not None]
        for number in given:
            if number not in self.state and MOMENTS[self._name]:
                moments = {
                    name: torch.zeros_like(self.parameters[number]) for name in MOMENTS[self._name]
                }
                self.state[number] = {"step": torch.tensor(0.0), **moments}

        def kept(name: str) -> list[Tensor]:
            return [self.state[number][name] for number in given]

        if self._name == "adam":
            adam(
                parameters,
                gradients,
                kept("exp_avg"),
                kept("exp_avg_sq"),
                [],
                kept("step"),
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._rate,
                weight_decay=0,
                eps=1e-8,
                maximize=False,
            )
        elif self._name == "rmsprop":
            # Keras' RMSprop, which the originals use, decays faster than torch's.
            rmsprop(
                parameters,
                gradients,
                kept("square_avg"),
                [],
                [],
                kept("step"),
                lr=self._rate,
                alpha=0.9,
                eps=1e-7,
                weight_decay=0,
                momentum=0,
                centered=False,
            )
        else:
            sgd(
                parameters,
                gradients,
                [None for _ in given],
                weight_decay=0,
                momentum=0,
                lr=self._rate,
                dampening=0,
                nesterov=False,
                maximize=False,
            )

    def restore(self, state: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Takes over a copy of a state, which must have all moments of each parameter in it."""

        def copied(name: str, value: Tensor, own: Tensor) -> Tensor:
            return value.clone() if name == "step" else value.to(own, copy=True)

        self.state = {
            number: {
                name: copied(name, value, self.parameters[number])
                for name, value in moments.items()
            }
            for number, moments in state.items()
        }
