"""The view `sinkhorn`: Sinkhorn on the candidates of all entities at once (not in the paper)."""

from __future__ import annotations

from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.rejected import LOWEST
from clusterea.numerics.cells import masked, union_of_directions
from clusterea.numerics.sparse_sinkhorn import sparse_sinkhorn
from clusterea.types import Similarity


def sinkhorn_view(given: ViewInput) -> Similarity:
    """The candidates of both directions, normalized as one sparse matrix."""
    return given.entities.by_entity(normalized(given))


def normalized(given: ViewInput) -> Similarity:
    """The same, indexed by the rows of `Undecided`: sums don't depend on the order of ids."""
    config = given.config
    candidates = union_of_directions(
        given.found.map(lambda side: side.first(config.candidates)), twice=False
    )
    is_possible = candidates.values > LOWEST
    if not bool(is_possible.all()):
        candidates = masked(candidates, is_possible)
    temperature, rounds = config.sinkhorn_temperature, config.sinkhorn_rounds
    return sparse_sinkhorn(candidates, temperature, rounds, given.outside)
