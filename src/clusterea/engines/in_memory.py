"""`InMemory`: the engine of one process that holds all results in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from clusterea.engines.engine import OnResult, Ref

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class InMemory:
    """Runs each unit at once. A reference is the value itself."""

    is_here = True

    def __init__(self, shards: int | None = None) -> None:
        self.shards = shards

    def fit(self, needed: Callable[[int], int]) -> None:
        del needed  # sizes decide, stage by stage

    def put(self, value: Any) -> Ref:
        return value

    def submit(self, unit: Callable[..., Any], *arguments: Any) -> Ref:
        return unit(*arguments)

    def submit_parts(self, parts: int, unit: Callable[..., Any], *arguments: Any) -> list[Ref]:
        found = list(unit(*arguments))
        assert len(found) == parts
        return found

    def get(self, refs: Sequence[Ref], done: OnResult | None = None) -> list[Any]:
        if done is not None:
            done(len(refs), len(refs))
        return list(refs)

    def empty(self, shape: Sequence[int], kind: torch.dtype) -> Tensor:
        import torch

        return torch.empty(*shape, dtype=kind)

    def close(self) -> None:
        return None
