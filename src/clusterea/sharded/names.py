"""`encode_names`: vectors of the entities' names, in shards of entities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from clusterea.config import NamesConfig
from clusterea.engines import Engine, InMemory, Ref
from clusterea.numerics.ngrams import document_counts
from clusterea.seeding import derived_seed
from clusterea.sharded.shards import Shards, cut
from clusterea.training.names import OwnedTexts, coded, name_vectors, rarity_of
from clusterea.types import Pair, Texts


def encode_names(
    names: Pair[Texts], config: NamesConfig, *, engine: Engine | None = None
) -> Pair[Tensor]:
    """(entities, dimensions) of each side, on the host: rows of unit length.

    The product of two rows is about the cosine of the TF-IDF vectors of two names. Of an entity
    with several names, it is their mean direction. An entity without a name has zeros. The result
    does not depend on the machine, on the number of threads, or on shards.

    Args:
        names: Normalized names. Rarity is counted over both sides.
        config: The number of dimensions.
        engine: Runs the units; in this process and in memory if not given.
    """
    engine = engine or InMemory()
    texts = Pair(*(_shards(engine, side) for side in names))
    counts, total = np.zeros(1, dtype=np.int64), 0
    for side in texts:
        for ref in side.map(engine, _counts).refs:
            found, number = engine.get([ref])[0]
            counts, total = counts + found, total + number
    rarity = engine.put(rarity_of(counts, total))
    seed = derived_seed(config.seed, "names")

    def vectors(side: Shards) -> Tensor:
        shards = side.map(engine, name_vectors, rarity, config.dimensions, seed)
        if len(shards) == 1 and engine.is_here:
            return engine.get(shards.refs)[0]  # type: ignore[no-any-return]
        result = engine.empty([side.num_rows, config.dimensions], torch.float32)
        for number, (start, stop) in enumerate(side.ranges()):
            result[start:stop] = engine.get([shards.refs[number]])[0]
            shards.refs[number] = None  # frees it
        return result

    return texts.map(vectors)


def _shards(engine: Engine, texts: Texts) -> Shards:
    """The texts of each shard of entities."""
    whole, bounds = coded(texts), cut(texts.num_entities, engine)
    refs: list[Ref] = [engine.put(whole.between(*each)) for each in pairwise(bounds)]
    return Shards(bounds, refs)


def _counts(texts: OwnedTexts) -> tuple[np.ndarray, int]:
    """A unit: the number of texts that have each n-gram, and of all."""
    return document_counts(texts.texts), len(texts.texts)
