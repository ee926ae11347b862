"""`fuse`, `match` and `evaluate` on a run's folder, stage by stage and after changes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tiny_runs import ROUNDS, SHARE, Command, aligned, command, rows, write_pair

from clusterea.checksums import sealed

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
    """What goes on from a run of two encoders, two fits and several rounds."""

    @pytest.fixture
    def run(self, whole_rounds: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(whole_rounds, tmp_path / "run"))

    @pytest.mark.parametrize("name", ["fuse", "match"])
    def test_it_finds_what_is_there(self, name: str, run: Path, clusterea_command: Command) -> None:
        before = {path.name for path in run.iterdir()}
        links = (run / "alignment.tsv").read_bytes()
        ran = clusterea_command(name, run, *CPU)  # with the settings that `align` had
        assert ran.code == 0, ran.err
        stages = [line for line in ran.err.splitlines() if not line.startswith(("eval", "writ"))]
        # A fit: 1 propagation, then 2 and 4 lessons in the rounds; 3 fusions; 2 self-trainings.
        in_fits = 2 * (1 + 2 + 4 + 3 + 2)
        both = "fusion of both fits: reused"
        after = [both, "matching: reused"] if name == "match" else [both]
        assert stages[in_fits:] == after
        assert sum(", fit 2: " in line for line in stages[:in_fits]) == in_fits // 2
        assert all(line.endswith(": reused") for line in stages)
        assert {path.name for path in run.iterdir()} == before
        assert (run / "alignment.tsv").read_bytes() == links
        assert clusterea_command("evaluate", run).code == 0

    def test_another_fusion_is_of_every_round(
        self, run: Path, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        """It comes to the same as `align` with that setting."""
        ran = clusterea_command("fuse", run, "--set", "candidates=7", *CPU)
        assert ran.code == 0, ran.err
        there = [line for line in ran.err.splitlines() if line.endswith(": reused")]
        assert there == ["propagation: reused", "propagation, fit 2: reused"]
        assert clusterea_command("match", run, *CPU).code == 0
        at_once = tmp_path / "at-once"
        aligned(pair, at_once, "--set", "fusion.candidates=7", how=ROUNDS)
        assert artifacts(run) == artifacts(at_once)
        assert (run / "alignment.tsv").read_bytes() == (at_once / "alignment.tsv").read_bytes()

    def test_another_sampler_changes_nothing_else(
        self, run: Path, clusterea_command: Command
    ) -> None:
        """It sees what the last round of each fit learned, and the rounds stay as they are."""
        before = artifacts(run)
        judged = clusterea_command("evaluate", run).out
        ran = clusterea_command("sample", run, "--sampler", "vps", "--num-batches", "5", *CPU)
        assert ran.code == 0, ran.err
        made = [line for line in ran.err.splitlines() if not line.endswith(": reused")]
        assert [line.partition(": vps, ")[2].partition(": ")[0] for line in made] == [
            *("round 2", "round 2, fit 2"),
        ]
        assert artifacts(run) == before | {"vps": artifacts(run)["vps"]}
        assert clusterea_command("evaluate", run).out == judged

    def test_training_anew_leaves_one_encoder(
        self, run: Path, pair: Path, clusterea_command: Command
    ) -> None:
        share = ["--seeds-share", "0.5"]
        asked = ["train", pair, "--out", run, *share, "--model", "label-propagation", *CPU]
        assert clusterea_command(*asked).code == 0
        assert artifacts(run).keys() == {"data", "train"}
        ran = clusterea_command("fuse", run, "--samplers", "", *CPU)
        assert ran.code == 0, ran.err
        assert artifacts(run).keys() == {"data", "train", "fuse-1", "fuse"}
        assert clusterea_command("match", run, *CPU).code == 0


def artifacts(run: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((run / "run.json").read_text())["artifacts"]
    return found


def test_a_sampler_does_not_see_held_out_seeds_either(
    pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    """What `sample` makes under a name is what `align` makes under it."""
    aligned(pair, tmp_path, "--seeds-share", "0.5", "--set", "matching.held_out=0.5")
    place = tmp_path / artifacts(tmp_path)["cmcs"]
    made = (place / "tensors.safetensors").read_bytes()
    shutil.rmtree(place)
    ran = clusterea_command("sample", tmp_path, *CPU)
    assert ran.code == 0, ran.err
    assert artifacts(tmp_path)["cmcs"] == place.name
    assert (place / "tensors.safetensors").read_bytes() == made


def test_labels_stage_by_stage(pair: Path, tmp_path: Path, clusterea_command: Command) -> None:
    """The fast preset by hand, but for its calibration and its number of fits."""
    by_hand, at_once = tmp_path / "by-hand", tmp_path / "at-once"
    settings = ("views=local,support", "csls=false", "sinkhorn_rounds=20")
    fusion = [part for setting in settings for part in ("--set", setting)]
    for asked in (
        ["train", pair, "--out", by_hand, *SHARE, "--model", "label-propagation", *CPU],
        ["fuse", by_hand, "--samplers", "", *fusion, *CPU],
        ["match", by_hand, *CPU],
    ):
        ran = clusterea_command(*asked)
        assert ran.code == 0, ran.err
    fast = ["--preset", "fast", "--set", "matching.held_out=0", *CPU]
    aligned(pair, at_once, how=fast)
    assert artifacts(by_hand) == artifacts(at_once)
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
        assert re.search(r"^fusion: [\d.]+ s", first.err, re.M)
        again = clusterea_command(*asked)
        assert again.out == first.out
        assert again.err.endswith("fusion: reused\n")

    def test_it_begins_with_what_align_had(self, run: Path, clusterea_command: Command) -> None:
        before = artifacts(run)
        ran = clusterea_command("fuse", run, *CPU)
        assert ran.code == 0, ran.err
        assert artifacts(run) == before
        had = json.loads((run / "run.json").read_text())["config"]["fusion"]
        ran = clusterea_command("fuse", run, "--seed", 7, *CPU)
        has = json.loads((run / "run.json").read_text())["config"]["fusion"]
        assert has == had | {"seed": 7}

    def test_the_links_of_another_similarity_are_gone_from_the_manifest(
        self, run: Path, clusterea_command: Command
    ) -> None:
        assert clusterea_command("fuse", run, "--set", "candidates=5", *CPU).code == 0
        assert "match" not in artifacts(run)
        assert clusterea_command("fuse", run, "--set", "candidates=6", *CPU).code == 0
        assert clusterea_command("match", run, *CPU).code == 0
        assert "match" in artifacts(run)

    def test_back_to_the_settings_of_the_links(self, run: Path, clusterea_command: Command) -> None:
        before = artifacts(run)
        for candidates in (7, 50):
            assert (
                clusterea_command("fuse", run, "--set", f"candidates={candidates}", *CPU).code == 0
            )
        assert artifacts(run) == before
        assert "Precision" in clusterea_command("evaluate", run).out

    def test_settings_of_another_version(self, run: Path, clusterea_command: Command) -> None:
        path = run / "run.json"
        described = json.loads(path.read_text())
        described["config"]["fusion"] = {"magic": 1}
        del described["checksum"]
        path.write_text(json.dumps(sealed("run", described)))
        ran = clusterea_command("fuse", run, *CPU)
        assert ran.code == 2
        assert "has settings of another version; `clusterea align` with the same data" in ran.err

    def test_a_sampler_that_was_not_asked_before(
        self, run: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("fuse", run, "--samplers", "cmcs,vps", *CPU)
        assert ran.code == 0, ran.err
        assert "sampling: cmcs: reused" in ran.err
        assert artifacts(run).keys() == {"data", "train", "cmcs", "vps", "fuse-1", "fuse"}

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
    def test_another_method_is_kept_until_another_is_asked_for(
        self, run: Path, clusterea_command: Command
    ) -> None:
        before = (run / "alignment.tsv").read_bytes()
        ran = clusterea_command("match", run, "--method", "best", *CPU)
        assert ran.code == 0, ran.err
        links = rows(run / "alignment.tsv")[1:]
        assert len({link[1] for link in links}) < len(links)  # many to one
        assert re.match(rf"{len(links)} links; \d+ and \d+ entities unmatched:", ran.out)
        assert clusterea_command("match", run, *CPU).out == ran.out
        again = clusterea_command("match", run, "--method", "one-to-one", *CPU)
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

    def test_metrics_and_report_follow(self, run: Path, clusterea_command: Command) -> None:
        old = json.loads((run / "metrics.json").read_text())
        assert clusterea_command("match", run, "--method", "mutual", *CPU).code == 0
        new = json.loads((run / "metrics.json").read_text())
        assert new["matching"] != old["matching"]
        assert clusterea_command("evaluate", run).code == 0
        assert json.loads((run / "metrics.json").read_text()) == new

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
        metrics = (run / "metrics.json").read_bytes()
        clusterea_command("fuse", run, "--samplers", "cmcs", "--set", "candidates=5", *CPU)
        ran = clusterea_command("evaluate", run)
        assert ran.code == 0
        assert "Precision" not in ran.out
        assert f"`clusterea match {run}`" in ran.err
        assert (run / "metrics.json").read_bytes() == metrics  # of the links that are there
        clusterea_command("match", run, *CPU)
        assert "Precision" in clusterea_command("evaluate", run).out

    def test_without_test_links(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        aligned(pair, tmp_path, "--seeds-share", "1")
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
                f"error: {folder}: expected a run, made by `clusterea align`; got none.\n"
            )
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("asked", "stage"),
        list(zip(COMMANDS[2:], ("fuse", "match", "match", "match"), strict=True)),
        ids=lambda value: value[0] if isinstance(value, list) else value,
    )
    def test_too_early(
        self,
        asked: list[str],
        stage: str,
        pair: Path,
        tmp_path: Path,
        clusterea_command: Command,
    ) -> None:
        command("train", pair, "--out", tmp_path, *SHARE, "--set", "epochs=2", *TRAIN)
        ran = clusterea_command(asked[0], tmp_path, *asked[1:])
        assert ran.code == 2
        assert ran.err == (
            f"error: {tmp_path}: has no result of `clusterea {stage}` yet. Run that, or `align`.\n"
        )

    @pytest.mark.parametrize(
        ("stage", "asked"),
        [
            ("train", ["fuse", "--set", "candidates=6", *CPU]),
            ("sample", ["fuse", "--set", "candidates=6", *CPU]),
            ("fuse", ["match", "--method", "best", *CPU]),
        ],
    )
    def test_a_stage_repairs_what_it_needs(
        self, stage: str, asked: list[str], run: Path, clusterea_command: Command
    ) -> None:
        (tensors,) = run.glob(f"{stage}-*/tensors.safetensors")
        made = tensors.read_bytes()
        tensors.write_bytes(made[: len(made) // 2])
        ran = clusterea_command(asked[0], run, *asked[1:])
        assert ran.code == 0, ran.err
        assert (
            f"warning: {tensors} is damaged or missing: the stage {stage} is run again." in ran.err
        )
        assert tensors.read_bytes() == made

    @pytest.mark.parametrize(
        ("damage", "asked"),
        [
            ("damaged", ["export", "--format", "tsv"]),
            ("missing", ["explain", "http://source.example/resource/E000261"]),
        ],
    )
    def test_damage_is_named_where_a_command_only_reads_and_the_advice_helps(
        self,
        damage: str,
        asked: list[str],
        run: Path,
        pair: Path,
        clusterea_command: Command,
    ) -> None:
        (tensors,) = run.glob("match-*/tensors.safetensors")
        if damage == "missing":
            tensors.unlink()
        else:
            tensors.write_bytes(tensors.read_bytes()[: tensors.stat().st_size // 2])
        ran = clusterea_command(asked[0], run, *asked[1:])
        assert ran.code == 2
        assert ran.err == (
            f"error: {tensors}: is {damage}; run `clusterea match` or `align` again to make it.\n"
        )
        before = (run / "alignment.tsv").read_bytes()
        again = aligned(pair, run)
        assert f"warning: {tensors} is damaged or missing: the stage match is run" in again.err
        assert (run / "alignment.tsv").read_bytes() == before
        assert clusterea_command(asked[0], run, *asked[1:]).code == 0
