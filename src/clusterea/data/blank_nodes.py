"""Blank nodes: they are part of the structure, but have no name that a link could use."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.data.named_graph import NamedGraph
from clusterea.types import KnowledgeGraph, Names

BLANK_NODES = ("structure", "drop", "link")  # what may be done with them
WITH_BLANK_NODE = "triples with a blank node"


def is_blank(names: Names) -> NDArray[np.bool_]:
    """(names,): which are blank nodes. No IRI begins like one."""
    found: NDArray[np.bool_] = pc.starts_with(names.arrow, pattern="_:").to_numpy(
        zero_copy_only=False
    )
    return found


def without_blank_nodes(named: NamedGraph) -> NamedGraph:
    """The graph without triples of blank nodes, and without entities left with no triple."""
    blank = is_blank(named.entities)
    triples = named.graph.triples
    kept = triples[~(blank[triples[:, 0]] | blank[triples[:, 2]])]
    if len(kept) == len(triples):
        return named
    entities, ends = np.unique(kept[:, [0, 2]], return_inverse=True)
    relations, kinds = np.unique(kept[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = KnowledgeGraph(
        np.column_stack([ends[:, 0], kinds, ends[:, 1]]), len(entities), len(relations)
    )
    return NamedGraph(
        graph,
        Names(named.entities.take(entities)),
        Names(named.relations.take(relations)),
        {**named.dropped, WITH_BLANK_NODE: len(triples) - len(kept)},
        named.labels and named.labels.take(entities),
    )
