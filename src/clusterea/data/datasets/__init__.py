"""Public datasets by name: what there is, and a local copy of it."""

from __future__ import annotations

import os
from pathlib import Path

from clusterea.data.datasets.catalog import DATASETS, Archive, Dataset, find_dataset
from clusterea.data.datasets.download import Progress, download
from clusterea.data.datasets.unpack import is_unpacked, unpack
from clusterea.errors import DownloadError

__all__ = ["DATASETS", "Archive", "Dataset", "Progress", "fetch", "is_fetched"]

CACHE_VARIABLE = "CLUSTEREA_CACHE"


def fetch(
    name: str,
    *,
    cache: Path | None = None,
    url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """The folder that holds the dataset, downloaded and unpacked unless it is there already.

    The archive stays in the cache: the other datasets in it then need no network.

    Args:
        name: One of `DATASETS`.
        cache: Where copies are kept; None takes the environment variable CLUSTEREA_CACHE, or else
            the user's cache folder.
        url: A mirror of the dataset's archive; the sum it must have stays.
        progress: Called with the bytes received so far and the bytes in all (None: unknown).

    Raises:
        InputError: There is no dataset of that name.
        DownloadError: The archive can't be had, trusted or unpacked.
    """
    dataset = find_dataset(name)
    cache = _cache(cache)
    folder = _folder(dataset, cache)
    if is_unpacked(folder):
        return folder
    archive = download(
        url or dataset.archive.url,
        cache / "archives" / dataset.archive.name,
        sha512=dataset.archive.sha512,
        progress=progress,
    )
    return unpack(archive, folder, members_under=dataset.folder)


def is_fetched(name: str, cache: Path | None = None) -> bool:
    """Whether `fetch` would return at once.

    Raises:
        InputError: There is no dataset of that name.
    """
    return is_unpacked(_folder(find_dataset(name), _cache(cache)))


def _folder(dataset: Dataset, cache: Path) -> Path:
    return cache / "datasets" / dataset.name


def _cache(cache: Path | None) -> Path:
    if cache is not None:
        return cache
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    try:
        import platformdirs
    except ImportError as error:
        raise DownloadError(
            "finding the user's cache folder needs the package platformdirs, which is not "
            f"installed; run 'pip install platformdirs', or set {CACHE_VARIABLE} to a folder."
        ) from error
    return platformdirs.user_cache_path("clusterea")
