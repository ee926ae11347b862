"""`evaluate`: metrics of a similarity and its links, on test links."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.errors import InputError
from clusterea.evaluation.degrees import by_degree
from clusterea.evaluation.judge import judge
from clusterea.evaluation.ranking import ranking
from clusterea.evaluation.rivals import count_rivals
from clusterea.numerics.lookup import find_cells
from clusterea.types import Alignment, DegreeBucket, IntArray, Metrics, Similarity
from clusterea.types.arrays import check_range
from clusterea.types.links import check_one_to_one


def evaluate(
    similarity: Similarity,
    test_links: IntArray | Tensor,
    seeds: IntArray | Tensor,
    *,
    degrees: IntArray | Tensor | None = None,
    alignment: Alignment | None = None,
) -> Metrics:
    """Hits@k and MRR on the test links; with an alignment, also precision and recall.

    Computed in blocks on the device of the similarity, with a few numbers of memory per entity. The
    result depends neither on the numbering of entities nor on the device.

    Args:
        similarity: Scores of source × target; a test link without a cell adds 0 and is counted.
        test_links: (n, 2), one-to-one; at least one.
        seeds: (n, 2). Their entities are not candidates.
        degrees: (source entities,), for results by degree.
        alignment: The links that `match` found in the similarity.

    Raises:
        InputError: There are no test links.
    """
    links = torch.asarray(test_links, dtype=torch.int64, copy=True)
    _check(links.cpu(), similarity)
    links = links.to(similarity.values.device)
    seed_links = torch.asarray(seeds, dtype=torch.int64, device=links.device, copy=True)
    truths = find_cells(similarity, links[:, 0], links[:, 1])
    rivals = count_rivals(similarity, links, truths, seed_links)
    buckets: tuple[DegreeBucket, ...] = ()
    if degrees is not None:
        of_entity = torch.asarray(degrees, device=links.device, copy=True)
        if of_entity.shape != (similarity.num_entities.source,):
            raise ValueError(
                f"degrees must have shape ({similarity.num_entities.source},). "
                f"Got {tuple(of_entity.shape)} instead."
            )
        buckets = by_degree(rivals.source.among_test, of_entity[links[:, 0]])
    return Metrics(
        test_candidates=rivals.map(lambda side: ranking(side.among_test)),
        all_candidates=rivals.map(lambda side: ranking(side.among_all)),
        test_links=len(links),
        missing=int((truths < 0).sum()),
        matching=judge(alignment.links, links) if alignment is not None else None,
        by_degree=buckets,
    )


def _check(links: Tensor, similarity: Similarity) -> None:
    """Raises if these are not valid test links."""
    if not len(links):
        raise InputError("there are no test links to judge by.")
    for ids, side, size in (
        (links[:, 0], "source", similarity.num_entities.source),
        (links[:, 1], "target", similarity.num_entities.target),
    ):
        check_range(ids.numpy(), f"test links' {side}", size)
    check_one_to_one(links.numpy(), "test_links")
