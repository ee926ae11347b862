"""What a run does again, and how it goes on after it was killed, stopped or run twice at once."""

from __future__ import annotations

import json
import shutil
import signal
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from forked import FOLDER, Forked
from tiny_runs import (
    PAPER,
    ROUNDS,
    SHARE,
    Command,
    aligned,
    command,
    events,
    leftovers,
    reused,
    write_pair,
)

from clusterea.workspace import read_tensors

STAGES = ["training", "sampling: cmcs", "fusion", "matching"]
# Of each fit: label propagation first, and in the next round; both encoders in the last.
FIRST_FIT = [
    *("propagation", "fusion", "self-training, round 1"),
    *("propagation, round 1", "fusion, round 1", "self-training, round 2"),
    *("training, round 2", "propagation, round 2", "fusion, round 2"),
]
IN_ROUNDS = [
    *FIRST_FIT,
    *(f"{stage}, fit 2" for stage in FIRST_FIT),
    *("fusion of both fits", "matching"),
]
LONG = ["--set", "training.epochs=20"]  # long enough to be killed in the middle
STOPPED = "Stopped. Run the same command again to continue."


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def unbroken(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    run = tmp_path_factory.mktemp("unbroken")
    aligned(pair, run, *LONG, "--quiet")
    return (run / "alignment.tsv").read_bytes()


@pytest.fixture(scope="module")
def unbroken_rounds(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("unbroken-rounds")
    aligned(pair, run, "--quiet", how=ROUNDS)
    return run


def contents(run: Path) -> dict[str, bytes]:
    """Of every artifact, and of the links."""
    paths = [*run.glob("*-*/*"), *run.glob("*.tsv")]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths if path.is_file()}


def kept_stages(err: str) -> list[str]:
    """Of what `--json` said: the stages that were there already, in every fold."""
    ended = [event for event in events(err) if event["event"] == "end"]
    computed = {event["stage"] for event in ended if not event["reused"]}
    every = dict.fromkeys(event["stage"] for event in ended)
    return [stage for stage in every if stage not in computed]


def artifacts(run: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in run.glob("*-*/*")}


def check_sound(run: Path) -> None:
    """Everything in the folder can be read, and nothing half written is left."""
    assert not leftovers(run)
    for path in run.rglob("*"):
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".safetensors":
            assert read_tensors(path, path.parent.name)
        elif path.suffix == ".parquet":
            pq.read_table(path)
    for key in json.loads((run / "run.json").read_text())["artifacts"].values():
        assert (run / key).is_dir()
    assert (run / "report.html").read_text().rstrip().endswith("</html>")


class TestAgain:
    def test_only_what_depends_on_a_change_is_computed(self, pair: Path, tmp_path: Path) -> None:
        first = aligned(pair, tmp_path, "--json")
        assert not any(reused(first.err).values())
        made = artifacts(tmp_path)
        written = (tmp_path / "alignment.tsv").read_bytes()

        again = aligned(pair, tmp_path, "--json")
        assert {stage: reused(again.err)[stage] for stage in STAGES} == dict.fromkeys(STAGES, True)
        assert artifacts(tmp_path) == made
        assert (tmp_path / "alignment.tsv").read_bytes() == written
        assert again.out == first.out

        fused = reused(aligned(pair, tmp_path, "--json", "--set", "fusion.candidates=5").err)
        assert [fused[stage] for stage in STAGES] == [True, True, False, False]
        matched = reused(aligned(pair, tmp_path, "--json", "--set", "matching.method=best").err)
        assert [matched[stage] for stage in STAGES] == [True, True, True, False]
        sampled = reused(aligned(pair, tmp_path, "--json", "--set", "sampling.num_batches=3").err)
        assert [sampled[stage] for stage in STAGES] == [True, False, False, False]

        back = aligned(pair, tmp_path, "--json")  # to the first settings: all still there
        assert all(reused(back.err)[stage] for stage in STAGES)
        assert (tmp_path / "alignment.tsv").read_bytes() == written
        check_sound(tmp_path)

    def test_of_several_rounds_only_what_depends_on_a_change_is_computed(
        self, pair: Path, unbroken_rounds: Path, tmp_path: Path
    ) -> None:
        run = Path(shutil.copytree(unbroken_rounds, tmp_path / "run"))
        made = artifacts(run)

        def kept(*settings: str) -> list[str]:
            more = [word for setting in settings for word in ("--set", setting)]
            return kept_stages(aligned(pair, run, "--json", *more, how=ROUNDS).err)

        def of_both(*stages: str) -> list[str]:
            return [*stages, *(f"{stage}, fit 2" for stage in stages)]

        assert kept() == IN_ROUNDS
        assert artifacts(run) == made
        assert kept("matching.method=best") == IN_ROUNDS[:-1]
        assert kept("matching.fits=1") == FIRST_FIT
        in_last_round = [*FIRST_FIT[:6], "propagation, round 2"]
        assert kept("training.dimension=24") == of_both(*in_last_round)
        assert kept("self_training.threshold=0.2") == of_both("propagation", "fusion")
        assert kept("fusion.candidates=5") == of_both("propagation")
        assert kept("propagation.rounds=1") == []
        assert kept("matching.seed=1") == []
        assert kept() == IN_ROUNDS  # the first settings again: all still there
        assert contents(unbroken_rounds).items() <= contents(run).items()
        check_sound(run)

    def test_a_seed_concerns_everything(self, pair: Path, tmp_path: Path) -> None:
        aligned(pair, tmp_path, "--quiet")
        other = reused(aligned(pair, tmp_path, "--json", "--seed", "1").err)
        assert not any(other[stage] for stage in STAGES)

    def test_and_every_round(self, pair: Path, unbroken_rounds: Path, tmp_path: Path) -> None:
        run = Path(shutil.copytree(unbroken_rounds, tmp_path / "run"))
        other = reused(aligned(pair, run, "--json", "--seed", "1", how=ROUNDS).err)
        assert other.keys() >= set(IN_ROUNDS)
        assert not any(other.values())

    def test_other_test_links_concern_only_the_metrics(self, pair: Path, tmp_path: Path) -> None:
        files = [pair / f"rel_triples_{number}" for number in (1, 2)]
        links = (pair / "ent_links").read_text().splitlines(keepends=True)
        (tmp_path / "seeds.tsv").write_text("".join(links[:63]))
        (tmp_path / "test.tsv").write_text("".join(links[63:150]))
        seeds, run = tmp_path / "seeds.tsv", tmp_path / "run"
        asked = [*map(str, ("align", *files, "--seeds", seeds, "--out", run)), *PAPER, "--json"]
        first = command(*asked)
        assert first.code == 0, first.err
        assert not (tmp_path / "run" / "metrics.json").exists()
        judged = command(*asked, "--test-links", tmp_path / "test.tsv")
        assert judged.code == 0, judged.err
        assert all(reused(judged.err)[stage] for stage in STAGES)
        metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
        assert metrics["test_links"] == 87


WRITES = (
    *(("/.data-", "tensors.safetensors"), ("/.data-", "about.json"), ("/data-", FOLDER)),
    *(("/checkpoints/", ""), ("/.train-", ".safetensors"), ("/train-", FOLDER)),
    *(("/.sample-", ".safetensors"), ("/sample-", FOLDER), ("/.fuse-", ".safetensors")),
    *(("/fuse-", FOLDER), ("/match-", FOLDER), ("/alignment.tsv", "")),
    *(("/unmatched_source.tsv", ""), ("/candidates.parquet", ""), ("/metrics.json", "")),
    *(("/report.html", ""), ("/run.json", "")),
)  # in the order of a run

WRITES_OF_ROUNDS = (
    *(("/train-", FOLDER), ("/fuse-", FOLDER)),
    *(("/.pseudo-", ".safetensors"), ("/pseudo-", FOLDER), ("/match-", FOLDER)),
)  # in the order of a run


@pytest.mark.slow
class TestKilled:
    @pytest.mark.parametrize(
        ("stage", "event"),
        [
            *(("training", "step"), ("sampling: cmcs", "begin"), ("fusion", "begin")),
            *(("fusion", "step"), ("matching", "begin"), ("writing", "begin")),
        ],
    )
    def test_at_a_stage(
        self, stage: str, event: str, pair: Path, unbroken: bytes, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        asked = ("align", str(pair), "--out", str(run), *SHARE, *PAPER, *LONG, "--json")
        process = Forked(tmp_path, *asked)
        for line in process.err:
            told = json.loads(line)
            if (told["stage"], told["event"]) == (stage, event) and told.get("done", 5) >= 5:
                process.send(signal.SIGKILL)
                break
        assert process.wait() == -signal.SIGKILL, "it was done before it could be killed"
        assert not (run / "run.json").exists()
        kept = {"training": "checkpoints", "sampling: cmcs": "train-", "fusion": "sample-"}
        if stage in kept:
            assert list(run.glob(f"{kept[stage]}*/*.safetensors"))
        code, err = Forked(tmp_path, *asked).finish()
        assert code == 0, err
        before = STAGES[: STAGES.index(stage)] if stage in STAGES else STAGES
        assert all(reused(err)[each] for each in before)
        if stage == "training":
            steps = [each for each in events(err) if each["event"] == "step"]
            assert steps[0]["done"] > 1  # it went on, from a checkpoint
        assert (run / "alignment.tsv").read_bytes() == unbroken
        check_sound(run)

    @pytest.mark.parametrize(
        ("stage", "event"),
        [
            *(("propagation", "begin"), ("fusion", "begin"), ("self-training, round 1", "begin")),
            *(("propagation, round 1", "step"), ("fusion, round 1", "begin")),
            *(("fusion, round 1", "step"), ("self-training, round 2", "begin")),
            *(("training, round 2", "step"), ("fusion, round 2", "begin")),
            *(("propagation, fit 2", "begin"), ("self-training, round 1, fit 2", "begin")),
            *(("fusion, round 1, fit 2", "step"), ("training, round 2, fit 2", "step")),
            *(("fusion of both fits", "begin"), ("matching", "begin")),
        ],
    )
    def test_in_a_round(
        self, stage: str, event: str, pair: Path, unbroken_rounds: Path, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        asked = ("align", str(pair), "--out", str(run), *SHARE, *ROUNDS, "--json")
        process = Forked(tmp_path, *asked)
        for line in process.err:
            told = json.loads(line)
            if (told["stage"], told["event"]) == (stage, event):
                process.send(signal.SIGKILL)
                break
        assert process.wait() == -signal.SIGKILL, "it was done before it could be killed"
        assert not (run / "run.json").exists()
        code, err = Forked(tmp_path, *asked).finish()
        assert code == 0, err
        before = IN_ROUNDS[: IN_ROUNDS.index(stage)]
        assert kept_stages(err)[: len(before)] == before
        assert contents(run) == contents(unbroken_rounds)
        check_sound(run)

    def test_in_the_middle_of_each_write_of_several_rounds(
        self, pair: Path, unbroken_rounds: Path, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        asked = ("align", str(pair), "--out", str(run), *SHARE, *ROUNDS, "--quiet")
        for write in WRITES_OF_ROUNDS:
            code, err = Forked(tmp_path, *asked, die_in=write).finish()
            assert (code, err) == (-signal.SIGKILL, ""), write
            assert len(leftovers(run)) >= 1
        code, err = Forked(tmp_path, *asked).finish()
        assert (code, err) == (0, "")
        assert contents(run) == contents(unbroken_rounds)
        check_sound(run)

    def test_in_the_middle_of_each_write_of_the_second_fit(
        self, pair: Path, unbroken_rounds: Path, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        asked = ("align", str(pair), "--out", str(run), *SHARE, *ROUNDS)
        aligned(pair, run, "--quiet", "--set", "matching.fits=1", how=ROUNDS)
        for write in WRITES_OF_ROUNDS:
            code, err = Forked(tmp_path, *asked, "--quiet", die_in=write).finish()
            assert (code, err) == (-signal.SIGKILL, ""), write
            assert len(leftovers(run)) >= 1
        code, err = Forked(tmp_path, *asked, "--json").finish()
        assert code == 0, err
        assert set(kept_stages(err)) >= {*FIRST_FIT, "propagation, fit 2"}
        assert contents(unbroken_rounds).items() <= contents(run).items()
        check_sound(run)

    def test_in_the_middle_of_each_write_one_after_the_other(
        self, pair: Path, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        asked = ("align", str(pair), "--out", str(run), *SHARE, *PAPER, "--quiet")
        for write in WRITES:
            code, err = Forked(tmp_path, *asked, die_in=write).finish()
            assert (code, err) == (-signal.SIGKILL, ""), write
            assert len(leftovers(run)) >= 1  # of this one; those of the one before are gone
        code, err = Forked(tmp_path, *asked).finish()
        assert (code, err) == (0, "")
        aligned(pair, tmp_path / "unbroken", "--quiet")
        for name in ("alignment.tsv", "metrics.json", "unmatched_source.tsv"):
            assert (run / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()
        check_sound(run)


@pytest.mark.slow
def test_two_runs_into_one_folder(pair: Path, unbroken: bytes, tmp_path: Path) -> None:
    run = tmp_path / "run"
    asked = ("align", str(pair), "--out", str(run), *SHARE, *PAPER, *LONG, "--json")
    first = Forked(tmp_path, *asked)
    first.err.readline()  # it has begun
    code, err = Forked(tmp_path, *asked).finish()
    assert code == 2
    told = json.loads(err)  # one line
    assert told["event"] == "error"
    assert told["message"].startswith(f"{run} is in use by `clusterea align` (process ")
    code, err = first.finish()
    assert code == 0, err
    assert (run / "alignment.tsv").read_bytes() == unbroken
    check_sound(run)


class TestStopped:
    @pytest.mark.slow
    @pytest.mark.parametrize(("stage", "word"), [("training", "Disk"), ("writing", "evaluation:")])
    def test_ctrl_c(
        self, stage: str, word: str, pair: Path, unbroken: bytes, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        process = Forked(tmp_path, "align", pair, "--out", run, *SHARE, *PAPER, *LONG)
        told = []
        for line in process.err:
            told.append(line)
            if line.startswith(word):
                process.send(signal.SIGINT)
                break
        told += list(process.err)
        assert process.wait() == 130, told
        assert told[-1] == f"{STOPPED}\n"  # one sentence, right after what it was doing
        assert told[-2].startswith(word)
        assert not leftovers(run)
        assert not (run / "run.json").exists()
        aligned(pair, run, *LONG, "--quiet")
        assert (run / "alignment.tsv").read_bytes() == unbroken

    def test_ctrl_c_as_json(
        self, pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("clusterea.pipeline.run_in_folder", interrupted)
        ran = command("align", pair, "--out", tmp_path, *SHARE, *PAPER, "--json")
        assert ran.code == 130
        assert events(ran.err) == [{"event": "stopped"}]

    @pytest.mark.parametrize(
        ("asked", "place"),
        [
            (["align", "{pair}", "--out", "{out}"], "clusterea.data.load"),
            (["info", "{pair}"], "clusterea.data.load"),
            (["train", "{pair}", "--out", "{out}"], "clusterea.data.load"),
            (["match", "{out}"], "clusterea.pipeline.load_run"),
            (["datasets", "list"], "clusterea.data.datasets.is_fetched"),
        ],
        ids=lambda value: value[0] if isinstance(value, list) else "",
    )
    def test_ctrl_c_anywhere(
        self,
        asked: list[str],
        place: str,
        pair: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        clusterea_command: Command,
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        module, _, name = place.rpartition(".")
        monkeypatch.setattr(import_module(module), name, interrupted)
        words = {"{pair}": str(pair), "{out}": str(tmp_path / "run")}
        ran = clusterea_command(*(words.get(word, word) for word in asked))
        assert ran.code == 130
        goes_on = asked[0] in ("align", "train", "match")
        after = " Run the same command again to continue." if goes_on else ""
        assert ran.err == f"Stopped.{after}\n"
        assert not (tmp_path / "run").exists()
