"""`Scratch`: a folder of temporary files that hold arrays."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterea.engines.packing import Packed, unpack
from clusterea.files import make_folder, part_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ALIGNMENT = 64  # bytes; of the arrays in a file


class Scratch:
    """A folder of temporary files. It is made when it is first used, and removed by `close`."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` gets the new folder; None: where the system has temporary files."""
        # By this name, a run's folder removes it if this process is killed.
        self.folder = part_of((folder or Path(tempfile.gettempdir())) / "clusterea-scratch")

    def write(self, packed: Packed) -> Stored:
        """Writes a packed value to a new file."""
        pickled, buffers = packed
        pieces = [memoryview(pickled), *buffers]
        path = self._new()
        with path.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                file.write(bytes(-piece.nbytes % ALIGNMENT))
        return Stored(path, tuple(piece.nbytes for piece in pieces))

    def empty(self, shape: Sequence[int], kind: torch.dtype) -> Tensor:
        """A tensor in a new file, which goes with the tensor."""
        import torch

        tensor = torch.empty(0, dtype=kind)
        size = tensor.element_size()
        for length in shape:
            size *= length
        if not size:
            return torch.empty(tuple(shape), dtype=kind)
        path = self._new()
        storage: Any = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=size)
        path.unlink()  # the memory map stays
        return tensor.set_(storage).view(tuple(shape))

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def made(self) -> Path:
        """The folder, which now exists."""
        make_folder(self.folder)
        return self.folder

    def _new(self) -> Path:
        return self.made() / uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Stored:
    """A file with a packed value."""

    path: Path
    sizes: tuple[int, ...]  # bytes of the pickle and of each buffer

    def read(self) -> Any:
        """The value. To change its arrays does not change the file.

        Pages are read when they are used. torch maps the file without keeping it open: there may
        be more values than a process may open files.
        """
        import torch

        end = sum(size + -size % ALIGNMENT for size in self.sizes)
        storage: Any = torch.UntypedStorage.from_file(str(self.path), shared=False, nbytes=end)
        mapped = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        pieces, start = [], 0
        for size in self.sizes:
            pieces.append(mapped[start : start + size])
            start += size + -size % ALIGNMENT
        pickled, *buffers = pieces
        return unpack(pickled, buffers)
