"""Writes the output files and the manifest of a run."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterea.beside import Beside
from clusterea.errors import DataError
from clusterea.pipeline.measure import measured
from clusterea.pipeline.observer import Observer
from clusterea.pipeline.result import AlignmentResult
from clusterea.types import Alignment, Metrics, StageCost
from clusterea.workspace import DataKeys, Manifest, fingerprint, task_key, write_json

if TYPE_CHECKING:
    import torch

    from clusterea.report import ReportData

SAMPLERS_IMPORT = ("torch._dynamo",)  # by torch.optim
SLOW_IMPORTS = ("bokeh.embed", "bokeh.plotting", "clusterea.report", "pandas")
LIBRARIES = ("torch", "numpy", "scipy", "pyarrow", "pymetis", "safetensors", "xgboost-cpu")


def import_ahead(*, has_samplers: bool = False) -> threading.Thread:
    """Imports what samplers and writing need, beside the first stages.

    Errors are left to those who need it.

    Python waits for the thread before it ends: it must not be cut off in the middle of an import.
    """

    def imported() -> None:
        with suppress(Exception):
            for name in (*SAMPLERS_IMPORT * has_samplers, *SLOW_IMPORTS):
                importlib.import_module(name)

    thread = threading.Thread(target=imported)
    thread.start()
    return thread


def write_outputs(
    folder: Path,
    result: AlignmentResult,
    data: DataKeys,
    device: torch.device,
    observer: Observer,
) -> Metrics | None:
    """Writes links, candidates, metrics, report and manifest; returns the metrics.

    Each file is replaced atomically. Without test links there are no metrics.

    Args:
        folder: The run's folder.
        result: The result of `align`.
        data: The keys of the data.
        device: Where to compute.
        observer: Gets the progress.
    """
    from torch import from_numpy

    from clusterea.export import write_alignment, write_candidates, write_unmatched

    costs = list(result.timings)
    task, names, alignment = result.task, result.named.names, result.alignment
    with Beside() as beside:
        # What needs no metrics is made while they are computed.
        beside.start(write_alignment, folder / "alignment.tsv", alignment, names)
        beside.start(write_unmatched, folder, alignment, names)
        shown = beside.start(_shown, folder.resolve().name, result)
        described = beside.start(_described_data, result)
        observer.begin("evaluation")
        with measured("evaluation", device) as cost:
            metrics = result.evaluate(device=device) if len(result.named.test_links) else None
        costs.append(cost)
        observer.end(cost)
        observer.begin("writing")
        with measured("writing", device) as cost:
            write_metrics(folder, metrics)
            page, before = folder / "report.html", [*costs]
            beside.start(lambda: _render(page, shown.result(), metrics, before))
            write_candidates(
                folder / "candidates.parquet",
                result.similarity,
                names,
                task.tie_keys.map(lambda side: from_numpy(side.copy())),
                task.seeds,
                seed=result.config.matching.seed,
                device=device,
            )
            beside.wait()
        costs.append(cost)
        observer.end(cost)
    write_manifest(folder, result, data, device, costs, described.result())
    return metrics


def write_metrics(folder: Path, metrics: Metrics | None) -> None:
    """Writes metrics.json; without metrics, removes an old one."""
    if metrics is None:
        (folder / "metrics.json").unlink(missing_ok=True)
    else:
        write_json(folder / "metrics.json", metrics.to_dict())


def write_page(
    path: Path,
    title: str,
    result: AlignmentResult,
    metrics: Metrics | None,
    costs: Iterable[StageCost] | None = None,
) -> None:
    """Writes the report as one HTML file. `costs` default to those of the result."""
    _render(path, _shown(title, result), metrics, result.timings if costs is None else costs)


def _shown(title: str, result: AlignmentResult) -> ReportData:
    """What the report shows, without metrics and costs."""
    from clusterea.evaluation.overlap import overlap
    from clusterea.report import collect

    benchmark = result.named
    partitions = result.partitions
    overlaps = {
        sampler: asdict(overlap(partition, benchmark))
        for sampler, partition in partitions.items()
        if len(benchmark.test_links)
    }
    return collect(
        benchmark,
        result.alignment,
        title=title,
        partitions=partitions,
        overlaps=overlaps,
        rounds=[
            {name.replace("_", "-"): value for name, value in each.items()}
            for each in described_rounds(result)
        ],
        config=result.config.to_dict(),
        versions=versions(),
    )


def _render(
    path: Path, shown: ReportData, metrics: Metrics | None, costs: Iterable[StageCost]
) -> None:
    from clusterea.report import write_report

    numbers = None if metrics is None else metrics.to_dict()
    write_report(path, replace(shown, metrics=numbers, stages=tuple(costs)))


def write_manifest(
    folder: Path,
    result: AlignmentResult,
    data: DataKeys,
    device: torch.device,
    costs: Iterable[StageCost],
    described_data: Mapping[str, Any] | None = None,
) -> None:
    """Writes run.json, the manifest of the run.

    If this run was stopped early, the manifest keeps the links of the last finished run.

    Args:
        folder: The run's folder.
        result: The result of `align`.
        data: The keys of the data.
        device: Where it was computed.
        costs: The cost of each stage.
        described_data: From `_described_data`, if it is there.
    """
    costs = list(costs)
    described: dict[str, Any] = {
        "config": result.config.to_dict(),
        "versions": versions(),
        "device": _device(device),
        "data": {"task": data.task, **(described_data or _described_data(result))},
        "artifacts": {"data": data.artifact, **result.keys},
        "num_batches": {name: part.num_batches for name, part in result.partitions.items()},
        "self_training": described_rounds(result),
        "taken_over": None if result.previous is None else result.previous.to_dict(),
        "leaves": result.leaves.to_dict(),
        "stages": [cost.to_dict() for cost in costs],
        "seconds": round(sum(cost.seconds for cost in costs), 3),
    }
    if result.made_alignment is not None:
        alignment = result.alignment
        described["links"] = len(alignment.links)
        described["confidence"] = described_confidence(alignment)
        described["bounds"] = {"min_confidence": result.min_confidence, "top": result.top}
    else:
        with suppress(DataError):  # it is missing or damaged
            described = Manifest.read(folder).followed_by(described)
    Manifest(folder, described).write()


def _described_data(result: AlignmentResult) -> dict[str, Any]:
    benchmark, task = result.named, result.task
    return {
        "fingerprint": fingerprint(benchmark),
        "decided": task_key(task),
        "format": benchmark.format,
        "entities": [graph.num_entities for graph in task.graphs],
        "triples": [graph.num_triples for graph in task.graphs],
        "seeds": len(task.all_seeds),
        "seeds_from": dict(benchmark.seeds_from),
        "names": None if task.names is None else [side.share for side in task.names],
        "features": None if task.features is None else task.features.source.shape[1],
        "never_linked": [len(side) for side in task.structural],
        "rejected": len(task.rejected),
        "alone": [len(side) for side in task.alone],
        "test_links": len(benchmark.test_links),
        "dropped": dict(benchmark.dropped),
    }


def described_confidence(alignment: Alignment) -> dict[str, Any]:
    """Whether confidence is calibrated, on how many links, its name, and what it means."""
    return {
        "calibrated": alignment.is_calibrated,
        "examples": alignment.examples,
        "measure": alignment.measure,
        "note": alignment.confidence_note,
    }


def described_rounds(result: AlignmentResult) -> list[dict[str, int]]:
    """The number of pseudo-seeds of each round; with test links, how many are right."""
    from clusterea.evaluation.verdicts import verdicts

    test_links = result.named.test_links
    found: list[dict[str, int]] = []
    for each in result.rounds:
        pairs = each.pseudo_seeds.cpu().numpy()
        number = 1 + sum(row["fit"] == each.fit + 1 for row in found)
        row = {"fit": each.fit + 1, "round": number}
        row |= {"pseudo_seeds": len(pairs), "new": each.num_new}
        if len(test_links):
            told, is_right = verdicts(pairs, test_links)
            row |= {"judged": int(told.sum()), "right": int(is_right.sum())}
        found.append(row)
    return found


def versions() -> dict[str, str]:
    """The versions of clusterea, Python and the libraries."""
    found = {"clusterea": _version("clusterea"), "python": platform.python_version()}
    return found | {name: _version(name) for name in LIBRARIES if _version(name)}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.processor() or platform.machine()})"
