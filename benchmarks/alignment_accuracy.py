"""Accuracy of `clusterea.align` on real pairs: H@1, links, confidence, seconds.

    .venv/bin/python benchmarks/alignment_accuracy.py --data FOLDER --rows default fast paper
        --pairs ids15k-en-fr … [--seeds 0 1 2] [--baseline] [--missing] [--out FILE]
    .venv/bin/python benchmarks/alignment_accuracy.py --table [--out FILE]
    .venv/bin/python benchmarks/alignment_accuracy.py --stability 5 [--pairs NAME …]
    .venv/bin/python benchmarks/alignment_accuracy.py --coefficients

A row is a preset, or `default` with one part changed. A run replaces its record in FILE; with
`--missing`, a run that has a record is skipped. Pairs: see `common.read_pair`; `dbp15k-fr-en-1` has
1 % of the links as seeds and `dbp15k-fr-en-20s` has 20, and `--seeds` draws them too. Ranks are
source to target among the test targets. Confidence and `right` are judged on links that share an
entity with a test link. `--baseline` adds the F1 of one-to-one matching by raw cosine, cut where F1
is best on the held-out seeds of the first fit.

Bars, means over the seeds:

- H@1 of `default` and `no-self-training`: ids15k-en-fr 73.5 and 71.0, ids15k-en-de 82.5 and 81.0,
  dbp15k-zh-en 86.0 and 81.5, dbp15k-fr-en 90.0 and 85.0; `default` on debian-1m 50.
- DBP15K: H@1 among all targets is at most 1.5 points lower.
- IDS15K and contea-fr-en: calibration error at most 0.05, AUROC at least 0.80; on contea-fr-en F1
  at least 3 points above the baseline.
- ids15k-en-fr: `default` takes at most 3 times the seconds of `paper`, `fast` at most a tenth.
- H@1 of `default` with 1, 5, 10 and 30 % random seeds: dbp15k-fr-en 85.0, 88.5, 89.5 and 92.0,
  dbp15k-zh-en 78.0, 82.5, 85.0 and 88.0, ids15k-en-fr 58.0, 65.5, 68.5 and 74.5, ids15k-en-de 75.5,
  77.5, 79.0 and 82.5. On these four pairs, with 150 random seeds or more: calibration error at most
  0.05, AUROC at least 0.80.
- With 1 % seeds on DBP15K: 85 % of the judged links of `default` are right. `fast` on dbp15k-zh-en:
  H@1 60, on two CPU cores within 60 s.

`--stability N` aligns N copies of each pair with shuffled rows and N with other names, with the
preset `fast`, and shows how much the links differ. Bar: shuffled rows give the same links.
`--coefficients` fits the weight of each feature of a link to all links of five generated pairs;
`matching/features.py` has the means.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

import clusterea
from clusterea import AlignmentResult, Benchmark
from clusterea.data.readable_names import comparable
from clusterea.data.synthetic import SHAPES, LabelShape, generate
from clusterea.evaluation import judge
from clusterea.evaluation.verdicts import verdicts
from clusterea.pipeline.store import Made
from clusterea.sharded import HeldScores, match
from clusterea.types import IntArray, Names
from common import (
    DEVICE,
    RESULTS,
    Record,
    commit,
    costs,
    device_name,
    field,
    flat_metrics,
    folder_of,
    put_record,
    read_pair,
    read_records,
    table,
)

BINS = 15  # of the expected calibration error
IDENTITY = ("row", "pair", "seed", "settings", "on")
PAIRS = (
    *("ids15k-en-fr", "ids15k-en-de", "dbp15k-zh-en", "dbp15k-fr-en"),
    *("contea-fr-en-10", "contea-fr-en-30", "debian-100k", "debian-1m"),
)
CSLS = "fusion.csls=true"
# Row → the arguments of `align`
ROWS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"preset": "fast"},
    "paper": {"preset": "paper"},
    "no-self-training": {"settings": ["self_training.rounds=0"]},
    "no-label-propagation": {"model": "dual-amn"},
    "no-dual-amn": {"model": "label-propagation"},
    "no-support": {"settings": ["fusion.views=local,sinkhorn"]},
    "no-global-sinkhorn": {"settings": ["fusion.views=local,global", CSLS]},
    "with-csls": {"settings": ["fusion.views=local,support,global", CSLS]},
    "mini-batches-too": {"samplers": ["cmcs", "iscs"]},
    "mini-batches-instead": {"samplers": ["cmcs", "iscs"], "settings": ["fusion.views=local"]},
    "one-fold": {"settings": ["self_training.folds=1"]},
    "no-check": {"settings": ["self_training.check=false"]},
    "no-held-out": {"settings": ["matching.held_out=0"]},
    "two-dual-amn": {"model": "dual-amn,dual-amn,label-propagation"},
    "with-rrea": {"model": "dual-amn,rrea,label-propagation"},
}
# Pair → the least H@1 of `default` and of `no-self-training`
LEAST: dict[str, tuple[float, float | None]] = {
    "ids15k-en-fr": (73.5, 71.0),
    "ids15k-en-de": (82.5, 81.0),
    "dbp15k-zh-en": (86.0, 81.5),
    "dbp15k-fr-en": (90.0, 85.0),
    "debian-1m": (50.0, None),
}
# Pair → the least H@1 of `default` with each share of random seeds, in percent
LEAST_OF_SHARE: dict[str, dict[int, float]] = {
    "dbp15k-fr-en": {1: 85.0, 5: 88.5, 10: 89.5, 30: 92.0},
    "dbp15k-zh-en": {1: 78.0, 5: 82.5, 10: 85.0, 30: 88.0},
    "ids15k-en-fr": {1: 58.0, 5: 65.5, 10: 68.5, 30: 74.5},
    "ids15k-en-de": {1: 75.5, 5: 77.5, 10: 79.0, 30: 82.5},
}
FEWEST_CALIBRATED = 150  # seeds from which the confidence has bars


# ---- one run


def measure(
    arguments: argparse.Namespace, read: Callable[[str, int], Benchmark], own: Record
) -> Record:
    """The record of one run."""
    benchmark = read(own["pair"], own["seed"])
    record, result = measured(benchmark, own, ROWS[own["row"]])
    if arguments.baseline:
        record["baseline_f1"] = baseline_f1(result, benchmark.test_links, arguments.device)
    return record


def measured(
    benchmark: Benchmark, own: Record, row: Mapping[str, Any]
) -> tuple[Record, AlignmentResult]:
    """The record and the result of one run.

    Args:
        benchmark: The pair.
        own: The fields of `IDENTITY`.
        row: Arguments of `align`, beside the settings, seed and device in `own`.
    """
    device = torch.device(own["on"])
    torch.zeros(1, device=device)  # start the GPU before the clock
    settings = [*own["settings"], *row.get("settings", ())]
    chosen = dict(row) | {"settings": settings, "seed": own["seed"], "device": own["on"]}
    start = time.perf_counter()
    result = clusterea.align(benchmark, **chosen)
    seconds = time.perf_counter() - start
    record = own | {
        "seconds": seconds,
        **costs(cost.to_dict() for cost in result.timings),
        "metrics": flat_metrics(result.evaluate().to_dict()),
        "links": len(result.alignment.links),
        **calibration(result, benchmark.test_links),
        "rounds": [learned(each.pseudo_seeds, benchmark) for each in result.rounds],
        "num_seeds": benchmark.task.num_seeds,
        "device": device_name(device),
        "commit": commit(),
    }
    return record, result


def learned(pseudo_seeds: torch.Tensor, benchmark: Benchmark) -> list[int]:
    """How many pseudo-seeds a round had, how many test links can judge, and how many are right."""
    told, right = verdicts(pseudo_seeds.cpu().numpy(), benchmark.test_links)
    return [len(told), int(told.sum()), int(right.sum())]


def calibration(result: AlignmentResult, test_links: IntArray) -> Record:
    """Calibration error and AUROC of the confidence of links that test links can judge."""
    told, right = verdicts(result.alignment.links.cpu().numpy(), test_links)
    confidence = result.alignment.confidence.double().cpu().numpy()[told]
    is_right = right[told]
    return {
        "judged": len(confidence),
        "right": int(is_right.sum()),
        "ece": calibration_error(confidence, is_right) if len(confidence) else None,
        "auroc": auroc(confidence, is_right),
    }


def calibration_error(confidence: NDArray[Any], is_right: NDArray[np.bool_]) -> float:
    """The mean distance between confidence and precision, over links, in bins of equal width."""
    of_link = np.minimum((confidence * BINS).astype(int), BINS - 1)
    surplus = np.bincount(of_link, weights=confidence - is_right, minlength=BINS)
    return float(np.abs(surplus).sum() / len(confidence))


def auroc(confidence: NDArray[Any], is_right: NDArray[np.bool_]) -> float | None:
    """The chance that a right link has more confidence than a wrong one; ties count half.

    By the mean ranks of equal confidences (Mann and Whitney).
    """
    right, wrong = int(is_right.sum()), int((~is_right).sum())
    if not right or not wrong:
        return None
    _, level, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[level]
    return float((ranks[is_right].sum() - right * (right + 1) / 2) / (right * wrong))


def baseline_f1(result: AlignmentResult, test_links: IntArray, device: str) -> float | None:
    """F1 of one-to-one matching by raw cosine with one threshold; None without held-out seeds.

    The cosines are means over the encoders. The threshold has the best F1 on the held-out seeds.
    """
    from clusterea.pipeline import fits

    task, config = result.task, result.config
    first = fits(Made.of("", task), config)[0]
    held, rest = first.held, first.known.value
    if not len(held):
        return None
    # The cosine of concatenated unit rows is the mean of the encoders' cosines.
    sides = zip(*result.encodings, strict=True)
    source, target = (torch.cat(side, 1) for side in sides)
    similarity = clusterea.fuse(
        source,
        target,
        rest.seeds.copy(),
        keys=task.tie_keys,
        device=device,
        views=("global",),
        csls=False,
        candidates=config.fusion.candidates,
    )
    keys = task.tie_keys.map(lambda side: torch.from_numpy(side.copy()).to(device))
    links = (
        match(HeldScores.of(similarity), keys, rest.seeds, seed=config.matching.seed)
        .links.cpu()
        .numpy()
    )
    cells = (similarity.values, similarity.columns, similarity.row_offsets)
    matrix = csr_matrix(tuple(each.cpu().numpy() for each in cells), tuple(similarity.num_entities))
    values = np.asarray(matrix[links[:, 0], links[:, 1]]).ravel()
    order = np.argsort(-values, kind="stable")
    links, values = links[order], values[order]
    told, right = verdicts(links, held)
    f1 = 2 * right[told].cumsum() / (np.arange(1, told.sum() + 1) + len(held))
    is_last = np.append(np.diff(values[told]) != 0, [True])  # equal values are cut together
    threshold = values[told][np.where(is_last, f1, -1).argmax()] if told.any() else 0.0
    return judge(links[~told & (values >= threshold)], test_links).f1


def run_all(
    arguments: argparse.Namespace,
    measure: Callable[[Record], Record],
    rows: Mapping[str, Sequence[str]] | None = None,
) -> bool:
    """Measures what was asked for; whether everything worked.

    Args:
        arguments: Pairs, seeds, rows, settings, device, and the file of records.
        measure: The record of one run, by its fields of `IDENTITY`.
        rows: The rows of pairs that do not have all of them.
    """
    fine = True
    kept = {tuple(map(str, map(each.get, IDENTITY))) for each in read_records(arguments.out)}
    for pair in arguments.pairs:
        every = (rows or {}).get(pair, arguments.rows)
        for seed, row in product(arguments.seeds, [r for r in arguments.rows if r in every]):
            own: Record = {"row": row, "pair": pair, "seed": seed}
            own |= {"settings": arguments.settings, "on": arguments.device}
            if arguments.missing and tuple(map(str, own.values())) in kept:
                continue
            try:
                record = measure(own)
            except Exception:  # the other runs go on
                traceback.print_exc()
                fine = False
                continue
            put_record(arguments.out, record, IDENTITY)
            hits, f1 = (100 * record["metrics"][name] for name in ("hits@1", "f1"))
            said = f"H@1 {hits:.2f}, F1 {f1:.1f}, {record['seconds']:.1f} s"
            print(f"{label(record)} {pair} {seed}: {said}, {record['stages']}", flush=True)
            gc.collect()
            torch.cuda.empty_cache()
    return fine


# ---- tables and bars

Figure = Callable[[Record], float | None]
Bar = tuple[str, float | None, float, bool]  # what, value, bound, whether that is the least


def label(record: Record) -> str:
    """The row, with the settings that `--set` changed, and where it ran if not on a GPU."""
    on = ["(CPU)"] if record["on"] == "cpu" else []
    return " ".join([record["row"], *record["settings"], *on])


def percent(path: str) -> Figure:
    """A metric in percent."""
    return lambda record: 100 * float(field(record, f"metrics.{path}"))


def share_right(record: Record) -> float | None:
    """The share of right links in percent, of those that test links can judge."""
    return 100 * float(record["right"]) / record["judged"] if record["judged"] else None


COLUMNS: dict[str, tuple[Figure, int]] = {
    "H@1": (percent("hits@1"), 1),
    "H@1, all": (percent("all_hits@1"), 1),
    "ECE": (lambda record: record["ece"], 3),
    "AUROC": (lambda record: record["auroc"], 3),
    "precision": (percent("precision"), 1),
    "recall": (percent("recall"), 1),
    "F1": (percent("f1"), 1),
    "right": (share_right, 1),
    "seconds": (lambda record: record["seconds"], 1),
}


def values(records: Sequence[Record], row: str, pair: str, figure: Figure) -> list[float]:
    """A figure of each run of a row on a pair."""
    found = (figure(each) for each in records if label(each) == row and each["pair"] == pair)
    return [value for value in found if value is not None]


def mean_of(records: Sequence[Record], row: str, pair: str, figure: Figure) -> float | None:
    """The mean of a figure over the runs of a row on a pair; None if there are none."""
    found = values(records, row, pair, figure)
    return mean(found) if found else None


def shown(found: Sequence[float], digits: int) -> str:
    """The mean, ± the standard deviation where there are several."""
    if not found:
        return "–"
    spread = f" ± {stdev(found):.{digits}f}" if len(found) > 1 else ""
    return f"{mean(found):.{digits}f}{spread}"


def summary(records: Sequence[Record], wanted: Iterable[Bar]) -> Iterator[str]:
    """The tables, and the bars that were measured."""
    lines = []
    for pair in dict.fromkeys(each["pair"] for each in records):
        for row in dict.fromkeys(label(each) for each in records if each["pair"] == pair):
            cells = [shown(values(records, row, pair, f), digits) for f, digits in COLUMNS.values()]
            lines.append([pair, row, *cells])
    yield from table(["pair", "row", *COLUMNS], lines)
    yield ""
    for bar in wanted:
        if bar[1] is not None:
            yield f"- {'met' if is_met(bar) else 'MISSED'}: {bar[0]} {bar[1]:.4g}, {limit(bar)}"


def is_met(bar: Bar) -> bool:
    """Whether a bar was measured and is met."""
    _, value, bound, is_least = bar
    return value is not None and (value >= bound if is_least else value <= bound)


def limit(bar: Bar) -> str:
    """`at least 85`."""
    _, _, bound, is_least = bar
    return f"{'at least' if is_least else 'at most'} {bound:g}"


def bars(records: Sequence[Record]) -> Iterator[Bar]:
    """Each bar: what, its value (None: not measured), its bound, whether that is the least."""
    of = partial(mean_of, records)

    def lost(record: Record) -> float:
        return 100 * float(record["metrics"]["hits@1"] - record["metrics"]["all_hits@1"])

    def above_baseline(record: Record) -> float | None:
        baseline = record.get("baseline_f1")
        return None if baseline is None else 100 * (record["metrics"]["f1"] - baseline)

    for place, row in enumerate(("default", "no-self-training")):
        for pair, least in LEAST.items():
            bound = least[place]
            if bound is not None:
                yield f"{row}, {pair}: H@1", of(row, pair, percent("hits@1")), bound, True
        for pair in PAIRS:
            on = f"{row}, {pair}:"
            if pair.startswith("dbp15k"):
                yield f"{on} H@1 lost among all", of(row, pair, lost), 1.5, False
            if pair.startswith(("ids15k", "contea")):
                yield f"{on} ECE", of(row, pair, COLUMNS["ECE"][0]), 0.05, False
                yield f"{on} AUROC", of(row, pair, COLUMNS["AUROC"][0]), 0.80, True
            if pair.startswith("contea"):
                yield f"{on} F1 above baseline", of(row, pair, above_baseline), 3.0, True
    pair, seconds = "ids15k-en-fr", COLUMNS["seconds"][0]
    for row, most in (("default", 3.0), ("fast", 0.1)):
        own, paper = of(row, pair, seconds), of("paper", pair, seconds)
        ratio = own / paper if own is not None and paper is not None else None
        yield f"{row}, {pair}: times the seconds of paper", ratio, most, False
    yield from few_seeds_bars(records)


def few_seeds_bars(records: Sequence[Record]) -> Iterator[Bar]:
    """The bars with random seeds: a share (`dbp15k-fr-en-1`) or a number (`dbp15k-fr-en-200s`)."""
    of = partial(mean_of, records)
    hits, seconds = percent("hits@1"), COLUMNS["seconds"][0]
    for pair, shares in LEAST_OF_SHARE.items():
        for share, least in shares.items():
            on = f"{pair}-{share}"
            yield f"default, {on}: H@1", of("default", on, hits), least, True
            if share == 1 and pair.startswith("dbp15k"):
                yield f"default, {on}: % right", of("default", on, share_right), 85.0, True
        many = (each["pair"] for each in records if each["num_seeds"] >= FEWEST_CALIBRATED)
        for on in dict.fromkeys(each for each in many if re.fullmatch(rf"{pair}-\d+s?", each)):
            yield f"default, {on}: ECE", of("default", on, COLUMNS["ECE"][0]), 0.05, False
            yield f"default, {on}: AUROC", of("default", on, COLUMNS["AUROC"][0]), 0.80, True
    on = "dbp15k-zh-en-1"
    for row in ("fast", "fast (CPU)"):
        yield f"{row}, {on}: H@1", of(row, on, hits), 60.0, True
    yield f"fast (CPU), {on}: seconds", of("fast (CPU)", on, seconds), 60.0, False


# ---- stability, and the coefficients of features

VARIED = ("demo-1300-85-50", "demo-3000-85-30", "demo-4000-40-40")
FITTED = (*VARIED, "demo-6000-60-20", "demo-8000-70-5")
LABELS = LabelShape(missing=0.3, ambiguous=0.1, noise=0.5)
STYLES = ("http://example.org/resource/{}", "n{}", "{}")
Links = set[tuple[int, int]]


def demo(name: str, labels: LabelShape | None = None) -> Benchmark:
    """`demo-SIZE-COMMON-SHARE`: source entities, percent with a counterpart, percent of seeds.

    With `labels`, they are the names that are compared.
    """
    size, common, share = map(int, name.split("-")[1:])
    shape = SHAPES["demo"]
    factor = size / shape.entities.source
    shape = replace(
        shape,
        entities=shape.entities.map(lambda n: round(n * factor)),
        triples=shape.triples.map(lambda n: round(n * factor)),
        common_share=common / 100,
    )
    whole = generate(shape, seed=0, labels=labels)
    links = whole.task.seeds
    count = len(links) * share // 100
    names = whole.labels and whole.labels.map(comparable)
    task = replace(whole.task.with_seeds(links[:count]), names=names)
    return replace(whole, task=task, test_links=links[count:])


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to write the same pair: with shuffled rows, or with other names."""

    kind: str  # as-is, rows or names
    number: int

    def rows(self, rows: IntArray) -> IntArray:
        """In another order, if rows vary."""
        return self._draw(len(rows)).permutation(rows) if self.kind == "rows" else rows

    def names(self, names: Names, salt: int) -> list[str]:
        """Other ones, if names vary."""
        if self.kind != "names":
            return list(names)
        numbers = self._draw(salt).permutation(len(names))
        return [STYLES[self.number % len(STYLES)].format(each) for each in numbers]

    def _draw(self, salt: int) -> np.random.Generator:
        return np.random.default_rng([self.number, salt])


def links_of(pair: Benchmark, variant: Variant, folder: Path) -> Links:
    """The links of one variant, in the numbers of the original pair."""
    names = [variant.names(side, place) for place, side in enumerate(pair.names)]
    for place, (graph, relations) in enumerate(pair.task.graphs.zip(pair.relation_names)):
        kinds = variant.names(relations, place + 2)
        rows = variant.rows(graph.triples).tolist()
        lines = (f"{names[place][h]}\t{kinds[r]}\t{names[place][t]}\n" for h, r, t in rows)
        (folder / f"{place}.tsv").write_text("".join(lines))
    seeds = variant.rows(pair.task.seeds).tolist()
    (folder / "seeds.tsv").write_text("".join(f"{names[0][s]}\t{names[1][t]}\n" for s, t in seeds))
    files = [folder / name for name in ("0.tsv", "1.tsv", "seeds.tsv")]
    loaded = clusterea.load(files[0], files[1], links=files[2])
    found = clusterea.align(loaded, preset="fast", device="cpu").alignment.links.numpy()
    ends = [
        Names(names[place]).ids_of(side.take(found[:, place])).tolist()
        for place, side in enumerate(loaded.names)
    ]
    return set(zip(*ends, strict=True))


def stability(arguments: argparse.Namespace) -> None:
    """Prints links, and their Jaccard index with those of the pair as it is."""
    for name in arguments.pairs or VARIED:
        pair = demo(name) if name.startswith("demo-") else read_pair(arguments.data, name)
        first: Links = set()
        for kind in ("as-is", "rows", "names"):
            counts, common = [], []
            for number in range(1 if kind == "as-is" else arguments.stability):
                with tempfile.TemporaryDirectory() as folder:
                    links = links_of(pair, Variant(kind, number), Path(folder))
                first = first or links
                counts.append(len(links))
                common.append(100 * len(links & first) / max(len(links | first), 1))
            print(
                f"{name}, {kind}: {min(counts)} to {max(counts)} links, "
                f"Jaccard {min(common):.1f} to {max(common):.1f} %",
                flush=True,
            )


def coefficients() -> None:
    """Prints the weight of each feature in the log odds that a link is right.

    That of content is fitted on the same pairs with labels.
    """
    from clusterea.matching.calibration import calibrate
    from clusterea.matching.features import FEATURES, link_features
    from clusterea.pipeline.link_gains import LinkGains

    for labels in (None, LABELS):
        fits = []
        for pair in (demo(name, labels) for name in FITTED):
            # No held-out seeds, so that no link is left out.
            settings = ["matching.held_out=0"]
            result = clusterea.align(pair.task, preset="fast", settings=settings, device="cpu")
            links = result.alignment.links
            told, right = verdicts(links.numpy(), pair.test_links)
            gains = LinkGains.by(result.made_fits[0].trust, result.made_fits[0].contents)
            features = link_features(
                HeldScores.of(result.similarity),
                links,
                pair.task,
                None if gains is None else gains.total,
            )
            features *= torch.tensor([float(value != 0) for value in FEATURES.values()])
            fitted = calibrate(features[torch.from_numpy(told)], torch.from_numpy(right[told]))
            fits.append((fitted.coefficients / fitted.scales).tolist())
        for name, found in zip(FEATURES, zip(*fits, strict=True), strict=True):
            if (name == "content") == (labels is not None):
                print(f"{name}: {mean(found):.2f} ({', '.join(f'{each:.2f}' for each in found)})")


def main() -> None:
    """Measures what was asked for, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--pairs", nargs="*", help="by default, those that the folder has")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--baseline", action="store_true", help="also the F1 of raw cosine")
    parser.add_argument("--missing", action="store_true", help="skip runs that have a record")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "alignment_accuracy.jsonl")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--stability", type=int, metavar="N", help="measure N variants instead")
    parser.add_argument("--coefficients", action="store_true", help="fit features instead")
    arguments = parser.parse_args()
    if arguments.coefficients:
        coefficients()
    elif arguments.stability:
        stability(arguments)
    else:
        if arguments.pairs is None and arguments.data:
            arguments.pairs = [p for p in PAIRS if folder_of(arguments.data, p)[0].is_dir()]
        read = lru_cache(maxsize=1)(partial(read_pair, arguments.data))
        fine = arguments.table or run_all(arguments, partial(measure, arguments, read))
        records = read_records(arguments.out)
        print("\n".join(summary(records, bars(records))))
        sys.exit(not fine)


if __name__ == "__main__":
    main()
