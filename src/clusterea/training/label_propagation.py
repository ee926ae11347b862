"""Label propagation: embeddings from random labels of the seeds, without any training.

LightEA's idea (Mao et al., EMNLP 2022): the two ends of a seed share a random label, and an entity
is identified by the labels that reach it from the seeds around it, and by the relations on the way.
Labels spread in three ways: from entities to their neighbors, from entities to the relations on
their edges, and from relations back. The embedding of an entity is then the sum over its edges of
relation ⊗ neighbor, where both are the labels gathered in all rounds. The entity's own labels are
added as one more edge, a relation to itself.

That outer product has millions of dimensions. Random projections keep its inner products: for
Gaussian P and Q, the mean over a dimension of (P r ⊙ Q n) · (P r′ ⊙ Q n′) is (r · r′) (n · n′). So
each dimension of the result is an independent sketch. LightEA pairs each of 512 projections of the
relation with 16 of the neighbor, and needs about twice the dimensions for the same accuracy.

Dimensions are independent until rows are scaled, so the work is cut into slabs of `SLAB` dimensions
and into shards of rows. The functions here do a part; `clusterea.sharded.propagate` does the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.config import PropagationConfig
from clusterea.graph.compact_union import CompactUnion
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.index_types import as_index, index_type
from clusterea.numerics.products import linear, vector_type
from clusterea.numerics.rows import TILE
from clusterea.numerics.segments import lengths, offsets_of, segment_sum
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.seeding import generator
from clusterea.training.node_runs import node_runs
from clusterea.types import KnowledgeGraph, Pair

SELF_WEIGHT = 0.25  # of an entity's own labels against its neighbors', in each round
OWN_WEIGHT = 0.3  # of an entity's own labels against its neighborhood, in the embedding
HUB_DAMPING = 0.1  # a neighbor of degree d has weight d to the power of minus this
SLAB = 64  # dimensions of labels that one unit works on; on a GPU, features too
AT_ONCE = 32  # of them in memory at a time on a CPU, and features that one unit works on there
ROUNDED = 128  # rows of a product are a multiple of this
CPU_TILE = 256  # rows that are scaled at a time
GPU_TILE = 1 << 17  # rows of one product on a GPU


@dataclass(frozen=True, slots=True, eq=False)
class LabelEdges:
    """What labels spread along and embeddings are summed over.

    Matrices are made for some rows at a time, since they follow from what is here.
    """

    graph: CompactUnion
    damping: Tensor  # (nodes,) float32: the weight of a node as a neighbor
    degrees: Tensor  # (nodes,) float32: the sum of each node's weights in `triples`
    holder_offsets: Tensor  # (relations + 1,)
    holders: Tensor  # (…,): the nodes that have a relation on their edges

    @classmethod
    def of(
        cls,
        graphs: Pair[KnowledgeGraph],
        device: torch.device,
        found: CompactUnion | None = None,
    ) -> LabelEdges:
        """The edges of both graphs; `found` is their union on the device, if it is there."""
        graph = CompactUnion.of(graphs, device) if found is None else found
        names, held = graph.incident_relations, lengths(graph.incident_offsets)
        # Stable, so that nodes rise.
        order = names.argsort(stable=True)
        counts = as_index(names).bincount(minlength=graph.num_relations)
        nodes = torch.arange(graph.num_nodes, dtype=index_type(graph.num_nodes), device=device)
        edges = cls(
            graph,
            # A hub says less about the entities around it.
            lengths(graph.offsets).clamp(min=1).float() ** -HUB_DAMPING,
            torch.empty(graph.num_nodes, device=device),
            offsets_of(counts).to(index_type(len(order))),
            nodes.repeat_interleave(held, output_size=len(order)).index_select(0, order),
        )
        for start, stop in node_runs(graph.offsets, block_size("labels", device)):
            part = edges.triples(slice(start, stop))
            edges.degrees[start:stop] = segment_sum(part.values, part.offsets.long())
        return edges

    def triples(self, rows: slice) -> SparseMatrix:
        """(rows, nodes): each triple counts, also if several share an edge."""
        offsets, cells = _cells(self.graph.offsets, rows)
        sizes = lengths(self.graph.set_offsets).float()
        weights = sizes.index_select(0, as_index(self.graph.relation_sets[cells]))
        neighbors = self.graph.neighbors[cells]
        weights *= self.damping.index_select(0, neighbors)
        return SparseMatrix(offsets, neighbors, weights, self.graph.num_nodes)

    def names(self, rows: slice) -> SparseMatrix:
        """(rows, relations): the distinct relations on each node's edges."""
        offsets, cells = _cells(self.graph.incident_offsets, rows)
        return _ones(offsets, self.graph.incident_relations[cells], self.graph.num_relations)

    def by_name(self) -> SparseMatrix:
        """(relations, nodes): the transpose, of all nodes."""
        return _ones(self.holder_offsets, self.holders, self.graph.num_nodes)


def _cells(offsets: Tensor, rows: slice) -> tuple[Tensor, slice]:
    """The offsets of some rows from the first of them, and their cells."""
    own = offsets[rows.start : rows.stop + 1]
    return own - own[0], slice(int(own[0]), int(own[-1]))


def _ones(offsets: Tensor, columns: Tensor, num_columns: int) -> SparseMatrix:
    present = torch.ones(len(columns), device=columns.device)
    return SparseMatrix(offsets, as_index(columns), present, num_columns)


def first_labels(
    signs: Tensor, ends: Tensor, scale: float, bounds: Sequence[int]
) -> tuple[Tensor, ...]:
    """(rows, labels) of each shard: the labels of the two ends of each seed; zeros elsewhere.

    Half precision on a GPU.

    Args:
        signs: (seeds, labels): 0 or 1, on the host.
        ends: (seeds, 2): nodes.
        scale: Of a label.
        bounds: Where the shards of nodes begin, and where the last one ends.
    """
    device = ends.device
    kind = vector_type(device)
    labels = torch.zeros(bounds[-1], signs.shape[1], dtype=kind, device=device)
    labels[ends[:, 0]] = labels[ends[:, 1]] = (signs * 2 - 1).to(device, kind) / scale
    return row_parts(labels, bounds)


def spread(
    edges: LabelEdges, of_relations: Tensor, scales: Sequence[Tensor | None], *parts: Tensor
) -> tuple[Tensor, ...]:
    """One round for some dimensions of the labels, which are independent until rows are scaled.

    Args:
        edges: What labels spread along.
        of_relations: (relations, labels): the labels of each relation.
        scales: From `row_scales`: (rows, 1) for each part; None if it needs none.
        *parts: (rows, labels): the labels of all entities, in parts.

    Returns:
        (relations, labels) those of relations; (nodes, 1) the sum of squares of each row; and the
        labels of all entities, in the same parts, which `scales` of these squares belong to.
    """
    bounds = [0, *accumulate(map(len, parts))]
    first, size = parts[0], bounds[-1]
    device, width = first.device, first.shape[1]
    raised = torch.empty(size, width, dtype=first.dtype, device=device)
    squares = torch.empty(size, 1, device=device)
    relations = torch.empty(len(of_relations), width, device=device)
    step = max(1, block_size("labels", device) // width)
    for columns in _at_once(width, device):
        own = torch.empty(size, columns.stop - columns.start, device=device)
        for place, part, scale in zip(row_parts(own, bounds), parts, scales, strict=True):
            place.copy_(with_scale(part[:, columns], scale))
        relations[:, columns] = edges.by_name().apply(own)
        # An entity receives the labels of a relation from its other end, that is of its inverse.
        of_relation = of_relations[:, columns].roll(len(of_relations) // 2, 0)
        for start in range(0, size, step):
            rows = slice(start, min(start + step, size))
            degrees = edges.degrees[rows].unsqueeze(1)
            heard = edges.triples(rows).apply(own)
            heard += SELF_WEIGHT * degrees * own[rows]
            heard += edges.names(rows).apply(of_relation)
            # Without this, sums of many labels overflow half precision before they are normalized.
            heard *= (degrees + 1).rsqrt()
            raised[rows, columns] = heard.to(first.dtype)
            if device.type == "cuda":
                squares[rows] = heard.square().sum(1, keepdim=True)
            del heard
        del own  # before those of the next columns are there
    if device.type == "cpu":
        for start in range(0, size, step):
            rows = slice(start, start + step)
            squares[rows] = raised[rows].square().sum(1, keepdim=True)
    return relations, squares, *row_parts(raised, bounds)


def _at_once(width: int, device: torch.device) -> list[slice]:
    """Columns that are worked on at a time: those of a unit's labels, or half of them on a CPU.

    A unit has the labels of all nodes, so this is memory. Each column has the same bytes.
    """
    step = AT_ONCE if device.type == "cpu" else width
    return [slice(start, min(start + step, width)) for start in range(0, width, step)]


def features_slab(device: torch.device) -> int:
    """Features that one unit sums over the edges of all nodes; each has the same bytes."""
    return AT_ONCE if device.type == "cpu" else SLAB


def row_scales(bounds: Sequence[int], *squares: Tensor) -> tuple[Tensor, ...]:
    """(rows, 1) for each shard: the factors that give rows unit length; rows of zeros stay.

    Args:
        bounds: Where the shards of nodes begin, and where the last one ends.
        *squares: (nodes, 1): the sums of squares of some dimensions each.
    """
    total = squares[0]
    for each in squares[1:]:
        total = total + each
    return row_parts(torch.where(total > 0, total.rsqrt(), 0), bounds)


def with_scale(labels: Tensor, scale: Tensor | None) -> Tensor:
    """The labels times the scales of their rows, in the type of the labels."""
    return labels if scale is None else labels * scale.to(labels.dtype)


def stacked(*parts: Tensor) -> Tensor:
    """The parts, one below the other."""
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def row_parts(labels: Tensor, bounds: Sequence[int]) -> tuple[Tensor, ...]:
    """The labels in shards of rows."""
    return tuple(labels[start:stop] for start, stop in pairwise(bounds))


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """A random projection of the concatenated labels of all rounds, without keeping the labels."""

    sums: Tensor  # (rows, features)
    rounds: Tensor  # (rows, 1): the rounds in which a row was not zero


def sketched(
    before: Sketch | None, projection: Tensor, scale: Tensor | None, *parts: Tensor
) -> Sketch:
    """The sketch of some rows with the labels of one more round.

    Args:
        before: The sketch of earlier rounds; None in the first one.
        projection: (features, dimension): random, another one in each round.
        scale: From `row_scales`: (rows, 1); None if the labels need none.
        *parts: (rows, labels): some dimensions of the labels each.
    """
    first, projection = parts[0], projection.to(parts[0])
    sums = first.new_empty(len(first), len(projection))
    rounds = torch.zeros(len(first), 1, device=first.device)
    tile = TILE if first.device.type == "cpu" else GPU_TILE
    for start in range(0, len(first), tile):
        rows = slice(start, start + tile)
        labels = torch.cat([part[rows] for part in parts], 1) if len(parts) > 1 else first[rows]
        labels = with_scale(labels, None if scale is None else scale[rows])
        has_labels = (labels != 0).any(1)
        sums[rows] = 0 if before is None else before.sums[rows]
        # In the first round few rows have labels. The product is the largest part of the work.
        at = _with_labels(has_labels)
        if 2 * len(at) <= len(labels):
            sums[rows].index_add_(0, at, linear(labels[at], projection))
        elif labels.device.type == "cpu":
            sums[rows] += linear(labels, projection)
        else:  # half precision is added up before it is rounded
            sums[rows].addmm_(labels, projection.T)
        rounds[rows] = has_labels.float().unsqueeze(1)
    return Sketch(sums, rounds if before is None else before.rounds + rounds)


def _with_labels(has_labels: Tensor) -> Tensor:
    """The rows that have labels, and some that have not: a multiple of `ROUNDED`.

    For each number of rows that is multiplied, the CPU's library makes and keeps a program.
    """
    count = -(-int(has_labels.sum()) // ROUNDED) * ROUNDED
    return has_labels.int().argsort(descending=True, stable=True)[:count]


def sketch_parts(sketch: Sketch, width: int) -> tuple[Tensor, ...]:
    """(rows, width) each: the projection, scaled as if the concatenated rows had unit length."""
    factors = sketch.rounds.clamp(min=1).rsqrt().to(sketch.sums.dtype)
    return tuple(part * factors for part in torch.split(sketch.sums, width, dim=1))


def projection_of(draw: torch.Generator, config: PropagationConfig) -> Tensor:
    """(features, dimension): the random projection of one more round."""
    drawn: Tensor = torch.randn(config.dimension, config.features, generator=draw)
    drawn /= config.dimension**0.5
    return drawn.T.contiguous()


def set_sums(edges: LabelEdges, relations: Tensor) -> Tensor:
    """(sets, features): the sum over the relations of each set."""
    graph = edges.graph
    return _ones(graph.set_offsets, graph.set_relations, graph.num_relations).apply(relations)


def heard(
    edges: LabelEdges, of_sets: Tensor, bounds: Sequence[int], *parts: Tensor
) -> tuple[Tensor, ...]:
    """The sum of relation ⊙ neighbor over each node's edges: some features, in shards of rows.

    Args:
        edges: Of all nodes.
        of_sets: (sets, features): the labels of each set of relations.
        bounds: Where the shards begin, and where the last one ends; all shards, or some.
        *parts: (nodes, features): the labels of all nodes, in parts.
    """
    device, width, graph = parts[0].device, parts[0].shape[1], edges.graph
    first, last = bounds[0], bounds[-1]
    labels = stacked(*parts)
    sums = torch.empty(last - first, width, device=device)
    most = max(1, block_size("labels", device) // width)
    for begin, end in node_runs(graph.offsets[first : last + 1], most):
        offsets, some = _cells(graph.offsets, slice(first + begin, first + end))
        neighbors = graph.neighbors[some]
        each = labels.index_select(0, neighbors).float()
        each *= of_sets.index_select(0, as_index(graph.relation_sets[some]))
        places = torch.arange(len(each), dtype=offsets.dtype, device=device)
        weights = edges.damping.index_select(0, neighbors)
        sums[begin:end] = SparseMatrix(offsets, places, weights, len(each)).apply(each)
        del each
    return row_parts(sums, [each - first for each in bounds])


def described(itself: Tensor, own: Sequence[Tensor], sums: Sequence[Tensor]) -> Tensor:
    """(rows, features) of unit length, in `vector_type`: the embeddings of a shard of rows.

    Args:
        itself: (features,): the relation of an entity to itself.
        own: (rows, …): the labels of these rows, some features each.
        sums: From `heard`, likewise.
    """
    device = itself.device
    result = torch.empty(len(own[0]), len(itself), dtype=vector_type(device), device=device)
    tile = CPU_TILE if itself.device.type == "cpu" else GPU_TILE
    for start in range(0, len(result), tile):
        rows = slice(start, start + tile)
        mine = normalize(torch.cat([part[rows] for part in own], 1).float(), dim=1)
        total = normalize(torch.cat([part[rows] for part in sums], 1), dim=1)
        result[rows] = normalize(total + itself * mine, dim=1)
    return result


def itself_of(config: PropagationConfig) -> Tensor:
    """(features,): random signs, times the weight of an entity's own labels."""
    draw = generator(config.seed, "projection", "itself")
    return (torch.randint(2, (config.features,), generator=draw) * 2.0 - 1) * OWN_WEIGHT
