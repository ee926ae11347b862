"""Input data: readers, splits, the generator, and downloads."""

from clusterea.data.load import FORMATS, load

__all__ = ["FORMATS", "load"]
