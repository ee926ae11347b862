"""`digest`: a hash of what `align` finds on a small generated pair. A program prints it.

The program's arguments are the address of a Ray cluster and a number of shards.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from typing import Any

import clusterea
from clusterea.data.synthetic import SHAPES, generate
from clusterea.types import AlignmentTask, Pair

SETTINGS = (
    "propagation.dimension=64",
    "propagation.features=192",
    "fusion.candidates=10",
    "fusion.search=approximate",
    "fusion.search_compared=300",
    "self_training.rounds=0",
)


def digest(**options: Any) -> str:
    """Of the embeddings, the similarity and the links; `options` are those of `align`.

    Each side has more than two tiles of undecided entities, so three shards of them.
    """
    shape = replace(SHAPES["demo"], entities=Pair(2600, 2500), triples=Pair(9000, 8000))
    whole = generate(shape, 0).task
    task = AlignmentTask(whole.graphs, whole.seeds[:300], whole.tie_keys)
    result = clusterea.align(task, preset="fast", settings=SETTINGS, device="cpu", **options)
    similarity, alignment = result.similarity, result.alignment
    assert len(alignment.links) > 1000
    found = hashlib.sha256()
    for values in (
        *(side for each in result.encodings for side in each),
        *(similarity.row_offsets, similarity.columns, similarity.values),
        *(alignment.links, alignment.confidence),
    ):
        found.update(values.contiguous().numpy().tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    print(digest(engine="ray", address=sys.argv[1], shards=int(sys.argv[2])))  # noqa: T201
