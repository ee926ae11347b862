"""Tensors and JSON as files with a checksum, written atomically."""

from __future__ import annotations

import json
import os
import re
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

AGAIN = "`clusterea align` with the same data and --out makes it again."

Warn = Callable[[str], None]


def ignore(message: str) -> None:
    """A `Warn` that does nothing."""
    del message


def write_tensors(path: Path, tensors: Mapping[str, Tensor], name: str = "") -> None:
    """Writes tensors as one safetensors file. Reading it needs the same `name`."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    contents = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    seal = {"checksum": tensors_checksum(name, contents)}
    with replacing(path, sum(value.nbytes for value in contents.values())) as beside:
        beside.touch()
        mode = beside.stat().st_mode  # save_file makes a file that only its owner can read
        try:
            save_file(contents, beside, seal)
        except SafetensorError as error:
            raise _system_error(error) from error
        beside.chmod(mode)


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


def _system_error(error: Exception) -> OSError:
    """The operating system's error, from the text of safetensors' error."""
    found = re.search(r"os error (\d+)", str(error))
    if found is None:
        return OSError(str(error))
    return OSError(int(found[1]), os.strerror(int(found[1])))


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
