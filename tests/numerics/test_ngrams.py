"""Sketches of texts against exact TF-IDF vectors, n-gram by n-gram."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterea.numerics import ngrams
from clusterea.numerics.ngrams import BITS, LONGEST, CodedTexts, document_counts, sketched

Lists = list[list[str]]  # of each owner, its texts
Vector = dict[str, float]

WORDS = ["straße", "ναός", "zürich", "lake", "of", "river", "東京", "a", "𝄞𝄢", "mississippi"]


def coded(lists: Lists) -> tuple[CodedTexts, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The texts with a space around each, and the owner of each."""
    texts = [f" {text} " for own in lists for text in own]
    codes = np.array([ord(letter) for text in texts for letter in text], dtype=np.uint32)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    owners = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
    return CodedTexts(codes, offsets), owners


def grams(text: str) -> Counter[str]:
    padded = f" {text} "
    sizes = range(1, LONGEST + 1)
    found = [padded[at : at + size] for size in sizes for at in range(len(padded) - size + 1)]
    return Counter(gram for gram in found if gram != " ")


def frequencies(lists: Lists) -> Counter[str]:
    """In how many texts each n-gram is."""
    return Counter(gram for own in lists for text in own for gram in grams(text))


def unit(vector: Vector) -> Vector:
    length = sum(value**2 for value in vector.values()) ** 0.5
    return {gram: value / length for gram, value in vector.items()} if length else {}


def exact(own: list[str], weights: dict[str, float]) -> Vector:
    """The TF-IDF vector of one owner."""
    total: Counter[str] = Counter()
    for text in own:
        one = {gram: (1 + log(times)) * weights[gram] for gram, times in grams(text).items()}
        for gram, value in unit(one).items():
            total[gram] += value  # type: ignore[assignment]
    return unit(dict(total))


def cosines(lists: Lists) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The slow twin: all cosines, from dicts."""
    counts, total = frequencies(lists), sum(map(len, lists))
    weights = {gram: log((1 + total) / (1 + count)) for gram, count in counts.items()}
    vectors = [exact(own, weights) for own in lists]
    return np.array(
        [[sum(one[g] * other.get(g, 0.0) for g in one) for other in vectors] for one in vectors]
    )


def sketch(lists: Lists, dimensions: int = 1 << 14, seed: int = 0) -> ngrams.Floats:
    texts, owners = coded(lists)
    counts, total = document_counts(texts), len(texts)
    rarity = np.log((1 + total) / (1 + counts)).astype(np.float32)
    return sketched(texts, owners, len(lists), rarity, dimensions, seed)


def some_lists(count: int = 40, seed: int = 0) -> Lists:
    """Texts of a few words; some owners have several, some none."""
    rng = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS, rng.integers(1, 4)))

    return [[text() for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))] for _ in range(count)]


texts_of_owners = st.lists(
    st.lists(st.text(st.sampled_from("ab é𝄞東"), max_size=7), max_size=3), max_size=5
)


@given(texts_of_owners)
@settings(max_examples=40)
def test_counts_are_those_of_the_loop(lists: Lists) -> None:
    texts, _ = coded(lists)
    found = document_counts(texts)
    assert found.shape == (1 << BITS,)
    assert sorted(found[found > 0].tolist()) == sorted(frequencies(lists).values())


@given(texts_of_owners)
@settings(max_examples=10)
def test_any_texts_have_the_cosines_of_the_loop(lists: Lists) -> None:
    found = sketch(lists).astype(np.float64)
    np.testing.assert_allclose(
        found @ found.T, cosines(lists).reshape(found.shape[0], -1 if lists else 0), atol=0.06
    )


def test_cosines_are_those_of_the_loop_and_errors_shrink_with_dimensions() -> None:
    lists = some_lists()
    wanted = cosines(lists)
    assert ((wanted > 0.1) & (wanted < 0.9)).sum() > 200  # something to get wrong
    errors = {}
    for dimensions in (256, 1 << 14):
        found = sketch(lists, dimensions).astype(np.float64)
        gaps = (found @ found.T - wanted)[~np.eye(len(lists), dtype=bool)]
        errors[dimensions] = float(np.sqrt((gaps**2).mean()))
        assert abs(gaps.mean()) < 3 / dimensions**0.5 / 5  # no bias
    assert errors[256] < 1.2 / 256**0.5
    assert errors[1 << 14] < 1.2 / (1 << 14) ** 0.5


def test_rows_are_of_unit_length_or_zeros() -> None:
    lists = some_lists()
    lengths = np.linalg.norm(sketch(lists, 64), axis=1)
    np.testing.assert_allclose(lengths, [float(bool(own)) for own in lists], atol=1e-6)
    assert 0 < sum(not own for own in lists) < len(lists)


def test_texts_of_an_owner_weigh_the_same_whatever_their_length() -> None:
    lists = [["a b"], ["the longest of all these texts"], ["a b", "the longest of all these texts"]]
    found = sketch([*lists, *some_lists()])
    assert found[2] @ found[0] == pytest.approx(found[2] @ found[1], abs=0.02)


def test_letters_beyond_the_basic_plane_are_one_letter_each() -> None:
    """In UTF-16, both would begin with the same code unit."""
    found = sketch([["𝄞"], ["𝄢"], ["𝄞"], ["x"]])
    assert found[0] @ found[1] == pytest.approx(0, abs=0.05)
    assert found[0] @ found[2] == pytest.approx(1)


@pytest.mark.parametrize("characters", [1, 9, 50, 200])
def test_block_size_changes_nothing(characters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = some_lists()
    whole, counts = sketch(lists, 64), document_counts(coded(lists)[0])
    monkeypatch.setattr(ngrams, "CHARACTERS_AT_ONCE", characters)
    assert np.array_equal(document_counts(coded(lists)[0]), counts)
    assert np.array_equal(sketch(lists, 64), whole)


def test_an_owner_without_texts_costs_nothing_but_its_row() -> None:
    """Two texts, and a million owners between them that have none."""
    texts, _ = coded([["one"], ["two"]])
    ones = np.ones(1 << BITS, dtype=np.float32)
    found = sketched(texts, np.array([0, 999_999]), 1_000_000, ones, 8, 0)
    assert np.flatnonzero(found.any(axis=1)).tolist() == [0, 999_999]
    near = sketched(texts, np.array([0, 1]), 2, ones, 8, 0)
    assert np.array_equal(found[[0, -1]], near)


@pytest.mark.parametrize("dimensions", [8, 30, 61])
def test_any_width(dimensions: int) -> None:
    found = sketch(some_lists(), dimensions)
    assert found.shape == (40, dimensions)
    assert found.dtype == np.float32
    assert found.any(axis=0).all()  # no dimension is left out


def test_seeds_of_the_projection_differ() -> None:
    one, other = (sketch(some_lists(), 64, seed) for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert np.array_equal(sketch(some_lists(), 64), one)


@pytest.mark.parametrize("owners", [0, 3])
def test_no_texts_at_all(owners: int) -> None:
    lists: Lists = [[] for _ in range(owners)]
    assert not document_counts(coded(lists)[0]).any()
    assert np.array_equal(sketch(lists, 8), np.zeros((owners, 8), dtype=np.float32))


def test_an_n_gram_of_all_texts_weighs_nothing() -> None:
    """So names that are all alike are rows of zeros, and tell nothing."""
    assert not sketch([["same"], ["same"]], 64).any()
