"""`fetch`: a dataset's folder in the cache, downloaded with pooch when it is not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from clusterea.data.datasets.catalog import Dataset, find_dataset
from clusterea.errors import DownloadError

DownloadProgress = Callable[[int, int | None], None]
"""Takes the bytes received so far and the total (None if the server doesn't say)."""

CACHE_VARIABLE = "CLUSTEREA_CACHE"
TIMEOUT_S = 30.0  # to connect, and between two chunks; the whole download may take longer
CHUNK_BYTES = 1 << 16


def fetch(
    name: str,
    *,
    cache: Path | None = None,
    url: str | None = None,
    progress: DownloadProgress | None = None,
) -> Path:
    """The folder that holds the dataset, downloaded and unpacked unless it is there already.

    The archive stays in the cache: the other datasets in it then need no network. A folder that
    exists is complete: files are unpacked to a temporary folder, which is then renamed.

    Args:
        name: One of `DATASETS`.
        cache: Where copies are kept; None takes the environment variable CLUSTEREA_CACHE, or else
            the user's cache folder.
        url: A mirror of the dataset's archive; it must have the same checksum.
        progress: Called with the bytes received so far and the total (None if unknown).

    Raises:
        InputError: There is no dataset of that name.
        DownloadError: The archive can't be downloaded, has the wrong checksum or can't be written.
    """
    dataset = find_dataset(name)
    cache = _cache(cache)
    folder = _folder(dataset, cache)
    if not _is_complete(folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=f".{name}.", dir=folder.parent) as temporary:
                _unpacked(dataset, cache, url or dataset.archive.url, Path(temporary), progress)
                _rename(Path(temporary, dataset.folder), folder)
        except OSError as error:
            raise DownloadError(f"could not write to {cache} ({error}).") from error
    return folder


def is_fetched(name: str, cache: Path | None = None) -> bool:
    """Whether `fetch` would return at once.

    Raises:
        InputError: There is no dataset of that name.
    """
    return _is_complete(_folder(find_dataset(name), _cache(cache)))


def _unpacked(
    dataset: Dataset, cache: Path, url: str, folder: Path, progress: DownloadProgress | None
) -> None:
    """Unpacks the dataset's files into `folder`, with their paths in the archive.

    pooch verifies the checksum before it puts the archive into the cache, and again before it
    unpacks. Python's zipfile drops absolute paths and ".." and makes no links.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # else it prints every download
    archive = dataset.archive
    target = cache / "archives" / archive.name
    otherwise = f"Run the same command again, or put the file at {target} yourself."
    try:
        pooch.retrieve(
            url,
            f"sha512:{archive.sha512}",
            fname=target.name,
            path=target.parent,
            processor=pooch.Unzip([dataset.folder], extract_dir=str(folder)),
            downloader=pooch.HTTPDownloader(
                progressbar=False if progress is None else _Bar(progress),
                chunk_size=CHUNK_BYTES,
                timeout=TIMEOUT_S,
            ),
        )
    except (requests.ConnectionError, requests.Timeout) as error:
        raise DownloadError(f"could not reach {url}; are you offline? {otherwise}") from error
    except requests.RequestException as error:
        raise DownloadError(f"could not download {url} ({error}). {otherwise}") from error
    except ValueError as error:
        raise DownloadError(
            f"the file from {url} was deleted: its SHA-512 is not the expected one. {otherwise}"
        ) from error


class _Bar:
    """Passes what pooch tells a progress bar on to a function."""

    def __init__(self, progress: DownloadProgress) -> None:
        self._progress = progress
        self._received = 0
        self.total = 0  # pooch sets it; 0: unknown

    def update(self, count: int) -> None:
        self._received += count
        total = self.total or None
        self._progress(min(self._received, total or self._received), total)

    def reset(self) -> None:
        self._received = 0

    def close(self) -> None: ...


def _rename(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not _is_complete(folder):  # otherwise another process was faster
            raise


def _is_complete(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _folder(dataset: Dataset, cache: Path) -> Path:
    return cache / "datasets" / dataset.name


def _cache(cache: Path | None) -> Path:
    import pooch

    chosen = os.environ.get(CACHE_VARIABLE)
    return cache or (Path(chosen).expanduser() if chosen else Path(pooch.os_cache("clusterea")))
