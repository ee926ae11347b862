"""SparseFusion: the similarities of several views added up in one sparse matrix."""

from clusterea.fusion.content import link_gains
from clusterea.fusion.mean import mean, restored
from clusterea.fusion.trust import Trust, fit_trust, surest_pairs
from clusterea.fusion.views import VIEWS, find_views

__all__ = [
    "VIEWS",
    "Trust",
    "find_views",
    "fit_trust",
    "link_gains",
    "mean",
    "restored",
    "surest_pairs",
]
