"""The encoder `names`: vectors of the entities' names, from their character n-grams.

The functions here do a part; `clusterea.sharded.encode_names` does the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from clusterea.numerics.ngrams import CodedTexts, Floats, sketched
from clusterea.types import IntArray, Texts


@dataclass(frozen=True, slots=True, eq=False)
class OwnedTexts:
    """The texts of consecutive entities."""

    texts: CodedTexts
    owners: IntArray  # (texts,), ascending: entities, counted from the first of these
    num_entities: int

    def between(self, start: int, stop: int) -> OwnedTexts:
        """Those of the entities from `start` to `stop`."""
        first, last = np.searchsorted(self.owners, [start, stop]).tolist()
        offsets = self.texts.offsets[first : last + 1]
        codes = self.texts.codes[offsets[0] : offsets[-1]]
        return OwnedTexts(
            CodedTexts(codes, offsets - offsets[0]), self.owners[first:last] - start, stop - start
        )


def coded(texts: Texts) -> OwnedTexts:
    """The texts as code points."""
    space, nothing = (pa.scalar(text, pa.large_string()) for text in (" ", ""))
    padded = pc.binary_join_element_wise(space, texts.values, space, nothing)
    lengths = pc.utf8_length(padded).to_numpy()
    _, _, data = padded.buffers()
    codes = np.empty(0, dtype=np.uint32)
    if data is not None:  # all texts, one after the other
        text = data.to_pybytes()[: int(pc.sum(pc.binary_length(padded)).as_py() or 0)].decode()
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return OwnedTexts(CodedTexts(codes, offsets), texts.owners, texts.num_entities)


def rarity_of(counts: NDArray[np.int64], total: int) -> Floats:
    """(n-grams,): the weight of each, from the number of texts that have it, and of all texts."""
    return np.log((1 + total) / (1 + counts)).astype(np.float32)


def name_vectors(texts: OwnedTexts, rarity: Floats, dimensions: int, seed: int) -> Tensor:
    """(entities, dimensions): rows of unit length, or zeros."""
    rows = sketched(texts.texts, texts.owners, texts.num_entities, rarity, dimensions, seed)
    return torch.from_numpy(rows)
