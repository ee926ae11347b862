"""Seconds and memory of evaluation and matching, at sizes up to DBP1M's.

    .venv/bin/python benchmarks/evaluation_speed.py [--scale 0.1] [--cells 80] [--device cuda]

A random similarity of DBP1M's shape (1.9 M × 1.37 M entities, 80 cells a row): popular targets are
candidates of many rows, and the truth has a cell for five test links of six, ahead of the others
for a third. Bar, on a host with an H200-class GPU: at most 5 s to evaluate 731 K test links.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clusterea.evaluation import evaluate
from clusterea.matching import match
from clusterea.types import Pair, Similarity

ENTITIES = Pair(1_900_000, 1_370_000)
TEST_LINKS, SEEDS = 731_000, 313_000
FOUND = 5 / 6  # of the truths have a cell


def problem(
    scale: float, cells: int, device: torch.device
) -> tuple[Similarity, Tensor, Tensor, Pair[Tensor]]:
    """A similarity, test links, seeds and keys."""
    draw = torch.Generator(device).manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=draw, device=device)

    def shuffled(size: int) -> Tensor:
        return torch.randperm(size, generator=draw, device=device)

    rows, width = ENTITIES.map(lambda size: int(size * scale))
    known, seeds = int((TEST_LINKS + SEEDS) * scale), int(SEEDS * scale)
    links = torch.stack([shuffled(rows)[:known], shuffled(width)[:known]], dim=1)
    # A squared number crowds near 0: the first targets are candidates of many.
    columns = (uniform(rows, cells).square() * width).long()
    values = uniform(rows, cells).pow(0.5) * 0.8
    found = links[uniform(known) < FOUND]
    columns[found[:, 0], 0] = found[:, 1]
    values[found[:, 0], 0] = 0.75 + 0.12 * torch.randn(len(found), generator=draw, device=device)
    columns, order = columns.sort(dim=1)
    values = values.gather(1, order)
    first = torch.ones_like(columns, dtype=torch.bool)
    first[:, 1:] = columns.diff(dim=1) > 0
    offsets = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    offsets[1:] = first.sum(1).cumsum(0)
    similarity = Similarity(offsets, columns[first], values[first], Pair(rows, width))
    keys = Pair(rows, width).map(
        lambda size: torch.randint(-(2**62), 2**62, (size,), generator=draw, device=device)
    )
    return similarity, links[seeds:], links[:seeds], keys


def timed(work: Callable[[], Any], device: torch.device) -> tuple[Any, dict[str, float]]:
    """What `work` returns, with its seconds and, on a GPU, its GiB beside what was there."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    start = time.perf_counter()
    result = work()
    if device.type != "cuda":
        return result, {"seconds": time.perf_counter() - start}
    torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    extra = (torch.cuda.max_memory_allocated(device) - before) / 2**30
    return result, {"seconds": seconds, "extra_gib": extra}


def main() -> None:
    """Measures and prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of DBP1M's entities and links")
    parser.add_argument("--cells", type=int, default=80, help="a row")
    parser.add_argument("--methods", nargs="*", default=["greedy", "mutual", "best"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    similarity, links, seeds, keys = problem(arguments.scale, arguments.cells, device)
    degrees = torch.randint(1, 40, (similarity.num_entities.source,))
    figures: dict[str, Any] = {"similarity": repr(similarity), "test_links": len(links)}
    alignment = None
    for method in arguments.methods:
        found, cost = timed(
            lambda method=method: match(similarity, keys, seeds, method=method),  # type: ignore[misc]
            device,
        )
        alignment = alignment or found
        figures[method] = {"links": len(found.links), **cost}
    metrics, cost = timed(
        lambda: evaluate(similarity, links, seeds, degrees=degrees, alignment=alignment), device
    )
    figures["evaluate"] = {**cost, "metrics": metrics.to_dict()}
    figures["peak_host_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
