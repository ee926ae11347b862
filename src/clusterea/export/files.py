"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterea.errors import DataError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what becomes `path` when the block ends without an error.

    The name is one that a run's folder clears when the process that writes is killed.
    """
    beside = path.with_name(f".{path.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield beside
            with beside.open("rb") as file:  # on disk before it takes the other's place
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(path, f"can't be written: {error.strerror or error}.") from error
