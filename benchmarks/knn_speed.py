"""Seconds and memory of exact nearest neighbors, both directions, at DBP1M's size.

    .venv/bin/python benchmarks/knn_speed.py [--check 200] [--profile] [--host]

Bar, on one H200-class GPU: at most 50 s for 1.88 M × 1.37 M × 768, the best 50 of both directions,
in 18 GB. The vectors lie around shared centres, and each target is near its source.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.numerics import knn
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.blocks import block_product
from clusterea.numerics.knn import Neighbors, nearest
from clusterea.numerics.lists import nearest_approximate, recall
from clusterea.numerics.ties import tie_vectors
from clusterea.types import Pair

STEP = 65_536  # rows made at a time
ENTITIES_OF_A_CENTRE = 100


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=int, default=1_877_793)
    parser.add_argument("--target", type=int, default=1_365_118)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--block", type=int, nargs=2, help="rows and columns of a block")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--host", action="store_true", help="give the vectors in host memory")
    parser.add_argument("--check", type=int, default=0, help="so many rows by brute force")
    parser.add_argument(
        "--approximate", type=int, help="by lists as well, each row compared with so many"
    )
    parser.add_argument("--profile", action="store_true", help="kernels of a ninth of the matrix")
    parser.add_argument("--out", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    device = torch.device(options.device)

    vectors = vectors_of(Pair(options.source, options.target), options.dim, device)
    if options.host:
        vectors = vectors.map(lambda side: side.cpu().float())
    draw = torch.Generator().manual_seed(1)
    ties = vectors.map(lambda side: torch.randint(-(2**62), 2**62, (len(side),), generator=draw))
    block = Pair(*options.block) if options.block else None
    if options.profile:
        part = vectors.map(lambda side: side[: len(side) // 3])
        part_ties = ties.map(lambda side: side[: len(side) // 3])
        profile(part, part_ties, options.k, device, block)

    reset_peak(device)
    start = clock(device)
    found = nearest(vectors.source, vectors.target, options.k, ties, 0, device=device, block=block)
    seconds = clock(device) - start
    figures: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "shape": [options.source, options.target, options.dim],
        "k": options.k,
        "seconds": round(seconds, 2),
        "peak_gb": round(peak(device), 2),  # the given vectors included, where on the device
    }
    figures["seconds_of_the_product"] = round(bare_product(vectors, ties, device, block), 2)
    if options.check:
        figures["agreement"] = {
            "source": check(vectors, found.source, options.check, device),
            "target": check(vectors.swap(), found.target, options.check, device),
        }
    if options.approximate:
        start = clock(device)
        near = nearest_approximate(
            vectors.source,
            vectors.target,
            options.k,
            ties,
            0,
            compared=options.approximate,
            sample=FusionConfig().search_sample,
            rounds=FusionConfig().search_rounds,
        )
        figures["approximate_seconds"] = round(clock(device) - start, 2)
        figures["recall"] = list(recall(near, found))
    print(json.dumps(figures, indent=2))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=2) + "\n")


def vectors_of(sizes: Pair[int], dim: int, device: torch.device) -> Pair[Tensor]:
    """Unit rows in float16 (float32 on a CPU); target i of a shuffled order is near source i."""
    kind = torch.float16 if device.type == "cuda" else torch.float32
    draw = torch.Generator(device).manual_seed(0)
    centres = torch.randn(
        max(sizes) // ENTITIES_OF_A_CENTRE + 1, dim, generator=draw, device=device
    )
    places = Pair(
        torch.arange(sizes.source, device=device),
        torch.randperm(sizes.target, generator=draw, device=device),
    )
    result = sizes.map(lambda size: torch.empty(size, dim, dtype=kind, device=device))
    for start in range(0, max(sizes), STEP):
        noise = [torch.randn(STEP, dim, generator=draw, device=device) for _ in range(3)]
        centre = torch.randint(len(centres), (STEP,), generator=draw, device=device)
        entity = centres[centre] + noise[0]
        for side, place, own in zip(result, places, noise[1:], strict=True):
            part = place[start : start + STEP]
            rows = torch.nn.functional.normalize(entity + 0.5 * own)
            side[part] = rows[: len(part)].to(kind)
    return result


def bare_product(
    vectors: Pair[Tensor], ties: Pair[Tensor], device: torch.device, block: Pair[int] | None
) -> float:
    """Seconds of the same matrix products, with nothing done to them."""
    sizes = vectors.map(len)
    block = block or knn._block(sizes, block_size("nearest", device))
    hashes = tie_vectors(ties.map(lambda keys: keys.to(device)), 0)
    left, right = (
        [knn.extended(side[begin : begin + step], keys, begin) for begin in starts(side, step)]
        for side, keys, step in zip(vectors, hashes, block, strict=True)
    )
    begin = clock(device)
    for rows in left:
        for columns in right:
            block_product(rows, columns)
    return clock(device) - begin


def starts(side: Tensor, step: int) -> Iterator[int]:
    """Where each block of the side begins."""
    return iter(range(0, len(side), step))


def check(
    vectors: Pair[Tensor], found: Neighbors, count: int, device: torch.device
) -> dict[str, float]:
    """How a sample of the result compares with whole rows of the matrix, in float32."""
    draw = torch.Generator().manual_seed(2)
    sample = torch.randperm(len(found.indices), generator=draw)[:count]
    everyone = vectors.target.to(device)
    shared, furthest = 0, 0.0
    for row in sample.tolist():
        one = vectors.source[row].to(device).float()
        scores = torch.cat([part.float() @ one for part in everyone.split(STEP)])  # type: ignore[no-untyped-call]
        best = scores.topk(found.indices.shape[1])
        shared += int(torch.isin(best.indices, found.indices[row].to(device)).sum())
        gap = (best.values - found.values[row].to(device)).abs().max()
        furthest = max(furthest, float(gap))
    return {"rows": count, "shared": shared / (count * found.indices.shape[1]), "gap": furthest}


def profile(
    vectors: Pair[Tensor], ties: Pair[Tensor], k: int, device: torch.device, block: Pair[int] | None
) -> None:
    """Prints where the time of a ninth of the matrix goes."""
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        nearest(vectors.source, vectors.target, k, ties, 0, device=device, block=block)
    by = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    print(profiler.key_averages().table(sort_by=by, row_limit=25, max_name_column_width=70))


def clock(device: torch.device) -> float:
    """The time, once the device has done all it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def reset_peak(device: torch.device) -> None:
    """Forgets the memory that making the vectors took."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak(device: torch.device) -> float:
    """The most memory in use so far: the GPU's, or this process's; GB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9  # Linux counts in KiB


if __name__ == "__main__":
    main()
