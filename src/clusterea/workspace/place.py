"""`Place`: a folder of any file system that pyarrow knows, such as `s3://bucket/run`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from clusterea.errors import DataError, InputError

OBJECT_STORES = ("s3", "gcs", "abfs")  # an object appears when it is whole
PART = ".part"
_PASSWORD = re.compile(r"(?<=://)[^/@]*:[^/@]*@")


class Place:
    """The folder at a URI. Files appear in it whole; their names may have a folder, as `a/b`.

    Args:
        uri: What `pyarrow.fs.FileSystem.from_uri` takes.

    Raises:
        InputError: There is no such file system.
    """

    def __init__(self, uri: str) -> None:
        from pyarrow.fs import FileSystem

        self.uri = uri
        # Passwords, and options that may be passwords, are not shown.
        self.shown = _PASSWORD.sub("", uri.partition("?")[0]).rstrip("/")
        if ".." in self.shown.split("/"):
            raise InputError(f"{self.shown} must be without `..`.")
        try:
            self._files, path = FileSystem.from_uri(uri)
        except Exception as error:  # file systems are plugins, which may raise anything
            told = " ".join(str(error).replace(uri, self.shown).split())
            raise InputError(f"{self.shown} can't be opened: {told.rstrip('.')}.") from error
        self._root = path.rstrip("/")
        if not self._root:
            raise InputError(f"{self.shown} must name a folder, as in s3://bucket/run.")

    @property
    def local(self) -> Path | None:
        """The folder, if it is one of this machine (`file:///…`)."""
        return Path(self._root) if self._files.type_name == "local" else None

    def at(self, name: str) -> str:
        """The address of a file, for messages."""
        return f"{self.shown}/{name}"

    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders in the place, or in a folder of it."""
        from pyarrow.fs import FileSelector

        with self._telling(folder, "read"):
            inside = FileSelector(self._path(folder), allow_not_found=True)
            return sorted(each.base_name for each in self._files.get_file_info(inside))

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        with self._telling(name, "read"):
            return bool(self._files.get_file_info(self._path(name)).is_file)

    def fetch(self, name: str, path: Path) -> None:
        """Copies a file from the place."""
        from pyarrow.fs import copy_files

        with self._telling(name, "read"):
            copy_files(
                self._path(name),
                str(path),
                source_filesystem=self._files,
                destination_filesystem=self._here,
            )

    def send(self, path: Path, name: str) -> None:
        """Copies a file to the place, where it replaces an older one."""
        from pyarrow.fs import copy_files

        with self._replacing(name, path.stat().st_size) as target:
            copy_files(
                str(path),
                target,
                source_filesystem=self._here,
                destination_filesystem=self._files,
            )

    def read(self, name: str) -> bytes:
        """The content of a small file; empty if there is none."""
        with self._telling(name, "read"):
            try:
                with self._files.open_input_stream(self._path(name)) as file:
                    return bytes(file.read())
            except FileNotFoundError:
                return b""

    def write(self, name: str, content: bytes) -> None:
        """Writes a small file."""
        with (
            self._replacing(name, len(content)) as target,
            self._files.open_output_stream(target) as file,
        ):
            file.write(content)

    def remove(self, name: str) -> None:
        """Removes a file, or a folder and what is in it; it may be missing."""
        with self._telling(name, "removed"):
            found = self._files.get_file_info(self._path(name))
            if found.is_file:
                self._files.delete_file(found.path)
            elif found.type.name == "Directory":
                self._files.delete_dir(found.path)

    @cached_property
    def _here(self) -> Any:
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _replacing(self, name: str, size: int) -> Iterator[str]:
        """Where to write a file of this size that then appears under `name`."""
        target = self._path(name)
        with self._telling(name, "written"):
            if self._files.type_name in OBJECT_STORES:
                yield target
            else:
                self._files.create_dir(target.rpartition("/")[0], recursive=True)
                beside = f"{self._root}/.{uuid.uuid4().hex}{PART}"
                yield beside
                self._move(beside, target)
            written = self._files.get_file_info(target)
            if written.size != size:
                raise OSError(f"{size} bytes were sent, but it has {written.size}")

    def _move(self, beside: str, target: str) -> None:
        try:
            self._files.move(beside, target)
        except Exception:  # some file systems, such as HDFS, do not replace
            if not self._files.get_file_info(target).is_file:
                raise
            self._files.delete_file(target)
            self._files.move(beside, target)

    @contextmanager
    def _telling(self, name: str, done: str) -> Iterator[None]:
        """Turns the errors of the file system into one line."""
        try:
            yield
        except DataError:
            raise
        except Exception as error:
            where = self.at(name) if name else self.shown
            raise DataError(where, f"can't be {done}: {str(error).rstrip('.')}.") from error
