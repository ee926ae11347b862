"""`Split`: which links are seeds and which are test links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from clusterea.errors import InputError, unknown_name
from clusterea.types import IntArray

How = Literal["given", "first", "random", "fold"]
DEFAULT_SHARE = 0.3  # as in the paper


@dataclass(frozen=True, slots=True)
class Split:
    """The choice made. `given` without test links means that every link is a seed."""

    how: How
    seeds_share: float = DEFAULT_SHARE
    seed: int = 0
    fold: int = 1


def settle(
    how: str | None, seeds_share: float | None, split_seed: int | None, fold: int | None
) -> Split:
    """The split that the options ask for. Raises if they contradict each other.

    A share alone means `first`, a fold alone means `fold`, nothing at all means `given`.
    """
    known = get_args(How)
    if how is not None and how not in known:
        raise unknown_name("split", how, known)
    if how is None:
        how = "fold" if fold is not None else "given" if seeds_share is None else "first"
    if seeds_share is not None and how not in ("first", "random"):
        raise InputError(f"--seeds-share goes with --split=first or random, not with {how}.")
    if split_seed is not None and how != "random":
        raise InputError(f"--split-seed goes with --split=random, not with {how}.")
    if fold is not None and how != "fold":
        raise InputError(f"--fold goes with --split=fold, not with {how}.")
    share = DEFAULT_SHARE if seeds_share is None else seeds_share
    if not 0 < share <= 1:
        raise InputError(f"--seeds-share must be a number in (0, 1]. Got {share} instead.")
    if split_seed is not None and split_seed < 0:
        raise InputError(f"--split-seed must be an int in [0, inf). Got {split_seed} instead.")
    return Split(how, share, split_seed or 0, 1 if fold is None else fold)  # type: ignore[arg-type]


def divide(links: IntArray, split: Split) -> tuple[IntArray, IntArray]:
    """Seeds and test links: the first ⌊share · n⌋ links, of the file's order or of a random one."""
    # The tiny addend makes 0.29 · 100 give 29, not 28.
    count = int(split.seeds_share * len(links) + 1e-9)
    if count == 0:
        raise InputError(
            f"--seeds-share {split.seeds_share} of {len(links):,} links leaves no seeds."
        )
    if split.how == "random":
        links = links[np.random.default_rng(split.seed).permutation(len(links))]
    return links[:count], links[count:]
