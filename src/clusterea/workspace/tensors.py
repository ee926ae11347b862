"""Tensors and JSON as files with a checksum, written atomically."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterea.checksums import sealed, tensors_checksum, unsealed
from clusterea.errors import DamagedError, address
from clusterea.files import replacing

if TYPE_CHECKING:
    from torch import Tensor

    from clusterea.workspace.place import Place

TYPES = {  # their names in a file, in the order of safetensors
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
UNKNOWN = "0" * 8  # in place of a checksum that is not computed yet
AGAIN = "`clusterea align` with the same data and --out makes it again."

Warn = Callable[[str], None]


def ignore(message: str) -> None:
    """A `Warn` that does nothing."""
    del message


def write_tensors(path: Path, tensors: Mapping[str, Tensor], name: str = "") -> None:
    """Writes tensors as one safetensors file. Reading it needs the same `name`.

    The bytes are those of `safetensors.torch.save_file`, which has one thread and, in some
    versions, copies all tensors. Here several threads write, so Python goes on beside them.
    """
    contents = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    size = sum(value.nbytes for value in contents.values())
    with replacing(path, size) as beside, beside.open("xb", buffering=0) as file:
        starts, unsealed_header = _header(contents, UNKNOWN)

        def write(key: str, at: int, chunk: memoryview) -> None:
            _write_at(file.fileno(), starts[key] + len(unsealed_header) + at, chunk)

        _, header = _header(contents, tensors_checksum(name, contents, write))
        _write_at(file.fileno(), 0, memoryview(header))


def _header(tensors: Mapping[str, Tensor], checksum: str) -> tuple[dict[str, int], bytes]:
    """Where the bytes of each tensor begin after the header, and the header."""
    described: dict[str, Any] = {"__metadata__": {"checksum": checksum}}
    kinds = list(TYPES)
    starts, size = {}, 0
    # The largest numbers come first, so that all are aligned.
    for key in sorted(tensors, key=lambda key: (-kinds.index(_kind(tensors[key])), key)):
        starts[key], size = size, size + tensors[key].nbytes
        described[key] = {
            "dtype": TYPES[_kind(tensors[key])],
            "shape": list(tensors[key].shape),
            "data_offsets": [starts[key], size],
        }
    text = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return starts, len(text).to_bytes(8, "little") + text


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _write_at(number: int, place: int, content: memoryview) -> None:
    """Writes into an open file; one call of the system may write less than it is given."""
    while content:
        written = os.pwrite(number, content, place)
        place, content = place + written, content[written:]


def read_tensors(path: Path, name: str = "") -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the host.

    Raises:
        DamagedError: The file is damaged, or was written under another name.
        OSError: The file is missing or can't be opened.
    """
    from safetensors import SafetensorError, safe_open

    with path.open("rb"):  # raises the right error; safe_open would say that the file is missing
        pass
    try:
        with safe_open(path, framework="pt") as file:
            seal = (file.metadata() or {}).get("checksum")
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise DamagedError(path, f"is damaged ({error}).") from error
    if seal != tensors_checksum(name, tensors):
        raise DamagedError(path, "is damaged: it is not what was written.")
    return tensors


def write_json(path: Path, value: Any) -> None:
    """Writes JSON as a file."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_sealed(path: Path, name: str, value: Mapping[str, Any]) -> None:
    """Writes JSON with a checksum. Reading it needs the same `name`."""
    write_json(path, sealed(name, value))


def read_sealed(path: Path, name: str) -> dict[str, Any]:
    """Reads what `write_sealed` wrote, and checks it."""
    try:
        return unsealed(name, path.read_text())
    except FileNotFoundError as error:
        raise DamagedError(path, f"is missing; {AGAIN}") from error
    except ValueError as error:
        raise DamagedError(path, f"is damaged, or of another version; {AGAIN}") from error


class FileCheckpoints:
    """The checkpoint of a training in one file. Each new state replaces the last one.

    A state may have gigabytes and an epoch may take seconds. So a state is skipped if writing would
    take more than a few percent of the time.
    """

    def __init__(
        self,
        path: Path,
        bytes_per_second: float | None = None,
        *,
        warn: Warn = ignore,
        place: Place | None = None,
    ) -> None:
        """Opens the checkpoint, which need not exist.

        Args:
            path: The file.
            bytes_per_second: The bytes to write per second of training; less if they are sent.
            warn: Gets a warning about a damaged file.
            place: Where the file is kept, as in a folder of the same name, if not only here.
        """
        self._path = path
        self._place = place
        self._name = f"{path.parent.name}/{path.name}"
        self._rate = bytes_per_second or (25e6 if place is None else 5e6)
        self._warn = warn
        self._last = time.monotonic()

    def latest(self) -> Mapping[str, Tensor] | None:
        """The last saved state; None if it is missing or damaged."""
        if self._place is not None and self._place.has(self._name):
            self._path.parent.mkdir(exist_ok=True)
            self._place.fetch(self._name, self._path)
        try:
            return read_tensors(self._path, self._path.name)
        except FileNotFoundError:
            return None
        except DamagedError:
            self.reject()
            return None

    def reject(self) -> None:
        """Removes an unusable state, with a warning."""
        self._warn(f"{address(self._path)} is damaged: training starts over.")
        self.remove()

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Saves the state, unless the last one was saved too recently."""
        size = sum(each.nbytes for each in state.values())
        if (time.monotonic() - self._last) * self._rate < size:
            return
        write_tensors(self._path, state, self._path.name)
        if self._place is not None:
            self._place.send(self._path, self._name)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Removes the file, once training is finished."""
        self._path.unlink(missing_ok=True)
        if self._place is not None:
            self._place.remove(self._name)
            if not self._place.names(self._path.parent.name):
                self._place.remove(self._path.parent.name)
        with suppress(OSError):  # there is none, or it has other checkpoints
            self._path.parent.rmdir()
