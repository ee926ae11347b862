"""What the benchmarks make of their records: the page on few seeds, and the bars."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("alignment_accuracy", "common", "few_seeds", "plots")


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[dict[str, ModuleType]]:
    """Modules of the benchmarks' folder, which are on no path otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield {name: importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            del sys.modules[name]


@pytest.fixture
def few_seeds(benchmarks: dict[str, ModuleType]) -> ModuleType:
    return benchmarks["few_seeds"]


def record(pair: str, seed: int = 0, row: str = "default", **others: Any) -> dict[str, Any]:
    own = {"row": row, "pair": pair, "seed": seed, "settings": [], "on": "cuda", "num_seeds": 150}
    metrics = {"hits@1": 0.8, "all_hits@1": 0.79, "recall": 0.6}
    own |= {"judged": 200, "right": 180, "ece": 0.03, "auroc": 0.9, "seconds": 9.0}
    return own | {"metrics": metrics} | others


def cells(table: list[str]) -> list[list[str]]:
    """The rows below the head of a table."""
    return [line.strip("| ").split(" | ") for line in table[2:]]


def test_the_table_of_shares_has_means_over_the_splits(few_seeds: ModuleType) -> None:
    records = [
        record("dbp15k-fr-en-1", 0),
        record("dbp15k-fr-en-1", 1, right=190, ece=0.05, metrics={"hits@1": 0.9}),
        record("dbp15k-fr-en-1", row="fast", metrics={"hits@1": 0.5}),
    ]
    first, *others = cells(few_seeds.shares_table(records, {"dbp15k-fr-en": 86.3}))
    assert first == ["DBP15K FR-EN", "1 % (150)", "85.0", "92.5", "0.040", "50.0", "73.7"]
    assert len(others) == 4 * 4 + 2 * 2 - 1
    thirty = ["DBP15K FR-EN", "30 %", "–", "–", "–", "–", "86.3"]
    assert others[2] == thirty


def test_the_table_of_counts_has_those_of_the_plot_and_those_that_were_run(
    few_seeds: ModuleType,
) -> None:
    empty = record("ids15k-en-fr-50s", row="fast", judged=0, right=0)
    names = ("dbp15k-zh-en-200s", "dbp15k-zh-en-1", "debian-9s")
    records = [empty, *(record(name, row="fast") for name in names), record("dbp15k-zh-en-20s")]
    table = few_seeds.counts_table(records)
    assert table[0] == ("| seeds | DBP15K FR-EN | DBP15K ZH-EN | IDS15K EN-DE | IDS15K EN-FR |")
    assert cells(table) == [
        ["20", "–", "–", "–", "–"],
        ["50", "–", "–", "–", "80.0 / – / 60.0"],
        ["200", "–", "80.0 / 90.0 / 60.0", "–", "–"],
        ["5,000", "–", "–", "–", "–"],
    ]


def test_targets_that_are_missed_are_listed(few_seeds: ModuleType) -> None:
    records = [record("dbp15k-zh-en-1", auroc=0.79), record("dbp15k-fr-en-1")]
    said, _, *table = few_seeds.targets(records)
    assert said == "Of 8 targets that were measured, 6 are met. Missed:"
    assert cells(table) == [
        ["default, dbp15k-fr-en-1: H@1", "80", "at least 85"],
        ["default, dbp15k-zh-en-1: AUROC", "0.79", "at least 0.8"],
    ]
    assert few_seeds.targets(records[:0]) == ["Of 0 targets that were measured, 0 are met."]


def test_points_are_in_the_order_of_seeds_with_their_range(few_seeds: ModuleType) -> None:
    records = [
        record("dbp15k-fr-en-5", num_seeds=750),
        record("dbp15k-fr-en-20s", num_seeds=20, metrics={"hits@1": 0.25}),
        record("dbp15k-fr-en-20s", 1, num_seeds=20, metrics={"hits@1": 0.75}),
        record("dbp15k-fr-en-5", row="fast", num_seeds=750),
        record("dbp15k-fr-en", num_seeds=4500),  # its own split, not a random one
        record("dbp15k-zh-en-5", num_seeds=750),
    ]
    found = few_seeds.points(records, "default", "dbp15k-fr-en", few_seeds.hits)
    assert found == [(20, 50.0, 25.0, 75.0), (750, 80.0, 80.0, 80.0)]


def test_the_plot_shows_what_was_run(few_seeds: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    few_seeds.plot(tmp_path / "none.svg", [])
    assert not (tmp_path / "none.svg").exists()
    few_seeds.plot(tmp_path / "some.svg", [record("dbp15k-fr-en-1"), record("dbp15k-fr-en-20s")])
    text = (tmp_path / "some.svg").read_text()
    for label in ("<!-- FR-EN -->", "<!-- NeuSymEA, FR-EN -->", "<!-- precision (%) -->"):
        assert label in text
    assert "EN-DE" not in text
    assert "<!-- fast -->" not in text


def test_a_name_tells_the_share_or_the_number_of_seeds(
    benchmarks: dict[str, ModuleType], tmp_path: Path
) -> None:
    folder_of = benchmarks["common"].folder_of
    (tmp_path / "debian-100").mkdir()
    assert folder_of(tmp_path, "dbp15k-fr-en") == (tmp_path / "dbp15k-fr-en", None)
    assert folder_of(tmp_path, "dbp15k-fr-en-1") == (tmp_path / "dbp15k-fr-en", 0.01)
    assert folder_of(tmp_path, "dbp15k-fr-en-20s") == (tmp_path / "dbp15k-fr-en", 20)
    assert folder_of(tmp_path, "debian-100") == (tmp_path / "debian-100", None)


def test_bars_with_few_seeds(benchmarks: dict[str, ModuleType]) -> None:
    records = [
        record("dbp15k-zh-en-1", ece=0.06),
        record("dbp15k-zh-en-1", 1, metrics={"hits@1": 0.79, "all_hits@1": 0.7}),
        record("dbp15k-zh-en-1", row="fast", on="cpu", seconds=70.0),
        record("dbp15k-zh-en-20s", num_seeds=20, ece=0.3),  # too few for a bar
        record("dbp15k-zh-en-200s", num_seeds=200, auroc=0.7),
    ]
    found = {bar[0]: bar[1:] for bar in benchmarks["alignment_accuracy"].bars(records)}
    measured = {what: bar for what, bar in found.items() if bar[0] is not None}
    assert measured == {
        "default, dbp15k-zh-en-1: H@1": (pytest.approx(79.5), 78.0, True),
        "default, dbp15k-zh-en-1: % right": (90.0, 85.0, True),
        "default, dbp15k-zh-en-1: ECE": (pytest.approx(0.045), 0.05, False),
        "default, dbp15k-zh-en-1: AUROC": (0.9, 0.80, True),
        "default, dbp15k-zh-en-200s: ECE": (0.03, 0.05, False),
        "default, dbp15k-zh-en-200s: AUROC": (0.7, 0.80, True),
        "fast (CPU), dbp15k-zh-en-1: H@1": (80.0, 60.0, True),
        "fast (CPU), dbp15k-zh-en-1: seconds": (70.0, 60.0, False),
    }
    assert {"default, ids15k-en-fr-30: H@1", "fast, dbp15k-zh-en-1: H@1"} <= set(found)
