"""`fuse`, `match` and `evaluate` on a run's folder, stage by stage and after changes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tiny_runs import ROUNDS, SHARE, Command, aligned, command, rows, write_pair

from clusterea.checksums import sealed
from clusterea.data import load
from clusterea.workspace import Workspace, recipe_key
from conftest import stored

CPU = ["--device", "cpu"]
TRAIN = ["--set", "dimension=16", *CPU]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def whole(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("stages") / "run"
    aligned(pair, run)
    return run


@pytest.fixture(scope="module")
def whole_rounds(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the default preset does it."""
    run = tmp_path_factory.mktemp("stages") / "rounds"
    aligned(pair, run, how=ROUNDS)
    return run


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def test_stage_by_stage_comes_to_the_same_as_align(
    whole: Path, pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    run = tmp_path / "by-hand"
    sampling = ["--classifier", "softmax", "--set", "kmeans_starts=3"]
    fusion = ["--set", "views=local,global", "--set", "csls=true"]  # as in the paper
    for asked in (
        ["train", pair, "--out", run, *SHARE, "--set", "epochs=2", *TRAIN],
        ["sample", run, *sampling, *CPU],
        ["fuse", run, "--samplers", "cmcs", *fusion, *CPU],
        ["match", run, *CPU],
        ["evaluate", run],
        ["report", run],
    ):
        ran = clusterea_command(*asked)
        assert ran.code == 0, ran.err
    for name in ("alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv", "metrics.json"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    assert pq.read_table(run / "candidates.parquet").equals(
        pq.read_table(whole / "candidates.parquet")
    )
    assert (run / "report.html").is_file()


class TestAfterRounds:
    """What goes on from a run of two encoders, held-out seeds and several rounds."""

    @pytest.fixture
    def run(self, whole_rounds: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(whole_rounds, tmp_path / "run"))

    def test_fuse_finds_what_is_there(self, run: Path, clusterea_command: Command) -> None:
        before = {path.name for path in run.iterdir()}
        ran = clusterea_command("fuse", run, *CPU)  # with what `align` had
        assert ran.code == 0, ran.err
        assert ran.err == "fusion: was there already\n"
        assert {path.name for path in run.iterdir()} == before

    def test_match_comes_to_the_same(self, run: Path, clusterea_command: Command) -> None:
        before = {name: (run / name).read_bytes() for name in ("alignment.tsv", "metrics.json")}
        ran = clusterea_command("match", run, *CPU)
        assert ran.code == 0, ran.err
        assert clusterea_command("evaluate", run).code == 0
        assert {name: (run / name).read_bytes() for name in before} == before

    def test_match_finds_what_is_there(self, run: Path, clusterea_command: Command) -> None:
        before = {path.name for path in run.iterdir()}
        ran = clusterea_command("match", run, *CPU)
        assert ran.code == 0
        assert ran.err == ""  # metrics and report are still of these links
        assert {path.name for path in run.iterdir()} == before

    def test_another_fusion_is_of_all_encoders_and_of_who_no_seed_decides(
        self, run: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("fuse", run, "--set", "candidates=7", *CPU)
        assert ran.code == 0, ran.err
        place = Path(ran.out.splitlines()[-1].strip())
        recipe = json.loads((place.parent / "recipe.json").read_text())
        named = ("train", "train-2", "train-3", "train-4")
        assert recipe["parents"] == {
            name: json.loads((run / f"{name}.json").read_text())["key"] for name in named
        }
        held = stored(run / current(run, "held") / "tensors.safetensors")["links"]
        offsets = stored(place)["row_offsets"]
        assert not bool(offsets.diff()[held[:, 0]].any())  # they have rejoined
        assert clusterea_command("match", run, *CPU).code == 0
        taken = {(row[0], row[1]) for row in rows(run / "alignment.tsv")[1:]}
        assert taken
        assert clusterea_command("report", run).code == 0

    def test_a_further_encoder_of_other_data(self, run: Path, clusterea_command: Command) -> None:
        recipe: dict[str, Any] = {"stage": "train", "config": {}, "parents": {"task": "task-1"}}
        key = recipe_key("train", recipe["config"], recipe["parents"])
        Workspace(run).save_tensors(key, recipe, {})
        Workspace(run).point("train-3", key)
        ran = clusterea_command("fuse", run, "--set", "candidates=7", *CPU)
        assert ran.code == 2
        assert "its result of `clusterea train` is of other graphs or seeds" in ran.err

    def test_training_anew_leaves_one_encoder(
        self, run: Path, pair: Path, clusterea_command: Command
    ) -> None:
        share = ["--seeds-share", "0.5"]
        asked = ["train", pair, "--out", run, *share, "--model", "label-propagation", *CPU]
        assert clusterea_command(*asked).code == 0
        ran = clusterea_command("fuse", run, "--samplers", "", *CPU)
        assert ran.code == 0, ran.err
        place = Path(ran.out.splitlines()[-1].strip())
        assert set(json.loads((place.parent / "recipe.json").read_text())["parents"]) == {"train"}
        assert clusterea_command("match", run, *CPU).code == 0


def current(run: Path, stage: str) -> str:
    return str(json.loads((run / f"{stage}.json").read_text())["key"])


def test_a_sampler_does_not_see_held_out_seeds_either(
    pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    """What `sample` makes under a name is what `align` makes under it."""
    aligned(pair, tmp_path, "--seeds-share", "0.5", "--set", "matching.held_out=0.5")
    place = tmp_path / current(tmp_path, "sample-cmcs")
    made = (place / "tensors.safetensors").read_bytes()
    shutil.rmtree(place)
    ran = clusterea_command("sample", tmp_path, "--set", "kmeans_starts=3", *CPU)
    assert ran.code == 0, ran.err
    assert current(tmp_path, "sample-cmcs") == place.name
    assert (place / "tensors.safetensors").read_bytes() == made


def test_labels_stage_by_stage(pair: Path, tmp_path: Path, clusterea_command: Command) -> None:
    """The fast preset by hand, but for its calibration."""
    by_hand, at_once = tmp_path / "by-hand", tmp_path / "at-once"
    fusion = ["--set", "sinkhorn_rounds=20"]
    for asked in (
        ["train", pair, "--out", by_hand, *SHARE, "--model", "label-propagation", *CPU],
        ["fuse", by_hand, "--samplers", "", *fusion, *CPU],
        ["match", by_hand, *CPU],
    ):
        ran = clusterea_command(*asked)
        assert ran.code == 0, ran.err
    fast = ["--preset", "fast", "--set", "matching.held_out=0", *CPU]
    aligned(pair, at_once, how=fast)
    for stage in ("train", "fuse", "match"):
        assert current(by_hand, stage) == current(at_once, stage)
    assert (by_hand / "alignment.tsv").read_bytes() == (at_once / "alignment.tsv").read_bytes()


class TestFuse:
    def test_it_says_what_it_made_and_finds_it_again(
        self, run: Path, clusterea_command: Command
    ) -> None:
        asked = ["fuse", run, "--samplers", "cmcs", "--set", "candidates=5", *CPU]
        first = clusterea_command(*asked)
        assert first.code == 0, first.err
        assert re.match(r"Similarity\(300 × 250, [\d,]+ cells", first.out)
        assert Path(first.out.splitlines()[-1].strip()).is_file()
        assert re.search(r"^fusion: [\d.]+ s", first.err)
        again = clusterea_command(*asked)
        assert again.out == first.out
        assert again.err == "fusion: was there already\n"

    def test_it_begins_with_what_align_had(self, run: Path, clusterea_command: Command) -> None:
        ran = clusterea_command("fuse", run, *CPU)
        assert ran.code == 0, ran.err
        assert ran.err == "fusion: was there already\n"
        ran = clusterea_command("fuse", run, "--seed", 7, *CPU)
        recipe = json.loads(
            (Path(ran.out.splitlines()[-1].strip()).parent / "recipe.json").read_text()
        )
        had = json.loads((run / "run.json").read_text())["config"]["fusion"]
        assert recipe["config"].items() <= (had | {"seed": 7}).items()
        assert set(recipe["parents"]) == {"train", "cmcs"}

    def test_what_align_had_is_not_for_other_embeddings(
        self, run: Path, pair: Path, clusterea_command: Command
    ) -> None:
        clusterea_command("train", pair, "--out", run, *SHARE, "--set", "epochs=3", *TRAIN)
        clusterea_command("sample", run, "--classifier", "softmax", *CPU)
        ran = clusterea_command("fuse", run, *CPU)
        assert ran.code == 2
        assert "has no mini-batches of iscs yet" in ran.err

    @pytest.mark.parametrize(
        ("fusion", "message"),
        [
            (None, "is damaged; delete it to do without"),
            ({"fusion": {"magic": 1}}, "is of another version; delete it to do without"),
        ],
    )
    def test_a_bad_description(
        self, fusion: dict[str, object] | None, message: str, run: Path, clusterea_command: Command
    ) -> None:
        path = run / "run.json"
        described = json.loads(path.read_text())
        described["config"] |= fusion or {}
        del described["checksum"]
        path.write_text(json.dumps(sealed("run", described)) if fusion else "{")
        ran = clusterea_command("fuse", run, *CPU)
        assert ran.code == 2
        assert message in ran.err

    def test_a_sampler_that_was_not_asked_before(
        self, run: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("fuse", run, "--samplers", "cmcs,iscs", *CPU)
        assert ran.code == 2
        assert ran.err == (
            f"error: {run}: has no mini-batches of iscs yet. "
            f"Run `clusterea sample {run} --sampler iscs` first.\n"
        )

    def test_mini_batches_of_other_embeddings(
        self, run: Path, pair: Path, clusterea_command: Command
    ) -> None:
        clusterea_command("train", pair, "--out", run, *SHARE, "--set", "epochs=3", *TRAIN)
        ran = clusterea_command("fuse", run, "--samplers", "cmcs", *CPU)
        assert ran.code == 2
        assert "its mini-batches of cmcs are of other embeddings" in ran.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--samplers", "cmcss"], "unknown sampler 'cmcss'"),
            (["--set", "candidates=0"], r"candidates must be an int in \[1, inf\). Got 0"),
            (["--set", "training.epochs=2"], "unknown setting 'training.epochs'"),
        ],
    )
    def test_bad_options(
        self, arguments: list[str], message: str, whole: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("fuse", whole, *arguments, *CPU)
        assert ran.code == 2
        assert re.search(message, ran.err), ran.err


class TestMatch:
    def test_one_to_one_unless_asked_otherwise(self, run: Path, clusterea_command: Command) -> None:
        before = (run / "alignment.tsv").read_bytes()
        ran = clusterea_command("match", run, "--method", "best", *CPU)
        assert ran.code == 0, ran.err
        links = rows(run / "alignment.tsv")[1:]
        assert len({link[1] for link in links}) < len(links)  # many to one
        assert re.match(rf"{len(links)} links; \d+ and \d+ entities unmatched:", ran.out)
        again = clusterea_command("match", run, *CPU)
        assert again.code == 0
        assert (run / "alignment.tsv").read_bytes() == before

    @pytest.mark.parametrize("method", ["mutual", "greedy", "stable", "hungarian"])
    def test_the_other_methods_take_each_entity_once(
        self, method: str, run: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("match", run, "--method", method, *CPU)
        assert ran.code == 0, ran.err
        links = rows(run / "alignment.tsv")[1:]
        for column, side in ((0, "source"), (1, "target")):
            matched = {link[column] for link in links}
            assert len(matched) == len(links)
            assert not matched & {row[0] for row in rows(run / f"unmatched_{side}.tsv")}

    def test_what_is_out_of_date_is_named(self, run: Path, clusterea_command: Command) -> None:
        ran = clusterea_command("match", run, "--method", "mutual", *CPU)
        assert ran.err == (
            "Of the links before: metrics.json and report.html. "
            f"`clusterea report {run}` writes them anew.\n"
        )
        old = json.loads((run / "metrics.json").read_text())
        assert clusterea_command("report", run).code == 0
        assert json.loads((run / "metrics.json").read_text())["matching"] != old["matching"]
        assert clusterea_command("match", run, "--method", "mutual", *CPU).err == ""

    def test_an_unknown_method(self, whole: Path, clusterea_command: Command) -> None:
        ran = clusterea_command("match", whole, "--method", "bst")
        assert ran.code == 2
        assert "unknown matching method 'bst'; choose one of one-to-one" in ran.err
        assert "Did you mean 'best'?" in ran.err


class TestEvaluate:
    def test_it_finds_what_align_found(self, run: Path, clusterea_command: Command) -> None:
        told = (run / "metrics.json").read_text()
        (run / "metrics.json").unlink()
        ran = clusterea_command("evaluate", run, "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out) == json.loads(told)
        assert (run / "metrics.json").read_text() == told

    def test_for_people(self, whole: Path, clusterea_command: Command) -> None:
        ran = clusterea_command("evaluate", whole)
        ways = re.findall(r"^(source|target) to \w+, among (.*): hits@1 [\d.]+%", ran.out, re.M)
        assert ways == [
            *(("source", "test targets"), ("target", "test targets")),
            *(("source", "all"), ("target", "all")),
        ]
        assert re.search(r"^Precision .* F1 [\d.]+% on \d+ test links\.$", ran.out, re.M)

    def test_links_of_another_similarity_are_not_judged_with_it(
        self, run: Path, clusterea_command: Command
    ) -> None:
        clusterea_command("fuse", run, "--samplers", "cmcs", "--set", "candidates=5", *CPU)
        ran = clusterea_command("evaluate", run)
        assert ran.code == 0
        assert "Precision" not in ran.out
        assert f"`clusterea match {run}`" in ran.err
        assert "matching" not in json.loads((run / "metrics.json").read_text())
        clusterea_command("match", run, *CPU)
        assert "Precision" in clusterea_command("evaluate", run).out

    def test_without_test_links(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        quick = ["--set", "epochs=2", *TRAIN]
        command("train", pair, "--out", tmp_path, "--seeds-share", "1", *quick)
        ran = clusterea_command("evaluate", tmp_path)
        assert ran.code == 2
        assert ran.err == f"error: {tmp_path} has no test links to judge by.\n"


class TestFolders:
    COMMANDS = (
        *(["fuse"], ["match"], ["evaluate"], ["report"]),
        *(["export", "--format", "tsv"], ["explain", "somebody"]),
    )

    @pytest.mark.parametrize("asked", COMMANDS, ids=lambda asked: asked[0])
    def test_no_run(self, asked: list[str], tmp_path: Path, clusterea_command: Command) -> None:
        for folder in (tmp_path, tmp_path / "nowhere"):
            ran = clusterea_command(asked[0], folder, *asked[1:])
            assert ran.code == 2
            assert ran.err == (
                f"error: {folder}: expected a run, as `clusterea train` makes one; got none.\n"
            )
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("asked", "stage"),
        list(zip(COMMANDS[1:], ("fuse", "fuse", "match", "match", "match"), strict=True)),
        ids=lambda value: value[0] if isinstance(value, list) else value,
    )
    def test_too_early(
        self,
        asked: list[str],
        stage: str,
        whole: Path,
        tmp_path: Path,
        clusterea_command: Command,
    ) -> None:
        run = Path(shutil.copytree(whole, tmp_path / "run"))
        for name in ("fuse", "match"):
            (run / f"{name}.json").unlink()
        ran = clusterea_command(asked[0], run, *asked[1:])
        assert ran.code == 2
        assert ran.err == (
            f"error: {run}: has no result of `clusterea {stage}` yet. Run that, or `align`.\n"
        )

    @pytest.mark.parametrize("asked", [["sample"], *COMMANDS], ids=lambda asked: asked[0])
    def test_other_data_was_put_into_it(
        self,
        asked: list[str],
        run: Path,
        pair: Path,
        clusterea_command: Command,
    ) -> None:
        Workspace(run).save_benchmark(load(pair, seeds_share=0.5))
        ran = clusterea_command(asked[0], run, *asked[1:])
        assert ran.code == 2
        assert "is of other graphs or seeds than it holds now" in ran.err
        assert ran.err.count("\n") == 1

    @pytest.mark.parametrize(
        ("damage", "stage", "asked"),
        [
            ("damaged", "train", ["fuse", "--samplers", "cmcs", "--set", "candidates=6", *CPU]),
            ("damaged", "sample", ["fuse", "--samplers", "cmcs", *CPU]),
            ("damaged", "fuse", ["match", *CPU]),
            ("damaged", "match", ["export", "--format", "tsv"]),
            ("missing", "match", ["explain", "http://source.example/resource/E000261"]),
        ],
    )
    def test_a_damaged_artifact_is_named_and_the_advice_helps(
        self,
        damage: str,
        stage: str,
        asked: list[str],
        run: Path,
        pair: Path,
        clusterea_command: Command,
    ) -> None:
        (tensors,) = run.glob(f"{stage}-*/tensors.safetensors")
        if damage == "missing":
            tensors.unlink()
        else:
            tensors.write_bytes(tensors.read_bytes()[: tensors.stat().st_size // 2])
        ran = clusterea_command(asked[0], run, *asked[1:])
        assert ran.code == 2
        assert ran.err == (
            f"error: {tensors}: is {damage}; "
            f"run `clusterea {stage}` or `align` again to have it made anew.\n"
        )
        before = (run / "alignment.tsv").read_bytes()
        again = aligned(pair, run)
        assert (
            f"warning: {tensors} is damaged or missing: the stage {stage} is run again."
            in again.err
        )
        assert (run / "alignment.tsv").read_bytes() == before
        assert clusterea_command(asked[0], run, *asked[1:]).code == 0
