"""Entities with the same IRI in both graphs, and the terms of RDF's own vocabularies."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.types import IntArray, Names, Pair

VOCABULARIES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "sh": "http://www.w3.org/ns/shacl#",
}
_IS_IRI = r"^[A-Za-z][A-Za-z0-9+.\-]*:"
_IS_TERM = "^(?:" + "|".join(start.replace(".", r"\.") for start in VOCABULARIES.values()) + ")"


def identical_iris(names: Pair[Names]) -> IntArray:
    """(n, 2): the entities that have the same IRI on both sides, as the source numbers them."""
    source = np.flatnonzero(_matches(names.source, _IS_IRI))
    target = names.target.ids_of(names.source.take(source))
    return np.column_stack([source, target])[target >= 0]


def is_vocabulary(names: Names) -> NDArray[np.bool_]:
    """(names,): which are terms of RDF's own vocabularies, as owl:Class."""
    return _matches(names, _IS_TERM)


def _matches(names: Names, pattern: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.match_substring_regex(names.arrow, pattern).to_numpy(
        zero_copy_only=False
    )
    return found
