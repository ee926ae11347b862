"""`Similarity`: a sparse matrix of scores between source and target entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterea.types.pair import Pair

if TYPE_CHECKING:
    import scipy.sparse
    import torch
    from torch import Tensor

CHECKED = 1 << 22  # cells that are checked at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Similarity:
    """A CSR matrix of source × target. Higher is more similar; an absent cell is not a zero."""

    row_offsets: Tensor  # (source entities + 1,) int64
    columns: Tensor  # (cells,) int32 or int64, ascending and distinct within a row
    values: Tensor  # (cells,) floating point, finite
    num_entities: Pair[int]

    def __post_init__(self) -> None:
        import torch

        rows, width = self.num_entities
        offsets, columns, values = self.row_offsets, self.columns, self.values
        if offsets.shape != (rows + 1,):
            raise ValueError(
                f"row_offsets must have shape ({rows + 1},). Got {tuple(offsets.shape)} instead."
            )
        if columns.dtype not in (torch.int32, torch.int64):
            raise ValueError(f"columns must be int32 or int64. Got {columns.dtype} instead.")
        if columns.ndim != 1 or columns.shape != values.shape:
            raise ValueError(
                "columns and values must have the same length. "
                f"Got {tuple(columns.shape)} and {tuple(values.shape)} instead."
            )
        if int(offsets[0]) != 0 or int(offsets[-1]) != columns.numel():
            raise ValueError(
                f"row_offsets must run from 0 to {columns.numel()}. "
                f"Got {int(offsets[0])} to {int(offsets[-1])} instead."
            )
        if bool((offsets.diff() < 0).any()):
            raise ValueError("row_offsets must not decrease.")
        if not columns.numel():
            return
        if int(columns.min()) < 0 or int(columns.max()) >= width:
            raise ValueError(
                f"columns must lie in [0, {width}). "
                f"Got values from {int(columns.min())} to {int(columns.max())} instead."
            )
        for start in range(0, columns.numel(), CHECKED):
            self._check_cells(start, start + CHECKED)

    def _check_cells(self, start: int, stop: int) -> None:
        """Raises unless these cells are finite and in order, also after the one before them."""
        import torch

        begin = max(start - 1, 0)
        # Columns may only fall or repeat where a new row begins.
        falls = (self.columns[begin:stop].diff() <= 0).nonzero().flatten() + begin + 1
        row_starts = self.row_offsets[torch.searchsorted(self.row_offsets, falls)]
        if not bool((row_starts == falls).all()):
            raise ValueError("columns must increase within each row.")
        if not bool(self.values[start:stop].isfinite().all()):
            raise ValueError("values must be finite.")

    @property
    def num_cells(self) -> int:
        return self.columns.numel()

    def rows(self) -> Tensor:
        """(cells,): the source entity of each cell."""
        import torch

        counts = self.row_offsets.diff()
        # With a known length, the GPU needs no synchronization.
        return torch.repeat_interleave(counts, output_size=self.num_cells)

    def to(self, device: torch.device | str) -> Similarity:
        """The same on another device; itself if it is already there."""
        import torch

        if self.values.device == torch.device(device):
            return self
        return Similarity(
            self.row_offsets.to(device),
            self.columns.to(device),
            self.values.to(device),
            self.num_entities,
        )

    def swap(self) -> Similarity:
        """The transpose."""
        order = self.columns.argsort(stable=True)
        counts = self.columns.bincount(minlength=self.num_entities.target)
        offsets = counts.new_zeros(counts.numel() + 1)
        offsets[1:] = counts.cumsum(0)
        return Similarity(offsets, self.rows()[order], self.values[order], self.num_entities.swap())

    def to_scipy(self) -> scipy.sparse.csr_array:
        """The same cells as a sparse array of scipy. An explicit zero is a candidate."""
        from scipy.sparse import csr_array

        parts = [each.cpu().numpy() for each in (self.columns, self.row_offsets)]
        values = self.values.cpu()
        # numpy has no bfloat16.
        values = values if values.element_size() > 2 else values.float()
        return csr_array((values.numpy(), *parts), shape=tuple(self.num_entities))

    def tensors(self) -> dict[str, Tensor]:
        """The tensors to store, see `Stored`. Columns have 32 bits if they fit, to save disk."""
        from torch import tensor

        return {
            "row_offsets": self.row_offsets,
            "columns": self.columns.to(column_type(self.num_entities.target)),
            "values": self.values,
            "num_entities": tensor(list(self.num_entities)),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Similarity:
        if tensors["num_entities"].tolist() != list(num_entities):
            source, target = num_entities
            raise ValueError(f"a similarity must be of {source} and {target} entities.")
        return cls(tensors["row_offsets"], tensors["columns"], tensors["values"], num_entities)

    def __repr__(self) -> str:
        source, target = self.num_entities
        per_row = self.num_cells / max(source, 1)
        return (
            f"Similarity({source:,} × {target:,}, {self.num_cells:,} cells, {per_row:.1f} per row)"
        )


def column_type(num_columns: int) -> torch.dtype:
    """The smaller integers that columns fit into."""
    import torch

    return torch.int32 if num_columns < 2**31 else torch.int64
