"""`docs/results.md` and the README's table, from the records of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from paper_tables import (
    BEST,
    CLASSIFIER,
    CLUSTER_EA,
    MILLION,
    ORACLE,
    OURS,
    PAPER,
    TABLES,
)
from provenance import without_round
from records import Record, records_of

HEAD = """\
# Results

Every table of the paper with our figures beside its own, made by `benchmarks/reproduce.py` from
what it and `benchmarks/alignment_accuracy.py` have kept in `benchmarks/results`; nothing here is
written by hand. H@1 / H@10 / MRR among the test targets, source to target, ties at their
expectation; 30 % seeds. Ours are leak-free. Below them in parentheses the paper's, whose release
filters mini-batches by the test links. *not run*: nobody has run that row on that pair yet. A pair
whose name ends in *generated* has the counts of the real one and another structure, so its accuracy
is not the paper's to compare with.

Of a stage that several rows share, which was run once, each row has the seconds. Where a row ran
*beside other runs*, that many at the most, it took longer than it would alone. Seconds and memory
are those of the quickest machine that a row ran on. Rows of the paper end with the similarity;
`default`, the same without support and without self-training, and `fast` with the matched links.
`oracle filter` is ClusterEA-D with mini-batches cut down by the test links, as the authors' release
does: no result, but what that is worth. H@1 with a range behind it is a mean over two or three
seeds; without one it is of a single seed.
"""
BEYOND = """\
Means over the seeds that were run: the tables below have the ranges. `default` self-trains. What
each part of it is worth, and how sure its links are: [ahead of the paper](beyond.md).
"""
FILTER = """\
The authors' release keeps in a mini-batch only those entities whose true counterpart is in it too,
which nobody knows who has an alignment still to find. That is worth {worth} of H@1 in ClusterEA-D
here (`oracle filter` less ClusterEA-D). It touches the rows with mini-batches of the paper's own,
ClusterEA and its ablation, not the full-graph rows. Of these GCN-Align falls short with its
original's margin loss, in every way that was tried; with the loss of the others (GCN-Align-S) it
does not: [training](training.md#how-good)."""
FIGURE_3 = """\
## Figure 3: the samplers

The overlap and the seconds of each sampler over the number of mini-batches, as a table and a plot:
[sampling](sampling.md#how-they-compare).
"""
NAMED = {
    "no-support": "`default` without support",
    "no-self-training": "`default` without self-training",
    "ClusterEA-D": "`paper`: ClusterEA-D",
}
README_MARKERS = "<!-- results -->", "<!-- /results -->"


def shown(results: Path, row: str, pair: str) -> list[Record]:
    """A row's records on a pair that go into tables: without `--set`, and run like the last."""
    own = [r for r in records_of(results, row) if r["pair"] == pair and not r["settings"]]
    return [r for r in own if way(r) == way(own[-1])]


def way(record: Record) -> list[str]:
    """How a record was run other than the paper's, or within how much memory."""
    changed = record["classifier"] not in (None, CLASSIFIER)
    found = [f"`sampling.classifier={record['classifier']}`"] if changed else []
    return [*found, *([f"`--memory {record['memory']}`"] if record["memory"] else [])]


def first_hits(records: Sequence[Record]) -> list[float]:
    """H@1 of each, in percent."""
    return [100 * r["metrics"]["test_candidates"]["source_to_target"]["hits@1"] for r in records]


def cell(results: Path, row: str, pair: str) -> str:
    """Ours and the paper's."""
    own = shown(results, row, pair)
    paper = PAPER.get(row, {}).get(pair)
    theirs = f"<br>({paper[0]} / {paper[1]} / {paper[2]:.2f})" if paper else ""
    if not own:
        return f"not run{theirs}"
    ranked = [each["metrics"]["test_candidates"]["source_to_target"] for each in own]
    firsts = first_hits(own)
    spread = f" ({min(firsts):.1f} to {max(firsts):.1f})" if len(firsts) > 1 else ""
    tenth, mrr = mean(100 * each["hits@10"] for each in ranked), mean(e["mrr"] for e in ranked)
    return f"**{mean(firsts):.1f}**{spread} / {tenth:.1f} / {mrr:.2f}{theirs}"


def notes(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> Iterator[str]:
    """Which cells were run otherwise than the paper says."""
    otherwise: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        for row in rows:
            for record in shown(results, row, pair)[-1:]:
                for how in way(record):
                    otherwise.setdefault((how, pair), []).append(row)
    alike: dict[tuple[str, str], list[str]] = {}
    for (how, pair), names in otherwise.items():
        alike.setdefault((how, ", ".join(names)), []).append(pair)
    for (how, named), places in alike.items():
        yield f"With {how} on {', '.join(places)}: {named}."
        yield ""


def seconds_by_stage(records: Sequence[Record]) -> dict[str, float]:
    """The mean seconds of each stage, its rounds together."""
    found: dict[str, float] = {}
    for record in records:
        for cost in record["stages"]:
            name = without_round(cost["stage"])
            found[name] = found.get(name, 0.0) + cost["seconds"] / len(records)
    return found


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *lines)]


def costs(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """Seconds and memory of what was run; with several seeds, the means and the most."""
    lines = []
    for row in rows:
        for pair in pairs:
            own = on_one_machine(shown(results, row, pair))
            if not own:
                continue
            seconds = mean(r["seconds"] for r in own)
            gpu = max((r["peak_gpu_bytes"] or 0) for r in own) / 1e9
            host = max(r["peak_host_bytes"] for r in own) / 1e9
            stages = ", ".join(f"{k} {v:.1f}" for k, v in seconds_by_stage(own).items())
            measures = [f"{each:.1f}" for each in (seconds, gpu, host)]
            origin = [own[-1]["hardware"], own[-1]["commit"] or ""]
            lines.append([row, pair, *measures, stages, *origin])
    head = ["row", "pair", "seconds", "GPU, GB", "host, GB", "stages, seconds", "on", "commit"]
    return table(head, lines) if lines else []


def on_one_machine(records: Sequence[Record]) -> list[Record]:
    """The records of the hardware that was quickest: others tell of a row's accuracy alone."""
    quickest = min(records, key=lambda each: each["seconds"], default=None)
    return [each for each in records if quickest and each["hardware"] == quickest["hardware"]]


def run_pairs(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """The pairs that one of the rows was run on."""
    return [pair for pair in pairs if any(shown(results, row, pair) for row in rows)]


def paper_table(results: Path, title: str) -> str:
    """One of the paper's tables, and what its rows cost."""
    rows, pairs = TABLES[title]
    here = run_pairs(results, rows, pairs) or pairs[:2]
    lines = [[row, *(cell(results, row, pair) for pair in here)] for row in rows]
    parts = [f"## {title}", "", *table(["", *here], lines), "", *notes(results, rows, here)]
    missing = [pair for pair in pairs if pair not in here]
    if missing:
        parts += [f"Not run on {', '.join(missing)}.", ""]
    return "\n".join([*parts, *costs(results, rows, here)]).rstrip("\n") + "\n"


def figure_4(results: Path) -> str:
    """Where the time goes at a million entities."""
    here = run_pairs(results, CLUSTER_EA, TABLES[MILLION][1])
    parts = ["## Figure 4: time per stage at a million", ""]
    if not here:
        return "\n".join([*parts, "Not run."]) + "\n"
    found = {
        (row, pair): on_one_machine(shown(results, row, pair))
        for pair in here
        for row in CLUSTER_EA
    }
    names = list(dict.fromkeys(name for own in found.values() for name in seconds_by_stage(own)))
    lines = []
    for (row, pair), own in found.items():
        if not own:
            lines.append([row, pair, *["not run"] * (len(names) + 1), ""])
            continue
        stages = seconds_by_stage(own)
        every = [*(stages.get(name, 0.0) for name in names), sum(stages.values())]
        lines.append([row, pair, *(f"{each:.1f}" for each in every), own[-1]["hardware"]])
    head = ["seconds", "pair", *names, "in all", "on"]
    parts += [*table(head, lines), "", *notes(results, CLUSTER_EA, here)]
    return "\n".join(parts).rstrip("\n") + "\n"


def beyond_table(results: Path) -> list[str]:
    """H@1 of ours on the pairs that others have published figures of."""
    lines = []
    for row in [*OURS, "ClusterEA-D"]:
        cells = []
        for pair in BEST:
            own = shown(results, row, pair)
            cells.append(f"{mean(first_hits(own)):.1f}" if own else "not run")
        lines.append([NAMED.get(row, f"`{row}`"), *cells])
    paper = [str(PAPER["ClusterEA-D"].get(pair, ("",))[0]) for pair in BEST]
    lines.append(["the paper's ClusterEA-D", *paper])
    lines.append(["best published, structure only", *map(str, BEST.values())])
    return table(["H@1, %", *(pair.replace("-", " ", 1).upper() for pair in BEST)], lines)


def below(results: Path) -> str:
    """Where ours are below the paper's, and what its release's filter is worth."""
    worth, found = [], []
    for pair in dict.fromkeys(pair for figures in PAPER.values() for pair in figures):
        plain, oracle = (first_hits(shown(results, row, pair)) for row in ("ClusterEA-D", ORACLE))
        if plain and oracle:
            worth.append(f"{mean(oracle) - mean(plain):.1f} points on {pair}")
        for row, figures in PAPER.items():
            own = first_hits(shown(results, row, pair))
            if own and pair in figures and mean(own) < figures[pair][0]:
                found.append(f"{row} on {pair} ({mean(own):.1f}, theirs {figures[pair][0]})")
    parts = ["## Where ours are below the paper's", ""]
    parts += [f"H@1 of {', '.join(found) or 'no row that was run'}."]
    if worth:
        parts += ["", FILTER.format(worth=" and ".join(worth))]
    return "\n".join(parts).rstrip("\n") + "\n"


def page(results: Path) -> str:
    """`docs/results.md`."""
    beyond = ["## Ours beyond it", "", *beyond_table(results), "", BEYOND]
    tables = [paper_table(results, title) for title in TABLES]
    return "\n".join([HEAD, *beyond, *tables, below(results), FIGURE_3, figure_4(results)])


def with_results(text: str, lines: Sequence[str]) -> str:
    """A document with these lines between its markers."""
    begin, end = README_MARKERS
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"--readme: there must be {begin} and, below it, {end} in the file.")
    return "\n".join([before + begin, "", *lines, "", end + after])
