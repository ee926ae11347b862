"""Warnings about graphs whose structure is not enough to align them."""

from __future__ import annotations

import numpy as np

from clusterea.graph.functionality import distinct
from clusterea.types import NO_ENTITIES, AlignmentTask, IntArray, KnowledgeGraph, Pair

FEWEST = 20  # edges between seeds, for a verdict on whether the graphs share edges
MOST_SEEDS = 50_000  # more would not change the verdict
LARGEST = 200_000  # entities of a graph that is searched for twins and unreachable entities
WORTH_SAYING = 0.1  # share of a graph's entities without a path to a seed; most graphs have a few
DEVIATIONS = 3.0  # fewer standard deviations above chance count as chance

NOBODY = NO_ENTITIES.source


def structure_problems(task: AlignmentTask) -> list[str]:
    """Reasons why links will be few or wrong with any settings, one sentence each; mostly none."""
    if min(task.num_undecided) <= 0:
        return ["Every entity of a graph is in a seed, so there is nothing left to match."]
    task = task.with_seeds(task.all_seeds)
    problems = [found for found in (no_common_edges(task), too_many_twins(task)) if found]
    if _is_large(task):
        return problems
    sides = zip(task.graphs, task.structural, task.seeds.T, strict=True)
    lone = [num_unreachable(graph, seeds, structural) for graph, structural, seeds in sides]
    if any(
        count > WORTH_SAYING * entities
        for count, entities in zip(lone, _num_linkable(task), strict=True)
    ):
        problems.append(
            f"{lone[0]:,} source and {lone[1]:,} target entities have no path to a seed, "
            "so structure says nothing about them."
        )
    return problems


def no_common_edges(task: AlignmentTask) -> str:
    """A sentence if no more edges between seeds are in both graphs than by chance; else empty."""
    seeds = task.seeds[:MOST_SEEDS]
    source, target = task.graphs.zip(Pair(*seeds.T)).map_at_once(
        lambda side: _edges_between_seeds(*side)
    )
    if min(len(source), len(target)) < FEWEST:
        return ""
    common = int(np.isin(source, target, assume_unique=True).sum())
    by_chance = len(source) * len(target) / (len(seeds) * (len(seeds) - 1) / 2)
    if common > by_chance + DEVIATIONS * by_chance**0.5:
        return ""
    return (
        f"The seeds have no neighbors in common: of {len(source):,} edges between seeds in the "
        f"source graph, {common:,} are in the target graph too, no more than by chance. "
        "Structure says nothing about the other entities; check the links."
    )


def too_many_twins(task: AlignmentTask) -> str:
    """A sentence if most entities have twins, in both graphs; else empty."""
    if _is_large(task):
        return ""
    twins = task.graphs.zip(task.structural).map(lambda side: num_twins(*side))
    if any(2 * count <= entities for entities, count in _num_linkable(task).zip(twins)):
        return ""
    return (
        f"{twins.source:,} source and {twins.target:,} target entities have exactly the neighbors "
        "of another entity, by the same relations, so structure can't tell them apart."
    )


def _is_large(task: AlignmentTask) -> bool:
    return max(graph.num_entities for graph in task.graphs) > LARGEST


def _num_linkable(task: AlignmentTask) -> Pair[int]:
    """Entities of each side that are in a seed or may be linked."""
    return task.num_undecided.map(lambda undecided: undecided + task.num_seeds)


def num_twins(graph: KnowledgeGraph, structural: IntArray = NOBODY) -> int:
    """How many entities have the same neighbors as another one, by the same relations.

    Structural entities are only neighbors: they are never linked.
    """
    draw = np.random.default_rng(0)  # sums of random numbers: equal only for equal sets
    numbers = draw.integers(2**63, size=graph.num_entities, dtype=np.uint64)
    itself = draw.integers(2**63, dtype=np.uint64)
    relations = draw.integers(2**63, size=(2, graph.num_relations), dtype=np.uint64) | np.uint64(1)
    sums = np.zeros(graph.num_entities, dtype=np.uint64)
    is_loop = graph.heads == graph.tails
    kinds = graph.triples[:, 1]
    for ends, others, factors in (
        (graph.heads, graph.tails, relations[0]),
        (graph.tails, graph.heads, relations[1]),
    ):
        neighbors = np.where(is_loop, itself, numbers[others])
        np.add.at(sums, ends, (neighbors ^ (neighbors >> np.uint64(29))) * factors[kinds])
    _, counts = np.unique(np.delete(sums, structural), return_counts=True)
    return int(counts[counts > 1].sum())


def _edges_between_seeds(graph: KnowledgeGraph, ends: IntArray) -> IntArray:
    """Distinct undirected edges between two seeds' entities, each as a number of the two seeds."""
    seed_of = np.full(graph.num_entities, -1)
    seed_of[ends] = np.arange(len(ends))
    heads, tails = seed_of[graph.heads], seed_of[graph.tails]
    kept = (heads >= 0) & (tails >= 0) & (heads != tails)
    low, high = np.minimum(heads, tails)[kept], np.maximum(heads, tails)[kept]
    return distinct(low * len(ends) + high)


def num_unreachable(graph: KnowledgeGraph, seeds: IntArray, structural: IntArray = NOBODY) -> int:
    """How many entities no path of triples joins to a seed's entity; structural ones only join."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(graph.heads), dtype=np.int8)
    shape = graph.num_entities, graph.num_entities
    _, part = connected_components(coo_array((ones, (graph.heads, graph.tails)), shape))
    return int((~np.isin(np.delete(part, structural), part[seeds])).sum())
