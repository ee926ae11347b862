"""Where memory is not enough: smaller blocks, and then what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from clusterea.errors import InputError

Value = TypeVar("Value")
# Cells of a block, each less than the one before; None: as many as is usual on the device.
SMALLER = {"cpu": (None, 1 << 23, 1 << 21), "cuda": (None, 1 << 27, 1 << 24)}


def with_smaller_blocks(make: Callable[[int | None], Value], device: torch.device) -> Value:
    """What `make` returns with the largest blocks that fit."""
    for block_cells in SMALLER[device.type]:
        try:
            return make(block_cells)
        except RuntimeError as error:
            if not _is_shortage(error):
                raise
        # The frame that holds the tensors is gone only now.
        if device.type == "cuda":
            torch.cuda.empty_cache()
    raise _advice(device)


@contextmanager
def explained(device: torch.device) -> Iterator[None]:
    """Has what runs out of memory say what to change."""
    try:
        yield
    except RuntimeError as error:
        if not _is_shortage(error):
            raise
        raise _advice(device) from error


def _is_shortage(error: RuntimeError) -> bool:
    """Whether an allocator said it: a GPU's has an error of its own, a CPU's a sentence."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _advice(device: torch.device) -> InputError:
    return InputError(
        f"the fusion does not fit into the memory of {device}, not even in small blocks. Make "
        "mini-batches smaller with --set sampling.max_batch=20000, or more with "
        "--set sampling.num_batches=100; or have fewer candidates with --set fusion.candidates=25."
    )
