"""`Texts`: the names or labels of the entities of one graph, several for an entity or none."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.types.arrays import IntArray, frozen_ids


class Texts:
    """Entity i has the texts from `offsets[i]` to `offsets[i + 1]`, the preferred one first.

    Unlike `Names`, they need not be distinct, and an entity may have none.
    """

    __slots__ = ("offsets", "values")

    def __init__(self, offsets: IntArray, values: pa.Array) -> None:
        self.offsets = frozen_ids(offsets, "offsets")
        self.values = values.cast(pa.large_string())
        steps = np.diff(self.offsets)
        ends = (0, len(self.values)) if len(self.offsets) else (1, 0)
        if ends[0] > ends[1] or (self.offsets[0], self.offsets[-1]) != ends or (steps < 0).any():
            raise ValueError(f"offsets must ascend from 0 to {len(self.values):,}.")
        if self.values.null_count:
            raise ValueError(f"texts must not be null. Got {self.values.null_count} missing.")

    @classmethod
    def of_rows(cls, owners: IntArray, values: pa.Array, num_entities: int) -> Texts:
        """Texts by their entities; the texts of one entity keep their order, without repeats."""
        order = np.argsort(owners, kind="stable")
        owners, values = owners[order], values.take(pa.array(order))
        codes = values.dictionary_encode().indices.to_numpy()
        keys = owners * (int(codes.max(initial=0)) + 1) + codes
        kept = np.sort(np.unique(keys, return_index=True)[1])
        counts = np.bincount(owners[kept], minlength=num_entities)
        return cls(np.concatenate([[0], np.cumsum(counts)]), values.take(pa.array(kept)))

    @classmethod
    def of_lists(cls, lists: Iterable[Iterable[str]]) -> Texts:
        """From a list of texts for each entity."""
        each = [list(texts) for texts in lists]
        owners = np.repeat(np.arange(len(each)), [len(texts) for texts in each])
        flat = [text for texts in each for text in texts]
        return cls.of_rows(owners, pa.array(flat, pa.large_string()), len(each))

    @property
    def num_entities(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> IntArray:
        """(entities,): how many texts each has."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """(texts,): the entity of each text."""
        return np.repeat(np.arange(self.num_entities), self.counts)

    @property
    def share(self) -> float:
        """The share of entities that have a text."""
        return float((self.counts > 0).mean()) if self.num_entities else 0.0

    def of(self, entity: int) -> list[str]:
        """All texts of an entity."""
        begin, end = self.offsets[entity : entity + 2].tolist()
        return self.values[begin:end].to_pylist()  # type: ignore[no-any-return]

    def first(self, entities: IntArray) -> pa.Array:
        """The preferred text of each of these entities; null for those without."""
        begins = self.offsets[:-1][entities]
        has_text = self.counts[entities] > 0
        return self.values.take(pa.array(begins, mask=~has_text))

    def take(self, entities: IntArray) -> Texts:
        """The texts of these entities, in this order."""
        counts = self.counts[entities]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        rows = np.arange(offsets[-1]) + np.repeat(
            self.offsets[:-1][entities] - offsets[:-1], counts
        )
        return Texts(offsets, self.values.take(pa.array(rows)))

    def without(self, entities: IntArray) -> Texts:
        """The same, where these entities have no text."""
        hidden: NDArray[np.bool_] = np.zeros(self.num_entities, dtype=bool)
        hidden[entities] = True
        kept = ~hidden[self.owners]
        counts = np.where(hidden, 0, self.counts)
        return Texts(np.concatenate([[0], np.cumsum(counts)]), self.values.filter(pa.array(kept)))

    def or_else(self, others: Texts) -> Texts:
        """The texts of each entity, or those of `others` if it has none."""
        missing = np.flatnonzero(self.counts == 0)
        more = others.take(missing)
        owners = np.concatenate([self.owners, missing[more.owners]])
        values = pa.concat_arrays([self.values, more.values])
        return Texts.of_rows(owners, values, self.num_entities)

    def __repr__(self) -> str:
        return f"Texts({len(self.values):,} of {self.num_entities:,} entities)"
