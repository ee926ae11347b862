"""What the structure of two graphs can't tell: said before a run, and where training fails."""

from __future__ import annotations

import numpy as np

from clusterea.graph.functionality import distinct
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph

FEWEST = 20  # edges between seeds that tell whether the graphs have edges in common
DEVIATIONS = 3.0  # standard deviations above chance that are no chance


def structure_problems(task: AlignmentTask) -> list[str]:
    """Why links will be few or wrong, whatever the settings: one sentence each; mostly none."""
    undecided = [graph.num_entities - task.num_seeds for graph in task.graphs]
    if min(undecided) <= 0:
        return ["Every entity of a graph is in a seed, so there is nothing left to match."]
    problems = []
    found = no_common_edges(task)
    if found:
        problems.append(found)
    lone = [num_unreachable(graph, task.seeds[:, side]) for side, graph in enumerate(task.graphs)]
    if any(lone):
        problems.append(
            f"{lone[0]:,} source and {lone[1]:,} target entities have no path to a seed, "
            "so structure says nothing about them."
        )
    return problems


def no_common_edges(task: AlignmentTask) -> str:
    """A sentence if no more edges between seeds are in both graphs than by chance; else empty."""
    if not task.num_seeds:
        return ""
    source, target = (
        _edges_between_seeds(graph, task.seeds[:, side]) for side, graph in enumerate(task.graphs)
    )
    if min(len(source), len(target)) < FEWEST:
        return ""
    common = int(np.isin(source, target, assume_unique=True).sum())
    by_chance = len(source) * len(target) / (task.num_seeds * (task.num_seeds - 1) / 2)
    if common > by_chance + DEVIATIONS * by_chance**0.5:
        return ""
    return (
        f"The seeds have no neighbors in common: of {len(source):,} edges between seeds in the "
        f"source graph, {common:,} are in the target graph too, no more than by chance. "
        "Structure says nothing about the other entities; check the links."
    )


def _edges_between_seeds(graph: KnowledgeGraph, ends: IntArray) -> IntArray:
    """Distinct undirected edges between two seeds' entities, each as a number of the two seeds."""
    seed_of = np.full(graph.num_entities, -1)
    seed_of[ends] = np.arange(len(ends))
    heads, tails = seed_of[graph.heads], seed_of[graph.tails]
    kept = (heads >= 0) & (tails >= 0) & (heads != tails)
    low, high = np.minimum(heads, tails)[kept], np.maximum(heads, tails)[kept]
    return distinct(low * len(ends) + high)


def num_unreachable(graph: KnowledgeGraph, seeds: IntArray) -> int:
    """How many entities no path of triples joins to a seed's entity."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(graph.heads), dtype=np.int8)
    shape = graph.num_entities, graph.num_entities
    _, part = connected_components(coo_array((ones, (graph.heads, graph.tails)), shape))
    return int((~np.isin(part, part[seeds])).sum())
