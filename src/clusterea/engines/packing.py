"""`pack` and `unpack`: a value as a small pickle and the buffers of its arrays.

The buffers are neither copied when a value is packed nor when it is unpacked, so a tensor may be in
a file that is mapped into memory, or in the memory that processes share.
"""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Buffer: TypeAlias = Any  # what `memoryview` takes
Packed: TypeAlias = tuple[bytes, list[memoryview]]


def pack(value: Any) -> Packed:
    """The value without its arrays, and the bytes of these."""
    buffers: list[memoryview] = []
    stream = io.BytesIO()
    _Pickler(stream, buffers).dump(value)
    return stream.getvalue(), buffers


def unpack(pickled: Buffer, buffers: Sequence[Buffer]) -> Any:
    """The value. Its arrays are in the memory of the buffers, which may be read-only."""
    return pickle.loads(pickled, buffers=buffers)  # noqa: S301  # we packed it


class _Pickler(pickle.Pickler):
    """Puts the bytes of tensors and arrays in buffers of their own."""

    def __init__(self, stream: io.BytesIO, buffers: list[memoryview]) -> None:
        super().__init__(
            stream, protocol=5, buffer_callback=lambda buffer: buffers.append(buffer.raw())
        )

    def reducer_override(self, value: Any) -> Any:
        import torch

        if type(value) is torch.Tensor and _is_plain(value):
            return _tensor, (_bytes(value), value.dtype, tuple(value.shape))
        if type(value) is np.ndarray and not (
            value.flags.c_contiguous or value.flags.f_contiguous or value.dtype.hasobject
        ):
            return np.ascontiguousarray(value).__reduce_ex__(5)
        return NotImplemented


def _is_plain(tensor: Tensor) -> bool:
    """Whether the values of the tensor are an array in the memory of the CPU."""
    import torch

    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.requires_grad or tensor.is_quantized)
    )


def _bytes(tensor: Tensor) -> pickle.PickleBuffer | None:
    import torch

    if not tensor.numel():
        return None
    flat = tensor.resolve_conj().resolve_neg().contiguous().view(-1)
    array: Any = flat.view(torch.uint8).numpy()
    return pickle.PickleBuffer(array)


def _tensor(buffer: Buffer | None, kind: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """The tensor in a buffer."""
    import torch

    if buffer is None:
        return torch.empty(shape, dtype=kind)
    with warnings.catch_warnings():  # units change no argument, so a buffer may be read-only
        warnings.filterwarnings("ignore", "The given buffer is not writable")
        return torch.frombuffer(buffer, dtype=kind).reshape(shape)
