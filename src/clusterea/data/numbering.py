"""`canonical`: numbers and tie keys that follow from the structure of the data.

Stages draw at random by number, and add in the order of numbers. If numbers followed the rows of a
file, shuffled rows would give another alignment; if they followed the names, other names would. So
they follow a hash of each entity's surroundings, and names decide only between entities whose
hashes are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.data.sorted_keys import of_ranges, sorted_ranges
from clusterea.in_threads import in_threads
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair, Texts
from clusterea.types.string_parts import take_strings

Hashes = NDArray[np.uint64]

ROUNDS = 4  # hops that a hash covers; a fifth separates no more entities of real pairs
_ROWS = 1 << 16  # triples that one thread takes at once: their hashes stay in a core's cache
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
    entities = (
        hashes.map(lambda side: side.entities)
        .zip(benchmark.names)
        .zip(STARTS)
        .map_at_once(lambda side: _order(*side[0], side[1]))
    )
    relations = (
        hashes.map(lambda side: side.relations)
        .zip(benchmark.relation_names)
        .zip(STARTS)
        .map(lambda side: _order(*side[0], side[1]))
    )

    def renumbered(links: IntArray) -> IntArray:
        return np.stack([entities.source.new[links[:, 0]], entities.target.new[links[:, 1]]], 1)

    return replace(
        benchmark,
        task=AlignmentTask(
            task.graphs.zip(entities.zip(relations)).map_at_once(
                lambda side: _graph(side[0], *side[1])
            ),
            renumbered(task.seeds),
            entities.map(lambda order: order.keys),
            entities.zip(task.structural).map(lambda side: side[0].new[side[1]]),
            renumbered(task.presumed),
            task.names and _taken(task.names, entities),
            task.features and task.features.zip(entities).map(lambda side: side[0][side[1].old]),
        ),
        test_links=renumbered(benchmark.test_links),
        names=benchmark.names.zip(entities).map_at_once(_names),
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
        sides = sides.zip(task.graphs).map_at_once(lambda side: _refined(*side))
        source, target = sides.map(lambda side: side.entities)
        shared = _mix(source[source_ends] * _HEAD + target[target_ends] * _TAIL)
        source[source_ends] = _mix(shared + STARTS.source)
        target[target_ends] = _mix(shared + STARTS.target)
    return sides


def _refined(hashes: _Side, graph: KnowledgeGraph) -> _Side:
    """The hashes after one more step."""
    of_entities, of_relations = hashes.entities.copy(), hashes.relations.copy()
    kinds = hashes.relations * _RELATION
    one_at_a_time = Lock()

    def add(start: int) -> None:
        heads, relations, tails = graph.triples[start : start + _ROWS].T
        kind, head, tail = kinds[relations], hashes.entities[heads], hashes.entities[tails]
        head *= _HEAD
        tail *= _TAIL
        to_head, to_tail = _mix(kind + tail), _mix(kind + head)
        head += tail
        to_relation = _mix(head)
        with one_at_a_time:
            np.add.at(of_entities, heads, to_head)
            np.add.at(of_entities, tails, to_tail)
            np.add.at(of_relations, relations, to_relation)

    in_threads(add, range(0, graph.num_triples, _ROWS))
    return _Side(_mix(of_entities), _mix(of_relations))


def _order(hashes: Hashes, names: Names, start: np.uint64) -> _Order:
    """By ascending hash, and by a hash of the name for equal ones.

    The hash of a name differs between the sides: entities of one name must not get one position.
    """
    everywhere = np.arange(len(hashes))

    def ordered(range_: NDArray[np.bool_] | slice) -> tuple[IntArray, Hashes, Hashes]:
        """The numbers in a range of hashes, their hashes, and how many are equal before each."""
        old, own = everywhere[range_], hashes[range_]
        order = np.argsort(own)
        old, own = old[order], own[order]
        is_new = np.ones(len(own), dtype=bool)
        is_new[1:] = own[1:] != own[:-1]
        is_tied = ~is_new
        is_tied[:-1] |= is_tied[1:]
        tied = old[is_tied]
        keys = Names.of_distinct(names.arrow.take(pa.array(tied))).keys()
        by_name = _mix(keys.view(np.uint64) + start)
        old[is_tied] = tied[np.lexsort((tied, by_name, own[is_tied]))]
        places = np.arange(len(own))
        among_equals = places - np.maximum.accumulate(np.where(is_new, places, 0))
        return old, own, among_equals.astype(np.uint64)

    ranges = zip(*of_ranges(hashes, ordered), strict=True)
    old, own, among_equals = (np.concatenate(parts) for parts in ranges)
    new = np.empty_like(old)
    new[old] = everywhere
    return _Order(old, new, _mix(own + among_equals * _HEAD).view(np.int64))


def _graph(graph: KnowledgeGraph, entities: _Order, relations: _Order) -> KnowledgeGraph:
    """The graph with new numbers, its triples in their order."""
    width, num_kinds = graph.num_entities, graph.num_relations
    triples = np.empty_like(graph.triples)
    if width * num_kinds * width >= 2**63:  # one integer can't hold a triple; that sorts slower
        heads, tails = entities.new[graph.heads], entities.new[graph.tails]
        kinds = relations.new[graph.relations]
        np.stack([heads, kinds, tails], axis=1, out=triples)
        return KnowledgeGraph(triples[np.lexsort((tails, kinds, heads))], width, num_kinds)
    packed = np.empty(graph.num_triples, dtype=np.int64)

    def pack(start: int) -> None:
        heads, kinds, tails = graph.triples[start : start + _ROWS].T
        rest = entities.new[heads] * num_kinds + relations.new[kinds]
        packed[start : start + _ROWS] = rest * width + entities.new[tails]

    def unpack(start: int) -> None:
        rest, tails = np.divmod(packed[start : start + _ROWS], width)
        heads, kinds = np.divmod(rest, num_kinds)
        np.stack([heads, kinds, tails], axis=1, out=triples[start : start + _ROWS])

    starts = range(0, graph.num_triples, _ROWS)
    in_threads(pack, starts)
    packed = np.concatenate(sorted_ranges(packed))
    in_threads(unpack, starts)
    return KnowledgeGraph(triples, width, num_kinds)


def _taken(texts: Pair[Texts], entities: Pair[_Order]) -> Pair[Texts]:
    return texts.zip(entities).map(lambda side: side[0].take(side[1].old))


def _names(side: tuple[Names, _Order]) -> Names:
    names, order = side
    return Names.of_distinct(take_strings(names.arrow, order.old))


def _mix(values: Hashes) -> Hashes:
    """Spreads values over all 64 bits (splitmix64), in place."""
    values ^= values >> np.uint64(30)
    values *= _FIRST
    values ^= values >> np.uint64(27)
    values *= _SECOND
    values ^= values >> np.uint64(31)
    return values
