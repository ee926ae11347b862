"""The RDF properties whose values are labels, and `LabelCollector`, which gathers them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from clusterea.types import Names, Texts

# The preferred ones first. An entity's first label is the one that is shown.
LABEL_PROPERTIES = (
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
    "http://purl.org/dc/elements/1.1/title",
    "http://www.w3.org/2004/02/skos/core#altLabel",
)
_SHOWN_FIRST = ("", "en")  # languages; no tag is like English


class LabelCollector:
    """Gathers the labels in a stream of statements, in any language."""

    def __init__(self, properties: Sequence[str] = ()) -> None:
        ordered = dict.fromkeys((*properties, *LABEL_PROPERTIES))
        self.properties = tuple(ordered)
        self._rank = {iri: rank for rank, iri in enumerate(ordered)}
        self._subjects: list[str] = []
        self._texts: list[str] = []
        self._ranks = array("q")

    def offer(self, subject: str, predicate: str, literal: Any) -> None:
        """Keeps the literal if the predicate is a label property and the literal has text."""
        rank = self._rank.get(predicate)
        if rank is None or not literal.value.strip():
            return
        language = (literal.language or "").partition("-")[0].lower()
        self._subjects.append(subject)
        self._texts.append(literal.value.strip())
        self._ranks.append(2 * rank + (language not in _SHOWN_FIRST))

    def found(self) -> frozenset[str]:
        """The properties that some label has."""
        ranks = np.unique(np.frombuffer(self._ranks, dtype=np.int64) // 2)
        return frozenset(self.properties[rank] for rank in ranks)

    def texts(self, entities: Names) -> Texts | None:
        """The labels of these entities; None if there are none at all."""
        ids = entities.ids_of(self._subjects)
        known = np.flatnonzero(ids >= 0)
        if not len(known):
            return None
        ranks = np.frombuffer(self._ranks, dtype=np.int64)[known]
        known = known[np.argsort(ranks, kind="stable")]
        values = pa.array(self._texts, pa.large_string()).take(pa.array(known))
        return Texts.of_rows(ids[known], values, len(entities))
