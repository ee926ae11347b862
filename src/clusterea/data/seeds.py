"""Seeds and test links of a layout: read, turned into one-to-one ids, split."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from clusterea.data.layouts import LAYOUTS, Layout, fold_files
from clusterea.data.links import (
    NamedLinks,
    find_line,
    one_to_one,
    read_bare_links,
    read_links,
    to_ids,
)
from clusterea.data.splits import Split, divide
from clusterea.errors import DataError, InputError, cut
from clusterea.types import IntArray, Names, Pair

UNKNOWN = "links with an entity in no triple"
CONTESTED = "links of an entity already linked"
NO_EQUIVALENCE = "statements that are no link"


def seeds_and_test_links(
    layout: Layout, keys: Pair[Names], split: Split, dropped: Counter[str]
) -> tuple[IntArray, IntArray]:
    """Seeds and test links, both (n, 2) ids and together one-to-one; counts what it drops.

    `keys` are the entities as the layout's files call them.
    """
    chosen = layout.format not in LAYOUTS  # the caller named the files one by one
    if split.how == "fold":
        train_path, test_path = fold_files(layout, split.fold)
        return _given(train_path, test_path, keys, dropped, chosen=chosen)
    if layout.seeds is not None:
        seeds, test_links = _given(layout.seeds, layout.test_links, keys, dropped, chosen=chosen)
        if split.how == "given":
            return seeds, test_links
        return divide(np.concatenate([seeds, test_links]), split)
    if layout.links is None:
        raise InputError("this data has no links, so there are no seeds.")
    links = _read(layout.links, keys, dropped, chosen=chosen)
    one = one_to_one(links)
    dropped[CONTESTED] += len(links) - len(one)
    return (one, one[:0]) if split.how == "given" else divide(one, split)


def _read(
    path: Path | NamedLinks, keys: Pair[Names], dropped: Counter[str], *, chosen: bool
) -> IntArray:
    if isinstance(path, NamedLinks):
        named = path
    else:
        named = read_links(path) if chosen else read_bare_links(path)
    links, unknown = to_ids(named, keys)
    dropped[UNKNOWN] += unknown
    dropped[NO_EQUIVALENCE] += named.skipped
    return links


def _given(
    seeds_path: Path | NamedLinks,
    test_path: Path | NamedLinks | None,
    keys: Pair[Names],
    dropped: Counter[str],
    *,
    chosen: bool,
) -> tuple[IntArray, IntArray]:
    """Seeds and test links from two files. A contradiction is an error if the user chose them."""
    seeds = _read(seeds_path, keys, dropped, chosen=chosen)
    kept = one_to_one(seeds)
    if chosen:
        _refuse_contradiction(seeds, kept, seeds_path, keys)
    dropped[CONTESTED] += len(seeds) - len(kept)
    if test_path is None:
        return kept, kept[:0]
    test_links = _read(test_path, keys, dropped, chosen=chosen)
    _refuse_overlap(kept, test_links, test_path, keys, strict=chosen)
    joined = one_to_one(np.concatenate([kept, test_links]))
    dropped[CONTESTED] += len(kept) + len(test_links) - len(joined)
    return kept, joined[len(kept) :]


def _refuse_contradiction(
    seeds: IntArray, kept: IntArray, path: Path | NamedLinks, keys: Pair[Names]
) -> None:
    """Raises if a dropped seed contradicts a kept one, and does not just repeat it."""
    stated = {tuple(link) for link in kept.tolist()}
    for source, target in seeds.tolist() if len(kept) < len(seeds) else ():
        if (source, target) not in stated:
            names = keys.source[source], keys.target[target]
            taken = names[0] if (kept[:, 0] == source).any() else names[1]
            raise _fault(
                path,
                f"expected one counterpart for each entity, got a second one for "
                f"{cut(repr(taken))} in the seed {', '.join(cut(repr(name)) for name in names)}.",
                names,
            )


def _refuse_overlap(
    seeds: IntArray,
    test_links: IntArray,
    path: Path | NamedLinks,
    keys: Pair[Names],
    *,
    strict: bool,
) -> None:
    """Raises if a test link is a seed or, if `strict`, shares an entity with one."""
    by_source = np.full(len(keys.source), -1)
    by_source[seeds[:, 0]] = seeds[:, 1]
    clash = by_source[test_links[:, 0]] == test_links[:, 1]
    if strict:
        clash |= np.isin(test_links[:, 0], seeds[:, 0]) | np.isin(test_links[:, 1], seeds[:, 1])
    if clash.any():
        source, target = test_links[clash][0].tolist()
        names = keys.source[source], keys.target[target]
        raise _fault(
            path,
            f"expected test links of entities that no seed decides, got "
            f"{', '.join(cut(repr(name)) for name in names)} "
            f"({int(clash.sum()):,} such test links).",
            names,
        )


def _fault(path: Path | NamedLinks, problem: str, names: tuple[str, str]) -> DataError:
    """The error about a link between two names, with its line where there is a file."""
    if isinstance(path, NamedLinks):
        return DataError(path.path, problem)
    return DataError(path, problem, line=find_line(path, *names))
