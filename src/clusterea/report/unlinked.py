"""Why an entity has no link: its best candidates, and why none of them was taken."""

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
    rival: int | None = None  # of the unlinked entity's side: the other end of the candidate's link
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
    """The candidates of an entity without a link, by falling score.

    Args:
        side: Of the entity.
        number: Its id.
        similarity: What the links were made of.
        task: Its seeds' entities have links already.
        found: All links.
        given: Those that the run's files have.
        chosen: The links before those below the cut were left out; None if there was no cut.
        limit: At most so many.
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
    """Where the entity has a link, or the one to `number`, which is of `column`."""
    holds = links.links[:, 1 - column] == entity
    if number is not None:
        holds = holds & (links.links[:, column] == number)
    rows = holds.nonzero().flatten()
    return int(rows[0]) if len(rows) else None


def _best(similarity: Similarity, side: Side, number: int, limit: int) -> tuple[Tensor, Tensor]:
    """The entities of the other side that score best, and their scores."""
    if side == "source":
        start, end = similarity.row_offsets[number : number + 2].tolist()
        entities, scores = similarity.columns[start:end], similarity.values[start:end]
    else:
        cells = (similarity.columns == number).nonzero().flatten()
        entities, scores = similarity.rows()[cells], similarity.values[cells]
    order = scores.argsort(descending=True, stable=True)[:limit]
    return entities[order], scores[order].float()


def _partner(seeds: IntArray, entity: int, column: int) -> int | None:
    """Who a seed links the entity to, which is not in `column` but on the other side."""
    rows = (seeds[:, 1 - column] == entity).nonzero()[0]
    return int(seeds[rows[0], column]) if len(rows) else None
