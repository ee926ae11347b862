"""What is written from records: `docs/results.*`, tables and plots of other pages."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from textwrap import TextWrapper

import few_seeds
import names_page
from alignment_accuracy import ROWS
from common import (
    GENERATED,
    RESULTS,
    SEEDS_SHARE,
    Record,
    between_markers,
    folder_of,
    read_records,
    table,
)
from plots import Look, Panel, Point, small_multiples

fill = TextWrapper(width=100, break_on_hyphens=False).fill
FR15, DE15, FR100, FR1M, DE1M = (
    *("ids15k-en-fr", "ids15k-en-de", "ids100k-en-fr" + GENERATED),
    *("dbp1m-en-fr" + GENERATED, "dbp1m-en-de" + GENERATED),
)
# The best published H@1 from structure alone
BEST = {FR15: 67.9, DE15: 79.5, "dbp15k-zh-en": 83.5, "dbp15k-fr-en": 86.3}
# What any message passing can reach, by `generator_realism.refinement_limit` on the same split
LIMIT = {FR15: 86.1, DE15: 88.9, "dbp15k-zh-en": 99.3, "dbp15k-fr-en": 99.8}
OURS = ["default", "no-self-training", "fast"]  # rows of `alignment_accuracy.py`
ORACLE = "oracle filter"
SAME = {"without Dual-AMN": "ClusterEA-G"}  # the paper has the same figures for both
LARGE_EA = ["LargeEA-G", "LargeEA-R", "LargeEA-D"]
STOCHASTIC = ["GCN-Align-S", "RREA-S", "Dual-AMN-S"]
CLUSTER_EA = ["ClusterEA-G", "ClusterEA-R", "ClusterEA-D"]
ABLATION = [
    f"without {part}"
    for part in ("Sp-CSLS", "global similarity", "Sinkhorn", "CMCS", "ISCS", "Dual-AMN")
]
# Table → its rows and pairs
TABLES = {
    "Table 1: IDS15K and IDS100K": (
        ["GCN-Align", "RREA", "Dual-AMN", *LARGE_EA, *STOCHASTIC, *CLUSTER_EA, *OURS, ORACLE],
        [FR15, DE15, FR100, "debian-100k"],
    ),
    "Table 2: a million entities": (
        [*LARGE_EA, *STOCHASTIC, *CLUSTER_EA, *OURS],
        [FR1M, DE1M, "debian-1m"],
    ),
    "Table 3: the ablation": (["ClusterEA-D", *ABLATION], [FR15, DE15, FR1M, DE1M, "debian-1m"]),
}
HEAD = """\
# Results

The paper's tables with our figures. `benchmarks/reproduce.py --write` makes this page from the
records in `benchmarks/results`; nothing is written by hand.

- A cell is H@1 / H@10 / MRR: source to target, among the test targets, 30 % seeds, means over the
  seeds that were run. *paper* columns have the paper's own figures.
- Ours are leak-free. The paper's release filters mini-batches by the test links.
- The IDS100K and DBP1M files were not available. *generated* pairs have the same counts and
  another structure, so the paper's figures do not apply to them.
- `default` and `fast` are our presets. `no-self-training` is `default` without self-training.
- `oracle filter` is ClusterEA-D with the release's filter. It is not a result.

[results.tsv](results.tsv) has each row and pair with its range over seeds, seconds, memory, machine
and commit.
"""
FILTER = """\
The authors' release keeps in a mini-batch only entities whose true counterpart is in it too, which
is unknown at prediction time. In ClusterEA-D this adds {worth}. The filter concerns ClusterEA and
its ablation, not the full-graph rows. GCN-Align falls short with the margin loss of its original;
with the loss of the other encoders (GCN-Align-S) it does not: [training](training.md#how-good)."""


# ---- records by row


@cache
def every_record() -> list[Record]:
    """The records of all rows, ours and the paper's, on a GPU where there is a choice."""
    ours = [{"memory": None, **each} for each in read_records(RESULTS / "alignment_accuracy.jsonl")]
    ours = [each for each in ours if not each["settings"] and each["on"] == "cuda"]
    return [*ours, *read_records(RESULTS / "reproduce.jsonl")]


def on_any_device() -> list[Record]:
    """Our records with no changed setting, of CPUs too."""
    every = read_records(RESULTS / "alignment_accuracy.jsonl")
    return [each for each in every if not each["settings"]]


def runs(row: str, pair: str) -> list[Record]:
    """The records of a row on a pair that have the same settings as the last one."""
    name = SAME.get(row, row)
    own = [each for each in every_record() if each["row"] == name and each["pair"] == pair]
    return [each for each in own if changes(each) == changes(own[-1])]


def changes(record: Record) -> list[str]:
    """How a record differs from the paper's settings."""
    limit = [f"--memory {record['memory']}"] if record["memory"] else []
    return [*record["settings"], *limit]


@cache
def paper() -> dict[tuple[str, str], tuple[str, str, str]]:
    """The paper's H@1, H@10 and MRR by row and pair."""
    lines = csv.reader((RESULTS / "paper.tsv").read_text().splitlines(), delimiter="\t")
    return {(row, pair): (first, tenth, mrr) for row, pair, first, tenth, mrr in lines}


def first_hits(row: str, pair: str) -> list[float]:
    """H@1 of each run, in percent."""
    return [100 * each["metrics"]["hits@1"] for each in runs(row, pair)]


def fastest(records: Sequence[Record]) -> list[Record]:
    """The records of the device with the least seconds: the others tell about accuracy only."""
    best = min(records, key=lambda each: each["seconds"])
    return [each for each in records if each["device"] == best["device"]]


# ---- the page


def title(pair: str) -> str:
    """`ids15k-en-fr` as IDS15K EN-FR."""
    name = pair.removesuffix(GENERATED)
    if re.fullmatch(r"\d+-\d+", name):
        return "{:,} and {:,}, generated".format(*map(int, name.split("-")))
    is_name = name.startswith(("debian", "contea"))
    text = name if is_name else name.upper().replace("-", " ", 1)
    return text if name == pair else f"{text}, generated"


def cell(row: str, pair: str) -> str:
    """Our figures."""
    found = runs(row, pair)
    if not found:
        return "not run"
    first, tenth, mrr = (
        mean(each["metrics"][n] for each in found) for n in ("hits@1", "hits@10", "mrr")
    )
    return f"**{100 * first:.1f}** / {100 * tenth:.1f} / {mrr:.2f}"


def paper_table(name: str) -> str:
    """One of the paper's tables."""
    rows, pairs = TABLES[name]
    head, lines = [""], [[row] for row in rows]
    for pair in pairs:
        head.append(title(pair))
        theirs = [" / ".join(paper().get((row, pair), ())) for row in rows]
        for line, row in zip(lines, rows, strict=True):
            line.append(cell(row, pair))
        if sum(map(bool, theirs)) > 1:
            head.append("paper")
            for line, figures in zip(lines, theirs, strict=True):
                line.append(figures)
    parts = [f"## {name}", "", *table(head, lines)]
    for note in notes(rows, pairs):
        parts += ["", note]
    return "\n".join(parts) + "\n"


def notes(rows: Sequence[str], pairs: Sequence[str]) -> Iterator[str]:
    """Which pairs were run with other settings than the paper's."""
    alike: dict[str, list[str]] = {}
    for pair in pairs:
        every = {change for row in rows for each in runs(row, pair) for change in changes(each)}
        if every:
            alike.setdefault(" and ".join(f"`{each}`" for each in sorted(every)), []).append(pair)
    for how, places in alike.items():
        names = "; ".join(map(title, places))
        yield fill(f"Rows with mini-batches were run with {how} on {names}.")


def beyond_table() -> list[str]:
    """H@1 of our presets on pairs with published figures."""
    lines = []
    for row in ("default", "fast", "paper"):
        found = [first_hits(row, pair) for pair in BEST]
        lines.append([f"`{row}`", *(f"{mean(each):.1f}" if each else "not run" for each in found)])
    lines.append(
        ["the paper's ClusterEA-D", *(paper().get(("ClusterEA-D", pair), [""])[0] for pair in BEST)]
    )
    lines.append(["best published, structure only", *map(str, BEST.values())])
    few = [few_seeds.of_row(every_record(), "default", f"{pair}-1") for pair in BEST]
    shown = [few_seeds.shown(each, few_seeds.hits) for each in few]
    lines.append(["`default`, 1 % seeds", *shown])
    others = [few_seeds.PUBLISHED.get((pair, 1), "") for pair in BEST]
    lines.append(["best published, 1 % seeds", *map(str, others)])
    return table(["H@1, %", *map(title, BEST)], lines)


def below() -> str:
    """Where ours are below the paper's, and what the release's filter adds."""
    found, worth = [], []
    for (row, pair), (theirs, *_) in list(paper().items())[1:]:
        own = first_hits(row, pair)
        if own and mean(own) < float(theirs):
            found.append(f"{row} on {title(pair)} ({mean(own):.1f}, paper {theirs})")
    for pair in (FR15, DE15):
        plain, oracle = first_hits("ClusterEA-D", pair), first_hits(ORACLE, pair)
        if plain and oracle:
            worth.append(f"{mean(oracle) - mean(plain):.1f} points of H@1 on {title(pair)}")
    text = fill(f"H@1 of {', '.join(found) or 'no row that was run'}.")
    more = f"\n\n{fill(FILTER.format(worth=' and '.join(worth)))}" if worth else ""
    return f"## Where ours are below the paper's\n\n{text}{more}\n"


def figure_4() -> str:
    """Where the time goes at a million entities, of runs with a machine of their own."""
    names = {
        "training": "training",
        "CMCS": "sampling: cmcs",
        "ISCS, both ways": "sampling: iscs",
        "fusion": "fusion",
    }
    lines = []
    for row in CLUSTER_EA:
        own = [each for each in runs(row, FR1M) if "beside" not in each["device"]]
        if own:
            seconds = [mean(each["stages"][stage] for each in own) for stage in names.values()]
            lines.append([row, *(f"{each:.0f}" for each in (*seconds, sum(seconds)))])
    parts = ["## Figure 4: seconds per stage at a million entities", ""]
    parts += [f"{title(FR1M)}, one H200. METIS runs beside training and is not counted.", ""]
    return "\n".join([*parts, *table(["", *names, "total"], lines)]) + "\n"


def page() -> str:
    """`docs/results.md`."""
    beyond = ["## Our presets", "", *beyond_table(), ""]
    beyond += [
        "What each part of `default` contributes: [what differs from the paper](beyond.md).",
        "",
    ]
    tables = [paper_table(name) for name in TABLES]
    return "\n".join([HEAD, *beyond, *tables, below(), figure_3(), figure_4()])


def data_file() -> str:
    """`docs/results.tsv`: a line for each row and pair."""
    head = [
        "row",
        "pair",
        "runs",
        "hits@1",
        "least",
        "most",
        "hits@10",
        "mrr",
        "all_hits@1",
        "seconds",
        "gpu_gb",
        "host_gb",
        "stages",
        "settings",
        "device",
        "commit",
    ]
    lines = [head]
    for row, pair in dict.fromkeys((each["row"], each["pair"]) for each in every_record()):
        own = runs(row, pair)
        alone = fastest(own)
        hits = first_hits(row, pair)
        metrics = [mean(each["metrics"][n] for each in own) for n in ("hits@10", "mrr")]
        stages = dict.fromkeys(name for each in alone for name in each["stages"])
        seconds = {n: mean(each["stages"].get(n, 0.0) for each in alone) for n in stages}
        lines.append(
            [
                row,
                pair,
                str(len(own)),
                *(f"{each:.2f}" for each in (mean(hits), min(hits), max(hits), 100 * metrics[0])),
                f"{metrics[1]:.3f}",
                f"{mean(100 * each['metrics']['all_hits@1'] for each in own):.2f}",
                f"{mean(each['seconds'] for each in alone):.1f}",
                *(
                    f"{max(each[f'{where}_bytes'] or 0 for each in alone) / 1e9:.1f}"
                    for where in ("gpu", "host")
                ),
                ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()),
                " ".join(changes(own[-1])),
                alone[-1]["device"],
                alone[-1]["commit"] or "",
            ]
        )
    return "".join("\t".join(line) + "\n" for line in lines)


# ---- the table of `docs/speed.md`


def runs_table() -> list[str]:
    """Whole runs, from files to links."""
    lines = []
    for each in read_records(RESULTS / "million.jsonl"):
        preset = " ".join([f"`{each['preset']}`", *(f"`{s}`" for s in each["settings"])])
        figures = [f"{each['seconds']:,.0f}", *memory(each), f"{each['metrics']['hits@1']:.1%}"]
        lines.append([title(each["pair"]), preset, machine(each["device"]), *figures])
    return table(["pair", "preset", "machine", "seconds", "GPU, GB", "host, GB", "H@1"], lines)


def machine(device: str) -> str:
    """A device in short: `cpu (x86_64), 2 threads` as 2 CPU cores."""
    threads = re.search(r"(\d+) threads", device)
    return f"{threads[1]} CPU cores" if threads else device.replace("NVIDIA", "one")


def memory(record: Record) -> list[str]:
    """Peaks of GPU and host memory in GB; empty where not measured."""
    peaks = [record.get(f"{where}_bytes") for where in ("gpu", "host")]
    return [f"{peak / 1e9:.1f}" if peak else "" for peak in peaks]


# ---- the tables of `docs/beyond.md` and `docs/training.md`

WORDS = {  # rows of `alignment_accuracy.py`
    "no-self-training": "without self-training",
    "no-label-propagation": "without label propagation",
    "no-dual-amn": "without Dual-AMN",
    "no-support": "without support",
    "no-global-sinkhorn": "CSLS instead of Sinkhorn and support",
    "with-csls": "with the global view and CSLS",
    "mini-batches-too": "with CMCS and ISCS",
    "mini-batches-instead": "CMCS and ISCS instead of support",
    "one-fold": "one fold",
    "no-check": "both folds score every pseudo-seed",
    "no-held-out": "no seeds held out",
    "two-dual-amn": "two Dual-AMN encoders",
    "with-rrea": "with RREA",
}
CALIBRATED = (*BEST, "contea-fr-en-10", "contea-fr-en-30", "debian-100k", "debian-1m")


def ablation_table() -> list[str]:
    """H@1 and F1 of `default` with one part changed."""
    lines = []
    for row in ROWS:
        if row not in ("fast", "paper"):
            found = [runs(row, pair) for pair in BEST]
            cells = [ablation_cell(each) if each else "not run" for each in found]
            lines.append([WORDS.get(row, f"`{row}`"), *cells])
    lines.append(["limit of any message passing (1-WL)", *map(str, LIMIT.values())])
    return table(["H@1 / F1", *map(title, BEST)], lines)


def ablation_cell(records: Sequence[Record]) -> str:
    """Means in percent."""
    hits, f1 = (100 * mean(each["metrics"][name] for each in records) for name in ("hits@1", "f1"))
    return f"{hits:.1f} / {f1:.1f}"


def confidence_table() -> list[str]:
    """How well the confidence of `default` holds."""
    lines = []
    for pair in CALIBRATED:
        own = runs("default", pair)
        share = round(100 * (folder_of(RESULTS, pair)[1] or SEEDS_SHARE))
        errors = [each["ece"] for each in own]
        baseline = [100 * each["baseline_f1"] for each in own if "baseline_f1" in each]
        lines.append(
            [
                title(re.sub(r"-\d\d$", "", pair)),
                f"{share} %",
                str(len(own)),
                f"{mean(errors):.3f}",
                f"{max(errors):.3f}",
                f"{100 * mean(each['metrics']['f1'] for each in own):.1f}",
                f"{mean(baseline):.1f}" if baseline else "",
            ]
        )
    head = ["`default`", "seeds", "runs", "error", "largest error", "F1", "F1 of raw cosines"]
    return table(head, lines)


def features_table() -> list[str]:
    """H@1 of `fast` on a CPU over the width of its embeddings."""
    setting = "propagation.features="
    cells: dict[str, dict[int, str]] = {FR15: {}, "dbp15k-fr-en": {}}
    for each in read_records(RESULTS / "alignment_accuracy.jsonl"):
        named = [int(s.removeprefix(setting)) for s in each["settings"] if s.startswith(setting)]
        if named and each["row"] == "fast" and each["on"] == "cpu":
            cells[each["pair"]][named[0]] = f"{100 * each['metrics']['hits@1']:.1f}"
    counts = sorted({count for own in cells.values() for count in own})
    lines = [[title(pair), *(own[count] for count in counts)] for pair, own in cells.items()]
    return table(["features", *(f"{count:,}" for count in counts)], lines)


def steps_table() -> list[str]:
    """Cost of training and inference over the number of entities."""
    records = read_records(RESULTS / "speed.jsonl")
    lines = []
    for step in (each for each in records if each["part"] == "training-step"):
        last = next(
            each
            for each in records
            if each["part"] == "inference"
            and (each["size"], each["device"]) == (step["size"], step["device"])
        )
        figures = [f"{1000 * step['seconds']:,.0f}", f"{step['rows_touched'] / 1000:.0f} K"]
        figures += [memory(step)[0], memory(last)[0], f"{last['seconds']:.1f}"]
        lines.append([f"{step['entities']:,}", machine(step["device"]), *figures])
    head = ["entities", "machine", "ms per step", "rows read", "GPU, GB", "GPU, inference, GB"]
    return table([*head, "inference, seconds"], lines)


def with_names(lines: Callable[[Sequence[Record]], list[str]]) -> Callable[[], list[str]]:
    """Lines from the records of `names.py`."""
    return lambda: lines(read_records(RESULTS / "names.jsonl"))


# Document → marker → the lines that belong between its ends
TABLES_IN: dict[str, dict[str, Callable[[], list[str]]]] = {
    "README.md": {"results": beyond_table, "names": with_names(names_page.published_table)},
    "docs/speed.md": {"runs": runs_table},
    "docs/beyond.md": {"ablation": ablation_table, "confidence": confidence_table},
    "docs/training.md": {"features": features_table, "steps": steps_table},
    "docs/few-seeds.md": {
        "shares": lambda: few_seeds.shares_table(on_any_device(), BEST),
        "counts": lambda: few_seeds.counts_table(on_any_device()),
        "targets": lambda: few_seeds.targets(read_records(RESULTS / "alignment_accuracy.jsonl")),
    },
    "docs/names.md": {
        "rows": with_names(names_page.rows_table),
        "published": with_names(names_page.published_table),
        "labels": with_names(names_page.labels_table),
        "targets": with_names(names_page.targets),
    },
}


def write(folder: Path) -> None:
    """Writes the results, and renews the tables and the plot of other documents."""
    (folder / "docs/results.md").write_text(page())
    (folder / "docs/results.tsv").write_text(data_file())
    for name, tables in TABLES_IN.items():
        text = (folder / name).read_text()
        for marker, lines in tables.items():
            text = between_markers(text, marker, lines())
        (folder / name).write_text(text)
    few_seeds.plot(folder / "docs/images/few_seeds.svg", on_any_device())


# ---- figure 3

OVERLAP = {  # row → the samplers it is the mean of
    "cmcs": ("cmcs",),
    "iscs": ("iscs", "iscs-reverse"),
    "metis-cps": ("metis-cps", "metis-cps-reverse"),
    "vps": ("vps",),
}
LOOKS = {  # Okabe and Ito's colors, which color-blind readers can tell apart
    "cmcs": Look("CMCS", "#0072B2", "o"),
    "iscs": Look("ISCS", "#D55E00", "s"),
    "metis-cps": Look("METIS-CPS", "#009E73", "^"),
    "vps": Look("VPS", "#7F7F7F", "D"),
}


def overlap_rows(records: Sequence[Record]) -> Iterator[tuple[str, str, int, list[Record]]]:
    """Pair, sampler, K and the runs over seeds and directions."""
    chosen = [each for each in records if not each["seeds_taken"]]
    for pair in dict.fromkeys(each["pair"] for each in chosen):
        for name, samplers in OVERLAP.items():
            own = [r for r in chosen if r["pair"] == pair and r["sampler"] in samplers]
            for count in sorted({each["num_batches"] for each in own}):
                yield pair, name, count, [each for each in own if each["num_batches"] == count]


def figure_3() -> str:
    """Overlap tables: IDS15K with both pairs in a cell, and the million with seconds."""
    cells: dict[str, dict[tuple[str, int], list[str]]] = {"ids15k": {}, "dbp1m": {}}
    for pair, name, count, found in overlap_rows(read_records(RESULTS / "overlap.jsonl")):
        kind = pair.partition("-")[0]
        text = f"{mean(100 * each['test'] for each in found):.1f}"
        if kind == "dbp1m":
            text += f", {mean(each['seconds'] for each in found):.1f} s"
            if found[0]["metis_seconds"]:
                text += f" + {mean(each['metis_seconds'] for each in found):.0f} s"
        cells[kind].setdefault((name, count), []).append(text)
    parts = ["## Figure 3: links that samplers keep together", ""]
    parts += ["Percent of test links with both ends in one mini-batch. IDS15K: EN-FR / EN-DE.", ""]
    for kind, shares in cells.items():
        counts = sorted({count for _, count in shares})
        lines = [
            [LOOKS[name].label, *(" / ".join(shares[name, count]) for count in counts)]
            for name in OVERLAP
        ]
        if kind == "dbp1m":
            said = f"{title(FR1M)}, embeddings of two epochs, one H200. The second time is METIS's"
            parts += ["", fill(f"{said} first cut, which runs beside training."), ""]
        parts += table(["K", *map(str, counts)], lines)
    return "\n".join([*parts, "", "![overlap over K](images/sampler_overlap.svg)"]) + "\n"


def overlap_plot(path: Path, records: Sequence[Record]) -> None:
    """Overlap of all and of test links over K, and seconds on the generated million."""
    panels: dict[str, dict[str, dict[str, list[Point]]]] = {}
    for pair, name, count, found in overlap_rows(records):
        for kind in ("all", "test", "seconds"):
            scale = 1 if kind == "seconds" else 100
            values = [scale * each[kind] for each in found]
            point = Point(count, mean(values), min(values), max(values))
            panels.setdefault(pair, {}).setdefault(kind, {}).setdefault(name, []).append(point)
    columns = []
    for pair, lines in panels.items():
        columns.append(
            [
                Panel(
                    title(pair),
                    "mini-batches K",
                    f"overlap, {kind} links (%)",
                    lines[kind],
                    (0, 100),
                )
                for kind in ("all", "test")
            ]
        )
        if pair.endswith(GENERATED):
            columns.append(
                [
                    Panel(
                        title(pair),
                        "mini-batches K",
                        "seconds without METIS",
                        lines["seconds"],
                        log_y=True,
                    )
                ]
            )
    small_multiples(path, columns, LOOKS)
