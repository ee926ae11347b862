"""The whole of `clusterea.align` on real pairs: ranks, links, confidence, seconds; and what each
part of the `default` preset is worth.

    .venv/bin/python benchmarks/alignment_accuracy.py --data FOLDER --out FILE [--rows NAME …]
        [--pairs NAME …] [--seeds 0 1 2] [--baseline]
    .venv/bin/python benchmarks/alignment_accuracy.py --only-table --out FILE … [--markdown]

FOLDER holds the pairs; `NAME-generated` is generated with the counts of NAME. `ids…` and `dbp1m…`:
the first 30 % of the links are seeds; `dbp15k…`: the split given; others: a random 30 %, the same
for every seed of a run. A number behind a folder's name is another share in percent:
`contea-fr-en-10`. FILE is whole after each run; a run that it has with the same config is not run
again, one that failed is. After a change of the code take another FILE.

Ranks are source to target among the test targets, ties at their expectation. Confidence is judged
on returned links with an entity of a test link: right is what is a test link. Precision counts all
returned links. The baseline (`--baseline`) has a one-to-one matching of the raw cosines, cut where
F1 is best on the seeds that were held out.

Bars, means over the seeds, for the rows `default` and `no-self-training`:

- H@1 on ids15k-en-fr 73.5 (without self-training 71.0), ids15k-en-de 82.5 (81.0), dbp15k-zh-en 86.0
  (81.5), dbp15k-fr-en 90.0 (85.0); `default` on debian-1m 50.
- On DBP15K, ranks among all targets instead lose 1.5 points of H@1 at most.
- On ids15k-en-fr, ids15k-en-de and contea-fr-en: expected calibration error at most 0.05, AUROC at
  least 0.80; on contea-fr-en F1 at least 3 points above the baseline's.
- On ids15k-en-fr `default` takes at most 3 times the seconds of `paper`, `fast` at most a tenth.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import clusterea
from clusterea.config import preset
from clusterea.evaluation import judge
from clusterea.evaluation.verdicts import verdicts
from clusterea.fusion.neighbors import search
from clusterea.fusion.undecided import undecided
from clusterea.matching import match
from clusterea.numerics.cells import union_of_directions
from clusterea.numerics.lookup import find_cells
from clusterea.pipeline import AlignmentResult, Artifacts, choose_device
from clusterea.pipeline.encoding import held_out_stage
from clusterea.pipeline.outputs import self_training, versions
from clusterea.types import Benchmark, IntArray
from clusterea.workspace import write_json
from pairs import place_of, read
from provenance import commit, device_name, without_round

Record = dict[str, Any]
BINS = 15  # of the expected calibration error
PAIRS = (
    "ids15k-en-fr",
    "ids15k-en-de",
    "dbp15k-zh-en",
    "dbp15k-fr-en",
    "contea-fr-en-10",
    "contea-fr-en-30",
    "debian-1m",
)


@dataclass(frozen=True, slots=True)
class Row:
    """The arguments of `clusterea.align`."""

    preset: str = "default"
    settings: tuple[str, ...] = ()
    model: str | None = None
    samplers: tuple[str, ...] | None = None


NO_ROUNDS, NO_HELD_OUT = "self_training.rounds=0", "matching.held_out=0"
WITH_CSLS = ("fusion.global_similarity=true", "fusion.csls=true")
ROWS = {
    "default": Row(),
    "no-self-training": Row(settings=(NO_ROUNDS,)),
    "no-label-propagation": Row(model="dual-amn"),
    "no-dual-amn": Row(model="label-propagation"),
    "no-support": Row(settings=("fusion.support_rounds=0",)),
    "no-global-sinkhorn": Row(settings=("fusion.global_sinkhorn=false", *WITH_CSLS)),
    "with-csls": Row(settings=WITH_CSLS),
    "mini-batches-too": Row(samplers=("cmcs", "iscs")),
    "mini-batches-instead": Row(
        settings=("fusion.global_sinkhorn=false",), samplers=("cmcs", "iscs")
    ),
    "one-fold": Row(settings=("self_training.folds=1",)),
    "no-held-out": Row(settings=(NO_HELD_OUT,)),
    "no-rejoining": Row(settings=("matching.rejoin=false",)),
    "no-check": Row(settings=("self_training.check=false",)),
    "by-score": Row(settings=("self_training.measure=score",)),
    "retrained-last": Row(settings=("self_training.retrain=last",)),
    "two-dual-amn": Row(model="dual-amn,dual-amn,label-propagation"),
    "with-rrea": Row(model="dual-amn,rrea,label-propagation"),
    "no-self-training-no-held-out": Row(settings=(NO_ROUNDS, NO_HELD_OUT)),
    "fast": Row("fast"),
    "paper": Row("paper"),
    "paper-softmax": Row("paper", ("sampling.classifier=softmax",)),
}
# Pair → the least H@1 of `default` and, where one is set, of `no-self-training`
LEAST: dict[str, tuple[float, float | None]] = {
    "ids15k-en-fr": (73.5, 71.0),
    "ids15k-en-de": (82.5, 81.0),
    "dbp15k-zh-en": (86.0, 81.5),
    "dbp15k-fr-en": (90.0, 85.0),
    "debian-1m": (50.0, None),
}


# ---- what is measured


def calibration_error(confidence: NDArray[Any], is_right: NDArray[np.bool_]) -> float:
    """The mean distance of confidence and precision, over links, in bins of equal width."""
    of_link = np.minimum((confidence * BINS).astype(int), BINS - 1)
    surplus = np.bincount(of_link, weights=confidence - is_right, minlength=BINS)
    return float(np.abs(surplus).sum() / len(confidence))


def auroc(confidence: NDArray[Any], is_right: NDArray[np.bool_]) -> float | None:
    """The chance that a right link is surer than a wrong one, ties at 1/2; None if all are alike.

    By the mean ranks of equal confidences (Mann and Whitney).
    """
    right, wrong = int(is_right.sum()), int((~is_right).sum())
    if not right or not wrong:
        return None
    _, level, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[level]
    return float((ranks[is_right].sum() - right * (right + 1) / 2) / (right * wrong))


def calibration(result: AlignmentResult, test_links: IntArray) -> Record:
    """What the confidence of the links that the test links can judge is worth."""
    touching, right = verdicts(result.alignment.links.cpu().numpy(), test_links)
    sure = result.alignment.confidence.double().cpu().numpy()[touching]
    is_right = right[touching]
    return {
        "judged": len(sure),
        "right": int(is_right.sum()),
        "ece": calibration_error(sure, is_right) if len(sure) else None,
        "auroc": auroc(sure, is_right),
    }


def baseline(
    result: AlignmentResult, trial: AlignmentResult, test_links: IntArray, device: torch.device
) -> Record | None:
    """Precision and recall of raw similarity with one threshold; None where no seed is held out.

    The similarity is the mean cosine of the result's own encodings, of each entity's nearest. The
    threshold has the best F1 on the held-out seeds, by the links that touch them, in a trial that
    never learns from them. `best` has that of the test links, which nobody knows: no threshold is
    better.
    """
    task, config = result.task, result.config
    _, held, learned = held_out_stage(Artifacts(None), "", task, config.matching)
    if held is None:
        return None
    keys = task.tie_keys.map(lambda side: torch.from_numpy(side.copy()).to(device))

    def matched(of: AlignmentResult, seeds: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """Links and their cosines, the nearest first."""
        entities = undecided(of.encodings, seeds, task.tie_keys, config.fusion.seed, device)
        found = search(entities, config.fusion, device).map(
            lambda side: side.first(config.fusion.candidates)
        )
        similarity = union_of_directions(
            found, entities=entities.entities, num_entities=entities.num_entities, twice=False
        )
        links: Tensor = match(similarity, keys, seeds, seed=config.matching.seed).links
        values = similarity.values[find_cells(similarity, links[:, 0], links[:, 1])].double()
        order = values.argsort(descending=True, stable=True)
        return links[order].cpu().numpy(), values[order].cpu().numpy()

    def best_threshold(values: NDArray[Any], is_right: NDArray[np.bool_], wanted: int) -> float:
        scores = 2 * is_right.cumsum() / (np.arange(1, len(values) + 1) + wanted)
        # Equal values are given together.
        ends = np.append(values[1:] != values[:-1], [True])
        return float(values[np.where(ends, scores, -1).argmax()]) if len(values) else 0.0

    links, values = matched(trial, learned.seeds)
    touching, right = verdicts(links, held.numpy())
    threshold = best_threshold(values[touching], right[touching], len(held))
    links, values = matched(result, task.seeds)
    known = best_threshold(values, verdicts(links, test_links)[1], len(test_links))
    return {
        "threshold": threshold,
        "links": int((values >= threshold).sum()),
        **judge(links[values >= threshold], test_links).to_dict(),
        "best": judge(links[values >= known], test_links).to_dict(),
        "all": judge(links, test_links).to_dict(),
    }


def measure(
    benchmark: Benchmark, row: Row, settings: list[str], seed: int, device: str, *, compare: bool
) -> Record:
    """The figures of one run."""
    place = choose_device(device)
    torch.zeros(1, device=place)  # a GPU's start is nobody's cost

    def aligned(*more: str) -> AlignmentResult:
        return clusterea.align(
            benchmark.task,
            preset=row.preset,
            model=row.model,
            samplers=row.samplers,
            settings=[*settings, *more],
            seed=seed,
            device=device,
        )

    start = time.perf_counter()
    result = aligned()
    seconds = time.perf_counter() - start
    stages: dict[str, float] = {}
    for cost in result.timings:
        name = without_round(cost.stage)
        stages[name] = stages.get(name, 0.0) + cost.seconds
    gpu = [cost.peak_gpu_bytes for cost in result.timings if cost.peak_gpu_bytes is not None]
    found = {
        "seconds": seconds,
        "stages": stages,
        "peak_gpu_bytes": max(gpu, default=None),
        "peak_host_bytes": max(cost.peak_host_bytes for cost in result.timings),
        "metrics": result.evaluate(benchmark.test_links).to_dict(),
        "links": len(result.alignment.links),
        "calibration": calibration(result, benchmark.test_links),
        "self_training": self_training(result.rounds, benchmark),
        "config": result.config.to_dict(),
        "entities": [graph.num_entities for graph in benchmark.task.graphs],
        "seeds": benchmark.task.num_seeds,
        "device": device_name(place),
        "commit": commit(),
        "versions": versions(),
    }
    if compare:
        try:
            trial = aligned("matching.rejoin=false") if result.config.matching.rejoin else result
            found["baseline"] = baseline(result, trial, benchmark.test_links, place)
        except Exception as error:  # the run itself is worth keeping
            found["baseline_error"] = described(error)
    return found


def described(error: Exception) -> str:
    """What went wrong and where; the whole of it is printed."""
    traceback.print_exception(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


# ---- the runs, and the file that keeps them

Key = tuple[str, str, int, tuple[str, ...]]


def key_of(record: Record) -> Key:
    """What tells runs apart."""
    return record["row"], record["pair"], record["seed"], tuple(record["settings"])


def is_done(record: Record | None, config: Record, *, compare: bool) -> bool:
    """Whether a run is there, of the settings that it would have now."""
    if record is None or "error" in record or (compare and "baseline" not in record):
        return False
    return bool(record["config"] == json.loads(json.dumps(config)))


def runs(arguments: argparse.Namespace, kept: dict[Key, Record]) -> Iterator[Record]:
    """Every run that was asked for and is not among the kept ones; what fails has an `error`."""
    for pair in arguments.pairs:
        benchmark, failure = None, ""
        try:
            benchmark = read(arguments.data, pair)
        except Exception as error:
            failure = described(error)
        for seed in arguments.seeds:
            for row in arguments.rows:
                own: Record = {"row": row, "pair": pair, "seed": seed}
                own["settings"] = arguments.settings
                if benchmark is None:
                    yield own | {"error": failure}
                    continue
                found = attempt(arguments, benchmark, own, kept.get(key_of(own)))
                if found is not None:
                    yield own | found
                gc.collect()
                torch.cuda.empty_cache()


def attempt(
    arguments: argparse.Namespace, benchmark: Benchmark, own: Record, before: Record | None
) -> Record | None:
    """The figures of a run, its error, or None if it is there already."""
    row, seed = ROWS[own["row"]], own["seed"]
    settings = [*own["settings"], *row.settings]  # a row stays what its name says
    larger = max(graph.num_entities for graph in benchmark.task.graphs)
    try:
        config = preset(
            row.preset,
            larger,
            model=row.model,
            samplers=row.samplers,
            seed=seed,
            settings=settings,
        )
        if is_done(before, config.to_dict(), compare=arguments.baseline):
            return None
        return measure(benchmark, row, settings, seed, arguments.device, compare=arguments.baseline)
    except Exception as error:  # of this run alone: the others go on
        return {"error": described(error)}


def read_records(files: Sequence[Path]) -> dict[Key, Record]:
    """The runs of all files; of the same run, the last that did not fail."""
    records: dict[Key, Record] = {}
    for path in files:
        for record in json.loads(path.read_text()):
            if "error" not in record or key_of(record) not in records:
                records[key_of(record)] = record
    return records


# ---- tables

Figure = Callable[[Record], float | None]


class Figures:
    """The records that are no errors, by row and pair."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._groups: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if "error" not in record:
                self._groups.setdefault((label(record), record["pair"]), []).append(record)
        self.rows = _ordered([row for row, _ in self._groups], list(ROWS))
        self.pairs = _ordered([pair for _, pair in self._groups], list(PAIRS))

    def runs(self, row: str, pair: str) -> list[Record]:
        return self._groups.get((row, pair), [])

    def values(self, row: str, pair: str, figure: Figure) -> list[float]:
        """The figure of each seed that has one."""
        found = (figure(record) for record in self.runs(row, pair))
        return [value for value in found if value is not None]

    def shown(self, row: str, pair: str, figure: Figure, digits: int = 1) -> str:
        """The mean, ± the standard deviation where there are several seeds."""
        values = self.values(row, pair, figure)
        if not values:
            return "–"
        spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
        return f"{mean(values):.{digits}f}{spread}"


def label(record: Record) -> str:
    """The row, with what `--set` changed in it: that is another row, which no bar is for."""
    return " ".join([record["row"], *record["settings"]])


def _ordered(names: Sequence[str], first: Sequence[str]) -> list[str]:
    """Each once: in the order of `first`, then the others as they came."""
    seen = dict.fromkeys(names)
    return [name for name in first if name in seen] + [name for name in seen if name not in first]


def hits(candidates: str) -> Figure:
    """H@1 in points."""
    return lambda record: 100 * float(record["metrics"][candidates]["source_to_target"]["hits@1"])


def confidence(name: str) -> Figure:
    """`ece` or `auroc`."""
    return lambda record: record["calibration"][name]


def linked(name: str) -> Figure:
    """`precision`, `recall` or `f1` in points."""
    return lambda record: 100 * float(record["metrics"]["matching"][name])


def baseline_f1(record: Record) -> float | None:
    """In points, where it was asked for."""
    found = record.get("baseline")
    return None if found is None else 100 * float(found["f1"])


def above_baseline(record: Record) -> float | None:
    """Points of F1, seed by seed."""
    least, own = baseline_f1(record), linked("f1")(record)
    return None if least is None or own is None else own - least


def seconds_of(record: Record) -> float:
    """In all."""
    return float(record["seconds"])


RANKED, OPEN = hits("test_candidates"), hits("all_candidates")


def accuracy_table(figures: Figures) -> list[list[str]]:
    """H@1 of each row on each pair, and in parentheses that among all targets."""
    lines = [["H@1 (all targets)", *figures.pairs]]
    for row in figures.rows:
        cells = [row]
        for pair in figures.pairs:
            open_ = figures.values(row, pair, OPEN)
            ranked = figures.shown(row, pair, RANKED)
            cells.append(f"{ranked} ({mean(open_):.1f})" if open_ else "not run")
        lines.append(cells)
    return lines


def cost_table(figures: Figures) -> list[list[str]]:
    """Seconds, memory, confidence and links of each row on each pair."""
    columns: dict[str, tuple[Figure, int]] = {
        "seconds": (seconds_of, 1),
        "ECE": (confidence("ece"), 3),
        "AUROC": (confidence("auroc"), 3),
        "precision": (linked("precision"), 1),
        "recall": (linked("recall"), 1),
        "F1": (linked("f1"), 1),
        "baseline F1": (baseline_f1, 1),
    }
    lines = [["row", "pair", "seeds", *columns]]
    for pair in figures.pairs:
        for row in figures.rows:
            own = figures.runs(row, pair)
            if own:
                shown = [figures.shown(row, pair, *how) for how in columns.values()]
                lines.append([row, pair, str(len(own)), *shown])
    return lines


@dataclass(frozen=True, slots=True)
class Bar:
    """What one figure should be."""

    what: str
    value: float | None  # None: not measured
    bound: float
    is_least: bool = True  # else it is the most

    def line(self) -> list[str]:
        assert self.value is not None
        met = self.value >= self.bound if self.is_least else self.value <= self.bound
        limit = f"{'at least' if self.is_least else 'at most'} {self.bound:g}"
        return [self.what, f"{self.value:.4g}", limit, "met" if met else "MISSED"]


def bars(figures: Figures) -> Iterator[Bar]:
    """Every bar of the docstring."""

    def of(row: str, pair: str, figure: Figure) -> float | None:
        values = figures.values(row, pair, figure)
        return mean(values) if values else None

    def lost(record: Record) -> float | None:
        ranked, among_all = RANKED(record), OPEN(record)
        return None if ranked is None or among_all is None else ranked - among_all

    for place, row in enumerate(("default", "no-self-training")):
        for pair, least in LEAST.items():
            bound = least[place]
            if bound is not None:
                yield Bar(f"{row}, {pair}: H@1", of(row, pair, RANKED), bound)
        for pair in PAIRS:
            on = f"{row}, {pair}:"
            if pair.startswith("dbp15k"):
                yield Bar(f"{on} H@1 lost among all", of(row, pair, lost), 1.5, is_least=False)
            if pair.startswith(("ids15k", "contea")):
                error = of(row, pair, confidence("ece"))
                yield Bar(f"{on} ECE", error, 0.05, is_least=False)
                yield Bar(f"{on} AUROC", of(row, pair, confidence("auroc")), 0.80)
            if pair.startswith("contea"):
                yield Bar(f"{on} F1 above baseline", of(row, pair, above_baseline), 3.0)
    pair = "ids15k-en-fr"
    for row, most in (("default", 3.0), ("fast", 0.1)):
        own, paper = of(row, pair, seconds_of), of("paper", pair, seconds_of)
        devices = {each["device"] for name in (row, "paper") for each in figures.runs(name, pair)}
        comparable = own is not None and paper is not None and len(devices) == 1
        ratio = own / paper if comparable and own is not None and paper is not None else None
        yield Bar(f"{row}, {pair}: times the seconds of paper", ratio, most, is_least=False)


def formatted(table: list[list[str]], *, markdown: bool) -> str:
    """Columns of one width; with bars between them as Markdown."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in table]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(records: Sequence[Record], *, markdown: bool) -> str:
    """The tables, the bars, and what failed."""
    figures = Figures(records)
    parts = []
    if figures.rows:
        parts += [formatted(table(figures), markdown=markdown) for table in TABLES]
    every = list(bars(figures))
    measured = [bar.line() for bar in every if bar.value is not None]
    if measured:
        lines = [["bar", "measured", "bound", ""], *measured]
        parts.append(formatted(lines, markdown=markdown))
    parts.append(f"{len(every) - len(measured)} of {len(every)} bars not measured.")
    for record in records:
        for kind in ("error", "baseline_error"):
            if kind in record:
                run = f"{label(record)}, {record['pair']}, seed {record['seed']}"
                parts.append(f"FAILED ({kind}) {run}: {record[kind]}")
    return "\n\n".join(parts)


TABLES = (accuracy_table, cost_table)


def shown_run(record: Record) -> str:
    """A line for who waits."""
    name = f"{label(record)} {record['pair']} {record['seed']}"
    if "error" in record:
        return f"{name} FAILED: {record['error']}"
    ranked = record["metrics"]["test_candidates"]["source_to_target"]
    shown = ", ".join(f"{of} {100 * value:.2f}" for of, value in ranked.items())
    stages = ", ".join(f"{of} {value:.1f}" for of, value in record["stages"].items())
    return f"{name} {shown}, {record['seconds']:.1f} s ({stages}), {record['calibration']}"


def asked() -> argparse.Namespace:
    """The arguments, checked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="NAME")
    parser.add_argument("--pairs", nargs="*", help="those of the bars that FOLDER has, by default")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="FIELD=VALUE")
    parser.add_argument("--baseline", action="store_true", help="F1 of raw similarity, too")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, nargs="*", default=[], help="keeps runs, as JSON")
    parser.add_argument("--only-table", action="store_true", help="of the --out files; no runs")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    if arguments.only_table:
        if not arguments.out:
            parser.error("--only-table needs --out.")
    elif len(arguments.out) > 1:
        parser.error("a measurement has one --out at most.")
    elif arguments.pairs is None:
        if arguments.data is None:
            parser.error("a measurement needs --data or --pairs.")
        arguments.pairs = [p for p in PAIRS if place_of(arguments.data, p)[0].is_dir()]
    return arguments


def main() -> None:
    """Measures what was asked for and is not there, and prints the tables."""
    arguments = asked()
    records = read_records(arguments.out if arguments.only_table else _existing(arguments.out))
    failed = False
    if not arguments.only_table:
        for record in runs(arguments, records):
            records[key_of(record)] = record
            failed |= "error" in record or "baseline_error" in record
            print(shown_run(record), flush=True)
            for path in arguments.out:
                write_json(path, list(records.values()))
    print(report(list(records.values()), markdown=arguments.markdown))
    sys.exit(1 if failed else 0)


def _existing(files: Sequence[Path]) -> list[Path]:
    return [path for path in files if path.exists()]


if __name__ == "__main__":
    main()
