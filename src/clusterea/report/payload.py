"""The report's data for the page's script: compact, and safe inside HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clusterea.report.data import RIGHT, UNKNOWN, WRONG, Match
from clusterea.report.evidence import Step, Support
from clusterea.types import IntArray, Pair

CONFIDENCE_STEPS = 50_000  # finer than the page shows, and fits into 16 bits


def embed_json(value: Any) -> str:
    """JSON that is safe inside HTML, whatever strings it contains."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # `</script>` and `<!--` contain one of these; the last two end a line in old JavaScript.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def in_steps(confidence: ArrayLike) -> IntArray:
    """Confidence as a multiple of 1 / CONFIDENCE_STEPS; only 0 and 1 become 0 and 1."""
    values = np.asarray(confidence, dtype=np.float64)
    nearest = np.floor(values * CONFIDENCE_STEPS + 0.5).astype(np.int64)
    return np.where((values > 0) & (values < 1), nearest.clip(1, CONFIDENCE_STEPS - 1), nearest)


def encode_matches(
    matches: Iterable[Match], labels: Pair[Mapping[str, str]] | None = None
) -> dict[str, Any]:
    """The matches as nested lists; a name is its index in `names`, which holds each name once.

    A match is [source, target, confidence, verdict, truth or -1, neighbors of the source, of the
    target, number of supports, supports]; a support is [source, target, confidence or null for a
    seed, source steps, target steps]; a step is its relation, then 1 if outward, else 0. Confidence
    is in steps of 1 / `confidence_steps`. If there are labels, `labels` holds those of each side,
    by the index of the entity's name.
    """
    places: dict[str, int] = {}

    def index(name: str) -> int:
        return places.setdefault(name, len(places))

    def steps(some: tuple[Step[str], ...]) -> list[int]:
        return [part for step in some for part in (index(step.relation), int(step.outward))]

    def support(each: Support[str]) -> list[Any]:
        source, target = each.neighbors
        sure = None if each.confidence is None else int(in_steps(each.confidence))
        return [index(source), index(target), sure, *map(steps, each.relations)]

    rows = [
        [
            index(match.entities.source),
            index(match.entities.target),
            int(in_steps(match.confidence)),
            UNKNOWN if match.right is None else RIGHT if match.right else WRONG,
            -1 if match.truth is None else index(match.truth),
            match.num_neighbors.source,
            match.num_neighbors.target,
            match.num_supports,
            [support(each) for each in match.supports],
        ]
        for match in matches
    ]
    encoded = {"names": list(places), "matches": rows, "confidence_steps": CONFIDENCE_STEPS}
    if labels is not None and any(labels):
        source, target = labels.map(
            lambda side: {str(places[name]): label for name, label in side.items()}
        )
        encoded["labels"] = {"source": source, "target": target}
    return encoded
