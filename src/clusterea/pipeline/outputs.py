"""The files of a run that people and other programs read."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clusterea.checksums import sealed
from clusterea.pipeline.align import Observer
from clusterea.pipeline.measure import StageCost, measured
from clusterea.pipeline.result import AlignmentResult, Round
from clusterea.types import Alignment, Benchmark, Metrics, Partition, Similarity
from clusterea.workspace import RUN, Workspace, fingerprint, task_key, write_json

if TYPE_CHECKING:
    import torch

    from clusterea.report import ReportData

LIBRARIES = ("torch", "numpy", "scipy", "pyarrow", "pymetis", "safetensors", "xgboost-cpu")


def write_outputs(
    workspace: Workspace,
    benchmark: Benchmark,
    result: AlignmentResult,
    device: torch.device,
    observer: Observer,
) -> Metrics | None:
    """Writes alignment, candidates, metrics, run and report; the metrics, if there are test links.

    Each file is replaced whole.
    """
    folder = workspace.folder
    costs = list(result.timings)
    observer.begin("evaluation")
    with measured("evaluation", device) as cost:
        links = benchmark.test_links
        metrics = result.evaluate(links, device) if len(links) else None
    costs.append(cost)
    observer.end(cost)
    rounds = self_training(result.rounds, benchmark)
    observer.begin("writing")
    with measured("writing", device) as cost:
        write_links(
            workspace,
            benchmark,
            result.similarity,
            result.alignment,
            seed=result.config.matching.seed,
            device=device,
        )
        if metrics is None:
            (folder / "metrics.json").unlink(missing_ok=True)  # of a run that had test links
        else:
            write_json(folder / "metrics.json", metrics.to_dict())
        write_page(
            workspace,
            benchmark,
            result.alignment,
            None if metrics is None else metrics.to_dict(),
            result.partitions,
            [each.to_dict() for each in costs],
            result.config.to_dict(),
            rounds,
        )
    costs.append(cost)
    observer.end(cost)
    described = _described(benchmark, result, device, costs, rounds)
    write_json(folder / f"{RUN}.json", sealed(RUN, described))
    return metrics


def write_links(
    workspace: Workspace,
    benchmark: Benchmark,
    similarity: Similarity,
    alignment: Alignment,
    *,
    seed: int,
    device: torch.device | None = None,
) -> None:
    """Writes alignment.tsv, unmatched_source.tsv, unmatched_target.tsv and candidates.parquet."""
    from torch import from_numpy

    from clusterea.export import write_alignment, write_candidates, write_unmatched

    folder, task = workspace.folder, benchmark.task
    write_alignment(folder / "alignment.tsv", alignment, benchmark.names)
    write_unmatched(folder, alignment, benchmark.names)
    write_candidates(
        folder / "candidates.parquet",
        similarity,
        benchmark.names,
        task.tie_keys.map(lambda side: from_numpy(side.copy())),
        task.seeds,
        seed=seed,
        device=device,
    )


def write_page(
    workspace: Workspace,
    benchmark: Benchmark,
    alignment: Alignment,
    metrics: Mapping[str, Any] | None,
    partitions: Mapping[str, Partition],
    costs: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    rounds: Sequence[Mapping[str, int]] = (),
) -> None:
    """Writes report.html; `costs`, `config` and `rounds` as run.json has them."""
    from clusterea.report import write_report

    title = workspace.folder.resolve().name
    data = page(title, benchmark, alignment, metrics, partitions, costs, config, rounds)
    write_report(workspace.folder / "report.html", data)


def page(
    title: str,
    benchmark: Benchmark,
    alignment: Alignment,
    metrics: Mapping[str, Any] | None,
    partitions: Mapping[str, Partition],
    costs: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    rounds: Sequence[Mapping[str, int]],
) -> ReportData:
    """What the report shows; `metrics` as metrics.json has them, what follows as run.json."""
    from clusterea.evaluation.overlap import overlap
    from clusterea.report import StageCost as ShownCost
    from clusterea.report import collect

    overlaps = {
        sampler: asdict(overlap(partition, benchmark))
        for sampler, partition in partitions.items()
        if len(benchmark.test_links)
    }
    return collect(
        benchmark,
        alignment,
        metrics,
        title=title,
        stages=[
            ShownCost(
                cost["stage"], cost["seconds"], cost["peak_host_bytes"], cost["peak_gpu_bytes"]
            )
            for cost in costs
        ],
        partitions=partitions,
        overlaps=overlaps,
        rounds=[{name.replace("_", "-"): value for name, value in each.items()} for each in rounds],
        config=config,
        versions=versions(),
    )


def versions() -> dict[str, str]:
    """Of the software that made a run."""
    found = {"clusterea": _version("clusterea"), "python": platform.python_version()}
    return found | {name: _version(name) for name in LIBRARIES if _version(name)}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _described(
    benchmark: Benchmark,
    result: AlignmentResult,
    device: torch.device,
    costs: list[StageCost],
    rounds: list[dict[str, int]],
) -> dict[str, Any]:
    graphs = benchmark.task.graphs
    return {
        "config": result.config.to_dict(),
        "versions": versions(),
        "device": _device(device),
        "data": {
            "fingerprint": fingerprint(benchmark),
            "task": task_key(benchmark.task),
            "format": benchmark.format,
            "entities": [graph.num_entities for graph in graphs],
            "triples": [graph.num_triples for graph in graphs],
            "seeds": benchmark.task.num_seeds,
            "seeds_from": dict(benchmark.seeds_from),
            "never_linked": [len(side) for side in benchmark.task.structural],
            "test_links": len(benchmark.test_links),
            "dropped": dict(benchmark.dropped),
        },
        "artifacts": dict(result.keys),
        "num_batches": {name: part.num_batches for name, part in result.partitions.items()},
        "self_training": rounds,
        "links": len(result.alignment.links),
        "confidence": described_confidence(result.alignment),
        "stages": [cost.to_dict() for cost in costs],
        "seconds": round(sum(cost.seconds for cost in costs), 3),
    }


def described_confidence(alignment: Alignment) -> dict[str, Any]:
    """Whether confidence is a probability, what it was fitted on, and a sentence if it is not."""
    note = alignment.confidence_note
    described = {"calibrated": alignment.is_calibrated, "examples": alignment.examples}
    return described | ({"note": note} if note else {})


def self_training(rounds: Sequence[Round], benchmark: Benchmark) -> list[dict[str, int]]:
    """What each round learned from; where there are test links, how many of them were right."""
    from clusterea.evaluation.verdicts import verdicts

    found = []
    for number, each in enumerate(rounds, start=1):
        pairs = each.pseudo_seeds.cpu().numpy()
        row = {"round": number, "pseudo_seeds": len(pairs), "new": each.num_new}
        if len(benchmark.test_links):
            told, is_right = verdicts(pairs, benchmark.test_links)
            row |= {"judged": int(told.sum()), "right": int(is_right.sum())}
        found.append(row)
    return found


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.processor() or platform.machine()})"
