"""How a generated pair compares with a real one: a table of structure, side by side.

    .venv/bin/python benchmarks/generator_realism.py --real FOLDER --like ids15k-en-fr --seed 0

FOLDER holds `rel_triples_1`, `rel_triples_2` and `ent_links` in OpenEA's format.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import clusterea
from clusterea.data.synthetic import SHAPES, generate
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
LARGE = 6  # relations whose functionality is shown
SEED_SHARE = 0.3
DIMENSION = 512  # of the propagated vectors
Colors = NDArray[np.uint64]
Table = dict[str, str | float]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", type=Path, required=True, help="folder in OpenEA's format")
    parser.add_argument("--like", choices=SHAPES, default="ids15k-en-fr")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    real = describe(clusterea.load(options.real).task)
    made = describe(generate(SHAPES[options.like], options.seed).task)
    print(f"| | real {options.real.name} | generated {options.like}, seed {options.seed} |")
    print("|---|---|---|")
    for name, value in real.items():
        print(f"| {name} | {shown(value)} | {shown(made[name])} |")


def shown(value: str | float) -> str:
    """The figure as a cell of the table."""
    return value if isinstance(value, str) else f"{value:.3f}"


def describe(task: AlignmentTask) -> Table:
    """The figures of one pair, by name."""
    table: Table = {}
    for side, graph in (("source", task.graphs.source), ("target", task.graphs.target)):
        table |= describe_graph(side, graph)
    for way, seen in (("source in target", task), ("target in source", task.swap())):
        table[f"joined pairs: {way}"] = overlap(seen)
    degrees = task.graphs.map(lambda graph: np.log(graph.degrees()))
    table["correlation of linked entities' log degree"] = float(
        np.corrcoef(degrees.source[task.seeds[:, 0]], degrees.target[task.seeds[:, 1]])[0, 1]
    )
    links = np.random.default_rng(0).permutation(task.seeds)
    seeds, test = np.split(links, [round(SEED_SHARE * len(links))])
    table["1-WL limit of H@1, source to target"] = refinement_limit(
        task.graphs.target, seeds[:, 1], test[:, 1]
    )
    table["1-WL limit of H@1, target to source"] = refinement_limit(
        task.graphs.source, seeds[:, 0], test[:, 0]
    )
    table["H@1 of plain seed propagation"] = propagation_hits(task.graphs, seeds, test)
    return table


def describe_graph(side: str, graph: KnowledgeGraph) -> Table:
    """The figures of one side."""
    size = graph.num_entities
    degrees = np.quantile(graph.degrees(), QUANTILES).round().astype(int)
    pairs = np.unique(graph.heads * size + graph.tails)
    sizes = np.bincount(graph.relations)
    order = np.argsort(-sizes, kind="stable")
    lower, median, upper = np.quantile(sizes, (0.25, 0.5, 0.75))
    shares = []
    for relation in order[:LARGE]:
        triples = graph.triples[graph.relations == relation]
        heads, tails = (len(np.unique(triples[:, column])) / len(triples) for column in (0, 2))
        shares.append(f"({heads:.2f}, {tails:.2f})")
    marks = "q10 q25 q50 q75 q90 q95 q99 q99.9 max"
    return {
        f"{side}: degree {marks}": " ".join(str(degree) for degree in degrees),
        f"{side}: never a head": float((np.bincount(graph.heads, minlength=size) == 0).mean()),
        f"{side}: never a tail": float((np.bincount(graph.tails, minlength=size) == 0).mean()),
        f"{side}: largest relations": " ".join(str(count) for count in sizes[order[:LARGE]]),
        f"{side}: relation sizes q75 q50 q25": f"{upper:.0f} {median:.0f} {lower:.0f}",
        f"{side}: (heads, tails) a triple of the largest": " ".join(shares),
        f"{side}: ordered pairs a triple": len(pairs) / graph.num_triples,
        f"{side}: pairs joined both ways": float(
            np.isin(pairs % size * size + pairs // size, pairs).mean()
        ),
    }


def overlap(task: AlignmentTask) -> float:
    """Share of source triples between linked entities whose ends are joined in the target too."""
    source, target = task.graphs
    counterpart = np.full(source.num_entities, -1)
    counterpart[task.seeds[:, 0]] = task.seeds[:, 1]
    heads, tails = counterpart[source.heads], counterpart[source.tails]
    linked = (heads >= 0) & (tails >= 0)
    joined = np.unique(target.heads * target.num_entities + target.tails)
    return float(np.isin(heads[linked] * target.num_entities + tails[linked], joined).mean())


def refinement_limit(graph: KnowledgeGraph, seeds: IntArray, test: IntArray) -> float:
    """The most that H@1 can be: test entities of one 1-WL color share one hit among them."""
    colors = np.zeros(graph.num_entities, dtype=np.uint64)
    colors[seeds] = np.arange(1, len(seeds) + 1)
    colors = scramble(colors)
    ends, others, relations = both_ways(graph)
    marks = scramble(relations.astype(np.uint64))
    starts = np.flatnonzero(np.diff(ends, prepend=-1))
    found = 0
    while found < (found := len(np.unique(colors))):
        around = np.zeros_like(colors)
        # Sums of scrambled numbers stand for multisets of (relation, direction, color).
        around[ends[starts]] = np.add.reduceat(scramble(colors[others] + marks), starts)
        colors = scramble(scramble(colors) + around)
    _, classes = np.unique(colors, return_inverse=True)
    return len(np.unique(classes[test])) / len(test)


def both_ways(graph: KnowledgeGraph) -> tuple[IntArray, IntArray, IntArray]:
    """Each triple seen from its head and from its tail, ordered by who looks."""
    ends = np.concatenate([graph.heads, graph.tails])
    others = np.concatenate([graph.tails, graph.heads])
    relations = np.concatenate([graph.relations, graph.relations + graph.num_relations])
    order = np.argsort(ends, kind="stable")
    return ends[order], others[order], relations[order]


def scramble(numbers: Colors) -> Colors:
    """A hash of each number (the last steps of SplitMix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def propagation_hits(graphs: Pair[KnowledgeGraph], seeds: IntArray, test: IntArray) -> float:
    """H@1 of the plainest aligner there is: seeds' random vectors, averaged over two hops.

    It knows no relation and learns nothing; a real and a generated pair that are alike should be
    about equally hard for it.
    """
    labels = np.random.default_rng(1).standard_normal((len(seeds), DIMENSION)).astype(np.float32)
    features = [propagate(graph, ids, labels) for graph, ids in zip(graphs, seeds.T, strict=True)]
    source, target = (unit(rows[ids]) for rows, ids in zip(features, test.T, strict=True))
    hits = 0.0
    for start in range(0, len(test), 1024):
        scores = source[start : start + 1024] @ target.T
        truth = scores[np.arange(len(scores)), np.arange(start, start + len(scores))][:, None]
        # Rows that nothing reached tie with all others; float noise must not decide.
        better = (scores > truth + 1e-5).any(axis=1)
        ties = (np.abs(scores - truth) <= 1e-5).sum(axis=1)
        hits += float((~better / ties).sum())
    return hits / len(test)


def propagate(
    graph: KnowledgeGraph, seeds: IntArray, labels: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(entities, 3 × DIMENSION): the labels, and what arrives after one and after two hops."""
    ends, others, _ = both_ways(graph)
    starts = np.flatnonzero(np.diff(ends, prepend=-1))
    layer = np.zeros((graph.num_entities, DIMENSION), dtype=np.float32)
    layer[seeds] = labels
    layers = [unit(layer)]
    for _ in range(2):
        arrived = np.zeros_like(layer)
        arrived[ends[starts]] = np.add.reduceat(layers[-1][others], starts, axis=0)
        layers.append(unit(arrived))
    return np.concatenate(layers, axis=1)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows at length one; zero rows stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: NDArray[np.float32] = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return result


if __name__ == "__main__":
    main()
