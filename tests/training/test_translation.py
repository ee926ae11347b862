"""Translated names: a dictionary that pairs show, and that no pair is confirmed by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.config import NamesConfig
from clusterea.sharded import encode_names
from clusterea.training.translation import FEWEST, PARTS, RIDGE, translate
from clusterea.types import IntArray, Pair, Texts

ENTITIES, WORDS = 500, 60


def coded_names(seed: int = 0) -> Pair[Texts]:
    """Entity i has the same words on both sides, each written in the letters of its side."""
    rng = np.random.default_rng(seed)
    languages = [
        ["".join(rng.choice(list(letters), 5)) for _ in range(WORDS)]
        for letters in ("abcdefghij", "klmnopqrst")
    ]
    chosen = rng.integers(0, WORDS, (ENTITIES, 3))
    return Pair(
        *(
            Texts.of_lists([[" ".join(words[w] for w in row)] for row in chosen])
            for words in languages
        )
    )


@pytest.fixture(scope="module")
def names() -> Pair[Tensor]:
    return encode_names(coded_names(), NamesConfig(dimensions=256))


def same(count: int) -> IntArray:
    """The pairs (i, i) of the first entities."""
    return np.stack([np.arange(count)] * 2, 1)


def hits(vectors: Pair[Tensor], entities: slice) -> float:
    """How often the nearest target of an entity is its own counterpart."""
    nearest = (vectors.source @ vectors.target.T).argmax(1)
    return float((nearest == torch.arange(ENTITIES))[entities].float().mean())


def loop(names: Pair[Tensor], pairs: IntArray) -> Tensor:
    """The slow twin: for each source, ridge regression on the pairs that are not of its part."""
    part_of = {int(source): at % PARTS for at, source in enumerate(pairs[:, 0])}
    result = torch.zeros_like(names.source)
    maps: dict[int, Tensor] = {}
    for part in (-1, *range(PARTS)):
        kept = [(int(s), int(t)) for s, t in pairs if part_of[int(s)] != part]
        left = torch.stack([names.source[s] for s, _ in kept]).double()
        right = torch.stack([names.target[t] for _, t in kept]).double()
        inverse = (left.T @ left + RIDGE * torch.eye(left.shape[1])).inverse()
        maps[part] = inverse @ left.T @ right
    for source in range(len(names.source)):
        row = names.source[source].double() @ maps[part_of.get(source, -1)]
        result[source] = normalize(row, dim=0)
    return result


def test_pairs_show_the_words_of_others(names: Pair[Tensor]) -> None:
    unseen = slice(300, None)
    assert hits(names, unseen) < 0.05  # the languages have no letter in common
    found = translate(names, same(300))
    assert hits(found, unseen) > 0.8
    assert hits(found, slice(300)) > 0.8  # by the maps of the other parts
    assert torch.equal(found.target, names.target)


def test_more_pairs_show_more(names: Pair[Tensor]) -> None:
    unseen = slice(300, None)
    assert hits(translate(names, same(100)), unseen) < hits(translate(names, same(300)), unseen)


def test_it_is_the_map_of_the_other_parts(names: Pair[Tensor]) -> None:
    pairs = same(203)  # not a multiple of the parts
    pairs[[7, 90]] = pairs[[90, 7]]
    torch.testing.assert_close(
        translate(names, pairs).source, loop(names, pairs), rtol=0, atol=1e-5
    )


def test_a_wrong_pair_is_not_confirmed(names: Pair[Tensor]) -> None:
    """Its own map never saw it: the vector is that of a map fitted without the pair's part."""
    pairs = same(300)
    wrong = pairs.copy()
    wrong[10, 1], wrong[23, 1] = 23, 10
    right, found = translate(names, pairs), translate(names, wrong)
    cosine = found.source @ names.target.T
    for one, other in ((10, 23), (23, 10)):
        assert float(cosine[one, one]) > float(cosine[one, other]) + 0.3
    confirmed = normalize(_with_all(names, wrong), dim=1) @ names.target.T
    assert float(confirmed[10, 23]) > float(cosine[10, 23]) + 0.1  # what the parts are for
    own = np.arange(300) % PARTS
    kept = (own != own[10]) & (own != own[23])  # sources of other parts learn from the wrong pair
    assert not torch.equal(found.source[:300][kept], right.source[:300][kept])


def _with_all(names: Pair[Tensor], pairs: IntArray) -> Tensor:
    """Mapped by a map that is fitted on all pairs."""
    left, right = names.source[pairs[:, 0]].double(), names.target[pairs[:, 1]].double()
    by = torch.linalg.solve(left.T @ left + RIDGE * torch.eye(left.shape[1]), left.T @ right)
    mapped: Tensor = (names.source.double() @ by).float()
    return mapped


def test_rows_are_of_unit_length_or_zeros(names: Pair[Tensor]) -> None:
    some = names.map(torch.clone)
    some.source[::7] = 0
    some.target[::5] = 0
    found = translate(some, same(300))
    lengths = found.source.norm(dim=1)
    torch.testing.assert_close(lengths, some.source.any(1).float(), rtol=0, atol=1e-5)
    assert torch.equal(found.target, some.target)


@pytest.mark.parametrize("count", [0, 1, FEWEST - 1])
def test_too_few_pairs_show_nothing(names: Pair[Tensor], count: int) -> None:
    found = translate(names, same(count))
    assert not found.source.any()
    assert not found.target.any()
    assert found.map(lambda rows: rows.shape) == names.map(lambda rows: rows.shape)


def test_only_pairs_with_two_names_count(names: Pair[Tensor]) -> None:
    assert translate(names, same(FEWEST)).source.any()
    some = names.map(torch.clone)
    some.target[3] = 0
    assert not translate(some, same(FEWEST)).source.any()
    # A pair without a name changes nothing.
    some.source[ENTITIES - 1] = 0
    more = np.concatenate([same(200)[np.arange(200) != 3], [[ENTITIES - 1, 450], [460, 3]]])
    one, other = (translate(some, pairs).source for pairs in (more, more[:-2]))
    assert torch.equal(one, other)


def test_arguments_stay_as_they_are(names: Pair[Tensor]) -> None:
    before, pairs = names.map(torch.clone), same(200)
    translate(names, pairs)
    assert all(torch.equal(*side) for side in names.zip(before))
    assert np.array_equal(pairs, same(200))
