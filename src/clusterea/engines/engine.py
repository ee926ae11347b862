"""`Engine`: runs units of work, here or on other machines.

A unit is a pure function: it takes arrays, returns new ones, and changes none of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Ref: TypeAlias = Any  # of an object that an engine holds; it is held as long as its reference
OnResult: TypeAlias = Callable[[int, int], None]  # results that are there, results in all
# Where the user gives no number of shards: so that no worker waits long for the others.
SHARDS_PER_WORKER = 2


class Engine(Protocol):
    """Where units run, and where their results are held."""

    shards: int | None  # that the work is cut into; None: as many as the sizes ask for
    is_here: bool  # whether units run in this process, one after the other, when submitted

    def fit(self, needed: Callable[[int], int]) -> None:
        """Chooses the number of shards, where the user gave none, before any unit runs.

        `needed` gives the bytes of memory that a unit takes at most with so many shards. Raises if
        no worker has as much.
        """

    def put(self, value: Any) -> Ref:
        """Holds a value that several units take."""

    def submit(self, unit: Callable[..., Any], *arguments: Any) -> Ref:
        """Runs a unit, now or later.

        Arguments are values, references, or lists, tuples and pairs of them. The unit gets values.
        """

    def submit_parts(self, parts: int, unit: Callable[..., Any], *arguments: Any) -> list[Ref]:
        """Runs a unit that returns a tuple of so many parts, which are held one by one."""

    def get(self, refs: Sequence[Ref], done: OnResult | None = None) -> list[Any]:
        """The values of these references, once they are there."""

    def empty(self, shape: Sequence[int], kind: torch.dtype) -> Tensor:
        """A tensor for a large result that is put together here; it may be in a file."""

    def close(self) -> None:
        """Ends the work that still runs, and frees what is held."""
