"""Random seeds and generators, one for each purpose."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derived_seed(seed: int, *purpose: str | int) -> int:
    """A seed for one purpose, as in `derived_seed(seed, "negatives", epoch)`.

    Use the same number of parts for a purpose: ("a",) and ("a", 0) give the same seed.
    """
    path = [part if isinstance(part, int) else zlib.crc32(part.encode()) for part in purpose]
    return int(np.random.SeedSequence([seed, *path]).generate_state(1, np.uint64)[0] >> 1)


def generator(
    seed: int, *purpose: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """A generator on `device` for one purpose."""
    import torch

    return torch.Generator(device).manual_seed(derived_seed(seed, *purpose))
