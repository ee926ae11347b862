"""The view `global`: nearest neighbors over all entities, in both directions (M_G)."""

from __future__ import annotations

from clusterea.fusion.csls import scaled
from clusterea.fusion.inputs import ViewInput
from clusterea.numerics.cells import union_of_directions
from clusterea.types import Similarity


def global_view(given: ViewInput) -> Similarity:
    """Sp-CSLS of the candidates' cosines. A pair found from both sides counts twice."""
    assert given.found is not None  # `fuse` reads them for this view
    candidates = given.found.map(lambda side: side.first(given.config.candidates))
    entities = given.entities
    found = union_of_directions(
        candidates, entities=entities.entities, num_entities=entities.num_entities
    )
    return scaled(found, given)
