"""`Answer` and `Decisions`: what a person said about pairs of entities, and what holds of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from clusterea.types.arrays import IntArray, frozen_ids
from clusterea.types.links import NO_LINKS, check_one_to_one
from clusterea.types.pair import Pair

Verdict: TypeAlias = Literal["same", "different", "none", "unsure", "undone"]


@dataclass(frozen=True, slots=True)
class Question:
    """A pair of entities to ask a person about."""

    source: int
    target: int
    confidence: float  # of the link, or the score of a candidate
    is_link: bool  # whether the run links the two; otherwise they are candidates
    is_random: bool  # of the random share, which precision is estimated from


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a person. The last one to a pair counts.

    `none` says that an entity has no counterpart; the other side is None. `unsure` and `undone`
    take back what was said of the pair before.
    """

    source: int | None
    target: int | None
    verdict: Verdict
    author: str = ""
    date: str = ""  # as 2026-01-31
    comment: str = ""
    is_random: bool = False  # the question was of the random share

    def __post_init__(self) -> None:
        if self.source is None and self.target is None:
            raise ValueError("an answer must be about an entity.")
        if None in (self.source, self.target) and self.verdict in ("same", "different"):
            raise ValueError(f"the answer {self.verdict!r} must be about two entities.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions:
    """What holds after all answers."""

    accepted: IntArray  # (n, 2): the same; one-to-one
    rejected: IntArray  # (n, 2): not the same
    alone: Pair[IntArray]  # entities of each side without a counterpart
    chosen: IntArray = field(
        default_factory=NO_LINKS.copy
    )  # (n, 2): those of the pairs above that were not asked about at random

    def __post_init__(self) -> None:
        for name in ("accepted", "rejected", "chosen"):
            object.__setattr__(self, name, frozen_ids(getattr(self, name), name, columns=2))
        check_one_to_one(self.accepted, "accepted pairs")
        alone = self.alone.map(lambda ids: frozen_ids(np.unique(ids), "alone"))
        object.__setattr__(self, "alone", alone)

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> Decisions:
        """What holds after these answers: a later one replaces what it contradicts.

        An entity has one counterpart at most, so accepting a pair replaces other accepted pairs of
        its two entities.
        """
        partner: dict[int, int] = {}  # of source entities
        owner: dict[int, int] = {}  # of target entities
        rejected: dict[tuple[int, int], None] = {}
        alone: Pair[dict[int, None]] = Pair({}, {})
        is_random: dict[tuple[int, int], bool] = {}  # of the last question about a pair

        def part(source: int | None, target: int | None) -> None:
            """Takes back the accepted pairs of these entities."""
            if source is not None and source in partner:
                owner.pop(partner.pop(source))
            if target is not None and target in owner:
                partner.pop(owner.pop(target))

        for each in answers:
            source, target = each.source, each.target
            if source is None or target is None:
                for own, entity in zip(alone, (source, target), strict=True):
                    if entity is not None:
                        own.pop(entity, None)
                        if each.verdict == "none":
                            part(source, target)
                            own[entity] = None
                continue
            rejected.pop((source, target), None)
            is_random[source, target] = each.is_random
            if each.verdict == "same":
                part(source, target)
                alone.source.pop(source, None)
                alone.target.pop(target, None)
                partner[source], owner[target] = target, source
            elif partner.get(source) == target:
                part(source, target)
            if each.verdict == "different":
                rejected[source, target] = None
        accepted = [*partner.items()]
        return cls(
            _pairs(accepted),
            _pairs([*rejected]),
            alone.map(lambda own: np.array([*own], dtype=np.int64)),
            _pairs([pair for pair in (*accepted, *rejected) if not is_random[pair]]),
        )

    @property
    def count(self) -> int:
        """The number of pairs and entities that are decided."""
        return len(self.accepted) + len(self.rejected) + sum(map(len, self.alone))

    def __repr__(self) -> str:
        alone = sum(map(len, self.alone))
        return (
            f"Decisions({len(self.accepted):,} pairs accepted, {len(self.rejected):,} rejected, "
            f"{alone:,} entities without a counterpart)"
        )


def _pairs(found: Sequence[tuple[int, int]]) -> IntArray:
    return np.array(found, dtype=np.int64).reshape(-1, 2)
