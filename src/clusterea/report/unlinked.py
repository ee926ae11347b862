"""Why an entity has no link: its best candidates, and why none of them was taken."""

from __future__ import annotations

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
    rival: int | None = None  # of the unlinked entity's side: who is linked to it instead
    confidence: float | None = None  # of that link, or of the link that was left out


def candidates_of(
    side: Side,
    number: int,
    similarity: Similarity,
    task: AlignmentTask,
    found: Alignment,
    given: Alignment,
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
        limit: At most so many.
    """
    column = 0 if side == "source" else 1
    entities, scores = _best(similarity, side, number, limit)

    def candidate(entity: int, score: float) -> Candidate:
        rival = _partner(task.seeds, entity, column)
        if rival is not None:
            return Candidate(entity, score, "seed", rival)
        for links in (given, found):
            rows = (links.links[:, 1 - column] == entity).nonzero().flatten()
            if len(rows):
                rival = int(links.links[rows[0], column])
                reason: Reason = "left_out" if rival == number else "linked"
                return Candidate(entity, score, reason, rival, float(links.confidence[rows[0]]))
        # Links that are not worth giving are left out where the confidence was fitted.
        return Candidate(entity, score, "unsure" if found.is_calibrated else "not_chosen")

    return tuple(
        candidate(entity, score)
        for entity, score in zip(entities.tolist(), scores.tolist(), strict=True)
    )


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
