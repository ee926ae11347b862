"""Public datasets by name: the catalog, and a local copy of each."""

from clusterea.data.datasets.catalog import DATASETS, Archive, Dataset
from clusterea.data.datasets.fetch import DownloadProgress, fetch, is_fetched

__all__ = ["DATASETS", "Archive", "Dataset", "DownloadProgress", "fetch", "is_fetched"]
