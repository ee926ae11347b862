"""The smallest types of integers that hold the numbers of nodes, edges and relations."""

from __future__ import annotations

import torch
from torch import Tensor


def index_type(count: int) -> torch.dtype:
    """The type for the numbers from 0 to `count`, among those that index and that offsets have."""
    return torch.int32 if count < 2**31 else torch.int64


def number_type(count: int) -> torch.dtype:
    """The smallest type for the numbers from 0 to `count`; see `as_index`."""
    return torch.int16 if count < 2**15 else index_type(count)


def as_index(numbers: Tensor) -> Tensor:
    """The numbers in a type that indexes."""
    return numbers.int() if numbers.dtype == torch.int16 else numbers
