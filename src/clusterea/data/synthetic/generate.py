"""`generate`: a pair of knowledge graphs of a given shape, with its true alignment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from clusterea.data.synthetic.labels import LabelShape, draw_labels
from clusterea.data.synthetic.shapes import PairShape
from clusterea.data.synthetic.views import draw_view
from clusterea.data.synthetic.world import World, draw_world
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair


def generate(shape: PairShape, seed: int, labels: LabelShape | None = None) -> Benchmark:
    """A benchmark of exactly the sizes of `shape`, all its links as seeds.

    The same seed gives the same benchmark, and labels change nothing else in it. Ids, names and all
    orders are shuffled on each side by itself, so that only structure and labels tell who is who.
    """
    world_rng, source_rng, target_rng, link_rng, label_rng = (
        np.random.Generator(np.random.PCG64(child))
        for child in np.random.SeedSequence(seed).spawn(5)
    )
    world = draw_world(shape, world_rng)
    sides = Pair(
        _draw_side(world, shape, "source", source_rng),
        _draw_side(world.swap(), shape.swap(), "target", target_rng),
    )
    common = world.population.common
    links = np.column_stack([side.ids[:common] for side in sides])
    return Benchmark(
        task=AlignmentTask(
            sides.map(lambda side: side.graph),
            link_rng.permutation(links),
            sides.map(lambda side: side.names.keys()),
        ),
        test_links=np.empty((0, 2), dtype=np.int64),
        names=sides.map(lambda side: side.names),
        relation_names=sides.map(lambda side: side.relation_names),
        dangling=sides.map(lambda side: np.sort(side.ids[common:])),
        format="generated",
        labels=None
        if labels is None
        else draw_labels(world.population, sides.map(lambda side: side.ids), labels, label_rng),
    )


class _Side(NamedTuple):
    graph: KnowledgeGraph
    names: Names
    relation_names: Names
    ids: IntArray  # of each member of the view, the common ones first and in the world's order


def _draw_side(world: World, shape: PairShape, name: str, rng: np.random.Generator) -> _Side:
    """The source view with its own ids and names."""
    facts = draw_view(world, shape, rng)
    entities, relations = shape.entities.source, shape.relations.source
    ids, relation_ids = rng.permutation(entities), rng.permutation(relations)
    id_of = np.zeros(world.population.size, dtype=np.int64)
    id_of[world.population.members.source] = ids
    order = rng.permutation(len(facts))
    triples = np.empty((len(facts), 3), dtype=np.int64)
    triples[:, 0] = id_of[facts.heads[order]]
    triples[:, 1] = relation_ids[world.vocabulary.words.source[facts.relations[order]]]
    triples[:, 2] = id_of[facts.tails[order]]
    # In a plain shuffle hubs would appear first, on both sides alike. In this order an entity first
    # appears at a place that its id, which is random, decides.
    triples = triples[np.argsort(np.maximum(triples[:, 0], triples[:, 2]), kind="stable")]
    return _Side(
        KnowledgeGraph(triples, entities, relations),
        _names(f"http://{name}.example/resource/E", rng.permutation(entities)),
        _names(f"http://{name}.example/property/P", rng.permutation(relations)),
        ids,
    )


def _names(prefix: str, numbers: IntArray) -> Names:
    """`prefix` and each of `numbers`, padded with zeros to one length."""
    digits = max(6, len(str(len(numbers))))
    head = np.frombuffer(prefix.encode(), dtype=np.uint8)
    text = np.empty((len(numbers), len(head) + digits), dtype=np.uint8)
    text[:, : len(head)] = head
    rest = numbers.copy()
    for column in range(text.shape[1] - 1, len(head) - 1, -1):
        text[:, column] = ord("0") + rest % 10
        rest //= 10
    offsets = np.arange(len(numbers) + 1, dtype=np.int64) * text.shape[1]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return Names(pa.Array.from_buffers(pa.large_string(), len(numbers), buffers))
