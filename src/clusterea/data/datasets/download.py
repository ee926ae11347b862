"""A file from the web: whole and verified, or a `DownloadError` and a part to resume from."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clusterea.errors import DownloadError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import httpx

Progress = Callable[[int, int | None], None]
"""Takes the bytes there are so far and the bytes there will be (None: the server doesn't say)."""

TIMEOUT_S = 30.0  # to connect, and between two pieces of the body; not for the whole download

_OK, _PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 200, 206, 416


def download(url: str, target: Path, *, sha512: str, progress: Progress | None = None) -> Path:
    """`target`, holding the file at `url` whose SHA-512 is `sha512`.

    The body goes to `<target>.part`, which outlives a failure and is resumed by the next call; it
    is renamed to `target` only once the sum of the whole file is right. A target that already has
    the right sum needs no network. Two processes with the same target take turns.

    Args:
        url: An http or https address; redirects are followed.
        target: The file to make; its folder is made too.
        sha512: The sum in hexadecimal digits.
        progress: Called when the body begins and after each piece of it, with rising counts.

    Raises:
        DownloadError: The server can't be reached, refuses or breaks off, the disk can't take the
            file, or the sum is wrong (only then what was received is deleted).
    """
    sha512 = sha512.lower()
    part = _beside(target, ".part")
    try:
        if _has_sum(target, sha512):  # before the lock: a cache may be read-only
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(_beside(target, ".lock")):
            if _has_sum(target, sha512):  # another process made it while we waited
                return target
            # A call killed between the last byte and the rename leaves a part that is whole.
            if not _has_sum(part, sha512):
                _receive(url, part, target, progress)
                _verify(url, part, sha512)
            part.replace(target)
            _forget(part)
    except OSError as error:
        raise DownloadError(_disk_problem(error, url, target, part)) from error
    return target


def _receive(url: str, part: Path, target: Path, progress: Progress | None) -> None:
    """Completes `part` from `url`; network trouble becomes a `DownloadError`."""
    try:
        import httpx
    except ImportError as error:
        raise DownloadError(
            "downloading needs the package httpx, which is not installed; run 'pip install httpx', "
            f"or put the file of {url} at {target} yourself."
        ) from error

    try:
        with httpx.Client(follow_redirects=True, timeout=TIMEOUT_S) as client:
            while not _request(client, url, part, target, progress):
                # The part can't be continued, so there is none from here: the second round asks
                # for the whole file and can't end up here again.
                _discard(part)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise DownloadError(
            f"could not reach {url} ({error}); are you offline? {_kept(part)}"
        ) from error
    except httpx.TimeoutException as error:
        raise DownloadError(
            f"{url} sent nothing for {TIMEOUT_S:g} seconds. {_kept(part)}"
        ) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise DownloadError(f"{url} is not an http or https address ({error}).") from error
    except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
        raise DownloadError(f"the connection to {url} was cut ({error}). {_kept(part)}") from error
    except httpx.HTTPError as error:
        raise DownloadError(f"{url} can't be downloaded ({error}). {_kept(part)}") from error


def _request(
    client: httpx.Client, url: str, part: Path, target: Path, progress: Progress | None
) -> bool:
    """Whether the answer could be used; False says that `part` is not the beginning of it."""
    offset = _size(part)
    validator = _remembered_validator(part, url) if offset else None
    # A compressed body would make our offsets differ from the server's.
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if validator is not None:
            headers["If-Range"] = validator

    with client.stream("GET", url, headers=headers) as response:
        status = response.status_code
        if status == _OK:
            offset = 0
            total = _number(response.headers.get("Content-Length"))
        elif status == _PARTIAL_CONTENT:
            start, total = _content_range(response)
            # Some servers serve ranges and ignore If-Range; the new validator gives them away.
            changed = validator is not None and _validator(response) not in (None, validator)
            if offset and (start != offset or changed):
                return False
        elif status == _RANGE_NOT_SATISFIABLE and offset:
            return False  # nothing is left to send, and `download` saw that the sum is wrong
        else:
            raise DownloadError(
                f"{url} answered {status} {response.reason_phrase}, not the file. {_kept(part)} "
                f"If you can get the file otherwise, put it at {target}."
            )

        with part.open("ab" if offset else "wb") as file:
            # Truncated first, remembered second: an old part never gets a new validator.
            if not offset:
                _remember(part, url, _validator(response))
            received = offset
            if progress is not None:
                progress(received, total)
            # Pieces as they come: iter_raw(chunk_size) would drop its buffer when cut.
            for piece in response.iter_raw():
                file.write(piece)
                received += len(piece)
                if progress is not None:
                    progress(received, total)
        if total is not None and received < total:  # a range shorter than asked for
            raise DownloadError(f"{url} sent {received:,} of {total:,} bytes. {_kept(part)}")
        return True


def _verify(url: str, part: Path, sha512: str) -> None:
    """Deletes a `part` of the wrong sum and raises."""
    actual = _sha512_of(part)
    if actual != sha512:
        size = _size(part)
        _discard(part)
        raise DownloadError(
            f"the file from {url} ({size:,} bytes) is not the expected one: its SHA-512 is "
            f"{actual[:12]}…, expected {sha512[:12]}…; it was deleted. Run the same command "
            "again to download it afresh, or give the address of another mirror."
        )


def _content_range(response: httpx.Response) -> tuple[int | None, int | None]:
    """The first byte and the size of the whole file, of a `Content-Range: bytes 5-9/10`."""
    found = re.fullmatch(
        r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip()
    )
    if found is None:
        return None, None
    return int(found[1]), _number(found[2])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _validator(response: httpx.Response) -> str | None:
    """What If-Range may hold: a strong ETag, else the date; weak ETags are not allowed there."""
    etag: str | None = response.headers.get("ETag")
    if etag is not None and not etag.startswith("W/"):
        return etag
    modified: str | None = response.headers.get("Last-Modified")
    return modified


def _remember(part: Path, url: str, validator: str | None) -> None:
    note = {"url": url, "validator": validator}
    _beside(part, ".json").write_text(json.dumps(note), encoding="utf-8")


def _remembered_validator(part: Path, url: str) -> str | None:
    """The validator that `url` gave with the beginning of `part`.

    None after a change of mirror: validators mean nothing to another server, while the bytes are
    the same by the sum.
    """
    try:
        note = json.loads(_beside(part, ".json").read_text(encoding="utf-8"))
        validator = note["validator"] if note["url"] == url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return validator if isinstance(validator, str) else None


def _forget(part: Path) -> None:
    _beside(part, ".json").unlink(missing_ok=True)


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _forget(part)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Waits until no other process is inside; the file stays, since removing it would race.

    Where there are no such locks (Windows, some network file systems) two processes could mix
    their bytes in one part; the sum then refuses the result.
    """
    with path.open("ab") as file:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)  # closing the file unlocks it
        yield


def _has_sum(path: Path, sha512: str) -> bool:
    return path.is_file() and _sha512_of(path) == sha512


def _sha512_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha512").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _kept(part: Path) -> str:
    """What a failure leaves behind, and what to do next."""
    size = _size(part)
    if not size:
        return "Nothing was received; run the same command again to retry."
    return f"{size:,} bytes are kept in {part}; run the same command again to resume."


def _disk_problem(error: OSError, url: str, target: Path, part: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {target.parent} is full. Free some space. {_kept(part)}"
    return f"could not save {url} as {target} ({error})."
