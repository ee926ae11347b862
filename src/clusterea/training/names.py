"""The encoder `names`: vectors of the entities' names, from their character n-grams."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from clusterea.config import NamesConfig
from clusterea.numerics.ngrams import CodedTexts, document_counts, sketched
from clusterea.seeding import derived_seed
from clusterea.types import Pair, Texts


def encode_names(names: Pair[Texts], config: NamesConfig) -> Pair[Tensor]:
    """(entities, dimensions) of each side, on the host: rows of unit length.

    The product of two rows is about the cosine of the TF-IDF vectors of two names. Of an entity
    with several names, it is their mean direction. An entity without a name has zeros. The result
    does not depend on the machine or on the number of threads.

    Args:
        names: Normalized names. Rarity is counted over both sides.
        config: The number of dimensions.
    """
    coded = names.map(_coded)
    counts = sum(document_counts(side) for side in coded)
    total = sum(len(side) for side in coded)
    rarity = np.log((1 + total) / (1 + counts)).astype(np.float32)
    seed = derived_seed(config.seed, "names")

    def vectors(side: tuple[CodedTexts, Texts]) -> Tensor:
        texts, owned = side
        rows = sketched(texts, owned.owners, owned.num_entities, rarity, config.dimensions, seed)
        return torch.from_numpy(rows)

    return coded.zip(names).map(vectors)


def _coded(texts: Texts) -> CodedTexts:
    space, nothing = (pa.scalar(text, pa.large_string()) for text in (" ", ""))
    padded = pc.binary_join_element_wise(space, texts.values, space, nothing)
    lengths = pc.utf8_length(padded).to_numpy()
    _, _, data = padded.buffers()
    codes = np.empty(0, dtype=np.uint32)
    if data is not None:  # all texts, one after the other
        text = data.to_pybytes()[: int(pc.sum(pc.binary_length(padded)).as_py() or 0)].decode()
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return CodedTexts(codes, offsets)
