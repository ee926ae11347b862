"""What the benchmarks make of their records, and small runs of those on names."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from clusterea.config import preset
from clusterea.data.synthetic import SHAPES, generate, write_openea
from clusterea.data.synthetic.words import draw_words
from clusterea.pipeline import Silent, run_in_folder
from clusterea.types import Answer, Names, Pair, Question
from clusterea.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
MODULES = (
    *(
        "alignment_accuracy",
        "cluster",
        "cluster_plan",
        "common",
        "few_seeds",
        "names",
        "names_page",
        "neighbors",
        "plan",
        "plots",
        "review",
    ),
    "speed",
)


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


def test_bars_with_names(benchmarks: dict[str, ModuleType]) -> None:
    records = [
        record("dbp15k-zh-en", row="names", metrics={"hits@1": 0.9}),
        record("dbp15k-zh-en", 1, row="names", metrics={"hits@1": 0.92}, ece=0.05),
        record("dbp15k-zh-en", row="structure"),
        record("dbp15k-fr-en", row="fast-no-seeds", on="cpu", seconds=70.0),
        record("labels-100k", row="names", on="cpu"),
        record("labels-100k", row="names-alone", on="cpu", metrics={"hits@1": 0.85}, ece=0.06),
    ]
    found = {bar[0]: bar[1:] for bar in benchmarks["names"].bars(records)}
    measured = {what: bar for what, bar in found.items() if bar[0] is not None}
    assert measured == {
        "names, dbp15k-zh-en: H@1": (pytest.approx(91.0), 90.5, True),
        "names, dbp15k-zh-en: H@1 above structure": (pytest.approx(11.0), 0.0, True),
        "names, dbp15k-zh-en: ECE": (pytest.approx(0.04), 0.05, False),
        "structure, dbp15k-zh-en: ECE": (0.03, 0.05, False),
        "fast-no-seeds (CPU), dbp15k-fr-en: H@1": (80.0, 98.5, True),
        "fast-no-seeds (CPU), dbp15k-fr-en: seconds": (70.0, 60.0, False),
        "fast-no-seeds (CPU), dbp15k-fr-en: ECE": (0.03, 0.05, False),
        "names (CPU), labels-100k: ECE": (0.03, 0.05, False),
        "names (CPU), labels-100k: H@1 above names-alone": (pytest.approx(-5.0), 0.0, True),
        "names-alone (CPU), labels-100k: ECE": (0.06, 0.05, False),
    }
    assert {"no-seeds, dbp15k-fr-en: H@1", "names, labels-100k: H@1 above structure"} <= set(found)


def test_tables_with_names_prefer_a_gpu_and_show_what_was_not_run(
    benchmarks: dict[str, ModuleType],
) -> None:
    page = benchmarks["names_page"]
    records = [
        record("dbp15k-fr-en", row="no-seeds", on="cpu", metrics={"hits@1": 0.1}),
        record("dbp15k-fr-en", row="no-seeds"),
        record("dbp15k-fr-en", 1, row="no-seeds", metrics={"hits@1": 0.9}),
        record("dbp15k-zh-en", row="no-seeds", on="cpu"),
        record("dbp15k-zh-en", row="no-seeds", on="cpu", settings=["names.dimensions=8"], right=0),
    ]
    found = {line[0]: line[1:] for line in cells(page.rows_table(records))}
    assert list(found) == list(page.WORDS.values())
    wanted = ["85.0", "90.0", "0.030", "80.0", "90.0", "0.030"]
    assert found[page.WORDS["no-seeds"]] == wanted
    assert found[page.WORDS["names"]] == ["–"] * 6
    ours = page.published_table(records)[2]
    assert ours == "| `default` | as they are | 80.0 |  | 85.0 |"
    assert {"–"} == {cell for line in cells(page.labels_table(records)) for cell in line[1:]}
    assert page.targets([]) == ["Of 0 targets that were measured, 0 are met."]


SMALL = replace(
    SHAPES["demo"], entities=Pair(600, 550), triples=Pair(2500, 2200), relations=Pair(20, 15)
)


@pytest.mark.slow
def test_rows_with_names_are_run_and_recorded(
    benchmarks: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = benchmarks["names"]
    monkeypatch.setitem(names.SHAPES, "ids100k-en-fr", SMALL)
    out = tmp_path / "names.jsonl"
    arguments = ["names.py", "--pairs", "labels-100k", "--seeds", "3", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--missing", "--out", str(out)])
    for _ in range(2):  # the second time, nothing is missing
        with pytest.raises(SystemExit) as ended:
            names.main()
        assert ended.value.code == 0
    records = {each["row"]: each for each in benchmarks["common"].read_records(out)}
    assert list(records) == ["names", "structure", "names-alone"]
    own = records["names"]
    assert own["metrics"]["hits@1"] > records["structure"]["metrics"]["hits@1"]
    assert {"hits@10", "reverse_hits@1", "all_hits@1", "precision", "f1"} <= set(own["metrics"])
    assert own["num_seeds"] == records["structure"]["num_seeds"] > 0
    assert own["presumed"] == [0, 0, 0]
    curve = own["gains"][0]["names"]
    assert curve["gains"] == sorted(curve["gains"])
    assert curve["gains"][-1] > 1
    assert records["structure"]["gains"] == []


@pytest.mark.slow
def test_names_that_are_not_readable_change_nothing(
    benchmarks: dict[str, ModuleType], tmp_path: Path
) -> None:
    write_openea(generate(SMALL, 0), tmp_path / "pair")
    assert benchmarks["names"].has_same_bytes(tmp_path / "pair", "cpu")


def test_without_seeds_equal_names_are_presumed_and_all_links_judge(
    benchmarks: dict[str, ModuleType], tmp_path: Path
) -> None:
    whole = generate(SMALL, 0)
    words = draw_words(sum(SMALL.entities), np.random.default_rng(0)).to_pylist()
    sides = [words[: SMALL.entities.source], words[SMALL.entities.source :]]
    for source, target in whole.task.seeds[:300]:
        sides[1][target] = sides[0][source]
    named = [Names(f"http://example.org/{word}" for word in side) for side in sides]
    write_openea(replace(whole, names=Pair(*named)), tmp_path / "pair")
    found = benchmarks["names"].read(tmp_path, "pair", 0, False)
    assert (found.task.num_seeds, len(found.task.presumed)) == (0, 300)
    assert len(found.test_links) == len(whole.task.seeds)
    assert benchmarks["names"].read(tmp_path, "pair", 0, True).task.num_seeds > 0


@pytest.mark.slow
def test_the_speed_of_names_is_measured(benchmarks: dict[str, ModuleType]) -> None:
    (found,) = benchmarks["speed"].encode(Namespace(scale=0.0005))
    assert (found["part"], found["size"], found["dimensions"]) == ("names", "500x500", 512)
    assert found["vector_bytes"] == 1000 * 512 * 4
    assert found["host_bytes"] > found["beyond_bytes"] > 0


def test_busy_runs_alternate_with_idle_ones(
    benchmarks: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    speed, beside, runs = benchmarks["speed"], [], iter([10.0, 21.0, 9.0, 18.0])

    @contextmanager
    def busy_processes(count: int) -> Iterator[None]:
        beside.append(count)
        yield

    def ran(asked: list[str]) -> dict[str, float]:
        assert (Path(asked[1]) / "ent_links").is_file()
        return {"seconds": next(runs), "cpu_seconds": 8.0, "host_bytes": 1e9}

    monkeypatch.setattr(speed, "busy_processes", busy_processes)
    monkeypatch.setattr(speed, "ran", ran)
    asked = Namespace(data=None, pair="demo-generated", preset="fast", beside=2, times=2)
    (found,) = speed.busy(asked)
    assert beside == [0, 2, 0, 2]
    assert (found["size"], found["preset"], found["beside"]) == ("demo-generated", "fast", 2)
    assert (found["alone_seconds"], found["seconds"], found["ratio"]) == (9.0, 18.0, 2.0)


def test_the_costs_of_a_command(benchmarks: dict[str, ModuleType]) -> None:
    speed = benchmarks["speed"]
    with speed.busy_processes(1):
        found = speed.ran(["--version"])
    assert found["seconds"] > 0
    assert found["cpu_seconds"] > 0
    with pytest.raises(SystemExit, match="exit code 2"):
        speed.ran(["unknown"])


class TestReview:
    """The simulated person, and the bars."""

    def test_what_the_person_says(self, benchmarks: dict[str, ModuleType]) -> None:
        person = benchmarks["review"].Person.of(np.array([[0, 10], [1, 11]]))

        def said(source: int, target: int, *candidates: int, is_random: bool = False) -> list[Any]:
            asked = Question(source, target, 0.5, is_link=True, is_random=is_random)
            answers = person.answers(asked, candidates)
            return [(each.source, each.target, each.verdict, each.is_random) for each in answers]

        assert said(0, 10) == [(0, 10, "same", False)]
        assert said(0, 12, 10, 12) == [(0, 12, "different", False), (0, 10, "same", False)]
        assert said(0, 12, is_random=True) == [(0, 12, "different", True)]
        assert said(2, 11) == [(2, 11, "different", False)]
        assert said(2, 12) == [(2, 12, "unsure", False)]

    def test_links_that_no_answer_was_about(self, benchmarks: dict[str, ModuleType]) -> None:
        links = np.array([[0, 10], [1, 11], [2, 12]])
        answers = [Answer(0, 14, "different"), Answer(None, 12, "none")]
        assert benchmarks["review"].undecided(links, answers).tolist() == [[1, 11]]

    def test_calibration(self, benchmarks: dict[str, ModuleType]) -> None:
        """Of the links that the person can tell: two in one bin, and a sure one that is wrong."""
        review = benchmarks["review"]
        links = torch.tensor([[0, 10], [1, 12], [2, 11], [3, 13]])
        found = SimpleNamespace(links=links, confidence=torch.tensor([0.5, 0.5, 1.0, 0.9]))
        person = review.Person.of(np.array([[0, 10], [1, 11]]))
        told = review.calibration(SimpleNamespace(alignment=found), person)
        assert (told["links"], told["precision"]) == (4, pytest.approx(1 / 3))
        assert told["confidence"] == pytest.approx(2 / 3)
        assert told["error"] == pytest.approx(1 / 3)

    def test_bars(self, benchmarks: dict[str, ModuleType]) -> None:
        own = {"pair": "p", "preset": "fast", "settings": []}
        records = [
            {**own, "row": "answers", "answered": 70.0, "seeds": 71.0},
            {**own, "row": "answers", "answered": 72.0, "seeds": 70.0},
            {**own, "row": "restart", "warm": 60, "full": 61, "warm_seconds": 1, "full_seconds": 8},
            {**own, "row": "precision", "covered": True},
            {**own, "row": "precision", "covered": False},
        ]
        found = {what: value for what, value, *_ in benchmarks["review"].bars(records)}
        assert [*found.values()] == [0.5, 0.125, 1, 0.5]


class TestPlan:
    @pytest.fixture
    def plan(self, benchmarks: dict[str, ModuleType]) -> ModuleType:
        return benchmarks["plan"]

    def test_constants_are_found_again(self, plan: ModuleType) -> None:
        from clusterea.config import preset
        from clusterea.pipeline.planned import Planned
        from clusterea.pipeline.working_memory import Sizes

        known = {"start": {"once": 2.0, "triples": 1e-3}, "matching": {"once": 0.5, "cells": 1e-5}}
        pairs = []
        for count in (100, 200, 400):
            shape = replace(
                SHAPES["demo"],
                entities=Pair(count, count),
                triples=Pair(6 * count, 5 * count),
                relations=Pair(12, 10),
            )
            whole = generate(shape, 0).task
            task = whole.with_seeds(whole.seeds[: count // 4])
            sizes = Sizes(task, preset("fast", count), "cpu")
            for kind in known:
                stage = Planned(kind, kind)
                seconds = plan.stage_seconds(stage, sizes, known)
                pairs.append((stage, {"cpu": seconds}, sizes))
        found = plan.fitted(pairs, "cpu")
        assert set(found) == set(known)
        for kind, values in known.items():
            for name, value in values.items():
                assert found[kind][name] == pytest.approx(value, rel=0.02)

    def test_the_file_has_what_was_fitted(self, plan: ModuleType) -> None:
        import tomllib

        cuda = {"fusion": {"search": 2e-14}}
        cpu = {"threads": 2, "clock": "wall", "start": {"once": 1.5, "triples": 0.0}}
        assert tomllib.loads(plan.written({"cpu": cpu, "cuda": cuda})) == {
            "cpu": {"threads": 2, "clock": "wall", "start": {"once": 1.5}},
            "cuda": {"fusion": {"search": 2e-14}},
        }

    def test_a_run_that_was_measured_elsewhere(self, plan: ModuleType, tmp_path: Path) -> None:
        """Its manifest tells as much as the run itself would."""
        whole = generate(SHAPES["demo"], 0)
        task = whole.task.with_seeds(whole.task.seeds[:300])
        benchmark = replace(whole, task=task)
        config = preset("fast", 1000, settings=["propagation.dimension=64"])
        run_in_folder(Workspace(tmp_path), benchmark, config, torch.device("cpu"), Silent())
        record = plan.added(tmp_path / "run.json", 100.0)
        assert sum(stage["wall"] for stage in record["stages"]) == pytest.approx(100)
        like = plan.task_of(record)
        assert like.num_entities == task.num_entities
        assert like.num_undecided == task.num_undecided
        assert plan.configured(like, record) == config
        wanted, found = (
            [stage.label for stage in plan.planned_stages(each, config)] for each in (task, like)
        )
        assert wanted == found
        sizes = plan.Sizes(like, config, "cpu")
        assert [stage.label for stage, _ in plan.paired(record, sizes)] == ["start", *wanted]

    def test_on_a_gpu_the_plan_is_not_below_what_was_measured(self, plan: ModuleType) -> None:
        """One H200; records of `plan.py --add`. A CPU's are checked by `plan.py`."""
        records = [record for record in plan.read_records(plan.RECORDS) if record["on"] == "cuda"]
        assert records
        for record in records:
            task = plan.task_of(record)
            config, device = plan.configured(task, record), torch.device("cuda")
            found = plan.expected_memory(task, config, device)
            assert record["gpu_bytes"] <= found.gpu <= 1.3 * record["gpu_bytes"], record["preset"]
            assert record["host_bytes"] <= found.host, record["preset"]

    def test_nine_runs_are_of_three_sizes_and_three_presets(self, plan: ModuleType) -> None:
        nine = {(run["entities"], run["preset"]) for run in plan.RUNS if "names" not in run}
        assert len(nine) == 9
        assert len({size for size, _ in nine}) == len({name for _, name in nine}) == 3


class TestCluster:
    """What is made of runs on clusters; `test_cluster_run.py` has some."""

    @staticmethod
    def ran(cluster: ModuleType, *identity: Any, **figures: Any) -> dict[str, Any]:
        own: dict[str, Any] = {"seconds": 10.0, "cpu_seconds": 20.0, "all_bytes": 2**30}
        own |= {"driver_bytes": 10**9, "worker_bytes": 5 * 10**8, "idle_bytes": 10**8}
        own |= {"alignment": "a", "similarity": "b", "reused": [], "entities": [90_000, 60_000]}
        own |= {"triples": [300_000, 200_000], "seeds": 10_000}
        own |= {"stages": {"matching": 1.0, "writing": 2.0}, "cpu_of_units": {"spread": 9.0}}
        return {**asdict(cluster.Run(*identity)), **own, **figures}

    def test_bars(self, benchmarks: dict[str, ModuleType]) -> None:
        cluster = benchmarks["cluster"]
        records = [
            self.ran(cluster, "150000"),
            self.ran(cluster, "150000", "ray", 2, worker_bytes=10**9),
            self.ran(cluster, "150000", "ray", 4, cpu_seconds=31.0, similarity="c"),
            self.ran(cluster, "150000", "ray", 8, cpu_seconds=32.0),
            self.ran(cluster, "150000", "ray", 8, 0, None, "worker in search", seconds=14.0),
            self.ran(cluster, "150000", "ray", 8, 0, None, "driver in search"),
            self.ran(cluster, "150000", "ray", 8, 1),
            self.ran(cluster, "150000", "ray", 8, 1, 4 * 10**8, seconds=26.0),
            self.ran(cluster, "3000000", "ray", all_bytes=23 * 2**30),
        ]
        found = {what.split(": ", 1)[1]: value for what, value, _ in cluster.bars(records)}
        assert found == {
            "local: of 7 other runs, those with other bytes": 1,
            "ray, 8 shards, driver in search killed: stages that run twice": 1,
            "ray, 8 shards, worker in search killed: times the seconds": 1.4,
            "ray, 8 shards, 1 node, a store of 0.4 GB: times the seconds": 2.6,
            "ray, 4 shards: times the CPU seconds": 1.55,
            "ray, 8 shards: times the CPU seconds": 1.6,
            "ray, 8 shards: times the memory of a worker": pytest.approx(4 / 9),
            "ray: GB of the driver": 1.0,
            "ray: GiB in all": 23.0,
        }
        told = [cluster.said(bar).split(":")[0] for bar in cluster.bars(records)]
        assert told.count("- missed") == 5
        assert [line[-1] for line in cells(cluster.cost_table(records))].count("other") == 1

    def test_a_process_is_watched(
        self, benchmarks: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster = benchmarks["cluster"]
        monkeypatch.setenv(cluster.MARK, "test")
        watch = cluster.Watch()
        wait = "import time; kept = bytearray(10**8); time.sleep(1)"
        code, seconds = cluster.ran([sys.executable, "-c", wait], watch)
        assert code == 0
        assert seconds > 1
        (driver,) = watch.of("driver")
        assert driver.cpu > 0
        assert watch.most >= driver.peak > 10**8

    def test_a_run_is_predicted_by_itself(self, benchmarks: dict[str, ModuleType]) -> None:
        cluster, plan = benchmarks["cluster"], benchmarks["cluster_plan"]
        own = self.ran(cluster, "150000", "ray", 8, 0, None, None, cluster.LISTS)
        found = {line[0]: line[1] for line in cells(plan.checked([own]))}
        assert found["labels"] == "9.0 / 9.0"
        assert found["matching"] == "1.0 / 1.0"
        assert found["all"] == "12 / 12"

    def test_more_machines_take_less_time(self, benchmarks: dict[str, ModuleType]) -> None:
        plan = benchmarks["cluster_plan"]
        few, many = (plan.Machines(count, 16, 64e9, 1.25e9) for count in (2, 16))
        known = {stage.name: 1e-9 for stage in plan.stages(plan.WIKIDATA, few)}
        totals = [
            sum(each.seconds(machines, known) for each in plan.stages(plan.WIKIDATA, machines))
            for machines in (few, many)
        ]
        assert totals[0] > 2 * totals[1]

    def test_the_page_is_current(self, benchmarks: dict[str, ModuleType]) -> None:
        plan = benchmarks["cluster_plan"]
        records = benchmarks["common"].read_records(plan.RESULTS / "cluster.jsonl")
        page = plan.PAGE.read_text()
        assert plan.written(page, records) == page, "run `benchmarks/cluster_plan.py --write`"
