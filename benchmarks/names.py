"""Accuracy with names and without seeds: `clusterea.align` on pairs whose entities have names.

    .venv/bin/python benchmarks/names.py --data FOLDER [--rows names no-seeds …]
        [--pairs dbp15k-fr-en …] [--seeds 0 1 2] [--device cpu] [--missing] [--out FILE]
    .venv/bin/python benchmarks/names.py --table [--out FILE]
    .venv/bin/python benchmarks/names.py --same-bytes FOLDER/ids15k-en-fr

A run replaces its record in FILE; with `--missing`, a run that has a record is skipped. Pairs: see
`common.read_pair`, and `labels-100k`: generated, 100,000 entities a side, of which half have no
label. It has the rows `names`, `structure` and `names-alone`, with the preset `fast`. Rows:

- `names`: names beside structure, with the seeds of the pair (30 % of the links)
- `structure`: the same without names
- `no-seeds`: seeds from equal names; all links are test links
- `no-seeds-structure`: the same, but names are not compared
- `fast-no-seeds`: `no-seeds` with the preset `fast`
- `names-alone`: as `names`, without an encoder of structure
- `no-translation`: as `names`, without the map between the n-grams of two languages

Bars, means over the seeds:

- H@1 on dbp15k-fr-en and dbp15k-zh-en: `names` 99.6 and 90.5, `no-seeds` 99.6 and 82.
- `fast-no-seeds` on dbp15k-fr-en: H@1 98.5, on two CPU cores within 60 s.
- Calibration error at most 0.05, everywhere.
- H@1 of `names` is at least that of `structure` on each pair, and that of `names-alone` on
  labels-100k.

`--same-bytes` aligns a pair whose ids are not readable twice, with `--names auto` and `none`, with
the preset `fast`. Bar: the same bytes of alignment.tsv.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

import clusterea
from alignment_accuracy import (
    COLUMNS,
    Bar,
    label,
    learned,
    mean_of,
    measured,
    percent,
    run_all,
    summary,
)
from clusterea import AlignmentResult, Benchmark, Pair
from clusterea.data.entity_names import entity_names
from clusterea.data.synthetic import SHAPES, LabelShape
from common import (
    DEVICE,
    RESULTS,
    SEEDS_SHARE,
    Record,
    folder_of,
    generated,
    read_pair,
    read_records,
)

LABELS = "labels-100k"
LABEL_SHAPE = LabelShape(missing=0.5, ambiguous=0.1, noise=0.3)
PAIRS = ("dbp15k-fr-en", "dbp15k-zh-en", LABELS)
# Row → the arguments of `align`
ROWS: dict[str, dict[str, Any]] = {
    "names": {},
    "structure": {},
    "no-seeds": {},
    "no-seeds-structure": {},
    "fast-no-seeds": {"preset": "fast"},
    "names-alone": {"model": "names"},
    "no-translation": {"settings": ["names.translates=false"]},
}
ROWS_OF = {LABELS: ("names", "structure", "names-alone")}  # of pairs that do not have all
WITHOUT_SEEDS = ("no-seeds", "no-seeds-structure", "fast-no-seeds")
WITHOUT_NAMES = ("structure", "no-seeds-structure")
# Row → pair → the least H@1
LEAST = {
    "names": {"dbp15k-fr-en": 99.6, "dbp15k-zh-en": 90.5},
    "no-seeds": {"dbp15k-fr-en": 99.6, "dbp15k-zh-en": 82.0},
    "fast-no-seeds": {"dbp15k-fr-en": 98.5},
}
MOST_SECONDS = 60.0  # of `fast-no-seeds` on dbp15k-fr-en, on a CPU
MOST_ERROR = 0.05  # of the confidence
ON = ("", " (CPU)")  # devices, as labels of records have them


# ---- one run


def read(data: Path | None, pair: str, seed: int, has_seeds: bool) -> Benchmark:
    """A pair with its names; without its seeds, equal names are seeds and all links are tests."""
    if pair == LABELS:
        return with_labels(generated(SHAPES["ids100k-en-fr"], LABEL_SHAPE))
    if has_seeds:
        return read_pair(data, pair, seed, names="iris")
    if data is None:
        raise SystemExit(f"{pair}: --data must name the folder that holds it.")
    return clusterea.load(folder_of(data, pair)[0], names="iris", seeds_from="names")


def with_labels(benchmark: Benchmark) -> Benchmark:
    """The same pair; its labels are compared."""
    assert benchmark.labels is not None
    names = entity_names("labels", benchmark.names, Pair(*benchmark.labels)).texts
    return replace(benchmark, task=replace(benchmark.task, names=names))


def measure(data: Path | None, own: Record) -> Record:
    """The record of one run: that of `alignment_accuracy`, with presumed pairs and gains."""
    row, pair = own["row"], own["pair"]
    benchmark = cached(data, pair, own["seed"], row not in WITHOUT_SEEDS)
    if row in WITHOUT_NAMES:
        benchmark = replace(benchmark, task=replace(benchmark.task, names=None))
    chosen = {"preset": "fast"} if pair == LABELS else {}
    record, result = measured(benchmark, own, chosen | ROWS[row])
    presumed = torch.tensor(benchmark.task.presumed)
    return record | {"presumed": learned(presumed, benchmark), "gains": gains(result)}


cached = lru_cache(maxsize=1)(read)


def gains(result: AlignmentResult) -> list[dict[str, Record]]:
    """For each fit, the fitted gain of each content encoder, from the least cosine to 1."""
    found = []
    for fit in result.made_fits:
        if fit.trust is not None:
            trust = fit.trust.value
            curves = zip(
                fit.contents, trust.knots[:, 0].tolist(), trust.gains.tolist(), strict=True
            )
            found.append({name: {"from": low, "gains": own} for name, low, own in curves})
    return found


def has_same_bytes(folder: Path, device: str) -> bool:
    """Whether names that tell nothing change nothing."""
    found = []
    for names in ("auto", "none"):
        benchmark = clusterea.load(folder, names=names, split="first", seeds_share=SEEDS_SHARE)
        with tempfile.TemporaryDirectory() as scratch:
            clusterea.align(benchmark, preset="fast", device=device, run=Path(scratch) / "run")
            found.append((Path(scratch) / "run/alignment.tsv").read_bytes())
    return found[0] == found[1]


# ---- bars


def bars(records: Sequence[Record]) -> Iterator[Bar]:
    """Each bar: what, its value (None: not measured), its bound, whether that is the least."""
    of = partial(mean_of, records)
    hits = percent("hits@1")

    def above(row: str, other: str, pair: str, on: str) -> Bar:
        own, theirs = (of(each + on, pair, hits) for each in (row, other))
        gained = own - theirs if own is not None and theirs is not None else None
        return f"{row}{on}, {pair}: H@1 above {other}", gained, 0.0, True

    for on in ON:
        for row, least in LEAST.items():
            for pair, bound in least.items():
                yield f"{row}{on}, {pair}: H@1", of(row + on, pair, hits), bound, True
        for pair in dict.fromkeys((*PAIRS, *(each["pair"] for each in records))):
            yield above("names", "structure", pair, on)
        yield above("names", "names-alone", LABELS, on)
    row, pair = "fast-no-seeds (CPU)", "dbp15k-fr-en"
    yield f"{row}, {pair}: seconds", of(row, pair, COLUMNS["seconds"][0]), MOST_SECONDS, False
    for row, pair in dict.fromkeys((label(each), each["pair"]) for each in records):
        yield f"{row}, {pair}: ECE", of(row, pair, COLUMNS["ECE"][0]), MOST_ERROR, False


def main() -> None:
    """Measures what was asked for, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--missing", action="store_true", help="skip runs that have a record")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "names.jsonl")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--same-bytes", type=Path, metavar="PAIR", help="check this pair instead")
    arguments = parser.parse_args()
    if arguments.same_bytes:
        fine = has_same_bytes(arguments.same_bytes, arguments.device)
        print(f"{arguments.same_bytes.name}: {'the same bytes' if fine else 'OTHER BYTES'}")
    else:
        work = partial(measure, arguments.data)
        fine = arguments.table or run_all(arguments, work, ROWS_OF)
        records = read_records(arguments.out)
        print("\n".join(summary(records, bars(records))))
    sys.exit(not fine)


if __name__ == "__main__":
    main()
