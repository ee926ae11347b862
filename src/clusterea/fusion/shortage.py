"""What to change where memory is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from clusterea.errors import InputError


@contextmanager
def explained(device: torch.device) -> Iterator[None]:
    """Turns an out-of-memory error into advice."""
    try:
        yield
    except RuntimeError as error:
        # A GPU's allocator has an error class of its own, a CPU's only a sentence.
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(
            error
        ):
            raise
        raise InputError(
            f"the fusion does not fit into the memory of {device}. Make mini-batches smaller with "
            "--set sampling.max_batch=20000, or more with --set sampling.num_batches=100; or have "
            "fewer candidates with --set fusion.candidates=25."
        ) from error
