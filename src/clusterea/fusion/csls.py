"""Sp-CSLS with the neighbors found, and the scale of the result."""

from __future__ import annotations

from torch import Tensor

from clusterea.fusion.inputs import ViewInput
from clusterea.numerics.cells import min_max, sparse_csls
from clusterea.types import Similarity


def scaled(similarity: Similarity, given: ViewInput) -> Similarity:
    """The matrix scaled to [0, 1], after Sp-CSLS if `config.csls` is set."""
    if given.config.csls:
        assert given.found is not None  # `fuse` reads them for this setting
        means = given.found.map(lambda side: side.mean(given.config.hubness_neighbors))
        sides = given.entities.entities.zip(means).zip(given.entities.num_entities)
        rows, columns = (_by_entity(*side) for side in sides)
        similarity = sparse_csls(similarity, rows, columns, given.empty)
    return min_max(similarity, given.empty)


def _by_entity(of_rows: tuple[Tensor, Tensor], count: int) -> Tensor:
    """(entities,): the value of each entity; zero for those without a value."""
    entities, values = of_rows
    result = values.new_zeros(count)
    result[entities.to(values.device)] = values
    return result
