"""Where memory is not enough: smaller blocks, and then what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from clusterea.errors import InputError

if TYPE_CHECKING:
    import torch

Value = TypeVar("Value")
# Cells of a block, each less than the one before; None: as many as is usual on the device.
SMALLER = {"cpu": (None, 1 << 23, 1 << 21), "cuda": (None, 1 << 27, 1 << 24)}


def with_smaller_blocks(make: Callable[[int | None], Value], device: torch.device) -> Value:
    """What `make` returns with the largest blocks that fit."""
    import torch

    for block_cells in SMALLER[device.type]:
        try:
            return make(block_cells)
        except torch.OutOfMemoryError:
            pass  # the frame that holds the tensors is gone only after this block
        except RuntimeError as error:  # what a CPU says
            if "can't allocate memory" not in str(error):
                raise
        if device.type == "cuda":
            torch.cuda.empty_cache()
    raise InputError(
        f"the fusion does not fit into the memory of {device}, not even in small blocks. Make "
        "mini-batches smaller with --set sampling.max_batch=20000, or more with "
        "--set sampling.num_batches=100."
    )
