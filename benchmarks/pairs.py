"""The pairs that benchmarks run on: folders with real ones, and generated ones."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import clusterea
from clusterea.data.synthetic import SHAPES, PairShape, generate
from clusterea.types import Benchmark

SEEDS_SHARE = 0.3  # where the data does not say
GENERATED = "-generated"  # behind a pair's name: another with its counts


def generated(shape: PairShape) -> Benchmark:
    """A generated pair with 30 % of its links as seeds and the others to judge by."""
    whole = generate(shape, seed=0)
    links = whole.task.seeds
    count = int(SEEDS_SHARE * len(links))
    return replace(whole, task=whole.task.with_seeds(links[:count]), test_links=links[count:])


def scaled(entities: int) -> PairShape:
    """DBP1M's EN-FR at another size: so many entities on both sides together."""
    like = SHAPES["dbp1m-en-fr"]
    ratio = entities / sum(like.entities)
    return replace(
        like,
        entities=like.entities.map(lambda n: round(n * ratio)),
        triples=like.triples.map(lambda n: round(n * ratio)),
    )


def place_of(data: Path, pair: str) -> tuple[Path, float]:
    """The folder of a pair, and the share of its links that are seeds."""
    named = re.fullmatch(r"(.+)-(\d\d?)", pair)
    if named is None or (data / pair).is_dir():
        return data / pair, SEEDS_SHARE
    return data / named[1], int(named[2]) / 100


def read(data: Path | None, pair: str) -> Benchmark:
    """A pair with its usual split: its own on DBP15K, else a share of its links as seeds."""
    if pair.endswith(GENERATED):
        return generated(SHAPES[pair.removesuffix(GENERATED)])
    if data is None:
        raise SystemExit(f"{pair}: --data must name the folder that holds it.")
    folder, share = place_of(data, pair)
    if pair.startswith("dbp15k"):
        return clusterea.load(folder)
    how = "first" if pair.startswith(("ids", "dbp1m")) else "random"
    return clusterea.load(folder, split=how, seeds_share=share)
