"""SparseFusion: the similarities of several views added up in one sparse matrix."""

from clusterea.fusion.fuse import fuse
from clusterea.fusion.mean import mean
from clusterea.fusion.views import VIEWS, find_views

__all__ = ["VIEWS", "find_views", "fuse", "mean"]
