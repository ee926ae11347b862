"""Label propagation: embeddings from random labels of the seeds, without any training.

LightEA's idea (Mao et al., EMNLP 2022): the two ends of a seed share a random label, and what
reaches an entity from the seeds around it, and through which relations, tells it apart. Three views
spread the labels: from entities to their neighbours, from entities to the relations on their edges,
and from relations back. Then an entity is described by its edges: the sum over them of
relation ⊗ neighbour, where both are what they have gathered in all rounds. Its own labels join as
one more edge, of a relation to itself.

That outer product has millions of dimensions. Random projections keep its inner products: for
Gaussian P and Q, the mean over a dimension of (P r ⊙ Q n) · (P r′ ⊙ Q n′) is (r · r′) (n · n′). So
each dimension of the result is an independent sketch; LightEA's pairs each of 512 projections of
the relation with 16 of the neighbour, and needs about twice the dimensions for the same accuracy.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.config import PropagationConfig
from clusterea.errors import InputError
from clusterea.graph.union import UnionGraph, union
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.segments import lengths, segment_sum
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.seeding import generator
from clusterea.training.node_runs import fill, node_runs
from clusterea.training.progress import Progress
from clusterea.types import AlignmentTask, Pair

LABELS_AT_ONCE = 128  # dimensions that spread together: beside the labels, so much is in memory


@torch.no_grad()
def propagate(
    task: AlignmentTask,
    config: PropagationConfig,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> Pair[Tensor]:
    """Embeddings of all entities of both sides, on the host: rows of unit length.

    An entity that no label reaches has zeros. The labels are held once, and once what they are
    projected to, both in half precision on a GPU: 2 · (dimension + features) bytes an entity there,
    4 · (dimension + 2 · features) on a CPU with the result.

    Args:
        task: Two graphs and the seeds.
        config: Dimensions and rounds.
        device: Where to compute.
        progress: Called after every round.
    """
    if not task.num_seeds:
        raise InputError("label propagation needs seeds. Got none.")
    place = torch.empty(0, device=device).device
    kind = torch.float16 if place.type == "cuda" else torch.float32
    graph = union(task.graphs).to(place)
    labels = _Labels(graph, task, config, kind)
    neighbors = _Sketch(graph.num_nodes, config, "neighbors", place, kind)
    relations = _Sketch(graph.num_relations, config, "relations", place, torch.float32)
    neighbors.add(labels.of_entities)
    for done in range(1, config.rounds + 1):
        labels.spread()
        neighbors.add(labels.of_entities)
        relations.add(labels.of_relations)
        if progress:
            progress(Progress(1, 1, done, config.rounds + 1, None, 0))
    del labels
    weights = _edge_weights(graph, config)
    embeddings = _aggregated(graph, weights, neighbors.rows(), relations.rows(), config)
    if progress:
        progress(Progress(1, 1, config.rounds + 1, config.rounds + 1, None, 0))
    source = task.graphs.source.num_entities
    return Pair(embeddings[:source], embeddings[source:])


class _Labels:
    """What has reached each entity and each relation: rows of unit length, or zeros."""

    def __init__(
        self, graph: UnionGraph, task: AlignmentTask, config: PropagationConfig, kind: torch.dtype
    ) -> None:
        device, dimension = graph.device, config.dimension
        draw = generator(config.seed, "labels")
        signs = torch.randint(2, (task.num_seeds, dimension), generator=draw, dtype=torch.int8)
        drawn = (signs * 2 - 1).to(device, kind) / dimension**0.5
        ends = torch.tensor(task.seeds).to(device) + torch.tensor(
            [0, task.graphs.source.num_entities], device=device
        )
        self.of_entities = torch.zeros(graph.num_nodes, dimension, dtype=kind, device=device)
        self.of_entities[ends[:, 0]] = self.of_entities[ends[:, 1]] = drawn
        self.of_relations = torch.zeros(graph.num_relations, dimension, device=device)
        # Each triple counts, also where several are one edge.
        triples = lengths(graph.set_offsets).index_select(0, graph.relation_sets)
        weights = triples * _edge_weights(graph, config)
        self._edges = SparseMatrix(graph.offsets, graph.neighbors, weights, graph.num_nodes)
        degrees = segment_sum(weights, graph.offsets)
        self._own = (config.self_weight * degrees).unsqueeze(1)
        # Sums of many labels would leave the range of half precision before they are normalized.
        self._scale = (degrees + 1).rsqrt().unsqueeze(1)
        present = torch.ones_like(graph.incident_relations, dtype=torch.float32)
        offsets, names, count = (
            graph.incident_offsets,
            graph.incident_relations,
            graph.num_relations,
        )
        self._heads = SparseMatrix(offsets, names, present, count).transpose
        # An entity hears from a relation at the other end of it.
        inverse = (names + count // 2) % max(count, 1)
        self._tails = SparseMatrix(offsets, inverse, present, count)

    def spread(self) -> None:
        """One round, in place. Dimensions spread apart from each other, until rows are scaled."""
        relations = torch.empty_like(self.of_relations)
        squares = torch.zeros(len(self.of_entities), 1, device=relations.device)
        for start in range(0, relations.shape[1], LABELS_AT_ONCE):
            part = slice(start, start + LABELS_AT_ONCE)
            own = self.of_entities[:, part].float()
            relations[:, part] = self._heads.apply(own)
            heard = self._edges.apply(own)
            heard += self._own * own
            heard += self._tails.apply(self.of_relations[:, part].contiguous())
            heard *= self._scale
            squares += heard.square().sum(1, keepdim=True)
            self.of_entities[:, part] = heard.to(self.of_entities.dtype)
        self.of_entities *= torch.where(squares > 0, squares.rsqrt(), 0).to(self.of_entities.dtype)
        self.of_relations = normalize(relations, dim=1)


class _Sketch:
    """A random projection of the states of all rounds side by side, of which it holds none."""

    def __init__(
        self,
        count: int,
        config: PropagationConfig,
        what: str,
        device: torch.device,
        kind: torch.dtype,
    ) -> None:
        self._draw = generator(config.seed, "projection", what)
        self._shape = config.dimension, config.features
        self._sums = torch.zeros(count, config.features, dtype=kind, device=device)
        self._rounds = torch.zeros(count, 1, device=device)  # in which a row was not zero

    def add(self, states: Tensor) -> None:
        """The states of one more round."""
        projection = torch.randn(self._shape, generator=self._draw) / self._shape[0] ** 0.5
        self._sums.addmm_(states, projection.to(states))
        self._rounds += (states != 0).any(1, keepdim=True)

    def rows(self) -> Tensor:
        """(count, features): as if of one row of unit length."""
        return self._sums.mul_(self._rounds.clamp(min=1).rsqrt().to(self._sums.dtype))


def _edge_weights(graph: UnionGraph, config: PropagationConfig) -> Tensor:
    """(edges,): what each neighbour counts; a hub says less about those around it."""
    degrees = lengths(graph.offsets).clamp(min=1).float()
    return (degrees**-config.hub_damping).index_select(0, graph.neighbors)


def _aggregated(
    graph: UnionGraph,
    weights: Tensor,
    neighbors: Tensor,
    relations: Tensor,
    config: PropagationConfig,
) -> Tensor:
    """(nodes, features) on the host: the sum of relation ⊙ neighbour over each node's edges."""
    present = torch.ones_like(graph.set_relations, dtype=torch.float32)
    sets = SparseMatrix(graph.set_offsets, graph.set_relations, present, graph.num_relations)
    names = sets.apply(relations)
    draw = generator(config.seed, "projection", "itself")
    itself = torch.randint(2, (config.features,), generator=draw) * 2.0 - 1
    itself = itself.to(graph.device) * config.own_weight

    def described(start: int, stop: int) -> Tensor:
        offsets = graph.offsets[start : stop + 1]
        edges = slice(int(offsets[0]), int(offsets[-1]))
        heard = neighbors.index_select(0, graph.neighbors[edges]).float()
        heard *= names.index_select(0, graph.relation_sets[edges])
        places = torch.arange(len(heard), device=heard.device)
        sums = SparseMatrix(offsets - offsets[0], places, weights[edges], len(heard)).apply(heard)
        own = normalize(neighbors[start:stop].float(), dim=1)
        return normalize(normalize(sums, dim=1) + itself * own, dim=1)

    edges_at_once = max(1, block_size("labels", graph.device) // config.features)
    return fill(list(node_runs(graph, edges_at_once)), described, torch.device("cpu"))
