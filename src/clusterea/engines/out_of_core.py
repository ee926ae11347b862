"""`OutOfCore`: the engine of one process that holds results in files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterea.engines.engine import OnResult, Ref
from clusterea.engines.packing import pack, unpack
from clusterea.engines.references import replaced
from clusterea.engines.scratch import Scratch, Stored

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SMALL = 64 * 1024  # bytes; smaller values stay in memory


class OutOfCore:
    """Runs each unit at once. Memory has only what the unit uses."""

    is_here = True

    def __init__(self, shards: int | None, folder: Path | None = None) -> None:
        """`folder` gets a folder of temporary files; None: where the system has them."""
        self.shards = shards
        self._scratch = Scratch(folder)

    def fit(self, needed: Callable[[int], int]) -> None:
        del needed  # sizes decide, stage by stage

    def put(self, value: Any) -> Ref:
        pickled, buffers = packed = pack(value)
        if len(pickled) + sum(buffer.nbytes for buffer in buffers) < SMALL:
            # A copy, since the value may be a small part of a large array.
            return _InMemory(unpack(pickled, [bytearray(buffer) for buffer in buffers]))
        return _InFile(self._scratch.write(packed))

    def submit(self, unit: Callable[..., Any], *arguments: Any) -> Ref:
        return self.put(unit(*_values(arguments)))

    def submit_parts(self, parts: int, unit: Callable[..., Any], *arguments: Any) -> list[Ref]:
        found = list(unit(*_values(arguments)))
        assert len(found) == parts
        return [self.put(part) for part in found]

    def get(self, refs: Sequence[Ref], done: OnResult | None = None) -> list[Any]:
        if done is not None:
            done(len(refs), len(refs))
        return [ref.value() for ref in refs]

    def empty(self, shape: Sequence[int], kind: torch.dtype) -> Tensor:
        return self._scratch.empty(shape, kind)

    def close(self) -> None:
        self._scratch.close()


def _values(arguments: Sequence[Any]) -> Any:
    return replaced(arguments, _Held, lambda held: held.value())


class _Held:
    """A reference."""

    def value(self) -> Any:
        raise NotImplementedError


class _InMemory(_Held):
    def __init__(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        return self._value


class _InFile(_Held):
    """The file is removed with the reference. Values that were read from it stay."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        weakref.finalize(self, stored.path.unlink, missing_ok=True).atexit = False

    def value(self) -> Any:
        return self._stored.read()
