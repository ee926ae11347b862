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
from clusterea.training.progress import EncoderProgress
from clusterea.types import AlignmentTask, Pair

SELF_WEIGHT = 0.25  # of an entity's own labels against its neighbors', in each round
OWN_WEIGHT = 0.3  # of an entity's own labels against its neighborhood, in the embedding
HUB_DAMPING = 0.1  # a neighbor of degree d has weight d to the power of minus this
LABELS_AT_ONCE = 128  # dimensions that spread together; bounds the memory beside the labels


@torch.no_grad()
def propagate(
    task: AlignmentTask,
    config: PropagationConfig,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[EncoderProgress], None] | None = None,
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
    """
    if not task.num_seeds:
        raise InputError("label propagation needs seeds. Got none.")
    device = torch.empty(0, device=device).device
    kind = torch.float16 if device.type == "cuda" else torch.float32
    graph = union(task.graphs).to(device)
    labels = _Labels(graph, task, config, kind)
    neighbors = _Sketch(graph.num_nodes, config, "neighbors", device, kind)
    relations = _Sketch(graph.num_relations, config, "relations", device, torch.float32)
    neighbors.add(labels.of_entities)
    for done in range(1, config.rounds + 1):
        labels.spread()
        neighbors.add(labels.of_entities)
        relations.add(labels.of_relations)
        if progress:
            progress(EncoderProgress(1, 1, done, config.rounds + 1, None, 0))
    del labels
    weights = _edge_weights(graph)
    embeddings = _aggregated(graph, weights, neighbors.rows(), relations.rows(), config)
    if progress:
        progress(EncoderProgress(1, 1, config.rounds + 1, config.rounds + 1, None, 0))
    source = task.graphs.source.num_entities
    return Pair(embeddings[:source], embeddings[source:])


class _Labels:
    """The labels that reached each entity and each relation: rows of unit length, or zeros."""

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
        # Each triple counts, also if several share an edge.
        triples = lengths(graph.set_offsets).index_select(0, graph.relation_sets)
        weights = triples * _edge_weights(graph)
        self._edges = SparseMatrix(graph.offsets, graph.neighbors, weights, graph.num_nodes)
        degrees = segment_sum(weights, graph.offsets)
        self._own = (SELF_WEIGHT * degrees).unsqueeze(1)
        # Without this, sums of many labels overflow half precision before they are normalized.
        self._scale = (degrees + 1).rsqrt().unsqueeze(1)
        present = torch.ones_like(graph.incident_relations, dtype=torch.float32)
        offsets, names, count = (
            graph.incident_offsets,
            graph.incident_relations,
            graph.num_relations,
        )
        self._heads = SparseMatrix(offsets, names, present, count).transpose
        # An entity receives the labels of a relation from its other end.
        inverse = (names + count // 2) % max(count, 1)
        self._tails = SparseMatrix(offsets, inverse, present, count)

    def spread(self) -> None:
        """One round, in place. Dimensions are independent until rows are scaled."""
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
    """A random projection of the concatenated states of all rounds, without keeping the states."""

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
        self._rounds = torch.zeros(
            count, 1, device=device
        )  # the rounds in which a row was not zero

    def add(self, states: Tensor) -> None:
        """Adds the states of one more round."""
        projection = torch.randn(self._shape, generator=self._draw) / self._shape[0] ** 0.5
        self._sums.addmm_(states, projection.to(states))
        self._rounds += (states != 0).any(1, keepdim=True)

    def rows(self) -> Tensor:
        """(count, features): the projection, scaled as if the concatenated rows had unit length."""
        return self._sums.mul_(self._rounds.clamp(min=1).rsqrt().to(self._sums.dtype))


def _edge_weights(graph: UnionGraph) -> Tensor:
    """(edges,): the weight of each neighbor; a hub says less about the entities around it."""
    degrees = lengths(graph.offsets).clamp(min=1).float()
    return (degrees**-HUB_DAMPING).index_select(0, graph.neighbors)


def _aggregated(
    graph: UnionGraph,
    weights: Tensor,
    neighbors: Tensor,
    relations: Tensor,
    config: PropagationConfig,
) -> Tensor:
    """(nodes, features) on the host: the sum of relation ⊙ neighbor over each node's edges."""
    present = torch.ones_like(graph.set_relations, dtype=torch.float32)
    sets = SparseMatrix(graph.set_offsets, graph.set_relations, present, graph.num_relations)
    names = sets.apply(relations)
    draw = generator(config.seed, "projection", "itself")
    itself = torch.randint(2, (config.features,), generator=draw) * 2.0 - 1
    itself = itself.to(graph.device) * OWN_WEIGHT

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
