from __future__ import annotations

import numpy as np
import pytest

from clusterea.data.synthetic.facts import Facts
from clusterea.data.synthetic.population import Pool, draw_population
from clusterea.data.synthetic.shapes import SHAPES, PairShape
from clusterea.data.synthetic.views import draw_view
from clusterea.data.synthetic.vocabulary import draw_vocabulary
from clusterea.data.synthetic.world import World, draw_world
from clusterea.types import Pair

SHAPE = SHAPES["demo"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def world() -> World:
    return draw_world(SHAPE, rng())


def triples(facts: Facts) -> set[tuple[int, int, int]]:
    columns = (facts.heads.tolist(), facts.relations.tolist(), facts.tails.tolist())
    return set(zip(*columns, strict=True))


def test_each_view_keeps_its_share_of_the_shared_facts(world: World) -> None:
    shared = triples(world.shared)
    assert len(shared) == len(world.shared)
    for ours, shape in ((world, SHAPE), (world.swap(), SHAPE.swap())):
        view = triples(draw_view(ours, shape, rng(1)))
        share = len(view & shared) / len(shared)
        assert share == pytest.approx(shape.kept_share.source, abs=1e-3)


def test_what_is_not_shared_the_other_view_could_not_state(world: World) -> None:
    view = draw_view(world, SHAPE, rng(1))
    shared = triples(world.shared)
    common = world.population.common
    foreign_words = world.vocabulary.words.target
    own = [fact for fact in triples(view) if fact not in shared]
    statable = [
        1 for head, relation, tail in own
        if head < common and tail < common and foreign_words[relation] >= 0
    ]  # fmt: skip
    assert own
    # Only who would be left without any fact may be given one that both could state.
    assert len(statable) <= 0.02 * len(own)


def test_shared_facts_touch_every_common_entity(world: World) -> None:
    touched = np.union1d(world.shared.heads, world.shared.tails)
    assert np.array_equal(touched, np.arange(SHAPE.links))


def test_shared_facts_are_distinct_in_both_vocabularies(world: World) -> None:
    for word in world.vocabulary.words:
        facts = world.shared
        said = set(
            zip(
                facts.heads.tolist(),
                word[facts.relations].tolist(),
                facts.tails.tolist(),
                strict=True,
            )
        )
        assert len(said) == len(facts)
        assert (word[facts.relations] >= 0).all()


def test_facts_stay_in_the_neighborhood(world: World) -> None:
    place, facts = world.population.position, world.shared
    near = np.abs(place[facts.heads] - place[facts.tails]) < 0.1
    by_chance = np.abs(place[facts.heads] - rng().permutation(place[facts.tails])) < 0.1
    assert near.mean() > 0.5
    assert by_chance.mean() < 0.25


def test_facts_stay_in_the_community(world: World) -> None:
    population, facts = world.population, world.shared
    heads, tails = (population.community(ends) for ends in (facts.heads, facts.tails))
    assert (heads == tails).mean() > 2 * (heads == rng().permutation(tails)).mean()


def test_siblings_share_type_and_views() -> None:
    population = draw_population(SHAPE, rng())
    status = np.searchsorted(
        [population.common, SHAPE.entities.source], np.arange(population.size), side="right"
    )
    assert (np.bincount(population.family) > 1).sum() > 100
    for trait in (population.kind, status):
        first = np.full(population.family.max() + 1, -1)
        first[population.family] = trait
        assert (first[population.family] == trait).all()


def test_relatives_are_all_of_the_family() -> None:
    population = draw_population(SHAPE, rng())
    asked = np.array([5, 0, 5, 77])
    relatives, origin = population.relatives(asked)
    for position, entity in enumerate(asked):
        family = np.flatnonzero(population.family == population.family[entity])
        assert sorted(relatives[origin == position]) == family.tolist()


@pytest.mark.parametrize("relations", [Pair(267, 210), Pair(20, 90), Pair(1, 1), Pair(1, 40)])
def test_views_have_exactly_their_words(relations: Pair[int]) -> None:
    words = draw_vocabulary(relations, rng()).words
    for word, count in zip(words, relations, strict=True):
        assert set(word[word >= 0]) == set(range(count))
    assert ((words.source >= 0) | (words.target >= 0)).all()
    assert ((words.source >= 0) & (words.target >= 0)).any()


def test_vocabularies_differ_by_missing_and_by_merged_words() -> None:
    words = draw_vocabulary(Pair(267, 210), rng()).words
    for word, other in ((words.source, words.target), (words.target, words.source)):
        assert ((word < 0) & (other >= 0)).sum() >= 5  # no word for it here
        both = (word >= 0) & (other >= 0)
        known, counts = np.unique(word[both], return_counts=True)
        merged = known[counts > 1]
        assert len(merged) >= 5
        # … which the other side tells apart.
        assert any(len(np.unique(other[both & (word == one)])) > 1 for one in merged)


def test_a_pool_draws_by_weight_and_without_repeats() -> None:
    population = draw_population(PairShape(Pair(999, 999), *SIZES), rng())
    weight = np.where(np.arange(population.size) % 2, 9.0, 1.0)
    pool = Pool.of(population, np.arange(population.size), weight)
    everyone = (0, population.size)
    for wanted in (50, 400):  # the one way to draw few, the other to draw many
        drawn = np.concatenate([pool.draw(rng(seed), wanted, everyone) for seed in range(20)])
        assert all(len(np.unique(part)) == wanted for part in np.split(drawn, 20))
        assert (drawn % 2).mean() > 0.7
        assert (np.diff(weight[drawn[:wanted]]) <= 0).all()


SIZES = (Pair(2_000, 2_000), Pair(3, 3), 1.0, Pair(0.9, 0.9))


def test_a_span_is_of_the_type_and_wide_enough() -> None:
    population = draw_population(SHAPE, rng())
    pool = Pool.of(population, np.arange(population.size), population.activity)
    start, stop = pool.span(2, 0.3, 0.5, wanted=1)
    inside = pool.members[start:stop]
    assert set(population.kind[inside]) == {2}
    assert ((population.position[inside] >= 0.3) & (population.position[inside] < 0.5)).all()
    start, stop = pool.span(2, 0.3, 0.5, wanted=len(inside) + 1)
    assert stop - start == (population.kind == 2).sum()
