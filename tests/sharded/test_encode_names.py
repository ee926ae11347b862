"""The encoder of names: what its vectors depend on, and what not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from cut_engines import CUTS, cutting, small_tiles

from clusterea.config import NamesConfig
from clusterea.numerics import ngrams
from clusterea.sharded import encode_names
from clusterea.types import Pair, Texts

CONFIG = NamesConfig(dimensions=256)
SYLLABLES = ["ka", "ro", "mi", "ten", "shu", "vel", "ß", "дом", "京", "𝄞"]


def some_names(count: int, seed: int) -> Texts:
    """Names of two words; every fifth entity has none, every seventh two."""
    rng = np.random.default_rng(seed)

    def name() -> str:
        return " ".join("".join(rng.choice(SYLLABLES, 3)) for _ in range(2))

    return Texts.of_lists(
        [[name() for _ in range(0 if i % 5 == 4 else 2 if i % 7 == 3 else 1)] for i in range(count)]
    )


@pytest.fixture(scope="module")
def names() -> Pair[Texts]:
    return Pair(some_names(60, 0), some_names(45, 1))


def test_equal_names_have_cosine_1_and_others_less(names: Pair[Texts]) -> None:
    both = Pair(names.source, names.source.take(np.arange(60)[::-1]))
    found = encode_names(both, CONFIG)
    has_name = names.source.counts > 0
    cosines = found.source @ found.target.flip(0).T
    assert torch.equal(found.source, found.target.flip(0))
    np.testing.assert_allclose(cosines.diag().numpy(), has_name.astype(float), atol=1e-6)
    others = cosines - torch.diag(cosines.diag())
    assert float(others.max()) < 0.9


def test_a_name_that_is_nearly_equal_is_near(names: Pair[Texts]) -> None:
    near = Texts.of_lists([["karomi tenshuvel"], ["karomi tenshvel"], ["ten ten"]])
    found = encode_names(Pair(names.source, near), NamesConfig(dimensions=2048)).target
    assert 0.6 < float(found[0] @ found[1]) < 0.99
    assert float(found[0] @ found[2]) < 0.4


def test_without_a_name_there_is_no_vector(names: Pair[Texts]) -> None:
    found = encode_names(names, CONFIG)
    for rows, texts in found.zip(names):
        assert rows.dtype == torch.float32
        assert rows.shape == (texts.num_entities, 256)
        assert (rows.any(1).numpy() == (texts.counts > 0)).all()
        assert texts.share < 1


def test_entities_in_another_order_have_the_same_vectors(
    names: Pair[Texts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, though several texts of an entity are then in other blocks."""
    monkeypatch.setattr(ngrams, "CHARACTERS_AT_ONCE", 40)
    found = encode_names(names, CONFIG)
    rng = np.random.default_rng(3)
    for _ in range(3):
        order = Pair(rng.permutation(60), rng.permutation(45))
        moved = encode_names(names.zip(order).map(lambda side: side[0].take(side[1])), CONFIG)
        for rows, (before, ids) in moved.zip(found.zip(order)):
            assert torch.equal(rows, before[torch.from_numpy(ids)])


def test_threads_change_nothing(names: Pair[Texts]) -> None:
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(encode_names(names, CONFIG))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(*side) for side in found[0].zip(found[1]))


def test_rarity_is_counted_over_both_sides() -> None:
    """A word that the target has everywhere tells little about the source too."""
    source = Texts.of_lists([["river alpha"], ["river beta"]])
    rare = Texts.of_lists([[f"hill {letter * 3}"] for letter in "abcdefgh"])
    common = Texts.of_lists([[f"river {letter * 3}"] for letter in "abcdefgh"])
    among_rare, among_common = (
        encode_names(Pair(source, target), NamesConfig(dimensions=2048)).source
        for target in (rare, common)
    )
    assert among_common[0] @ among_common[1] < among_rare[0] @ among_rare[1] - 0.1


def test_sides_are_exchangeable(names: Pair[Texts]) -> None:
    found, turned = encode_names(names, CONFIG), encode_names(names.swap(), CONFIG)
    assert all(torch.equal(*side) for side in found.zip(turned.swap()))


def test_another_seed_gives_another_projection(names: Pair[Texts]) -> None:
    one, other = (encode_names(names, NamesConfig(dimensions=256, seed=seed)) for seed in (0, 1))
    assert not torch.equal(one.source, other.source)


@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (2, 3)])
def test_no_names_at_all(sizes: tuple[int, int]) -> None:
    nothing = Pair(*sizes).map(lambda size: Texts.of_lists([[]] * size))
    found = encode_names(nothing, NamesConfig(dimensions=8))
    assert found.map(lambda rows: tuple(rows.shape)) == Pair(*sizes).map(lambda size: (size, 8))
    assert not any(rows.any() for rows in found)


def test_a_slice_of_texts_is_read_from_its_start() -> None:
    """Arrow arrays share buffers: a slice's text does not begin where the buffer does."""
    whole = Texts.of_lists([["alpha"], ["beta"], ["gamma"], ["delta"]])
    part = Texts(np.array([0, 1, 2]), whole.values[2:])
    other = Texts.of_lists([["gamma"], ["delta"]])
    found = encode_names(Pair(part, other), CONFIG)
    assert torch.equal(found.source, found.target)
    assert found.source.any(1).all()


@CUTS
def test_shards_change_no_byte(
    shards: int,
    is_out_of_core: bool,
    names: Pair[Texts],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    small_tiles(monkeypatch)
    wanted = encode_names(names, CONFIG)
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        found = encode_names(names, CONFIG, engine=engine)
    assert found.source.equal(wanted.source)
    assert found.target.equal(wanted.target)
