from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clusterea.data.synthetic import SHAPES, PairShape
from clusterea.errors import InputError
from clusterea.types import Pair

SMALL = PairShape(Pair(20, 10), Pair(60, 40), Pair(4, 3), 0.5, Pair(0.9, 0.8))


@pytest.mark.parametrize(
    ("name", "entities", "relations", "triples"),
    [
        ("ids15k-en-fr", (15_000, 15_000), (267, 210), (47_334, 40_864)),
        ("ids15k-en-de", (15_000, 15_000), (215, 131), (47_676, 50_419)),
        ("ids100k-en-fr", (100_000, 100_000), (400, 300), (309_607, 258_285)),
        ("ids100k-en-de", (100_000, 100_000), (381, 196), (335_359, 336_240)),
        ("dbp1m-en-fr", (1_877_793, 1_365_118), (603, 380), (7_031_172, 2_997_457)),
        ("dbp1m-en-de", (1_625_999, 1_112_970), (597, 241), (6_213_639, 1_994_876)),
    ],
)
def test_the_papers_shapes_have_the_counts_of_its_table_4(
    name: str, entities: tuple[int, int], relations: tuple[int, int], triples: tuple[int, int]
) -> None:
    shape = SHAPES[name]
    assert tuple(shape.entities) == entities
    assert tuple(shape.relations) == relations
    assert tuple(shape.triples) == triples
    assert (shape.links == entities[0]) == name.startswith("ids")


def test_links_are_a_share_of_the_smaller_side() -> None:
    assert SMALL.links == 5
    assert SMALL.swap().links == 5
    assert replace(SMALL, common_share=0.001).links == 1


def test_swap_exchanges_every_side() -> None:
    assert SMALL.swap() == PairShape(Pair(10, 20), Pair(40, 60), Pair(3, 4), 0.5, Pair(0.8, 0.9))
    assert SMALL.swap().swap() == SMALL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entities": Pair(1, 10)}, r"source entities must be an int in \[2, inf\). Got 1 instead"),
        ({"entities": Pair(20, 9.5)}, r"target entities must be an int .* Got 9.5 instead"),
        ({"relations": Pair(4, 0)}, r"target relations must be an int in \[1, inf\). Got 0"),
        ({"triples": Pair(-1, 40)}, r"source triples must be an int in \[1, inf\). Got -1"),
        ({"triples": Pair(23, 40)}, r"source triples must be at least 24, .* Got 23 instead"),
        ({"triples": Pair(60, 12)}, r"target triples must be at least 13, .* Got 12 instead"),
        ({"triples": Pair(60, 136)}, r"target triples must be at most 135, .* Got 136 instead"),
        ({"entities": Pair(20, 2), "relations": Pair(4, 1)}, r"target entities must be enough"),
        ({"common_share": 0.0}, r"common_share must be a fraction in \(0, 1\]. Got 0.0 instead"),
        ({"common_share": 1.01}, r"common_share must be a fraction in \(0, 1\]. Got 1.01"),
        ({"common_share": float("nan")}, r"common_share must be a fraction .* Got nan"),
        ({"kept_share": Pair(0.5, 0)}, r"target kept_share must be a fraction .* Got 0 instead"),
        ({"kept_share": Pair(True, 0.5)}, r"source kept_share must be a fraction .* Got True"),
    ],
)
def test_the_impossible_is_refused_in_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_the_limits_themselves_are_allowed() -> None:
    replace(SMALL, triples=Pair(24, 135))
