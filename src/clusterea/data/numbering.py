"""`canonical`: numbers and tie keys that follow from the structure of the data.

Stages draw at random by number, and add in the order of numbers. If numbers followed the rows of a
file, shuffled rows would give another alignment; if they followed the names, other names would. So
they follow a hash of each entity's surroundings, and names decide only between entities whose
hashes are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair, Texts

Hashes = NDArray[np.uint64]

ROUNDS = 4  # hops that a hash covers; a fifth separates no more entities of real pairs
# Odd multipliers: the two of splitmix64, and three for the parts of a sum.
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_RELATION, _TAIL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_HEAD = np.uint64(0x165667B19E3779F9)
# Each side starts from another number, so that equal graphs are not numbered alike.
STARTS = Pair(np.uint64(1), np.uint64(2))


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The hashes of one side."""

    entities: Hashes  # (entities,): equal if the neighborhoods are equal
    relations: Hashes  # (relations,)


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The order of one side's entities or relations."""

    old: IntArray  # (n,): the old number of each new one
    new: IntArray  # (n,): the new number of each old one
    keys: IntArray  # (n,), by new number: a hash that does not depend on the name


def canonical(benchmark: Benchmark) -> Benchmark:
    """The same data, renumbered so that the order of its triples does not matter.

    Other names change the numbers only of entities that look alike. Links keep their order, since
    a split may have gone by it. The cost is some passes over the triples and a sort of them.
    """
    task = benchmark.task
    hashes = structure_hashes(task)
    name_keys = benchmark.relation_names.map(Names.keys)
    entities = (
        hashes.zip(task.tie_keys)
        .zip(STARTS)
        .map(lambda side: _order(side[0][0].entities, side[0][1], side[1]))
    )
    relations = (
        hashes.zip(name_keys)
        .zip(STARTS)
        .map(lambda side: _order(side[0][0].relations, side[0][1], side[1]))
    )

    def renumbered(links: IntArray) -> IntArray:
        return np.stack([entities.source.new[links[:, 0]], entities.target.new[links[:, 1]]], 1)

    return replace(
        benchmark,
        task=AlignmentTask(
            task.graphs.zip(entities.zip(relations)).map(lambda side: _graph(side[0], *side[1])),
            renumbered(task.seeds),
            entities.map(lambda order: order.keys),
            entities.zip(task.structural).map(lambda side: side[0].new[side[1]]),
            renumbered(task.presumed),
            task.names and _taken(task.names, entities),
            task.features and task.features.zip(entities).map(lambda side: side[0][side[1].old]),
        ),
        test_links=renumbered(benchmark.test_links),
        names=benchmark.names.zip(entities).map(_names),
        relation_names=benchmark.relation_names.zip(relations).map(_names),
        labels=benchmark.labels and _taken(benchmark.labels, entities),
        dangling=benchmark.dangling
        and entities.zip(benchmark.dangling).map(lambda side: side[0].new[side[1]]),
    )


def structure_hashes(task: AlignmentTask) -> Pair[_Side]:
    """Hashes that are equal for entities whose neighborhoods of `ROUNDS` hops are equal.

    The refinement of Weisfeiler and Leman: in each round the hash of an entity takes in those of
    its neighbors and of the relations between, and a relation's those of its heads and tails. Each
    end of a seed takes in the other's. Sums wrap around, so the order of triples plays no part.
    """
    sides = STARTS.zip(task.graphs).map(
        lambda side: _Side(
            np.full(side[1].num_entities, side[0]), np.full(side[1].num_relations, side[0])
        )
    )
    source_ends, target_ends = task.all_seeds.T
    for _ in range(ROUNDS):
        sides = sides.zip(task.graphs).map(lambda side: _refined(*side))
        source, target = sides.map(lambda side: side.entities)
        shared = _mixed(source[source_ends] * _HEAD + target[target_ends] * _TAIL)
        source[source_ends] = _mixed(shared + STARTS.source)
        target[target_ends] = _mixed(shared + STARTS.target)
    return sides


def _refined(hashes: _Side, graph: KnowledgeGraph) -> _Side:
    """The hashes after one more step."""
    heads, relations, tails = graph.triples.T
    head, tail = hashes.entities[heads], hashes.entities[tails]
    kind = hashes.relations[relations] * _RELATION
    of_entities, of_relations = hashes.entities.copy(), hashes.relations.copy()
    np.add.at(of_entities, heads, _mixed(kind + tail * _TAIL))
    np.add.at(of_entities, tails, _mixed(kind + head * _HEAD))
    np.add.at(of_relations, relations, _mixed(head * _HEAD + tail * _TAIL))
    return _Side(_mixed(of_entities), _mixed(of_relations))


def _order(hashes: Hashes, name_keys: IntArray, start: np.uint64) -> _Order:
    """By ascending hash, and by a hash of the name for equal ones.

    The hash of a name differs between the sides: entities of one name must not get one position.
    """
    names = _mixed(name_keys.view(np.uint64) + start)
    old = np.lexsort((names, hashes))
    new = np.empty_like(old)
    new[old] = np.arange(len(old))
    ordered = hashes[old]
    among_equals = (np.arange(len(old)) - np.searchsorted(ordered, ordered)).astype(np.uint64)
    return _Order(old, new, _mixed(ordered + among_equals * _HEAD).view(np.int64))


def _graph(graph: KnowledgeGraph, entities: _Order, relations: _Order) -> KnowledgeGraph:
    """The graph with new numbers, its triples in their order."""
    heads, tails = entities.new[graph.heads], entities.new[graph.tails]
    kinds = relations.new[graph.relations]
    width, num_kinds = graph.num_entities, graph.num_relations
    if width * num_kinds * width < 2**63:  # one integer holds a triple, and sorts much faster
        packed = np.sort((heads * num_kinds + kinds) * width + tails)
        rest, tails = np.divmod(packed, max(width, 1))
        heads, kinds = np.divmod(rest, max(num_kinds, 1))
        triples = np.stack([heads, kinds, tails], axis=1)
    else:
        order = np.lexsort((tails, kinds, heads))
        triples = np.stack([heads, kinds, tails], axis=1)[order]
    return KnowledgeGraph(triples, width, num_kinds)


def _taken(texts: Pair[Texts], entities: Pair[_Order]) -> Pair[Texts]:
    return texts.zip(entities).map(lambda side: side[0].take(side[1].old))


def _names(side: tuple[Names, _Order]) -> Names:
    names, order = side
    return Names(names.arrow.take(pa.array(order.old)))


def _mixed(values: Hashes) -> Hashes:
    """Spread over all 64 bits (splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed
