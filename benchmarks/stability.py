"""How much an alignment depends on what should not matter: the order of rows, and names.

    .venv/bin/python benchmarks/stability.py [--data FOLDER] [--pairs NAME …] [--variants 5]
        [--preset fast] [--out FILE]
    .venv/bin/python benchmarks/stability.py --coefficients

Each pair is written as text, as it is and in variants, and aligned: with its rows (triples and
seeds) shuffled, and with its entities and relations renamed at random, in turn to IRIs, short names
and integers. `demo-SIZE-COMMON-SHARE` is generated: so many source entities, percent of them with a
counterpart, and percent of the links as seeds. `NAME-SHARE` is a folder of FOLDER and the percent
of its links that are seeds; `NAME` alone has its own split.

With `--coefficients` it fits, to all links of each pair as it is, how much each feature of a link
raises the log odds that the link is right. The constants in `matching/features.py` are the means of
these. Only generated pairs are used, on which no accuracy is reported.

Shown are the least, mean and most of each figure, and of the links in common with those of the pair
as it is (Jaccard).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

import clusterea
from clusterea.data.synthetic import SHAPES, generate
from clusterea.evaluation.verdicts import verdicts
from clusterea.matching.calibration import calibrate
from clusterea.matching.features import FEATURES, link_features
from clusterea.types import Benchmark, IntArray, Names
from clusterea.workspace import write_json
from provenance import commit

PAIRS = ("demo-1300-85-50", "demo-3000-85-30", "demo-4000-40-40")
FITTED = (*PAIRS, "demo-6000-60-20", "demo-8000-70-5")
STYLES = ("http://example.org/resource/{}", "n{}", "{}")
FIGURES = ("links", "jaccard", "hits@1", "precision", "recall", "f1")
Links = set[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to write down the same pair."""

    kind: str  # as-is, rows or names
    number: int

    def rows(self, rows: IntArray) -> IntArray:
        """In another order, if that is what varies."""
        return self._draw(len(rows)).permutation(rows) if self.kind == "rows" else rows

    def names(self, names: Names, salt: int) -> list[str]:
        """Other ones, if that is what varies."""
        if self.kind != "names":
            return list(names)
        numbers = self._draw(salt).permutation(len(names))
        return [STYLES[self.number % len(STYLES)].format(each) for each in numbers]

    def _draw(self, salt: int) -> np.random.Generator:
        return np.random.default_rng([self.number, salt])


def variants(count: int) -> Iterator[Variant]:
    """The pair as it is, then `count` of each kind."""
    yield Variant("as-is", 0)
    for kind in ("rows", "names"):
        for number in range(count):
            yield Variant(kind, number)


def read(data: Path | None, pair: str) -> Benchmark:
    """A pair by its name."""
    if made := re.fullmatch(r"demo-(\d+)-(\d+)-(\d+)", pair):
        size, common, share = map(int, made.groups())
        shape = SHAPES["demo"]
        factor = size / shape.entities.source
        shape = replace(
            shape,
            entities=shape.entities.map(lambda n: round(n * factor)),
            triples=shape.triples.map(lambda n: round(n * factor)),
            common_share=common / 100,
        )
        whole = generate(shape, seed=0)
        links = whole.task.seeds
        count = len(links) * share // 100
        return replace(whole, task=whole.task.with_seeds(links[:count]), test_links=links[count:])
    if data is None:
        raise SystemExit(f"{pair}: --data must name the folder that holds it.")
    if shared := re.fullmatch(r"(.+)-(\d\d?)", pair):
        return clusterea.load(data / shared[1], split="first", seeds_share=int(shared[2]) / 100)
    return clusterea.load(data / pair)


def aligned(pair: Benchmark, variant: Variant, preset: str, folder: Path) -> tuple[Any, Links]:
    """The figures of one variant, and its links as pairs of the original numbers."""
    names = [variant.names(side, place) for place, side in enumerate(pair.names)]
    for place, (graph, relations) in enumerate(pair.task.graphs.zip(pair.relation_names)):
        kinds = variant.names(relations, place + 2)
        rows = variant.rows(graph.triples).tolist()
        lines = (f"{names[place][h]}\t{kinds[r]}\t{names[place][t]}\n" for h, r, t in rows)
        (folder / f"triples_{place}.tsv").write_text("".join(lines))
    for file, links in (("seeds", pair.task.seeds), ("test", pair.test_links)):
        rows = variant.rows(links).tolist()
        lines = (f"{names[0][s]}\t{names[1][t]}\n" for s, t in rows)
        (folder / f"{file}.tsv").write_text("".join(lines))
    read_back = clusterea.load(
        folder / "triples_0.tsv",
        folder / "triples_1.tsv",
        seeds=folder / "seeds.tsv",
        test_links=folder / "test.tsv",
    )
    result = clusterea.align(read_back.task, preset=preset, device="cpu")
    metrics = result.evaluate(read_back.test_links).to_dict()
    found = result.alignment.links.numpy()
    ends = [
        Names(names[place]).ids_of(side.take(found[:, place]))
        for place, side in enumerate(read_back.names)
    ]
    found_links: Links = set(zip(ends[0].tolist(), ends[1].tolist(), strict=True))
    hits = metrics["test_candidates"]["source_to_target"]["hits@1"]
    return {"links": len(found_links), "hits@1": 100 * hits} | {
        name: 100 * metrics["matching"][name] for name in ("precision", "recall", "f1")
    }, found_links


def measure(pair: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A record for each variant."""
    benchmark = read(arguments.data, pair)
    first: Links = set()
    for variant in variants(arguments.variants):
        with tempfile.TemporaryDirectory() as folder:
            figures, links = aligned(benchmark, variant, arguments.preset, Path(folder))
        first = first or links
        jaccard = 100 * len(links & first) / max(len(links | first), 1)
        own = {"pair": pair, "kind": variant.kind, "number": variant.number}
        yield own | figures | {"jaccard": jaccard, "commit": commit()}


def shown(records: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each pair and kind of variant."""
    yield "\t".join(["pair", "varied", *FIGURES])
    for pair, kind in dict.fromkeys((each["pair"], each["kind"]) for each in records):
        own = [each for each in records if (each["pair"], each["kind"]) == (pair, kind)]
        cells = []
        for figure in FIGURES:
            values = [each[figure] for each in own]
            digits = 0 if figure == "links" else 1
            numbers = (min(values), mean(values), max(values))
            distinct = numbers if len(values) > 1 else numbers[:1]
            cells.append(" ".join(f"{number:.{digits}f}" for number in distinct))
        yield "\t".join([pair, kind, *cells])


def coefficients(pair: Benchmark) -> dict[str, float]:
    """Of each feature of a link in the log odds that it is right, fitted to all links."""
    settings = {"matching.held_out": 0}  # so that every link is given
    result = clusterea.align(pair.task, preset="fast", settings=settings, device="cpu")
    told, is_right = verdicts(result.alignment.links.numpy(), pair.test_links)
    features = link_features(result.similarity, result.alignment.links, pair.task)
    features *= torch.tensor([float(value != 0) for value in FEATURES.values()])
    fitted = calibrate(features[torch.from_numpy(told)], torch.from_numpy(is_right[told]))
    of_feature = (fitted.coefficients / fitted.scales).tolist()
    return dict(zip(FEATURES, of_feature, strict=True))


def main() -> None:
    """Measures, prints as it goes, and then the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--pairs", nargs="*", default=PAIRS)
    parser.add_argument("--variants", type=int, default=5)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--coefficients", action="store_true")
    arguments = parser.parse_args()
    if arguments.coefficients:
        fits = [coefficients(read(None, pair)) for pair in FITTED]
        for name in FEATURES:
            values = [fit[name] for fit in fits]
            print(f"{name}: {mean(values):.2f} ({', '.join(f'{each:.2f}' for each in values)})")
        return
    records = []
    for pair in arguments.pairs:
        for record in measure(pair, arguments):
            print(json.dumps(record), flush=True)
            records.append(record)
            if arguments.out:
                write_json(arguments.out, records)
    print("\n".join(shown(records)))


if __name__ == "__main__":
    main()
