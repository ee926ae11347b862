"""Samplers: both graphs cut into mini-batches. A new one adds a line to `SAMPLERS`."""

from clusterea.samplers.sample import SAMPLERS, find_sampler, sample
from clusterea.samplers.sampler import Cut, Place, Sampler, metis_cut, reverse

__all__ = ["SAMPLERS", "Cut", "Place", "Sampler", "find_sampler", "metis_cut", "reverse", "sample"]
