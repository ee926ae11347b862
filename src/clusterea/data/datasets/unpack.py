"""An archive's files in a folder: all of them, or a `DownloadError` and none."""

from __future__ import annotations

import contextlib
import lzma
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from clusterea.errors import DownloadError

_ZIP, _GZIP, _XZ = b"PK", b"\x1f\x8b", b"\xfd7zXZ\x00"  # what such files begin with

# What the readers raise on damaged, encrypted or exotic archives; OSError is the disk's as well as
# gzip's, and told apart below.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # a compression that zipfile doesn't know
    RuntimeError,  # an encrypted member
    ValueError,  # nonsense in a header
)


@dataclass(frozen=True, slots=True)
class _Member:
    name: str  # as the archive spells it
    is_folder: bool
    is_file: bool
    open: Callable[[], IO[bytes]]

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.name).parts


def unpack(archive: Path, folder: Path, *, members_under: str | None = None) -> Path:
    """`folder`, holding the archive's files.

    The files are written to a temporary folder beside it and renamed, so a folder that exists is
    whole; one that already holds something is returned as it is. When two processes unpack the same
    folder, the first to finish wins and the other's work is dropped.

    Args:
        archive: A zip, tar.gz or tar.xz file, recognized by its first bytes.
        folder: The folder to make.
        members_under: Only the members under this path of the archive are unpacked, and the path
            itself is left out; None unpacks everything. The safety check covers all members anyway.

    Raises:
        DownloadError: The archive is broken or lacks `members_under`, a member would be written
            outside the folder or is not a plain file or folder, or the disk can't take the files.
    """
    if is_unpacked(folder):
        return folder
    try:
        with _members(archive) as members:
            _refuse_unsafe(archive, members)
            chosen = _under(members, members_under)
            if not any(member.is_file for _, member in chosen):
                where = "" if members_under is None else f" under {members_under}"
                raise DownloadError(f"{archive} holds no file{where}; nothing was written.")
            _write(chosen, folder)
    except DownloadError:  # a ValueError too, which the next clause would take
        raise
    except _BROKEN as error:
        raise DownloadError(_broken(archive, error)) from error
    except OSError as error:
        if error.errno is None:  # gzip.BadGzipFile; the system's errors have a number
            raise DownloadError(_broken(archive, error)) from error
        raise DownloadError(
            f"could not unpack {archive} into {folder} ({error}); nothing was kept."
        ) from error
    return folder


@contextlib.contextmanager
def _members(archive: Path) -> Iterator[list[_Member]]:
    """All members, openable in their order while the archive is open."""
    with archive.open("rb") as file:
        start = file.read(len(_XZ))
    if start.startswith(_ZIP):
        with zipfile.ZipFile(archive) as zipped:
            yield [_zip_member(zipped, info) for info in zipped.infolist()]
    elif start.startswith(_GZIP):
        with tarfile.open(archive, "r:gz") as tar:
            yield _tar_members(tar)
    elif start.startswith(_XZ):
        with tarfile.open(archive, "r:xz") as tar:
            yield _tar_members(tar)
    else:
        raise DownloadError(f"{archive} is not a zip, tar.gz or tar.xz file; nothing was written.")


def _zip_member(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    # Unix modes lie in the upper half; archivers of other systems leave it 0.
    kind = stat.S_IFMT(info.external_attr >> 16)
    name = info.orig_filename  # `filename` hides null bytes, and backslashes on Windows
    ends_as_folder = name.endswith("/")  # info.is_dir() fails on an empty name
    return _Member(
        name=name,
        is_folder=ends_as_folder and kind in (0, stat.S_IFDIR),
        is_file=not ends_as_folder and kind in (0, stat.S_IFREG),
        open=lambda: zipped.open(info),
    )


def _tar_members(tar: tarfile.TarFile) -> list[_Member]:
    infos = tar.getmembers()
    # tarfile stops at the end mark, before the compressed stream's checksum; reading on checks it.
    stream = tar.fileobj
    while stream is not None and stream.read(1 << 20):
        pass
    return [_tar_member(tar, info) for info in infos]


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    def open_member() -> IO[bytes]:
        file = tar.extractfile(info)
        if file is None:
            raise tarfile.ReadError(f"{info.name} has no content")
        return file

    return _Member(name=info.name, is_folder=info.isdir(), is_file=info.isreg(), open=open_member)


def _refuse_unsafe(archive: Path, members: list[_Member]) -> None:
    files: set[tuple[str, ...]] = set()
    for member in members:
        problem = _problem(member)
        if problem is None and member.is_file:
            if member.parts in files:
                problem = "comes twice"
            files.add(member.parts)
        if problem is not None:
            raise DownloadError(
                f"{archive} is not safe to unpack: its member {member.name!r} {problem}; "
                "nothing was written."
            )


def _problem(member: _Member) -> str | None:
    """What speaks against writing the member, on any system; None where nothing does."""
    if member.name.startswith("/"):
        return "has an absolute path"
    if "\\" in member.name:
        return "has a backslash in its path"
    if "\0" in member.name:
        return "has a null byte in its path"
    if ".." in member.parts:
        return "leads out of its folder"
    if any(re.match("[A-Za-z]:", part) for part in member.parts):
        return "has a drive letter in its path"
    if member.is_file and not member.parts:
        return "has no name"
    if not (member.is_file or member.is_folder):
        return "is a link or a device, not a plain file or folder"
    return None


def _under(
    members: list[_Member], members_under: str | None
) -> list[tuple[tuple[str, ...], _Member]]:
    """The members below that path, each with the rest of its own."""
    prefix = PurePosixPath(members_under or "").parts
    return [
        (member.parts[len(prefix) :], member)
        for member in members
        if member.parts[: len(prefix)] == prefix and len(member.parts) > len(prefix)
    ]


def _write(chosen: list[tuple[tuple[str, ...], _Member]], folder: Path) -> None:
    """Writes the members beside `folder` and renames; on failure nothing is left."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The temporary folder is closed to other users, so the one to keep is made inside it.
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}.", suffix=".unpacking", dir=folder.parent
    ) as temporary:
        whole = Path(temporary) / folder.name
        whole.mkdir()
        for parts, member in chosen:
            path = whole.joinpath(*parts)
            if member.is_folder:
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as source, path.open("xb") as file:
                shutil.copyfileobj(source, file)
        _rename(whole, folder)


def _rename(whole: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()  # an empty one is in the way on Windows
    try:
        whole.rename(folder)
    except OSError:
        if not is_unpacked(folder):  # else another process was quicker, with the same files
            raise


def is_unpacked(folder: Path) -> bool:
    """Whether `unpack` would return the folder as it is; an empty one it would fill."""
    return folder.is_dir() and any(folder.iterdir())


def _broken(archive: Path, error: Exception) -> str:
    return f"{archive} is broken ({error}); nothing was kept."
