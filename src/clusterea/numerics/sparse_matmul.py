"""Sparse times dense, with a backward pass that is again sparse times dense.

No tensor of size cells × dim is made; gathering rows and adding them up would make two.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from clusterea.numerics.segments import lengths, offsets_of, owners, ranges

with warnings.catch_warnings():
    # torch warns once in a process that its CSR tensors are in beta. A user can't change that.
    warnings.simplefilter("ignore", UserWarning)
    torch.sparse_csr_tensor(torch.zeros(1, dtype=torch.int64), [], torch.zeros(0), size=(0, 0))


class SparseMatrix:
    """A constant matrix in CSR form."""

    def __init__(self, offsets: Tensor, columns: Tensor, values: Tensor, num_columns: int) -> None:
        self.offsets = offsets  # (rows + 1,) int64 or int32
        self.columns = columns  # (cells,) int64 or int32
        self.values = values  # (cells,)
        self.num_columns = num_columns

    @classmethod
    def means(cls, offsets: Tensor, columns: Tensor, num_columns: int) -> SparseMatrix:
        """The matrix that takes the mean over each row's columns."""
        shares = 1 / lengths(offsets).clamp(min=1).float()
        values = shares.index_select(0, owners(offsets, columns.numel()))
        return cls(offsets, columns, values, num_columns)

    @property
    def num_rows(self) -> int:
        return self.offsets.numel() - 1

    def to(self, device: torch.device) -> SparseMatrix:
        if device == self.offsets.device:
            return self
        parts = self.offsets, self.columns, self.values
        offsets, columns, values = (part.to(device, non_blocking=True) for part in parts)
        return SparseMatrix(offsets, columns, values, self.num_columns)

    @cached_property
    def transpose(self) -> SparseMatrix:
        """The transpose, computed once; within a row it keeps the order of this matrix's rows."""
        order = self.columns.argsort(stable=True)
        counts = torch.bincount(self.columns, minlength=self.num_columns)
        rows = owners(self.offsets, self.columns.numel())
        return SparseMatrix(
            offsets_of(counts),
            rows.index_select(0, order),
            self.values.index_select(0, order),
            self.num_rows,
        )

    def select(self, rows: Tensor) -> SparseMatrix:
        """(len(rows), columns): these rows, in this order."""
        counts = lengths(self.offsets).index_select(0, rows)
        _, cells = ranges(self.offsets.index_select(0, rows), counts)
        return SparseMatrix(
            offsets_of(counts),
            self.columns.index_select(0, cells),
            self.values.index_select(0, cells),
            self.num_columns,
        )

    def compact(self) -> tuple[SparseMatrix, Tensor]:
        """The matrix without its empty columns, and the indices of the others, ascending."""
        kept, columns = torch.unique(self.columns, return_inverse=True)
        return SparseMatrix(self.offsets, columns, self.values, len(kept)), kept

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(rows, dim): this matrix times `dense`, through which gradients flow."""
        result: Tensor = _Matmul.apply(self, dense)  # type: ignore[no-untyped-call]
        return result

    def apply(self, dense: Tensor) -> Tensor:
        """(rows, dim): this matrix times `dense`, without a gradient."""
        return self.csr(dense.dtype) @ dense

    def csr(self, kind: torch.dtype) -> Tensor:
        """This matrix as a tensor of torch's own sparse form, which has one type of index."""
        columns = self.columns
        if columns.numel() > torch.iinfo(columns.dtype).max:  # the offsets count the cells
            columns = columns.long()
        return torch.sparse_csr_tensor(
            self.offsets.to(columns.dtype),
            columns,
            self.values.to(kind),
            size=(self.num_rows, self.num_columns),
            check_invariants=False,
        )


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix.apply(dense)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.transpose.apply(gradients[0].contiguous())
