"""How cost grows with size: seconds and memory of each stage, as a table and as a plot.

    .venv/bin/python benchmarks/scaling.py --entities 15000 150000 1500000 3000000 \
        --presets paper fast default --out benchmarks/results/scaling.json --plot docs/scaling.svg

Entities are those of both sides together; DBP1M's EN-FR, whose shape every pair has, has 3.2
million. Triples grow in proportion, relations stay; 30 % of the links are seeds. Each size and
preset runs in a process of its own, after a warm-up that no stage pays for: one that is killed for
lack of memory loses its own figures only. `paper` is with softmax as CMCS's classifier. With the
same `--out`, what is there is not run again; `--only-plot` measures nothing.

An exponent is log(ratio of costs) / log(ratio of entities) between neighboring sizes: 1 is linear.
Presets change with the size of the larger side, and their stages' costs with them: the table ends
with the settings that differ, and `--set` holds them fixed (`--set training.epochs=10`). METIS runs
beside training in a process of its own: ISCS's seconds hold only the wait for it, and no figure its
memory. Host memory holds the libraries, a few hundred MB that don't grow.

Bar: near-linear (exponents up to 1.2 between sizes), or we say which stage is not, and why.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from clusterea.config import LABEL_PROPAGATION, PRESETS, SECTIONS, Config, config_with, preset
from clusterea.data.synthetic import SHAPES, PairShape
from clusterea.errors import InputError
from clusterea.pipeline import StageCost, align, choose_device, measured
from clusterea.workspace import write_json
from pairs import generated, scaled
from plots import FAINT, INK, PANEL_INCHES, STYLE, Look, save
from provenance import commit, device_name, without_round

ALWAYS = {"paper": ["sampling.classifier=softmax"]}  # XGBoost would be most of the time
NEAR_LINEAR = 1.2
LEAST_SECONDS = 0.01  # below, a ratio of seconds tells nothing
TOTAL, OTHER = "total", "between stages"
SECONDS = "seconds"
LINEAR = {"color": INK, "linestyle": "--", "linewidth": 1}
LOOKS = {  # Okabe and Ito's colours, which the colour-blind can tell apart
    TOTAL: Look(TOTAL, "#000000", "o"),
    "training": Look("training", "#0072B2", "s"),
    "propagation": Look("propagation", "#56B4E9", "P"),
    "sampling: cmcs": Look("CMCS", "#009E73", "^"),
    "sampling: iscs": Look("ISCS", "#E69F00", "v"),
    "sampling: vps": Look("VPS", "#F0E442", "<"),
    "sampling: metis-cps": Look("METIS-CPS", "#F0E442", ">"),
    "fusion": Look("fusion", "#D55E00", "D"),
    "self-training": Look("pseudo-seeds", "#999999", "X"),
    "matching": Look("matching", "#CC79A7", "*"),
}

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One size with one preset: what a record is about."""

    entities: int  # of both sides
    preset: str
    settings: Sequence[str]  # those asked for
    on: str  # cpu or cuda
    threads: int

    @property
    def shape(self) -> PairShape:
        return scaled(self.entities)

    @property
    def config(self) -> Config:
        settings = [*ALWAYS.get(self.preset, ()), *self.settings]
        return preset(self.preset, max(self.shape.entities), settings=settings)

    @property
    def identity(self) -> Record:
        """Under which a record is kept; a new one replaces it."""
        return asdict(self) | {"settings": list(self.settings)}

    def is_kept_as(self, record: Record) -> bool:
        return all(record.get(name) == value for name, value in self.identity.items())

    def is_done_by(self, record: Record) -> bool:
        """Whether a record has the figures, with the settings that the preset has today."""
        return "failed" not in record and self.is_kept_as(record) and is_current(record)


def used_settings(config: Config) -> Record:
    """The settings of the stages that this config runs, by `stage.field`, as JSON has them."""
    is_used = {
        "training": any(model != LABEL_PROPAGATION for model in config.models),
        "propagation": LABEL_PROPAGATION in config.models,
        "sampling": bool(config.samplers),
        "self_training": config.self_training.rounds > 0,
    }
    every = config.to_dict()
    found: Record = {"models": config.models, "samplers": config.samplers}
    # Rounds stand there even where there are none: that is what tells it.
    found["self_training.rounds"] = config.self_training.rounds
    for stage in SECTIONS:
        if is_used.get(stage, True):
            found |= {f"{stage}.{field}": value for field, value in every[stage].items()}
    return dict(json.loads(json.dumps(found)))


def is_current(record: Record) -> bool:
    """Whether its preset still has the settings that it was made with."""
    kept = [record[name] for name in ("entities", "preset", "settings", "on", "threads")]
    return bool(record["config"] == used_settings(Run(*kept).config))


# ---- one run, in its own process


class Told:
    """Prints each stage as it ends: a long run is seen to live, and a killed one to where."""

    def __init__(self, run: Run) -> None:
        self._name = title_of(run.preset, run.entities)

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...

    def end(self, cost: StageCost) -> None:
        memory = f"{cost.peak_host_bytes / 1e9:.2f} GB"
        if cost.peak_gpu_bytes is not None:
            memory += f", {cost.peak_gpu_bytes / 1e9:.2f} GB of the GPU"
        print(f"{self._name}: {cost.stage}, {cost.seconds:.2f} s, {memory}", flush=True)

    def warn(self, message: str) -> None:
        print(f"{self._name}: {message}", flush=True)


def measure(run: Run) -> Record:
    """The figures of one run."""
    device, config, told = choose_device(run.on), run.config, Told(run)
    warm_up(config, device)
    with measured("generation", device) as generation:
        benchmark = generated(run.shape)
    told.end(generation)
    start = time.perf_counter()
    result = align(benchmark.task, config, device, observer=told)
    seconds = time.perf_counter() - start
    with measured("evaluation", device) as evaluation:
        metrics = result.evaluate(benchmark.test_links)
    told.end(evaluation)
    graphs, costs = benchmark.task.graphs, result.timings
    gpu = [cost.peak_gpu_bytes for cost in costs if cost.peak_gpu_bytes is not None]
    return {
        **run.identity,
        "config": used_settings(config),
        "sides": {
            "entities": [graph.num_entities for graph in graphs],
            "triples": [graph.num_triples for graph in graphs],
            "relations": [graph.num_relations for graph in graphs],
        },
        "seeds": benchmark.task.num_seeds,
        "num_batches": config.sampling.num_batches if config.samplers else None,  # K
        "effective_batches": {
            name: partition.num_batches for name, partition in result.partitions.items()
        },
        "seconds": round(seconds, 3),
        "peak_host_bytes": max(cost.peak_host_bytes for cost in costs),
        "peak_gpu_bytes": max(gpu, default=None),
        "stages": [cost.to_dict() for cost in costs],
        "apart": [generation.to_dict(), evaluation.to_dict()],
        "hits@1": metrics.test_candidates.source.hits[1],
        "hits@1_among_all": metrics.all_candidates.source.hits[1],
        "device": device_name(device),
        "commit": commit(),
    }


def warm_up(config: Config, device: torch.device) -> None:
    """Loads libraries and the device's kernels, which would be most of a small size's seconds."""
    few = ["training.epochs=1", "sampling.num_batches=2", "sampling.gcn_epochs=2"]
    few += [f"self_training.rounds={min(1, config.self_training.rounds)}"]
    benchmark = generated(SHAPES["demo"])
    align(benchmark.task, config_with(config, few), device).evaluate(benchmark.test_links)
    if device.type == "cuda":
        torch.cuda.empty_cache()


# ---- all runs


def measured_apart(run: Run) -> Record:
    """The record of a run in a fresh process, or of how it failed."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(measure, run).result()
        except BrokenProcessPool:
            why = "its process was killed, most likely for lack of memory"
        except (MemoryError, RuntimeError) as error:
            # An allocation that was refused is no MemoryError to torch. Whatever it is, it's kept.
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return {**run.identity, "config": used_settings(run.config), "failed": why}


def run_all(runs: Sequence[Run], out: Path | None, limit: float, kept: list[Record]) -> None:
    """Measures what is missing, and keeps it in a file that is whole after each run."""
    start = time.monotonic()
    for run in runs:
        if any(run.is_done_by(record) for record in kept):
            continue
        name = title_of(run.preset, run.entities)
        if time.monotonic() - start > limit:
            print(f"{name}: not begun, {limit:g} seconds have passed")
            continue
        record = measured_apart(run)
        kept[:] = [each for each in kept if not run.is_kept_as(each)] + [record]
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_json(out, kept)
        said = record.get("failed") or (
            f"{record['seconds']:.1f} s, {record['peak_host_bytes'] / 1e9:.2f} GB, "
            f"H@1 {record['hits@1']:.1%}"
        )
        print(f"{name}: {said}", flush=True)


# ---- what is shown


def title_of(preset_name: str, entities: int) -> str:
    """What a run is called where it is told of."""
    return f"{preset_name}, {short(entities)} entities"


def short(entities: int) -> str:
    """15 K, 1.5 M."""
    if entities >= 1_000_000:
        return f"{entities / 1_000_000:g} M"
    return f"{entities / 1_000:g} K"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a stage, over all its rounds, folds and directions: summed seconds, largest peaks."""

    seconds: float = 0.0
    host: int = 0
    gpu: int = 0

    def plus(self, stage: Record) -> Cost:
        return Cost(
            self.seconds + stage["seconds"],
            max(self.host, stage["peak_host_bytes"]),
            max(self.gpu, stage["peak_gpu_bytes"] or 0),
        )


def costs_of(record: Record) -> dict[str, Cost]:
    """By stage, in order; what lies between stages, and the total, come last."""
    found: dict[str, Cost] = {}
    for stage in record["stages"]:
        name = without_round(stage["stage"]).removesuffix("-reverse")
        found[name] = found.get(name, Cost()).plus(stage)
    within = sum(cost.seconds for cost in found.values())
    found[OTHER] = Cost(max(0.0, record["seconds"] - within))
    found[TOTAL] = Cost(record["seconds"], record["peak_host_bytes"], record["peak_gpu_bytes"] or 0)
    return found


@dataclass(frozen=True, slots=True)
class Series:
    """One preset on one device, over sizes."""

    preset: str
    device: str
    threads: int
    points: list[Record]  # by size; some may have failed

    @property
    def where(self) -> str:
        return f"{self.device}, {self.threads} thread" + ("s" if self.threads > 1 else "")

    @property
    def done(self) -> list[Record]:
        return [record for record in self.points if "failed" not in record]

    def stages(self) -> list[str]:
        """Those of any size, in order; the total last."""
        names = dict.fromkeys(name for record in self.done for name in costs_of(record))
        return [name for name in names if name not in (OTHER, TOTAL)] + [OTHER, TOTAL]

    def values(self, stage: str, read: Callable[[Cost], float]) -> list[float | None]:
        """A figure of a stage at each size; None where it is not there."""
        found: list[float | None] = []
        for record in self.points:
            cost = None if "failed" in record else costs_of(record).get(stage)
            found.append(None if cost is None else read(cost))
        return found

    def exponents(self, values: Sequence[float | None], least: float) -> list[float | None]:
        """Between each size and the next; None where a figure is missing or below `least`."""
        sizes = [record["entities"] for record in self.points]
        return [
            math.log(after / before) / math.log(large / small)
            if before and after and min(before, after) >= least
            else None
            for (small, large), (before, after) in zip(
                pairwise(sizes), pairwise(values), strict=True
            )
        ]


def series_of(records: Sequence[Record]) -> list[Series]:
    """Every preset and device that has figures; a failure joins those of its kind."""
    found: list[Series] = []
    kinds = dict.fromkeys((r["preset"], r["on"], r["threads"]) for r in records)
    for kind in kinds:
        mine = [r for r in records if (r["preset"], r["on"], r["threads"]) == kind]
        devices = dict.fromkeys(r["device"] for r in mine if "failed" not in r)
        for device in devices:
            points = [r for r in mine if r.get("device", device) == device]
            points.sort(key=lambda record: record["entities"])
            found.append(Series(kind[0], device, kind[2], points))
    return found


def table(series: Series) -> str:
    """Markdown: a row for each figure, with an exponent between sizes."""
    lines = [
        f"**{series.preset}** on {series.where}",
        "",
        "| | " + " | exponent | ".join(short(r["entities"]) for r in series.points) + " |",
        "|---" + "|--:" * (2 * len(series.points) - 1) + "|",
    ]

    def row(
        name: str,
        values: Sequence[float | None],
        least: float,
        write: Callable[[float], str],
    ) -> None:
        cells = ["" if value is None else write(value) for value in values]
        between = series.exponents(values, least)
        shown = [name, cells[0]]
        for exponent, cell in zip(between, cells[1:], strict=True):
            shown += ["" if exponent is None else f"{exponent:.2f}", cell]
        lines.append("| " + " | ".join(shown) + " |")

    def plain(name: str, cells: Sequence[str]) -> None:
        lines.append(f"| {name} | " + " | | ".join(cells) + " |")

    for name in series.stages():
        label = f"**{name}, s**" if name == TOTAL else f"{name}, s"
        row(label, series.values(name, lambda cost: cost.seconds), LEAST_SECONDS, duration)
    row("host memory, GB", series.values(TOTAL, lambda cost: cost.host / 1e9), 0, gigabytes)
    if any(record["peak_gpu_bytes"] for record in series.done):
        row("GPU memory, GB", series.values(TOTAL, lambda cost: cost.gpu / 1e9), 0, gigabytes)
    for place, name in enumerate(("generation", "evaluation")):
        apart = [
            None if "failed" in record else record["apart"][place]["seconds"]
            for record in series.points
        ]
        row(f"*{name}, s (apart)*", apart, LEAST_SECONDS, duration)
    plain("H@1", ["" if "failed" in r else f"{r['hits@1']:.1%}" for r in series.points])
    if any(record["num_batches"] for record in series.done):
        plain("K", [str(r.get("num_batches") or "") for r in series.points])
    for name in differing(series.points):
        if name != "sampling.num_batches":  # K
            plain(f"`{name}`", [str(r["config"].get(name, "")) for r in series.points])
    for record in series.points:
        if "failed" in record:
            lines += ["", f"{short(record['entities'])} failed: {record['failed']}."]
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Two decimals where they tell something."""
    return f"{seconds:,.1f}" if seconds >= 10 else f"{seconds:.2f}"


def gigabytes(value: float) -> str:
    """Two decimals: at small sizes, tens of megabytes tell something."""
    return f"{value:.2f}"


def differing(records: Sequence[Record]) -> list[str]:
    """The settings that are not the same at all sizes."""
    names = dict.fromkeys(name for record in records for name in record["config"])
    first = records[0]["config"]
    return [n for n in names if any(r["config"].get(n) != first.get(n) for r in records)]


def check(series: Series) -> str:
    """Which stages grow faster than near-linearly, and how much of the total they are."""
    over: list[str] = []
    sizes = [record["entities"] for record in series.points]
    totals = series.values(TOTAL, lambda cost: cost.seconds)
    checked = False
    for name in series.stages():
        values = series.values(name, lambda cost: cost.seconds)
        for place, exponent in enumerate(series.exponents(values, LEAST_SECONDS)):
            checked = checked or exponent is not None
            value, total = values[place + 1], totals[place + 1]
            if exponent is not None and exponent > NEAR_LINEAR and value and total:
                share = "" if name == TOTAL else f", {value / total:.0%} of the total there"
                span = f"{short(sizes[place])} to {short(sizes[place + 1])}"
                over.append(f"{name} ({exponent:.2f} from {span}{share})")
    over += [
        f"{short(record['entities'])} failed" for record in series.points if "failed" in record
    ]
    verdict = "missed" if over else "met" if checked else "not run"
    bar = f"{series.preset} on {series.where}: exponents up to {NEAR_LINEAR:g}"
    return f"- {verdict}: {bar}" + (f"; {'; '.join(over)}" if over else "")


def plot(path: Path, every: Sequence[Series]) -> None:
    """A column for each preset and device: seconds, host memory and GPU memory of stages.

    `plots.small_multiples` has no logarithmic x and no line to compare with.
    """
    matplotlib: Any = import_module("matplotlib")  # here, and untyped: only who plots needs it
    matplotlib.use("agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    ticker: Any = import_module("matplotlib.ticker")
    line: Any = matplotlib.lines.Line2D
    readings: list[tuple[str, float, Callable[[Cost], float]]] = [
        (SECONDS, LEAST_SECONDS, lambda cost: cost.seconds),
        ("peak host memory (GB)", 0.0, lambda cost: cost.host / 1e9),
    ]
    if any(record["peak_gpu_bytes"] for series in every for record in series.done):
        readings.append(("peak GPU memory (GB)", 1e-3, lambda cost: cost.gpu / 1e9))
    shown: set[str] = set()

    def draw(
        axes: Any, series: Series, label: str, least: float, read: Callable[[Cost], float]
    ) -> None:
        for name, look in reversed(LOOKS.items()):  # the total over the others
            points = [
                (record["entities"], value)
                for record, value in zip(series.points, series.values(name, read), strict=True)
                if value is not None and value > least
            ]
            if not points:
                continue
            shown.add(name)
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, color=look.color, marker=look.marker)
            if name == TOTAL and len(xs) > 1:
                ends = [ys[-1] * xs[0] / xs[-1], ys[-1]]
                # An artist that no axis makes room for: memory that stays would be a thin strip.
                axes.add_artist(line((xs[0], xs[-1]), ends, **LINEAR, zorder=1))
        axes.set_ylabel(label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticks = [record["entities"] for record in series.points]
        axes.set_xticks(ticks, [short(tick).replace(" ", "") for tick in ticks])
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        if label != SECONDS:  # memory spans a decade or two
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, labelleft=True)

    style = STYLE | {"axes.titleweight": "normal", "lines.linewidth": 1.4}
    width, height = PANEL_INCHES
    with pyplot.rc_context(style):
        figure, grid = pyplot.subplots(
            len(readings),
            len(every),
            figsize=(max(width * len(every), 5.5) + 0.2, height * len(readings) + 0.9),
            squeeze=False,
            sharey="row",
            layout="constrained",
        )
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
        for i, (label, least, read) in enumerate(readings):
            for j, series in enumerate(every):
                draw(grid[i][j], series, label, least, read)
        for axes, series in zip(grid[0], every, strict=True):
            axes.set_title(f"{series.preset}\n{series.where}", loc="left", color=INK)
        for column in grid.T:
            with_data = [axes for axes in column if axes.has_data()]
            with_data[-1].set_xlabel("entities of both sides")
            for axes in column[len(with_data) :]:  # a CPU has no GPU memory
                axes.set_axis_off()
        handles = [
            line([], [], color=look.color, marker=look.marker, label=look.label)
            for name, look in LOOKS.items()
            if name in shown
        ]
        handles.append(line([], [], label="linear, through the largest size", **LINEAR))
        rows = math.ceil(len(handles) / (2 * len(every) + 1))
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=math.ceil(len(handles) / rows),
            frameon=False,
        )
        save(figure, path)
        pyplot.close(figure)


def main() -> None:
    """Measures what is missing, prints the tables and the checks, and draws the plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--entities", nargs="*", type=int, default=[15_000, 150_000], help="of both sides together"
    )
    parser.add_argument("--presets", nargs="*", default=["paper", "fast"], choices=PRESETS)
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    on = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=on, choices=("cpu", "cuda"))
    parser.add_argument(
        "--limit",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="after so long, begin no further run",
    )
    parser.add_argument("--out", type=Path, help="keep every run's figures here, as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg|png")
    parser.add_argument("--only-plot", action="store_true", help="measure nothing: --out has it")
    arguments = parser.parse_args()
    out, settings = arguments.out, tuple(arguments.settings)
    records: list[Record] = json.loads(out.read_text()) if out and out.is_file() else []
    runs = [
        Run(entities, name, settings, arguments.device, torch.get_num_threads())
        for entities in sorted(arguments.entities)  # what is sure to fit comes first
        for name in arguments.presets
    ]
    for run in runs:
        used_settings(run.config)  # so that a wrong setting is refused before any work is done
    if not arguments.only_plot:
        run_all(runs, out, arguments.limit, records)
    chosen = [
        record
        for record in records
        if record["settings"] == list(settings)
        and record["preset"] in arguments.presets
        and record["entities"] in arguments.entities
    ]
    if len(chosen) < len(records):
        print(f"{len(records) - len(chosen)} records of other sizes or settings are left out")
    stale = sum(not is_current(record) for record in chosen)
    if stale:
        print(f"{stale} records are of settings that their preset no longer has")
    every = series_of(chosen)
    for series in every:
        print("", table(series), sep="\n")
    print("", *(check(series) for series in every), sep="\n")
    if arguments.plot:
        if not every:
            raise InputError("--plot needs records. Got none with these settings.")
        plot(arguments.plot, every)


if __name__ == "__main__":
    main()
