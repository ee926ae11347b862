"""A two-layer graph convolution that labels the nodes of one graph from a few known ones."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from clusterea.config import SamplingConfig
from clusterea.graph.adjacency import weighted_adjacency
from clusterea.models.encoder import glorot
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.seeding import generator
from clusterea.types import KnowledgeGraph

UNITS, RATE, DROPOUT = 16, 0.01, 0.5  # as in Kipf and Welling's GCN, which the paper uses
SMOOTHING = 0.95  # weight of the neighbors' labels against a node's own, in each round
SMOOTHING_ROUNDS = 30
PARTS = 64  # of a product with the transpose
COLUMNS = 128  # columns of the features multiplied at a time: bounds the memory of a product


def classify_nodes(
    graph: KnowledgeGraph,
    features: Tensor,
    known: Tensor,
    labels: Tensor,
    config: SamplingConfig,
    device: torch.device,
) -> Tensor:
    """(nodes, classes): log-probabilities of every node, learned from the known ones.

    A relu((A X) W1 + b1) W2 + b2, with the columns of A X standardized and half of the hidden units
    dropped in each epoch; then smoothed over the graph. X is fixed, so A X is computed once, and
    only for the neighbors of known nodes, since no other node contributes to the loss. That is the
    only copy of the features.

    Args:
        graph: Its functionality-weighted adjacency is A.
        features: (nodes, dim): X, on the host or the device.
        known: (n,) the nodes with a label.
        labels: (n,) their labels.
        config: Number of classes, epochs and seed.
        device: Where to compute.
    """
    classes, units = config.num_batches, UNITS
    draw = generator(config.seed, "gcn")
    drawn = glorot(features.shape[1], units, generator=draw), glorot(units, classes, generator=draw)
    parameters = [
        torch.nn.Parameter(each.detach().to(device))
        for each in (*drawn, torch.zeros(units), torch.zeros(classes))
    ]
    if len(known) == 0:
        return torch.zeros(graph.num_entities, classes, device=device)
    adjacency = weighted_adjacency(graph).to(device)
    features = features.to(device)  # they are read twice, by columns
    if device.type != "cuda":
        features = features.float()
    known, labels = known.to(device), labels.to(device)
    outer, heard = adjacency.select(known).compact()
    inner, mean, scale = _inputs(adjacency.select(heard), features)
    fit = _fit_on_gpu if device.type == "cuda" else _fit
    fit(parameters, inner, outer, labels, config, device)
    del inner
    scores = _scores(parameters, adjacency, features, mean, scale)
    return _smoothed(scores, adjacency, known, labels)


def _fit(
    parameters: list[torch.nn.Parameter],
    inner: Tensor,
    outer: SparseMatrix,
    labels: Tensor,
    config: SamplingConfig,
    device: torch.device,
) -> None:
    """Trains the parameters in place, by full-batch epochs of Adam."""
    first, second, first_bias, second_bias = parameters
    drop = generator(config.seed, "gcn-dropout", device=device)
    optimizer = torch.optim.Adam(parameters, lr=RATE, fused=device.type == "cuda")
    for _ in range(config.gcn_epochs):
        hidden = torch.relu(torch.addmm(first_bias, inner, first))
        kept = torch.empty_like(hidden).bernoulli_(1 - DROPOUT, generator=drop)
        scores = outer @ (hidden * kept / (1 - DROPOUT) @ second) + second_bias
        optimizer.zero_grad()
        cross_entropy(scores, labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@torch.no_grad()
def _fit_on_gpu(
    parameters: list[torch.nn.Parameter],
    inner: Tensor,
    outer: SparseMatrix,
    labels: Tensor,
    config: SamplingConfig,
    device: torch.device,
) -> None:
    """`_fit` for inputs of bfloat16, with the gradient by hand.

    Most of an epoch is reading the inputs, once forward and once backward; bfloat16 halves it.
    Sparse products come before W2 and after its transpose: hidden units are fewer than classes.
    """
    first, second, first_bias, second_bias = parameters
    drop = generator(config.seed, "gcn-dropout", device=device)
    optimizer = torch.optim.Adam(parameters, lr=RATE, fused=device.type == "cuda")
    forward, backward = (each.csr(torch.float32) for each in (outer, outer.transpose))
    truth = one_hot(labels, len(second_bias)).float()
    share = 1 / len(labels)
    for _ in range(config.gcn_epochs):
        hidden = _wide_product(inner, first).add_(first_bias).relu_()
        hidden.mul_(torch.empty_like(hidden).bernoulli_(1 - DROPOUT, generator=drop))
        doubled = second / (1 - DROPOUT)
        sums = forward @ hidden  # (known, units)
        slopes = torch.addmm(second_bias, sums, doubled).softmax(1).sub_(truth)
        below = (backward @ (slopes @ doubled.T)).mul_(hidden > 0)  # (heard, units)
        # The slopes are those of a sum: those of the mean would be too small for few bits.
        first.grad = _inner_products(inner, below.to(inner.dtype)).mul_(share)
        first_bias.grad = below.sum(0).mul_(share)
        second.grad = _inner_products(sums, slopes).mul_(share / (1 - DROPOUT))
        second_bias.grad = slopes.sum(0).mul_(share)
        optimizer.step()


def _wide_product(left: Tensor, right: Tensor) -> Tensor:
    """(m, n) float32: the product of a matrix in any precision with one in float32."""
    if left.dtype != torch.float32 and left.is_cuda:
        return torch.mm(left, right.to(left.dtype), out_dtype=torch.float32)
    return left.float() @ right.to(left.dtype).float()


def _inner_products(left: Tensor, right: Tensor) -> Tensor:
    """(m, n) float32: `left.T @ right` of few columns and many rows.

    In many parts, which are added: one product of this shape leaves most of a GPU idle.
    """
    rows = len(left) - len(left) % PARTS
    lefts, rights = (
        each[:rows].view(PARTS, rows // PARTS, each.shape[1]) for each in (left, right)
    )
    if left.dtype != torch.float32 and left.is_cuda:
        most = torch.bmm(lefts.mT, rights, out_dtype=torch.float32)
    else:
        most = lefts.mT.float() @ rights.float()
    return most.sum(0).add_(left[rows:].T.float() @ right[rows:].float())


@torch.no_grad()
def _scores(
    parameters: list[torch.nn.Parameter],
    adjacency: SparseMatrix,
    features: Tensor,
    mean: Tensor,
    scale: Tensor,
) -> Tensor:
    """(nodes, classes) of every node.

    (A X - mean) / scale · W1 equals A (X W) - mean W with W = W1 / scale, so the product with A
    has as many columns as there are hidden units.
    """
    first, second, first_bias, second_bias = parameters
    # A column that hardly varies may get weights beyond the range of float16.
    most = torch.finfo(features.dtype).max
    scaled = (first / scale.unsqueeze(1)).clamp(-most, most)
    products = _wide_product(features, scaled)
    hidden = torch.relu(adjacency.apply(products) - mean @ scaled + first_bias)
    return adjacency.apply(hidden @ second) + second_bias


@torch.no_grad()
def _smoothed(scores: Tensor, adjacency: SparseMatrix, known: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities, averaged with those of the neighbors in rounds; known nodes stay fixed.

    Two layers see two hops; this carries the labels of the known nodes farther. Without it
    METIS-CPS, which sees the whole graph, keeps more links together.
    """
    own = scores.softmax(1)
    truth = one_hot(labels, scores.shape[1]).to(own.dtype)
    sums = adjacency.apply(torch.ones_like(own[:, :1]))
    result = own.clone()
    for _ in range(SMOOTHING_ROUNDS):
        result[known] = truth
        heard = adjacency.apply(result) / sums
        result = torch.lerp(own, heard, SMOOTHING)
    result[known] = truth
    return result.clamp(min=1e-12).log()


def _inputs(matrix: SparseMatrix, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The matrix times the features, each column standardized; and the means and deviations.

    A few columns at a time. (rows, dim) of bfloat16 on a GPU, of float32 on a CPU.
    """
    kind = torch.bfloat16 if features.is_cuda else torch.float32
    result = torch.empty(matrix.num_rows, features.shape[1], dtype=kind, device=features.device)
    mean, scale = torch.empty(2, features.shape[1], device=features.device)
    for start in range(0, features.shape[1], COLUMNS):
        columns = slice(start, start + COLUMNS)
        part = matrix.apply(features[:, columns].float().contiguous())
        mean[columns] = part.mean(0)
        scale[columns] = part.sub_(mean[columns]).square().mean(0).sqrt_()
        scale[columns][scale[columns] < 1e-12] = 1.0  # a constant column must not be scaled up
        result[:, columns] = part.div_(scale[columns])
    return result, mean, scale
