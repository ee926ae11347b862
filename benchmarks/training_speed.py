"""Seconds a step, memory and seconds of inference at sizes up to DBP1M's.

    .venv/bin/python benchmarks/training_speed.py [--like dbp1m-en-fr …] [--scale 150000 …]

Bars, on one H200-class GPU at DBP1M's size (300 K seeds, N_p 2000, N_n 4000 a side, fan-out 8,
Dual-AMN-S): at most 30 ms a step, 16 GB peak, 10 s of inference.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clusterea.config import training_config, with_settings
from clusterea.data.synthetic import SHAPES
from clusterea.training import EncoderProgress
from clusterea.training.train import Trainer
from clusterea.types import AlignmentTask, Pair
from pairs import generated, scaled


def synchronize(device: torch.device) -> None:
    """Waits until the device has done all it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(
    task: AlignmentTask, settings: list[str], device: torch.device, steps: int, model: str
) -> dict[str, Any]:
    """The figures of some steps and of one inference."""
    # So few seeds that an epoch is just the steps to time, after as many to warm up.
    config = training_config(model)
    config = with_settings(config, settings)
    few = (config.seeds_per_step or 2000) * steps
    timed = (
        AlignmentTask(task.graphs, task.seeds[np.arange(few) % task.num_seeds])
        if (few <= task.num_seeds)
        else task
    )
    start = time.perf_counter()
    trainer = Trainer(timed, config, device)
    synchronize(device)
    ready = time.perf_counter() - start
    trainer.run_epoch(0, None)
    synchronize(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    ticks: list[float] = []
    touched: list[int] = []

    def note(progress: EncoderProgress) -> None:
        synchronize(device)
        ticks.append(time.perf_counter())
        touched.append(progress.rows_touched)

    start = time.perf_counter()
    trainer.run_epoch(1, note)
    seconds = np.diff([start, *ticks])
    start = time.perf_counter()
    trainer.run_epoch(2, None)
    synchronize(device)
    unobserved = (time.perf_counter() - start) / len(ticks)
    training_peak = torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None
    start = time.perf_counter()
    embeddings: Pair[torch.Tensor] = trainer.embeddings()
    synchronize(device)
    inference = time.perf_counter() - start
    return {
        "model": model,
        "entities": sum(graph.num_entities for graph in task.graphs),
        "triples": sum(graph.num_triples for graph in task.graphs),
        "seeds": task.num_seeds,
        "settings": settings,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "ready_seconds": ready,
        "steps": len(ticks),
        "milliseconds_a_step": unobserved * 1e3,
        "median_milliseconds_a_step": float(np.median(seconds)) * 1e3,
        "rows_touched": float(np.mean(touched)),
        "inference_seconds": inference,
        "output_dimension": embeddings.source.shape[1],
        "gpu_peak_gb_training": training_peak,
        "gpu_peak_gb": torch.cuda.max_memory_allocated(device) / 1e9
        if device.type == "cuda"
        else None,
        "host_peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    """Measures the sizes asked for and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--like", nargs="*", default=[])
    parser.add_argument("--scale", nargs="*", type=int, default=[], help="entities in all")
    parser.add_argument("--models", nargs="*", default=["dual-amn"])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument(
        "--set",
        nargs="*",
        action="append",
        dest="settings",
        metavar="FIELD=VALUE",
        help="may come several times: each group is measured",
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    arguments = parser.parse_args()
    shapes = [SHAPES[name] for name in arguments.like] + [scaled(n) for n in arguments.scale]
    results = []
    for shape in shapes:
        task = generated(shape).task
        for model, settings in product(arguments.models, arguments.settings or [[]]):
            device = torch.device(arguments.device)
            results.append(measure(task, settings, device, arguments.steps, model))
            print(json.dumps(results[-1]), flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
