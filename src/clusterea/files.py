"""Files that are there whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterea.errors import DataError

PART = re.compile(r"-(?P<process>\d+)-[0-9a-f]{8}\.part$")  # as `part_of` names them


def part_of(path: Path) -> Path:
    """Where this process writes what will be `path`; a run's folder clears what a kill leaves."""
    return path.with_name(f".{path.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what becomes `path` when the block ends without an error."""
    beside = part_of(path)
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
