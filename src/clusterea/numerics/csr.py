"""`csr_tensor`: torch's sparse tensors in CSR form, without its warning."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

with warnings.catch_warnings():
    # torch warns once in a process that its CSR tensors are in beta. A user can't change that.
    warnings.simplefilter("ignore", UserWarning)
    torch.sparse_csr_tensor(torch.zeros(1, dtype=torch.int64), [], torch.zeros(0), size=(0, 0))


def csr_tensor(offsets: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    """The sparse matrix of these cells, which are not checked."""
    return torch.sparse_csr_tensor(offsets, columns, values, size=size, check_invariants=False)
