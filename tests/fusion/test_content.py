"""Names and features in fusion, against a dense twin; and what they leave as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.errors import InputError
from clusterea.fusion import link_gains
from clusterea.fusion.content import content_weights, with_gains
from clusterea.fusion.trust import Trust
from clusterea.fusion.undecided import undecided
from clusterea.sharded import fuse
from clusterea.types import NO_ENTITIES, IntArray, KnowledgeGraph, Pair, Similarity
from dense_fusion import Floats, Problem, assert_cells, cells_of, dense_fuse, problem, quick
from whole_runs import searched, vectors_of

GAINS = (
    np.array([0, 0, 0.5, 0.5, 2, 3, 3, 3.25, 4, 6.0]),
    np.array([0, 1, 1.5, 2, 2, 2, 2, 2, 2.5, 3.0]),
)
KNOTS = (np.linspace(0.1, 1, 10), np.linspace(0, 1, 10))


def trust_in(count: int = 1) -> Trust:
    return Trust(
        torch.from_numpy(np.stack(KNOTS[:count])), torch.from_numpy(np.stack(GAINS[:count]))
    )


def contents_of(given: Problem, count: int = 1, seed: int = 50) -> list[Pair[Tensor]]:
    """Vectors of another width, in part alike on both sides; some entities have none."""
    rng = np.random.default_rng(seed)

    def one(dim: int) -> Pair[Tensor]:
        bases = rng.normal(size=(9, dim))

        def side(rows: Tensor) -> Tensor:
            near = bases[rng.integers(0, 9, len(rows))] + 0.4 * rng.normal(size=(len(rows), dim))
            near /= np.linalg.norm(near, axis=1, keepdims=True)
            near[rng.random(len(rows)) < 0.2] = 0
            return torch.from_numpy(near).float()

        return given.embeddings.map(side)

    return [one(dim) for dim in (8, 5)[:count]]


@dataclass(frozen=True)
class Named(Problem):
    """A problem of fusion with contents; `cosines` has their gains too."""

    contents: list[Pair[Tensor]] = field(default_factory=list)
    trust: Trust | None = None
    temperature: float = 0.05

    def cosines(self) -> Floats:
        total = super().cosines()
        for at, each in enumerate(self.contents):
            own = (each.source.double() @ each.target.double().T).numpy()
            total = total + self.temperature * np.interp(own, KNOTS[at], GAINS[at])
        return np.asarray(total, dtype=np.float64)

    def fuse_named(
        self,
        config: FusionConfig,
        hidden: Pair[IntArray] = NO_ENTITIES,
        encodings: Sequence[Pair[Tensor]] | None = None,
        block_cells: int | None = None,
    ) -> Similarity:
        return fuse(
            self.encodings if encodings is None else encodings,
            self.partitions,
            self.seeds,
            self.keys,
            config,
            contents=self.contents,
            trust=self.trust,
            hidden=hidden,
            block_cells=block_cells,
        )


def named(seed: int = 0, count: int = 1, **more: Any) -> Named:
    given = problem(seed, **more)
    return Named(
        given.embeddings,
        given.partitions,
        given.seeds,
        given.keys,
        contents=contents_of(given, count),
        trust=trust_in(count),
    )


def same(one: Similarity, other: Similarity) -> None:
    assert torch.equal(one.row_offsets, other.row_offsets)
    assert torch.equal(one.columns, other.columns)
    assert torch.equal(one.values, other.values)


class TestGains:
    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("candidates", [3, 100])
    def test_they_replace_the_weighted_cosines(self, candidates: int, count: int) -> None:
        """Of the candidates that the search found, best first."""
        given, config = named(count=count), quick(candidates=candidates)
        assert given.trust is not None
        unit = config.sinkhorn_temperature
        entities = undecided(
            given.encodings,
            given.seeds,
            given.keys,
            config.seed,
            contents=given.contents,
            content_weights=content_weights(given.trust, unit),
        )
        before = searched(entities, config, torch.device("cpu"))
        source, target = vectors_of(entities)
        more = [8, 5][:count], given.trust, unit
        found = Pair(
            with_gains(before.source, source, [target], *more),
            with_gains(before.target, target, [source], *more),
        )
        sides = ((found.source, before.source), (found.target, before.target))
        for at, (after, old) in enumerate(sides):
            wanted = given.cosines() if at == 0 else given.cosines().T
            rows, columns = list(entities.entities)[:: 1 if at == 0 else -1]
            assert torch.equal(after.indices.sort(1).values, old.indices.sort(1).values)
            assert (after.values.diff(dim=1) <= 0).all()
            near = wanted[rows.numpy()[:, None], columns[after.indices].numpy()]
            np.testing.assert_allclose(after.values, near, atol=1e-5)
        assert not torch.equal(found.source.indices, before.source.indices)  # the order changes

    def test_the_search_goes_by_their_mean_slope(self) -> None:
        trust = trust_in(2)
        assert content_weights(trust, 0.05) == pytest.approx([0.05 * 6 / 0.9, 0.05 * 3])

    def test_gains_of_links(self) -> None:
        given = named()
        links = torch.tensor([[0, 0], [3, 7], [3, 7], [30, 2]])
        found = link_gains(given.contents[0], trust_in(2), 0, links)
        assert found.dtype == torch.float32
        cosines = (
            given.contents[0].source[links[:, 0]] * given.contents[0].target[links[:, 1]]
        ).sum(1)
        np.testing.assert_allclose(found, np.interp(cosines, KNOTS[0], GAINS[0]), atol=1e-5)
        assert link_gains(given.contents[0], trust_in(2), 0, links[:0]).shape == (0,)


SWITCHES: list[dict[str, Any]] = [
    {"views": ("sinkhorn",), "csls": False},
    {"views": ("sinkhorn",), "csls": False, "outside": "neighbors"},
    {"views": ("global",)},
    {"views": ("sinkhorn", "global"), "outside": "best"},
]


class TestFused:
    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("switches", SWITCHES, ids=str)
    def test_as_the_dense_twin(self, switches: dict[str, Any], count: int) -> None:
        given, config = named(count=count), quick(candidates=100, **switches)
        found = given.fuse_named(config)
        assert_cells(found, dense_fuse(given, config), 1e-4)
        without = cells_of(given.fuse(config))
        assert max(abs(value - without[cell]) for cell, value in cells_of(found).items()) > 0.1

    @pytest.mark.parametrize("views", [("local", "global"), ("local", "sinkhorn"), ("support",)])
    def test_a_trust_of_zeros_is_no_content_at_all(self, views: tuple[str, ...]) -> None:
        given, config = named(), quick(views=views)
        knots = trust_in().knots
        rng = np.random.default_rng(0)
        graphs = given.embeddings.map(
            lambda rows: KnowledgeGraph(
                np.stack([rng.integers(0, top, 60) for top in (len(rows), 2, len(rows))], 1),
                len(rows),
                2,
            )
        )
        arguments = (given.encodings, given.partitions, given.seeds, given.keys, config)
        plain = fuse(*arguments, graphs=graphs)
        for trust in (Trust(knots, torch.zeros_like(knots)), None):
            same(fuse(*arguments, graphs=graphs, contents=given.contents, trust=trust), plain)
        changed = fuse(*arguments, graphs=graphs, contents=given.contents, trust=trust_in())
        assert cells_of(changed) != cells_of(plain)

    def test_one_of_two_without_a_gain_has_no_say(self) -> None:
        given = named(count=2)
        gains = trust_in(2).gains.clone()
        gains[1] = 0
        config = quick(candidates=100, views=("sinkhorn",))
        found = fuse(
            given.encodings,
            [],
            given.seeds,
            given.keys,
            config,
            contents=given.contents,
            trust=Trust(trust_in(2).knots, gains),
        )
        alone = named()
        assert_cells(found, dense_fuse(alone, config), 1e-4)

    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("views", [("local", "global"), ("sinkhorn",)])
    def test_hidden_entities_have_no_vectors(self, views: tuple[str, ...], count: int) -> None:
        given, config = named(count=count), quick(views=views)
        free = given.free()
        hidden = Pair(np.array(free.source[:8]), np.array(free.target[3:9]))
        bare = [each.map(torch.clone) for each in given.contents]
        for each in bare:
            each.source[hidden.source] = 0
            each.target[hidden.target] = 0
        found = given.fuse_named(config, hidden)
        same(found, Named(**{**vars(given), "contents": bare}).fuse_named(config))
        assert cells_of(found) != cells_of(given.fuse_named(config))

    def test_names_alone(self) -> None:
        given, config = named(), quick(candidates=100, views=("sinkhorn",))
        found = given.fuse_named(config, encodings=[])
        silent = given.embeddings.map(torch.zeros_like)
        twin = Named(**{**vars(given), "embeddings": silent})
        assert_cells(found, dense_fuse(twin, config), 1e-4)

    def test_names_alone_that_tell_nothing(self) -> None:
        given = named()
        knots = trust_in().knots
        nothing = Named(**{**vars(given), "trust": Trust(knots, torch.zeros_like(knots))})
        with pytest.raises(InputError, match="tell nothing .*Add an encoder of structure"):
            nothing.fuse_named(quick(), encodings=[])

    @pytest.mark.parametrize("views", [("local", "global"), ("sinkhorn",)])
    def test_blocks_change_nothing(self, views: tuple[str, ...]) -> None:
        given, config = named(sizes=(70, 60)), quick(views=views)
        whole = given.fuse_named(config)
        for block_cells in (1, 64, 1 << 20):
            same(given.fuse_named(config, block_cells=block_cells), whole)

    def test_arguments_stay_as_they_are(self) -> None:
        given = named()
        before = given.contents[0].map(torch.clone)
        free = given.free().map(lambda side: np.array(side[:4]))
        given.fuse_named(quick(), free)
        assert all(torch.equal(*side) for side in given.contents[0].zip(before))


class TestUndecided:
    def test_contents_are_the_last_dimensions(self) -> None:
        given = named(count=2)
        found = undecided(
            given.encodings,
            given.seeds,
            given.keys,
            3,
            contents=given.contents,
            content_weights=[0.25, 4.0],
        )
        assert found.tables.source.widths == [6, 8, 5]
        assert found.tables.target.num_contents == 2
        places = (slice(6, 14), slice(14, 19))
        for place, each, root in zip(places, given.contents, (0.5, 2.0), strict=True):
            for rows, (vectors, entities) in vectors_of(found).zip(each.zip(found.entities)):
                assert torch.equal(rows[:, place], root * vectors[entities])

    def test_of_source_weighs_structure_alone(self) -> None:
        given = named()
        own = torch.full((31, 1), 0.25)
        arguments = (given.encodings, given.seeds, given.keys, 3)
        more: dict[str, Any] = {"contents": given.contents, "content_weights": [0.5]}
        plain = undecided(*arguments, **more)
        found = undecided(*arguments, of_source=own, **more)
        rows, others = vectors_of(found).source, vectors_of(plain).source
        torch.testing.assert_close(rows[:, :6], 0.25 * others[:, :6])
        assert torch.equal(rows[:, 6:], others[:, 6:])
