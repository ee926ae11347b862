"""Who is still to be matched, and in which order."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clusterea.fusion import undecided as module
from clusterea.fusion.undecided import undecided
from clusterea.numerics.ties import mixed
from clusterea.types import Pair
from dense_fusion import problem, with_encoders
from whole_runs import vectors_of

NOBODY = np.empty((0, 2), dtype=np.int64)


def test_all_but_the_seeds_with_what_is_theirs() -> None:
    given = problem(0)
    found = undecided([given.embeddings], given.seeds, given.keys, seed=3)
    assert found.num_entities == Pair(31, 24)
    assert found.num_rows == Pair(26, 19)
    assert found.entities.map(lambda side: sorted(side.tolist())) == given.free()
    for entities, vectors, rows in zip(
        found.entities, vectors_of(found), given.embeddings, strict=True
    ):
        assert torch.equal(vectors, rows[entities])
    for entities, keys, of_entity in zip(found.entities, found.keys, given.keys, strict=True):
        assert keys.tolist() == of_entity[entities.numpy()].tolist()


def test_structural_entities_are_left_out_too() -> None:
    given = problem(0)
    never = given.free().map(lambda side: np.array(side[:3]))
    found = undecided([given.embeddings], given.seeds, given.keys, seed=3, structural=never)
    assert found.entities.map(lambda side: sorted(side.tolist())) == given.free().map(
        lambda side: side[3:]
    )


def test_rows_follow_the_keys_and_not_the_ids() -> None:
    given = problem(0)
    found = undecided([given.embeddings], given.seeds, given.keys, seed=3)
    for keys in found.keys:
        hashes = mixed(keys, 3)
        assert torch.equal(hashes, hashes.sort().values)
    new = np.random.default_rng(0).permutation(31)
    moved = undecided(
        [Pair(given.embeddings.source[new], given.embeddings.target)],
        np.stack([np.argsort(new)[given.seeds[:, 0]], given.seeds[:, 1]], 1),
        Pair(given.keys.source[new], given.keys.target),
        seed=3,
    )
    assert torch.equal(vectors_of(moved).source, vectors_of(found).source)
    assert new[moved.entities.source.numpy()].tolist() == found.entities.source.tolist()
    other = undecided([given.embeddings], given.seeds, given.keys, seed=4)
    assert not torch.equal(other.entities.source, found.entities.source)


def test_without_seeds_and_with_nothing_else() -> None:
    given = problem(0, (5, 4), num_seeds=4)
    assert undecided([given.embeddings], NOBODY, given.keys, 0).num_rows == Pair(5, 4)
    assert undecided([given.embeddings], given.seeds, given.keys, 0).num_rows == Pair(1, 0)


def test_seeds_and_keys_as_tensors_and_half_precision() -> None:
    given = problem(0)
    wanted = undecided([given.embeddings], given.seeds, given.keys, 0)
    found = undecided(
        [given.embeddings.map(lambda rows: rows.half())],
        torch.from_numpy(given.seeds),
        given.keys.map(torch.from_numpy),
        0,
    )
    assert torch.equal(found.entities.source, wanted.entities.source)
    rows, others = vectors_of(found).source, vectors_of(wanted).source
    assert rows.dtype == torch.float32
    torch.testing.assert_close(rows, others, rtol=0, atol=1e-3)


@pytest.mark.parametrize("shares", [None, [0.25, 0.25, 0.5], [0.7, 0.1, 0.2], [1.0, 0.0, 0.0]])
def test_products_are_the_mean_of_all_encoders_cosines(shares: list[float] | None) -> None:
    given = with_encoders(problem(0), [9, 3], shares)
    found = undecided(given.encodings, given.seeds, given.keys, 3, shares=shares)
    rows, columns = found.entities
    wanted = torch.from_numpy(given.cosines())[rows][:, columns]
    source, target = vectors_of(found).map(torch.Tensor.double)
    assert source.shape[1] == 6 + 9 + 3
    torch.testing.assert_close(source @ target.T, wanted, rtol=0, atol=1e-6)
    assert float(source.norm(dim=1).max()) <= 1 + 1e-6


def test_source_entities_may_weigh_encoders_differently() -> None:
    given = with_encoders(problem(0), [9, 3], [0.5, 0.25, 0.25])
    draw = torch.Generator().manual_seed(0)
    own = torch.rand(len(given.embeddings.source), 3, generator=draw)
    own[::2, 1] = 0.0
    found = undecided(
        given.encodings, given.seeds, given.keys, 3, shares=given.shares, of_source=own
    )
    rows, columns = found.entities
    wanted = sum(
        own[rows, at].double().unsqueeze(1)
        * (each.source[rows].double() @ each.target[columns].double().T)
        for at, each in enumerate(given.encodings)
    )
    source, target = vectors_of(found).map(torch.Tensor.double)
    torch.testing.assert_close(source @ target.T, wanted, rtol=0, atol=1e-6)


def test_rows_are_moved_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    given = with_encoders(problem(0), [9], [0.7, 0.3])
    entities = undecided(given.encodings, given.seeds, given.keys, 3, shares=given.shares)
    whole = vectors_of(entities)
    for rows in (1, 7, 26):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", rows)
        assert all(torch.equal(*side) for side in vectors_of(entities).zip(whole))


def test_arguments_stay_as_they_are() -> None:
    given = with_encoders(problem(0), [9])
    before = [each.map(torch.clone) for each in given.encodings]
    vectors_of(undecided(given.encodings, given.seeds, given.keys, 3))
    for one, other in zip(given.encodings, before, strict=True):
        assert all(torch.equal(*side) for side in one.zip(other))


def test_a_share_for_each_encoder() -> None:
    given = with_encoders(problem(0), [9])
    with pytest.raises(ValueError, match=r"^shares must be one for each encoder. Got 1 instead.$"):
        undecided(given.encodings, given.seeds, given.keys, 3, shares=[1.0])
