"""Samplers, which cut both graphs into mini-batches. A new one adds a line to `SAMPLERS`."""

from clusterea.samplers.sample import SAMPLERS, find_sampler, recipe, sample
from clusterea.samplers.sampler import Cut, Resources, Sampler, metis_cut, reverse

__all__ = [
    "SAMPLERS",
    "Cut",
    "Resources",
    "Sampler",
    "find_sampler",
    "metis_cut",
    "recipe",
    "reverse",
    "sample",
]
