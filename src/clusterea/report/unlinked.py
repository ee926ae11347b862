"""Why an entity has no link: its best candidates, and why each was not chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

    from clusterea.types import Alignment, AlignmentTask, IntArray, Similarity

Side = Literal["source", "target"]
Reason = Literal["seed", "linked", "left_out", "unsure", "not_chosen"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity of the other side that an unlinked entity could have been linked to."""

    entity: int
    score: float
    reason: Reason
    rival: int | None = None  # the entity that the candidate is linked to
    confidence: float | None = None  # of that link


def candidates_of(
    side: Side,
    number: int,
    similarity: Similarity,
    task: AlignmentTask,
    found: Alignment,
    given: Alignment,
    chosen: Callable[[], Alignment] | None = None,
    *,
    limit: int,
) -> tuple[Candidate, ...]:
    """The candidates of an entity without a link, by descending score.

    Args:
        side: The side of the entity.
        number: The id of the entity.
        similarity: The fused similarity.
        task: The seeds.
        found: All links.
        given: The links in the run's files.
        chosen: Returns the links with those that abstaining dropped; None if none were dropped.
        limit: Most candidates.
    """
    column = 0 if side == "source" else 1
    entities, scores = _best(similarity, side, number, limit)

    def candidate(entity: int, score: float) -> Candidate:
        rival = _partner(task.seeds, entity, column)
        if rival is not None:
            return Candidate(entity, score, "seed", rival)
        own = _row(found, column, entity, number)
        if own is None:
            row = _row(given, column, entity)
            if row is not None:
                rival, sure = int(given.links[row, column]), float(given.confidence[row])
                return Candidate(entity, score, "linked", rival, sure)
            own = _row(found, column, entity)
        if own is not None:
            rival, sure = int(found.links[own, column]), float(found.confidence[own])
            return Candidate(entity, score, "left_out", rival, sure)
        is_cut = chosen is not None and _row(chosen(), column, entity, number) is not None
        return Candidate(entity, score, "unsure" if is_cut else "not_chosen")

    return tuple(
        candidate(entity, score)
        for entity, score in zip(entities.tolist(), scores.tolist(), strict=True)
    )


def _row(links: Alignment, column: int, entity: int, number: int | None = None) -> int | None:
    """The row of the entity's first link, or of its link to `number`, an entity of `column`."""
    holds = links.links[:, 1 - column] == entity
    if number is not None:
        holds = holds & (links.links[:, column] == number)
    rows = holds.nonzero().flatten()
    return int(rows[0]) if len(rows) else None


def _best(similarity: Similarity, side: Side, number: int, limit: int) -> tuple[Tensor, Tensor]:
    """The best candidates on the other side, and their scores."""
    if side == "source":
        start, end = similarity.row_offsets[number : number + 2].tolist()
        entities, scores = similarity.columns[start:end], similarity.values[start:end]
    else:
        cells = (similarity.columns == number).nonzero().flatten()
        entities, scores = similarity.rows()[cells], similarity.values[cells]
    order = scores.argsort(descending=True, stable=True)[:limit]
    return entities[order], scores[order].float()


def _partner(seeds: IntArray, entity: int, column: int) -> int | None:
    """The entity of `column` that a seed links to an entity of the other side, if any."""
    rows = (seeds[:, 1 - column] == entity).nonzero()[0]
    return int(seeds[rows[0], column]) if len(rows) else None
