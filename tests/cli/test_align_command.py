"""`clusterea align`: every file it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tiny_runs import (
    ONLY_SCORED,
    PAPER,
    PAPER_SETTINGS,
    ROUNDS,
    ROUNDS_SETTINGS,
    SHARE,
    Command,
    aligned,
    entities_of,
    events,
    links_of,
    rows,
    write_pair,
    write_rdf,
)

from clusterea.config import Config, preset
from clusterea.types.alignment import ENOUGH_SEEDS, NOT_CALIBRATED
from conftest import Ran

PLAN = import_module("clusterea.cli.plan")
OUTPUTS = {
    "alignment.tsv",
    "unmatched_source.tsv",
    "unmatched_target.tsv",
    "candidates.parquet",
    "metrics.json",
    "run.json",
    "report.html",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def finished(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    run = tmp_path_factory.mktemp("runs") / "run"
    return run, aligned(pair, run)


@pytest.fixture(scope="module")
def run(finished: tuple[Path, Ran]) -> Path:
    return finished[0]


@pytest.fixture(scope="module")
def in_rounds(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """As the default preset does it."""
    run = tmp_path_factory.mktemp("runs") / "rounds"
    return run, aligned(pair, run, how=ROUNDS)


ROUNDS_STAGES = [
    *("propagation", "fusion", "self-training, round 1"),
    *("propagation, round 1", "propagation, round 1", "fusion, round 1"),
    *("self-training, round 2", "training, round 2", "training, round 2"),
    *("propagation, round 2", "propagation, round 2", "fusion, round 2"),
]
BOTH_FITS = ["fusion of both fits", "matching"]
SHARES = {"finished": 0.3, "in_rounds": 0.5}  # of the links that are seeds
BOTH = pytest.mark.parametrize("of", ["finished", "in_rounds"])


def first_links(pair: Path, share: float) -> set[tuple[str, str]]:
    links = rows(pair / "ent_links")
    return {(row[0], row[1]) for row in links[: int(share * len(links))]}


@BOTH
class TestFiles:
    @pytest.fixture
    def run(self, of: str, request: pytest.FixtureRequest) -> Path:
        run, _ = request.getfixturevalue(of)
        return Path(run)

    @pytest.fixture
    def seeds(self, of: str, pair: Path) -> set[tuple[str, str]]:
        return first_links(pair, SHARES[of])

    def test_all_are_there(self, run: Path) -> None:
        assert {path.name for path in run.iterdir()} >= OUTPUTS

    def test_alignment(self, of: str, run: Path, pair: Path, seeds: set[tuple[str, str]]) -> None:
        header, *links = rows(run / "alignment.tsv")
        assert header == ["source", "target", "score" if of == "finished" else "confidence"]
        assert links
        confidence = [float(link[2]) for link in links]
        assert confidence == sorted(confidence, reverse=True)
        assert all(0 <= each <= 1 for each in confidence)
        sources, targets = [link[0] for link in links], [link[1] for link in links]
        assert len(set(sources)) == len(set(targets)) == len(links)  # one-to-one
        assert set(sources) <= entities_of(pair / "rel_triples_1") - {a for a, _ in seeds}
        assert set(targets) <= entities_of(pair / "rel_triples_2") - {b for _, b in seeds}

    @pytest.mark.parametrize(("column", "side"), [(0, "source"), (1, "target")])
    def test_unmatched(
        self, column: int, side: str, run: Path, pair: Path, seeds: set[tuple[str, str]]
    ) -> None:
        header, *unmatched = rows(run / f"unmatched_{side}.tsv")
        assert header == ["entity"]
        names = [row[0] for row in unmatched]
        assert len(names) == len(set(names))
        matched = {row[column] for row in rows(run / "alignment.tsv")[1:]}
        decided = {link[column] for link in seeds}
        assert not set(names) & (matched | decided)
        everything = entities_of(pair / f"rel_triples_{column + 1}")
        assert set(names) | matched | decided == everything

    def test_candidates(self, run: Path, pair: Path, seeds: set[tuple[str, str]]) -> None:
        table = pq.read_table(run / "candidates.parquet")
        assert table.column_names == ["source", "target", "score", "rank"]
        by_source: dict[str, list[tuple[int, float, str]]] = {}
        for row in table.to_pylist():
            by_source.setdefault(row["source"], []).append(
                (row["rank"], row["score"], row["target"])
            )
        open_sources = entities_of(pair / "rel_triples_1") - {a for a, _ in seeds}
        assert set(by_source) == open_sources
        seed_targets = {b for _, b in seeds}
        for candidates in by_source.values():
            ranks, scores, targets = zip(*sorted(candidates), strict=True)
            assert ranks == tuple(range(1, len(ranks) + 1))
            assert len(ranks) <= 10
            assert list(scores) == sorted(scores, reverse=True)
            assert len(set(targets)) == len(targets)
            assert not set(targets) & seed_targets

    def test_metrics(self, of: str, run: Path, pair: Path) -> None:
        metrics = json.loads((run / "metrics.json").read_text())
        ranks = {"hits@1", "hits@10", "mrr"}
        assert set(metrics) == {
            *("test_candidates", "all_candidates", "matching"),
            *("by_degree", "missing", "test_links"),
        }
        for candidates in ("test_candidates", "all_candidates"):
            assert set(metrics[candidates]) == {"source_to_target", "target_to_source"}
            assert all(set(way) == ranks for way in metrics[candidates].values())
        assert set(metrics["matching"]) == {"precision", "recall", "f1"}
        assert metrics["by_degree"]
        for bucket in metrics["by_degree"]:
            assert set(bucket) == {"least", "most", "test_links"} | ranks
        links = len(rows(pair / "ent_links"))
        assert metrics["test_links"] == links - int(SHARES[of] * links)
        assert sum(b["test_links"] for b in metrics["by_degree"]) == metrics["test_links"]
        assert 0 <= metrics["missing"] <= metrics["test_links"]
        assert all(0 <= rate <= 1 for rate in rates(metrics))

    def test_its_precision_and_recall_are_those_of_its_files(
        self, run: Path, pair: Path, seeds: set[tuple[str, str]]
    ) -> None:
        truth = links_of(pair / "ent_links") - seeds
        given = {(row[0], row[1]) for row in rows(run / "alignment.tsv")[1:]}
        matching = json.loads((run / "metrics.json").read_text())["matching"]
        assert matching["precision"] == pytest.approx(len(given & truth) / len(given))
        assert matching["recall"] == pytest.approx(len(given & truth) / len(truth))

    def test_report_needs_no_network(self, run: Path) -> None:
        page = (run / "report.html").read_text()
        assert page.lstrip().lower().startswith("<!doctype html>")
        assert not re.search(r"""<(script|img|iframe)[^>]*\bsrc\s*=\s*["']?(https?:)?//""", page)
        assert not re.search(r"""<link[^>]*\bhref\s*=\s*["']?(https?:)?//""", page)
        assert "@import" not in page

    def test_no_half_written_file_stays(self, run: Path) -> None:
        assert not list(run.rglob("*.part"))
        assert not (run / "checkpoints").exists()


class TestDescribed:
    """run.json."""

    @pytest.mark.parametrize(
        ("of", "config", "stages"),
        [
            (
                "finished",
                preset("paper", 300, samplers=["cmcs"], settings=PAPER_SETTINGS),
                ["training", "sampling: cmcs", "fusion", "matching"],
            ),
            (
                "in_rounds",
                preset("default", 300, settings=ROUNDS_SETTINGS),
                [*ROUNDS_STAGES, *(f"{stage}, fit 2" for stage in ROUNDS_STAGES), *BOTH_FITS],
            ),
        ],
        ids=["finished", "in_rounds"],
    )
    def test_run(
        self, of: str, config: Config, stages: list[str], request: pytest.FixtureRequest
    ) -> None:
        run, _ = request.getfixturevalue(of)
        found = json.loads((run / "run.json").read_text())
        assert found["config"] == json.loads(json.dumps(config.to_dict()))  # in full
        assert {"clusterea", "python", "torch", "numpy"} <= set(found["versions"])
        assert all(found["versions"].values())
        assert re.fullmatch("[0-9a-f]{64}", found["data"]["fingerprint"])
        assert found["data"]["entities"] == [300, 250]
        assert found["data"]["seeds"] + found["data"]["test_links"] == 212
        names = [*stages, "evaluation", "writing"]
        assert [stage["stage"] for stage in found["stages"]] == names
        for stage in found["stages"]:
            assert stage["seconds"] >= 0
            assert stage["peak_host_bytes"] > 1 << 20
            assert stage["peak_gpu_bytes"] is None  # there is none
        for key in found["artifacts"].values():
            assert (run / key / "recipe.json").is_file()

    def test_what_each_round_learned_from(
        self, run: Path, in_rounds: tuple[Path, Ran], pair: Path, tmp_path: Path
    ) -> None:
        assert json.loads((run / "run.json").read_text())["self_training"] == []
        rounds = json.loads((in_rounds[0] / "run.json").read_text())["self_training"]
        found = [(each["fit"], each["round"]) for each in rounds]
        assert found == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert rounds[0]["new"] == rounds[0]["pseudo_seeds"]
        for each in rounds:
            assert set(each) == {"fit", "round", "pseudo_seeds", "new", "judged", "right"}
            assert 0 < each["right"] <= each["judged"] <= each["pseudo_seeds"]
            assert each["new"] <= each["pseudo_seeds"]
        everything = ["--seeds-share", "1", "--set", "self_training.rounds=1"]
        everything += ["--set", "matching.fits=1"]
        aligned(pair, tmp_path, *everything, how=ROUNDS)  # nothing to judge them by
        (only,) = json.loads((tmp_path / "run.json").read_text())["self_training"]
        assert set(only) == {"fit", "round", "pseudo_seeds", "new"}


def rates(value: Any) -> list[float]:
    """Every number that is no count."""
    if isinstance(value, dict):
        counts = {"missing", "test_links", "least", "most"}
        return [rate for key, each in value.items() if key not in counts for rate in rates(each)]
    return [rate for each in value for rate in rates(each)] if isinstance(value, list) else [value]


class TestSaid:
    def test_the_plan_and_the_stages(self, finished: tuple[Path, Ran]) -> None:
        run, ran = finished
        plan = ran.err.splitlines()
        sizes = "300 and 250 entities, 1,500 and 1,200 triples, 63 seeds, 149 test links."
        assert plan[0] == sizes
        heads = ["Encoding", "Sampling", "Fusion", "Matching", "Expected"]
        assert [line.split()[0] for line in plan[1:6]] == heads
        assert re.search(r"Expected +[\d.]+ [MG]iB of memory, about \d+ s", ran.err)
        for stage in ("training", "sampling: cmcs", "fusion", "matching", "evaluation", "writing"):
            assert re.search(rf"^{stage}: [\d.]+ s, \d+ MiB$", ran.err, re.MULTILINE)
        assert "\x1b" not in ran.err  # a log is clean
        assert str(run / "alignment.tsv") in ran.out
        assert ran.out.splitlines()[-1] == f"Report: {run / 'report.html'}"
        assert re.search(r"^Precision [\d.]+%, recall [\d.]+%, F1 [\d.]+%\.$", ran.out, re.M)

    def test_the_plan_of_several_rounds(self, in_rounds: tuple[Path, Ran]) -> None:
        _, ran = in_rounds
        plan = ran.err.splitlines()[1:7]
        assert plan[:5] == [
            "Encoding   dual-amn, 2 epochs and label-propagation, on cpu",
            "Sampling   none: all entities at once",
            "Fusion     Sinkhorn of 20 rounds, 20 candidates per entity, exact search, "
            "2 rounds of support",
            "Rounds     2 of self-training at most: seeds are few",
            "Matching   one-to-one; two fits, each with 50 other seeds held out, to fit the "
            "confidence",
        ]
        assert re.fullmatch(r"Expected +[\d.]+ [MG]iB of memory, about \d+ s", plan[5])
        for stage in ("propagation", "self-training, round 1", "training, round 2"):
            assert re.search(rf"^{stage}: [\d.]+ s, \d+ MiB$", ran.err, re.MULTILINE)

    def test_quiet(self, run: Path, pair: Path) -> None:
        ran = aligned(pair, run, "--quiet")
        assert ran.err == ""
        assert str(run / "alignment.tsv") in ran.out
        assert NOT_CALIBRATED in ran.out.splitlines()  # what the numbers mean is a result

    def test_json(self, run: Path, pair: Path) -> None:
        told = events(aligned(pair, run, "--json", "--set", "fusion.candidates=7").err)
        assert told.pop() == {"event": "warning", "message": NOT_CALIBRATED}
        assert [each["event"] for each in told if each["stage"] == "training"] == ["begin", "end"]
        fusion = [each for each in told if each["stage"] == "fusion"]
        left = fusion[0].pop("seconds_left")
        assert fusion[0] == {"event": "begin", "stage": "fusion"}
        assert left >= 0
        assert all(
            set(each) == {"event", "stage", "what", "done", "total"} for each in fusion[1:-1]
        )
        assert set(fusion[-1]) == {
            *("event", "stage", "seconds", "peak_host_bytes", "peak_gpu_bytes", "reused"),
        }

    def test_the_result_as_json(self, run: Path, pair: Path) -> None:
        ran = aligned(pair, run, "--json")
        told = json.loads(ran.out)
        assert told["links"] == len(rows(run / "alignment.tsv")) - 1
        for side in ("source", "target"):
            unmatched = rows(run / f"unmatched_{side}.tsv")
            assert told["unmatched"][side] == len(unmatched) - 1
        assert told["metrics"] == json.loads((run / "metrics.json").read_text())
        assert told["confidence"] == ONLY_SCORED
        assert all(Path(path).is_file() for path in told["files"].values())
        assert told["files"]["report"] == str(run / "report.html")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["{pair}"], "Missing option '--out'."),
            (["{pair}", "--out", "run", "--seed", "x"], "Invalid value for '--seed'"),
            (["nowhere", "--out", "run"], "nowhere"),
            (["{pair}", "--out", "run", "--preset", "quick"], "unknown preset 'quick'"),
        ],
    )
    def test_errors_as_json(
        self, arguments: list[str], message: str, pair: Path, clusterea_command: Command
    ) -> None:
        words = (str(pair) if word == "{pair}" else word for word in arguments)
        ran = clusterea_command("align", *words, "--json")
        assert (ran.code, ran.out) == (2, "")
        (event,) = events(ran.err)
        assert event["event"] == "error"
        assert message in event["message"]

    def test_warnings_as_json(self, run: Path, pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def warns(*_: object) -> AbstractContextManager[None]:
            warnings.showwarning("torch says", UserWarning, "torch.py", 1)
            return nullcontext()

        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        monkeypatch.setattr("clusterea.pipeline.memory.memory_limit", warns)
        monkeypatch.setattr(PLAN, "available", lambda device: 1000)
        told = events(aligned(pair, run, "--json").err)
        messages = [each["message"] for each in told if each["event"] == "warning"]
        assert messages[0].startswith("This may not fit into 1000 B. ")
        assert messages[1] == "torch says"


class TestConfidence:
    """Whether it is a probability is said wherever it is shown."""

    def test_where_nothing_was_held_out(
        self, finished: tuple[Path, Ran], clusterea_command: Command
    ) -> None:
        run, ran = finished
        assert ran.err.splitlines().count(f"warning: {NOT_CALIBRATED}") == 1
        assert f" {ENOUGH_SEEDS:,} seeds " in NOT_CALIBRATED
        assert "onfidence" not in ran.out
        assert NOT_CALIBRATED in (run / "report.html").read_text()
        assert json.loads((run / "run.json").read_text())["confidence"] == ONLY_SCORED
        assert NOT_CALIBRATED in clusterea_command("match", run, "--device", "cpu").err

    def test_where_seeds_were_held_out(
        self, in_rounds: tuple[Path, Ran], clusterea_command: Command
    ) -> None:
        run, ran = in_rounds
        told = json.loads((run / "run.json").read_text())["confidence"]
        assert 90 <= told["examples"] <= 4 * 53  # a held-out pair has two ends
        note = (
            "Confidence is the probability that a link is right, calibrated on "
            f"{told['examples']} links of held-out seeds."
        )
        assert told | {"examples": 0} == ONLY_SCORED | {
            "calibrated": True,
            "measure": "confidence",
            "note": note,
        }
        assert ran.out.splitlines().count(note) == 1
        assert "warning" not in ran.err
        assert note in (run / "report.html").read_text()
        source = rows(run / "alignment.tsv")[1][0]
        explained = clusterea_command("explain", run, source).out
        assert "   (confidence " in explained.splitlines()[0]
        assert explained.splitlines()[-1] == note
        assert note in clusterea_command("match", run, "--device", "cpu").out

    def test_without_links_there_is_no_warning(
        self, finished: tuple[Path, Ran], pair: Path, tmp_path: Path
    ) -> None:
        copy = Path(shutil.copytree(finished[0], tmp_path / "run"))
        ran = aligned(pair, copy, "--top", "0")
        assert ran.out.startswith("0 links;")
        assert NOT_CALIBRATED not in ran.out + ran.err
        assert json.loads((copy / "run.json").read_text())["confidence"] == ONLY_SCORED


class TestBounds:
    """`--min-confidence` and `--top`: the files have some links, the run has all."""

    @pytest.fixture
    def run(self, finished: tuple[Path, Ran], pair: Path, tmp_path: Path) -> Path:
        """A copy: the tests here change its files."""
        copy = Path(shutil.copytree(finished[0], tmp_path / "run"))
        aligned(pair, copy)
        return copy

    @pytest.fixture
    def whole(self, run: Path) -> list[list[str]]:
        return rows(run / "alignment.tsv")

    def test_the_surest(
        self, run: Path, pair: Path, whole: list[list[str]], clusterea_command: Command
    ) -> None:
        ran = aligned(pair, run, "--top", "20")
        assert ran.out.startswith("20 links;")
        stages = ran.err.partition("Disk ")[2].splitlines()[1:]
        assert stages.pop() == f"warning: {NOT_CALIBRATED}"
        assert len(stages) == 6
        assert all(line.endswith("reused") for line in stages[:4])
        assert rows(run / "alignment.tsv") == whole[:21]
        lone = {row[0] for row in rows(run / "unmatched_source.tsv")}
        assert {row[0] for row in whole[21:]} <= lone
        metrics = json.loads((run / "metrics.json").read_text())
        assert metrics["matching"]["recall"] <= 20 / 149
        # What judges or shows the run takes the same links, and export needs no new run.
        assert clusterea_command("evaluate", run).code == 0
        assert json.loads((run / "metrics.json").read_text()) == metrics
        assert clusterea_command("report", run).code == 0
        assert ">20<" in (run / "report.html").read_text()
        clusterea_command("export", run, "--format", "tsv", "--out", run / "all.tsv")
        assert rows(run / "all.tsv") == whole
        told = json.loads(clusterea_command("explain", run, whole[21][0], "--json").out)
        assert told["unmatched"][0]["candidates"][0]["reason"] == "left_out"
        aligned(pair, run)
        assert rows(run / "alignment.tsv") == whole

    def test_the_sure(self, run: Path, pair: Path, whole: list[list[str]]) -> None:
        least = whole[30][2]
        wanted = [row for row in whole[1:] if float(row[2]) >= float(least)]
        told = json.loads(aligned(pair, run, "--min-confidence", least, "--json").out)
        assert told["links"] == len(wanted)
        assert rows(run / "alignment.tsv")[1:] == wanted

    def test_match_has_them_too(
        self, run: Path, whole: list[list[str]], clusterea_command: Command
    ) -> None:
        ran = clusterea_command("match", run, "--device", "cpu", "--top", "7")
        assert ran.code == 0, ran.err
        assert ran.out.startswith("7 links;")
        assert json.loads((run / "metrics.json").read_text())["matching"]["recall"] <= 7 / 149
        assert rows(run / "alignment.tsv") == whole[:8]
        assert clusterea_command("match", run, "--device", "cpu").code == 0
        assert rows(run / "alignment.tsv") == whole

    @pytest.mark.parametrize("bad", [["--top", "-1"], ["--min-confidence", "1.5"]])
    def test_nonsense(
        self, bad: list[str], pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("align", pair, "--out", tmp_path / "run", *bad)
        assert ran.code == 2
        assert f"{bad[0]} must be" in ran.err
        assert not list(tmp_path.iterdir())


class TestDryRun:
    @pytest.mark.parametrize("more", [[], ["--quiet"]])
    def test_it_prints_the_plan_and_writes_nothing(
        self, more: list[str], pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        out = tmp_path / "new" / "run"
        ran = clusterea_command("align", pair, "--out", out, *SHARE, *PAPER, "--dry-run", *more)
        assert ran.code == 0
        assert ran.err == ""
        assert "Sampling   cmcs: 5 mini-batches\n" in ran.out
        assert "Sinkhorn of 100 rounds, 50 candidates per entity" in ran.out
        assert "Rounds" not in ran.out
        assert "held out" not in ran.out
        assert not list(tmp_path.iterdir())

    def test_the_plan_as_json(
        self,
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        asked = ["align", pair, "--out", tmp_path / "run", *SHARE, *PAPER, "--dry-run", "--json"]
        ran = clusterea_command(*asked)
        assert (ran.code, ran.err) == (0, "")
        told = json.loads(ran.out)
        assert told["entities"] == [300, 250]
        assert told["triples"] == [1500, 1200]
        assert (told["seeds"], told["test_links"]) == (63, 149)
        assert told["encoders"] == [{"model": "dual-amn", "epochs": 2}]
        assert (told["samplers"], told["num_batches"]) == (["cmcs"], 5)
        assert told["expected"]["host_bytes"] > 0
        assert told["expected"]["seconds"] > 0
        assert told["expected"]["disk_bytes"] > 0
        assert told["warnings"] == []
        assert told["config"]["training"]["dimension"] == 16
        assert not list(tmp_path.iterdir())
        monkeypatch.setattr(PLAN, "available", lambda device: 1000)
        tight = json.loads(clusterea_command(*asked).out)
        assert tight["warnings"][0].startswith("This may not fit into 1000 B. ")
        limited = json.loads(clusterea_command(*asked, "--memory", "20GiB").out)
        assert limited["warnings"] == []

    def test_in_a_folder_that_is_there_it_changes_nothing(
        self, run: Path, pair: Path, clusterea_command: Command
    ) -> None:
        def state() -> dict[Path, int]:
            return {path: path.stat().st_mtime_ns for path in run.rglob("*")}

        before = state()
        ran = clusterea_command(
            "align", pair, "--out", run, *SHARE, *PAPER, "--seed", "4", "--dry-run"
        )
        assert ran.code == 0, ran.err
        assert state() == before

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["--samplers", "cmcs,iscs"], "cmcs, iscs, iscs-reverse: 5 mini-batches each"),
            (["--samplers", " cmcs , vps, "], "cmcs, vps: 5 mini-batches each"),
            (["--samplers", ""], "Sampling   none: all entities at once"),
            (["--model", "rrea"], "Encoding   rrea, 2 epochs, on cpu"),
            (["--model", "label-propagation"], "Encoding   label-propagation, on cpu"),
            (
                ["--model", " rrea, label-propagation"],
                "Encoding   rrea, 2 epochs and label-propagation, on cpu",
            ),
            (["--model", "dual-amn,dual-amn"], "dual-amn, 2 epochs and dual-amn, 2 epochs, on"),
            (["--set", "self_training.rounds=3"], "Rounds     1 of self-training"),
            (
                ["--set", "self_training.rounds=3", "--set", "self_training.few=1"],
                "Rounds     3 of self-training at most: seeds are few",
            ),
            (
                ["--set", "matching.held_out=0.3"],
                "Matching   one-to-one; two fits, each with 100 other seeds held out, to fit the ",
            ),
            (["--set", "matching.method=mutual"], "Matching   mutual"),
            (["--set", "fusion.views=local-cosine"], "Fusion     50 candidates per entity"),
            (["--memory", "20GiB"], "Expected "),
        ],
    )
    def test_the_plan_says_what_was_asked_for(
        self,
        arguments: list[str],
        line: str,
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
    ) -> None:
        ran = clusterea_command(
            "align", pair, "--out", tmp_path / "run", *PAPER, *arguments, "--dry-run"
        )
        assert ran.code == 0, ran.err
        assert line in ran.out

    def test_an_approximate_search_is_expected_to_be_faster(
        self,
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        slow = {"cpu": {"threads": 1, "fusion": {"search": 1e-4}}}
        monkeypatch.setattr("clusterea.pipeline.cost.constants", lambda: slow)
        command = (
            "align",
            pair,
            "--out",
            tmp_path / "run",
            *SHARE,
            "--preset",
            "fast",
            "--set",
            "fusion.search_compared=1",
            "--dry-run",
        )
        said = [
            clusterea_command(*command, "--device", "cpu", "--set", f"fusion.search={search}").out
            for search in ("exact", "approximate")
        ]
        assert ["minutes" in each for each in said] == [True, False]

    @pytest.mark.parametrize(
        ("preset_name", "lines"),
        [
            (
                "paper",
                [
                    "Encoding   dual-amn, 20 epochs, on cpu",
                    "Sampling   cmcs, iscs, iscs-reverse: 5 mini-batches each",
                    "Fusion     Sinkhorn of 100 rounds, 50 candidates per entity, exact search",
                    "Matching   one-to-one",
                ],
            ),
            (
                "default",
                [
                    "Encoding   dual-amn, 20 epochs and label-propagation, on cpu",
                    "Sampling   none: all entities at once",
                    "Fusion     Sinkhorn of 100 rounds, 300 candidates per entity, exact search, "
                    "2 rounds of support",
                    "Rounds     2 of self-training",
                    "Matching   one-to-one; two fits, each with 25 other seeds held out, to fit "
                    "the confidence",
                ],
            ),
            (
                "fast",
                [
                    "Encoding   label-propagation, on cpu",
                    "Sampling   none: all entities at once",
                    "Fusion     Sinkhorn of 20 rounds, 50 candidates per entity, exact search, "
                    "2 rounds of support",
                    "Matching   one-to-one; 25 seeds held out to fit the confidence",
                ],
            ),
        ],
    )
    def test_the_plan_of_each_preset(
        self,
        preset_name: str,
        lines: list[str],
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
    ) -> None:
        ran = clusterea_command(
            *("align", pair, "--out", tmp_path / "run", *SHARE, "--preset", preset_name),
            *("--device", "cpu", "--dry-run"),
        )
        assert ran.code == 0, ran.err
        assert ran.out.splitlines()[1:-2] == lines

    def test_what_will_not_fit_names_the_setting_to_change(
        self,
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from clusterea.pipeline.memory import Expected

        def pretended(_task: object, config: Any, *_: object) -> Expected:
            side = config.sampling.max_batch
            return Expected(int(8 * side * side + 1e6 * config.training.dimension), 0)

        monkeypatch.setattr(PLAN, "expected_memory", pretended)
        asked = ["align", pair, "--out", tmp_path, *PAPER, "--dry-run"]
        monkeypatch.setattr(PLAN, "available", lambda device: 10**9)
        ran = clusterea_command(*asked, "--set", "sampling.max_batch=65536")
        assert "Smaller mini-batches would: --set sampling.max_batch=10000." in ran.out
        wide = ["--set", "training.dimension=128", "--set", "sampling.max_batch=500"]
        monkeypatch.setattr(PLAN, "available", lambda device: 4 * 10**7)
        ran = clusterea_command(*asked, *wide)
        assert "Smaller embeddings would: --set training.dimension=32." in ran.out


class TestMemory:
    """A limit is kept, or the command is refused before any work."""

    LEAST = re.compile(r"--memory=(\d+)MiB is the least memory that this run can keep to")

    @pytest.mark.parametrize("options", [PAPER, ["--preset", "fast"]], ids=["paper", "fast"])
    def test_one_that_cannot_be_kept_is_refused_and_the_least_one_is_named(
        self, options: list[str], pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        run = tmp_path / "run"
        asked = ["align", pair, "--out", run, *SHARE, *options]
        for more in ([], ["--dry-run"]):
            ran = clusterea_command(*asked, "--memory", "10MB", *more)
            assert (ran.code, ran.out) == (2, "")
            assert not run.exists()
            named = self.LEAST.search(ran.err)
            assert named is not None, ran.err
            assert ran.err.count("\n") == 1
        assert named is not None
        least = int(named[1])
        below = clusterea_command(*asked, "--memory", f"{least - 1}MiB", "--dry-run")
        assert below.code == 2
        kept = clusterea_command(*asked, "--memory", f"{least}MiB")
        assert kept.code == 0, kept.err
        assert (run / "alignment.tsv").exists()

    def test_a_refusal_leaves_a_run_as_it_is(
        self, run: Path, pair: Path, clusterea_command: Command
    ) -> None:
        before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
        ran = clusterea_command(
            "align", pair, "--out", run, *SHARE, *PAPER, "--overwrite", "--memory", "10MB"
        )
        assert ran.code == 2
        assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before

    def test_the_users_own_bound_on_mini_batches_stays(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        asked = ["align", pair, "--out", tmp_path / "run", *SHARE, *PAPER, "--dry-run", "--json"]
        own = ["--set", "sampling.max_batch=77"]
        ran = clusterea_command(*asked, "--memory", "20GiB", *own)
        assert json.loads(ran.out)["config"]["sampling"]["max_batch"] == 77


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--preset", "papper"], "unknown preset 'papper'.*Did you mean 'paper'"),
            (["--model", "dual-anm"], "unknown model 'dual-anm'.*Did you mean 'dual-amn'"),
            (["--model", "dual-amn,label-propagtion"], "Did you mean 'label-propagation'"),
            (["--model", ","], "--model must name at least one encoder. Got ','"),
            (["--set", "self_training.folds=0"], r"folds must be an int in \[1, inf\). Got 0"),
            (["--set", "matching.held_out=1"], r"held_out must be a number in \[0, 1\). Got 1.0"),
            (["--samplers", "cmcs,isc"], "unknown sampler 'isc'.*Did you mean 'iscs'"),
            (["--set", "training.epcohs=3"], "unknown setting 'epcohs'.*Did you mean 'epochs'"),
            (["--set", "traning.epochs=3"], "Did you mean 'training.epochs'"),
            (["--set", "training.epochs"], "--set must be FIELD=VALUE"),
            (["--set", "training.epochs=0"], r"epochs must be an int in \[1, inf\). Got 0"),
            (["--set", "matching.method=bst"], "unknown matching method 'bst'.*'best'"),
            (["--set", "sampling.num_batches=0"], "num_batches must be an int in"),
            (["--device", "tpu"], "--device must be auto, cpu or cuda. Got 'tpu'"),
            (["--memory", "lots"], "--memory must be a size, as 20GiB. Got 'lots'"),
            (["--memory", "-3GiB"], "--memory must be a size, as 20GiB. Got '-3GiB'"),
            (["--memory", "20 gigs"], "--memory must be a size"),
            (["--memory", ""], "--memory must be a size"),
            (["--memory", "0"], "--memory must be more than 0"),
            (["--seed", "-1"], r"seed must be an int in \[0, inf\)"),
            (["--seed", "x"], "Invalid value for '--seed'"),
            (["--seeds-share", "1.5"], r"--seeds-share must be a number in \(0, 1\]"),
            (["--splti", "first"], "No such option"),
        ],
    )
    def test_bad_options(
        self,
        arguments: list[str],
        message: str,
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
    ) -> None:
        ran = clusterea_command("align", pair, "--out", tmp_path / "run", *PAPER, *arguments)
        assert ran.code == 2
        assert re.search(message, ran.err, re.DOTALL), ran.err
        assert ran.out == ""
        assert not (tmp_path / "run").exists()

    def test_settings_are_refused_before_data(
        self, tmp_path: Path, clusterea_command: Command
    ) -> None:
        """Although both are looked at, at the same time."""
        nowhere, out = tmp_path / "nowhere", tmp_path / "run"
        ran = clusterea_command("align", nowhere, "--out", out, "--model", "dual-anm")
        assert ran.code == 2
        assert "unknown model 'dual-anm'" in ran.err
        assert "nowhere" not in ran.err

    def test_a_missing_folder(self, tmp_path: Path, clusterea_command: Command) -> None:
        ran = clusterea_command("align", tmp_path / "nowhere", "--out", tmp_path / "run")
        assert ran.code == 2
        assert (
            ran.err
            == f"error: {tmp_path / 'nowhere'}: expected a folder of data, but there "
            + ("is none.\n")
        )
        assert not (tmp_path / "run").exists()

    def test_a_run_that_is_a_file(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        (tmp_path / "run").touch()
        ran = clusterea_command("align", pair, "--out", tmp_path / "run")
        assert ran.code == 2
        assert "is a file; a run needs a folder" in ran.err

    def test_one_file(self, pair: Path, tmp_path: Path, clusterea_command: Command) -> None:
        ran = clusterea_command("align", pair / "rel_triples_1", "--out", tmp_path / "run")
        assert ran.code == 2
        assert "SOURCE TARGET --links LINKS" in ran.err

    def test_no_links(self, pair: Path, tmp_path: Path, clusterea_command: Command) -> None:
        files = [pair / f"rel_triples_{number}" for number in (1, 2)]
        ran = clusterea_command("align", *files, "--out", tmp_path / "run")
        assert ran.code == 2
        assert (
            "there is no known pair to learn from: the entities have no names that can be "
            "compared; no IRI is in both graphs. Give pairs that are known with --links, or names "
            "with --name-files.\n" in ran.err
        )

    def test_a_fault_of_ours_is_no_fault_of_theirs(
        self,
        pair: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        clusterea_command: Command,
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("ours")

        monkeypatch.setattr("clusterea.pipeline.run_in_folder", broken)
        with pytest.raises(ZeroDivisionError):  # which Python ends with 1 and a traceback
            clusterea_command("align", pair, "--out", tmp_path / "run", *SHARE, *PAPER)


def test_two_rdf_files(pair: Path, tmp_path: Path) -> None:
    files = write_rdf(pair, tmp_path)
    run = tmp_path / "run"
    ran = aligned(files.source, run, files.target, "--links", tmp_path / "links.nt")
    assert "300 and 250 entities, 1,500 and 1,200 triples" in ran.err
    assert {path.name for path in run.iterdir()} >= OUTPUTS
    header, *links = rows(run / "alignment.tsv")
    assert header == ["source", "target", "score"]
    assert {link[0] for link in links} <= entities_of(pair / "rel_triples_1")
    assert {link[1] for link in links} <= entities_of(pair / "rel_triples_2")


def test_samplers_by_name(pair: Path, tmp_path: Path) -> None:
    few = ["--set", "sampling.gcn_epochs=5", "--set", "sampling.num_batches=3"]
    aligned(pair, tmp_path, "--samplers", "cmcs,iscs", *few)
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["config"]["samplers"] == ["cmcs", "iscs", "iscs-reverse"]
    assert set(found["num_batches"]) == {"cmcs", "iscs", "iscs-reverse"}
    stages = [stage["stage"] for stage in found["stages"]]
    assert stages[1:4] == ["sampling: cmcs", "sampling: iscs", "sampling: iscs-reverse"]


def test_without_test_links_there_are_no_metrics(pair: Path, tmp_path: Path) -> None:
    aligned(pair, tmp_path)
    assert (tmp_path / "metrics.json").is_file()
    ran = aligned(pair, tmp_path, "--seeds-share", "1", "--overwrite")
    assert not (tmp_path / "metrics.json").exists()  # those of the run before would mislead
    assert "Hits@1" not in ran.out
    assert ran.err.splitlines()[0].endswith("212 seeds, 0 test links.")
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= OUTPUTS - {"metrics.json"}


@pytest.mark.parametrize("names", ["plain words", "[bold]markup[/bold]"])
def test_names_are_written_as_they_are(names: str, pair: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for file in ("rel_triples_1", "rel_triples_2", "ent_links"):
        text = (pair / file).read_text()
        (folder / file).write_text(re.sub(r"http://\w+\.example/\w+/", f"{names} ", text))
    aligned(folder, tmp_path / "run")
    (_, *links) = rows(tmp_path / "run" / "alignment.tsv")
    assert all(cell.startswith(f"{names} E0") for link in links for cell in link[:2])
