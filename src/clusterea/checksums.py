"""Checksums of stored files: CRC-32 of their name and contents.

The name is included to detect files that were swapped.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterea.threads import available_cpus

if TYPE_CHECKING:
    from torch import Tensor

CHUNK = 1 << 24
SEAL = "checksum"


def tensors_checksum(
    name: str,
    tensors: Mapping[str, Tensor],
    also: Callable[[str, int, memoryview], None] | None = None,
) -> str:
    """The checksum of the names, types, shapes and bytes of tensors on the host.

    Args:
        name: Of the file.
        tensors: By their names.
        also: Called for each chunk with the name of its tensor, the place of its first byte in
            this tensor, and its bytes; in several threads, in any order.
    """
    heads: list[str] = []
    chunks: list[tuple[str, int, memoryview]] = []
    for key in sorted(tensors):
        tensor = tensors[key]
        heads.append(f"{key} {tensor.dtype} {tuple(tensor.shape)}")
        chunks += ((key, start, chunk) for start, chunk in _chunks(tensor))

    def checked(part: tuple[str, int, memoryview]) -> int:
        if also is not None:
            also(*part)
        return zlib.crc32(part[2])

    threads = min(len(chunks), available_cpus(), 8)
    if threads > 1:  # zlib releases Python's lock
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(checked, chunks))
    else:
        found = [checked(chunk) for chunk in chunks]
    return _checksum(json.dumps([name, heads, found]))


def file_checksum(path: Path) -> str:
    """The checksum of a file's name and bytes."""
    found, size = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found, size = zlib.crc32(chunk, found), size + len(chunk)
    return _checksum(json.dumps([path.name, size, found]))


def sealed(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """The value with its checksum."""
    return {**value, SEAL: _json_checksum(name, value)}


def unsealed(name: str, text: str) -> dict[str, Any]:
    """The value that was sealed under this name.

    Raises:
        ValueError: The checksum is missing or wrong.
    """
    value = json.loads(text)
    if not isinstance(value, dict) or SEAL not in value:
        raise ValueError("no checksum")
    seal = value.pop(SEAL)
    if seal != _json_checksum(name, value):
        raise ValueError("wrong checksum")
    return value


def _json_checksum(name: str, value: Mapping[str, Any]) -> str:
    return _checksum(json.dumps([name, value], sort_keys=True))


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _chunks(tensor: Tensor) -> Iterator[tuple[int, memoryview]]:
    from torch import uint8

    if not tensor.numel():  # an empty tensor may not have a view as bytes
        return
    content = tensor.detach().contiguous().reshape(-1).view(uint8).numpy().data
    for start in range(0, len(content), CHUNK):
        yield start, content[start : start + CHUNK]
