"""`propagate`: label propagation in slabs of dimensions and shards of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.config import PropagationConfig
from clusterea.engines import Engine, InMemory, Ref
from clusterea.errors import InputError
from clusterea.graph.compact_union import Unions
from clusterea.numerics.copies import host_copies
from clusterea.numerics.products import vector_type
from clusterea.seeding import generator
from clusterea.sharded.shards import cut
from clusterea.training import EncoderProgress
from clusterea.training.label_propagation import (
    SLAB,
    LabelEdges,
    Sketch,
    described,
    features_slab,
    first_labels,
    heard,
    itself_of,
    projection_of,
    row_parts,
    row_scales,
    set_sums,
    sketch_parts,
    sketched,
    spread,
    stacked,
)
from clusterea.types import AlignmentTask, Pair

ROWS_HERE = {"cpu": 1 << 13, "cuda": 1 << 15}  # of a shard, where the user gives no number


@torch.no_grad()
def propagate(
    task: AlignmentTask,
    config: PropagationConfig,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[EncoderProgress], None] | None = None,
    engine: Engine | None = None,
    unions: Unions | None = None,
) -> Pair[Tensor]:
    """Embeddings of all entities of both sides, on the host: rows of unit length.

    An entity that no label reaches has zeros. The labels and their projection are held once, on a
    GPU in half precision. Bytes for each entity: 2 · (dimension + features) on a GPU,
    4 · (dimension + 2 · features) on a CPU, with the result.

    Args:
        task: Two graphs and the seeds.
        config: Dimensions and rounds.
        device: Where to compute.
        progress: Called after every round.
        engine: Runs the units; in this process and in memory if not given. The result does not
            depend on it, nor on the number of its shards.
        unions: Holds the union of the graphs, for the next encoder of the same graphs.
    """
    if not task.num_seeds:
        raise InputError("label propagation needs seeds. Got none.")
    engine = engine or InMemory()
    device = torch.empty(0, device=device).device
    bounds = cut(sum(task.num_entities), engine, ROWS_HERE[device.type])
    with ThreadPoolExecutor(1) as beside:  # one core draws the labels of all seeds
        drawing = beside.submit(_signs, task.num_seeds, config)
        here = unions.of(task.graphs, device) if unions is not None and engine.is_here else None
        edges = engine.submit(LabelEdges.of, task.graphs, device, here)
        del here
        parts = _first_labels(engine, task, drawing.result(), device, bounds)
    del drawing
    entities, relations = _sketches(engine, edges, parts, task, config, device, bounds, progress)
    del parts
    embeddings = _described(engine, edges, entities, relations, config, bounds)
    if progress:
        progress(_progress(config.rounds + 1, config))
    source = task.num_entities.source
    return Pair(embeddings[:source], embeddings[source:])


def _progress(done: int, config: PropagationConfig) -> EncoderProgress:
    return EncoderProgress(1, 1, done, config.rounds + 1, None, 0)


def _sketches(
    engine: Engine,
    edges: Ref,
    parts: list[list[Ref]],
    task: AlignmentTask,
    config: PropagationConfig,
    device: torch.device,
    bounds: Sequence[int],
    progress: Callable[[EncoderProgress], None] | None,
) -> tuple[list[Ref], Tensor]:
    """The sketches of each shard of entities, and (relations, features) that of all relations.

    `parts`, the labels of each slab by shard, are replaced by those of later rounds.
    """
    names = torch.zeros(
        2 * sum(each.num_relations for each in task.graphs), config.dimension, device=device
    )
    of_entities, of_relations = (
        generator(config.seed, "projection", what) for what in ("neighbors", "relations")
    )
    sketches: list[Ref] = [None] * (len(bounds) - 1)
    scales: list[Ref] = [None] * (len(bounds) - 1)  # of each shard; seeds need none
    _add_round(engine, sketches, parts, scales, projection_of(of_entities, config))
    relations: Sketch | None = None
    for done in range(1, config.rounds + 1):
        names, scales = _spread(engine, edges, names, parts, scales, bounds)
        _add_round(engine, sketches, parts, scales, projection_of(of_entities, config))
        relations = sketched(relations, projection_of(of_relations, config), None, names)
        if progress:
            progress(_progress(done, config))
    if relations is None:
        return sketches, names.new_zeros(len(names), config.features)
    return sketches, sketch_parts(relations, config.features)[0]


def _signs(num_seeds: int, config: PropagationConfig) -> Tensor:
    """(seeds, dimension) int8, on the host: 0 or 1."""
    draw = generator(config.seed, "labels")
    return torch.randint(2, (num_seeds, config.dimension), generator=draw, dtype=torch.int8)


def _first_labels(
    engine: Engine,
    task: AlignmentTask,
    signs: Tensor,
    device: torch.device,
    bounds: Sequence[int],
) -> list[list[Ref]]:
    """The labels of the seeds' ends: of each slab, by shard."""
    ends = torch.tensor(task.seeds) + torch.tensor([0, task.num_entities.source])
    held = engine.put(ends.to(device))
    return [
        engine.submit_parts(
            len(bounds) - 1,
            first_labels,
            slab.contiguous(),
            held,
            signs.shape[1] ** 0.5,
            bounds,
        )
        for slab in torch.split(signs, SLAB, dim=1)
    ]


def _spread(
    engine: Engine,
    edges: Ref,
    names: Tensor,
    parts: list[list[Ref]],
    scales: list[Ref],
    bounds: Sequence[int],
) -> tuple[Tensor, list[Ref]]:
    """One round: replaces the labels of all entities; gives those of relations, and new scales.

    A slab's old labels are dropped before the next slab gets new ones.
    """
    squares, relations = [], []
    for number, slab in enumerate(torch.split(names, SLAB, dim=1)):
        of_relations, square, *parts[number] = engine.submit_parts(
            2 + len(scales), spread, edges, slab.contiguous(), scales, *parts[number]
        )
        squares.append(square)
        relations.append(of_relations)
    scales = engine.submit_parts(len(scales), row_scales, bounds, *squares)
    return normalize(torch.cat(engine.get(relations), 1), dim=1), scales


def _add_round(
    engine: Engine,
    sketches: list[Ref],
    parts: Sequence[Sequence[Ref]],
    scales: Sequence[Ref],
    projection: Tensor,
) -> None:
    """Adds the labels of one more round to the sketch of each shard."""
    held = engine.put(projection)
    for number, before in enumerate(sketches):
        labels = [slab[number] for slab in parts]
        sketches[number] = engine.submit(sketched, before, held, scales[number], *labels)


def _described(
    engine: Engine,
    edges: Ref,
    sketches: list[Ref],
    relations: Tensor,
    config: PropagationConfig,
    bounds: Sequence[int],
) -> Tensor:
    """(nodes, features) on the host: the embeddings, put together shard by shard.

    Here, the sums of one shard are in memory at a time. Elsewhere a unit computes those of all
    shards, so that each slab of the labels is sent once.
    """
    itself = itself_of(config).to(relations.device)
    width = features_slab(relations.device)
    slabs = torch.split(relations, width, dim=1)
    of_sets = [engine.submit(set_sums, edges, slab.contiguous()) for slab in slabs]
    own = []  # of each shard, by slab
    for number, ref in enumerate(sketches):
        own.append(engine.submit_parts(len(slabs), sketch_parts, ref, width))
        sketches[number] = None
    result = engine.empty([bounds[-1], config.features], vector_type(relations.device))
    if engine.is_here:
        labels = _by_slab(engine, own, bounds)
        with host_copies() as copies:
            for number, shard in enumerate(own):
                cut_here = bounds[number : number + 2]
                sums = [
                    engine.submit_parts(1, heard, edges, names, cut_here, slab)[0]
                    for names, slab in zip(of_sets, labels, strict=True)
                ]
                found = engine.get([engine.submit(described, itself, shard, sums)])[0]
                del sums  # before the result takes memory
                shard.clear()
                copies.put(result[cut_here[0] : cut_here[1]], found)
                del found
        return result
    by_slab = [
        engine.submit_parts(
            len(own), heard, edges, names, bounds, *(shard[number] for shard in own)
        )
        for number, names in enumerate(of_sets)
    ]
    shards: list[Ref] = [
        engine.submit(described, itself, shard, [slab[number] for slab in by_slab])
        for number, shard in enumerate(own)
    ]
    del by_slab, own
    for number, (start, stop) in enumerate(pairwise(bounds)):
        result[start:stop] = engine.get([shards[number]])[0]
        shards[number] = None  # frees it
    return result


def _by_slab(engine: Engine, own: list[list[Ref]], bounds: Sequence[int]) -> list[Ref]:
    """The labels of all nodes in each slab. Those of shards become parts of them."""
    if len(own) == 1:
        return own[0]
    whole = []
    for number in range(len(own[0])):
        whole.append(engine.submit(stacked, *(shard[number] for shard in own)))
        parts = engine.submit_parts(len(own), row_parts, whole[-1], bounds)
        for shard, part in zip(own, parts, strict=True):
            shard[number] = part
    return whole
