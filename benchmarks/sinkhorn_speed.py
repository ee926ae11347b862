"""Seconds and memory of Sinkhorn on one mini-batch of DBP1M's size.

    .venv/bin/python benchmarks/sinkhorn_speed.py [--rows 62600] [--columns 45500] [--rounds 100]

Bars, on one H200-class GPU: 100 rounds of 62,600 × 45,500 in at most 1 s, with one copy of the
matrix (11.4 GB) in memory. What the fusion does there takes half a copy: its kernel is bfloat16,
and the products that it is made of, which are timed with it, are never all there.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from clusterea.numerics.sinkhorn import Potentials, sinkhorn, sinkhorn_log, sinkhorn_of_products
from clusterea.types import Pair

P = ParamSpec("P")
T = TypeVar("T")

SMALL = 2000  # rows and columns of the case that is also computed in the log domain in float64
NOISE = 0.7  # of a counterpart, beside the entity's own vector
NEAREST = 10
SLABS = 32


def unit_vectors(rows: int, columns: int, dim: int, device: torch.device) -> Pair[Tensor]:
    """Unit vectors in which the first half of the smaller side has a counterpart."""
    draw = torch.Generator(device).manual_seed(0)
    source = torch.randn(rows, dim, device=device, generator=draw)
    target = torch.randn(columns, dim, device=device, generator=draw)
    pairs = min(rows, columns) // 2
    target[:pairs].mul_(NOISE).add_(source[:pairs])
    half = torch.bfloat16 if device.type == "cuda" else torch.float32
    return Pair(source, target).map(lambda x: torch.nn.functional.normalize(x).to(half))


def cosines(vectors: Pair[Tensor], out: Tensor | None = None) -> Tensor:
    """The cosines in float32, from half precision on a GPU."""
    if vectors.source.is_cuda:
        return torch.mm(vectors.source, vectors.target.T, out_dtype=torch.float32, out=out)
    return torch.mm(vectors.source, vectors.target.T, out=out)


def own_means(similarity: Tensor) -> Pair[Tensor]:
    """The mean of the ten best of each row and each column, by slabs."""
    rows = [slab.topk(NEAREST, dim=1).values.mean(1) for slab in similarity.chunk(SLABS)]
    columns = [slab.topk(NEAREST, dim=0).values.mean(0) for slab in similarity.chunk(SLABS, dim=1)]
    return Pair(torch.cat(rows), torch.cat(columns))


def timed(
    device: torch.device, work: Callable[P, T], *args: P.args, **more: P.kwargs
) -> tuple[T, float]:
    """What the work returns and its seconds, with the device idle before and after it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    result = work(*args, **more)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return result, time.perf_counter() - start


def disagreement(arguments: argparse.Namespace, device: torch.device) -> dict[str, float]:
    """The largest difference of a potential from the log domain in float64, on a small case."""
    small = unit_vectors(SMALL, SMALL - SMALL // 4, arguments.dim, device).map(Tensor.half)
    source, target = small if device.type == "cuda" else small.map(Tensor.float)
    similarity = cosines(Pair(source, target))
    result = {}
    for name, outside in (("plain", None), ("outside", own_means(similarity))):
        wide = outside and outside.map(Tensor.double)
        settings = arguments.temperature, arguments.rounds
        exact = sinkhorn_log(similarity.double(), *settings, wide)
        found = sinkhorn(similarity.clone(), *settings, outside)
        result[name] = largest_difference(found, exact)
        found = sinkhorn_of_products(source, target, *settings, outside)
        result[f"{name}, by products"] = largest_difference(found, exact)
    return result


def largest_difference(one: Potentials, other: Potentials) -> float:
    """Between two potentials of one entity."""
    sides = (one.source - other.source, one.target - other.target)
    return max(float(side.abs().max()) for side in sides)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of the product and of Sinkhorn, plain and with outside options."""
    device = torch.device(arguments.device)
    on_gpu = device.type == "cuda"
    vectors = unit_vectors(arguments.rows, arguments.columns, arguments.dim, device)
    similarity = torch.empty(arguments.rows, arguments.columns, device=device)
    cosines(vectors, similarity)
    outside = own_means(similarity)
    result: dict[str, Any] = {
        "rows": arguments.rows,
        "columns": arguments.columns,
        "dim": arguments.dim,
        "rounds": arguments.rounds,
        "temperature": arguments.temperature,
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "matrix_gb": similarity.nbytes / 1e9,
        "vectors_gb": sum(side.nbytes for side in vectors) / 1e9,
        "difference_from_log_domain": disagreement(arguments, device),  # and a warm-up
    }
    for name, options in (("plain", None), ("outside", outside)):
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        _, product = timed(device, cosines, vectors, similarity)
        found, seconds = timed(
            device, sinkhorn, similarity, arguments.temperature, arguments.rounds, options
        )
        result[name] = {
            "product_seconds": product,
            "sinkhorn_seconds": seconds,
            "gpu_peak_gb": torch.cuda.max_memory_allocated(device) / 1e9 if on_gpu else None,
            "finite": bool(found.source.isfinite().all() & found.target.isfinite().all()),
        }
    del similarity
    source, target = vectors.map(Tensor.half) if on_gpu else vectors
    for name, options in (("plain", None), ("outside", outside)):
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        settings = arguments.temperature, arguments.rounds, options
        _, seconds = timed(device, sinkhorn_of_products, source, target, *settings)
        result[f"{name}, by products"] = {
            "seconds": seconds,
            "gpu_peak_gb": torch.cuda.max_memory_allocated(device) / 1e9 if on_gpu else None,
        }
    result["host_peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return result


def main() -> None:
    """Measures one size and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=62_600)
    parser.add_argument("--columns", type=int, default=45_500)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=0.02)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    arguments = parser.parse_args()
    figures = json.dumps(measure(arguments), indent=1)
    print(figures)
    if arguments.out:
        arguments.out.write_text(figures + "\n")


if __name__ == "__main__":
    main()
