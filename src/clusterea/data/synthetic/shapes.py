"""`PairShape`: the sizes of a pair to generate; `SHAPES`: those of the paper's table 4, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clusterea.errors import InputError
from clusterea.types import Pair


@dataclass(frozen=True, slots=True)
class PairShape:
    """Exact sizes of two views of one world, and how much they have in common.

    `kept_share` is about the shared world: the facts between entities both views have, of relations
    both views know. Each view keeps that share of them, and fills up to `triples` with facts the
    other view can't state: about entities or of relations the other one lacks.
    """

    entities: Pair[int]
    triples: Pair[int]
    relations: Pair[int]
    common_share: float  # of the smaller side's entities: they are linked
    kept_share: Pair[float]

    def __post_init__(self) -> None:
        _check_fraction(self.common_share, "common_share")
        for side in ("source", "target"):
            entities: Any = getattr(self.entities, side)
            relations: Any = getattr(self.relations, side)
            triples: Any = getattr(self.triples, side)
            _check_whole(entities, f"{side} entities", least=2)
            _check_whole(relations, f"{side} relations", least=1)
            _check_whole(triples, f"{side} triples", least=1)
            _check_fraction(getattr(self.kept_share, side), f"{side} kept_share")
            _check_room(side, entities, relations, triples)

    @property
    def links(self) -> int:
        """How many entities both views have."""
        return max(1, round(self.common_share * min(self.entities)))

    def swap(self) -> PairShape:
        """The same shape seen from the other side."""
        return PairShape(
            self.entities.swap(),
            self.triples.swap(),
            self.relations.swap(),
            self.common_share,
            self.kept_share.swap(),
        )


def _check_whole(value: Any, name: str, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be an int in [{least}, inf). Got {value!r} instead.")


def _check_fraction(value: Any, name: str) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.integer, np.floating))
        or not 0 < value <= 1
    ):
        raise InputError(f"{name} must be a fraction in (0, 1]. Got {value!r} instead.")


def _check_room(side: str, entities: int, relations: int, triples: int) -> None:
    """Raises unless `triples` can cover everything and still be drawn at random."""
    least = entities + relations
    # Half of all there can be: above that, drawing distinct triples by chance would crawl.
    most = entities * (entities - 1) * relations // 2
    if least > most:
        raise InputError(
            f"{side} entities must be enough for {relations} relations: "
            f"entities × (entities - 1) × relations / 2 must reach entities + relations. "
            f"Got {entities} instead."
        )
    if triples < least:
        raise InputError(
            f"{side} triples must be at least {least}, one for each of {entities} entities "
            f"and {relations} relations. Got {triples} instead."
        )
    if triples > most:
        raise InputError(
            f"{side} triples must be at most {most}, half of the distinct triples that {entities} "
            f"entities and {relations} relations allow. Got {triples} instead."
        )


def _paper(
    entities: tuple[int, int],
    relations: tuple[int, int],
    triples: tuple[int, int],
    common_share: float,
    kept_share: tuple[float, float],
) -> PairShape:
    return PairShape(
        Pair(*entities), Pair(*triples), Pair(*relations), common_share, Pair(*kept_share)
    )


# The kept shares make the views overlap about as those of the real IDS15K do (docs/generator.md);
# IDS100K has those of IDS15K. DBP1M has about a million links; how much its views overlap we don't
# know, and let the sparser one keep less.
SHAPES: dict[str, PairShape] = {
    "demo": PairShape(
        entities=Pair(3_000, 2_800),
        triples=Pair(18_000, 15_000),
        relations=Pair(60, 45),
        common_share=0.85,
        kept_share=Pair(0.92, 0.90),
    ),
    "ids15k-en-fr": _paper((15_000, 15_000), (267, 210), (47_334, 40_864), 1.0, (0.83, 0.67)),
    "ids15k-en-de": _paper((15_000, 15_000), (215, 131), (47_676, 50_419), 1.0, (0.88, 0.87)),
    "ids100k-en-fr": _paper((100_000, 100_000), (400, 300), (309_607, 258_285), 1.0, (0.83, 0.66)),
    "ids100k-en-de": _paper((100_000, 100_000), (381, 196), (335_359, 336_240), 1.0, (0.87, 0.87)),
    "dbp1m-en-fr": _paper(
        (1_877_793, 1_365_118), (603, 380), (7_031_172, 2_997_457), 0.7325, (0.85, 0.55)
    ),
    "dbp1m-en-de": _paper(
        (1_625_999, 1_112_970), (597, 241), (6_213_639, 1_994_876), 0.73, (0.85, 0.45)
    ),
}
