"""A run in a folder: what it writes, what comes back, and what it keeps."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import CPU, Ear, artifacts, assert_same, benchmark, in_rounds, quick, reused

import clusterea
from clusterea.config import Config, config_with
from clusterea.errors import DamagedError, DataError, InputError
from clusterea.pipeline import AlignmentResult, Stage, load_run, run_in_folder
from clusterea.types import Benchmark, Metrics
from clusterea.workspace import OUTPUTS, Manifest, Workspace

Ran = tuple[AlignmentResult, Metrics | None]
CONFIGS = {
    "samplers": quick(),
    "rounds": in_rounds(),
    "fits": in_rounds("matching.fits=2", "self_training.rounds=1"),
}


def run(folder: Path, given: Benchmark, config: Config = CONFIGS["samplers"], **more: Any) -> Ran:
    return run_in_folder(Workspace(folder), given, config, CPU, Ear(), **more)


@pytest.fixture(scope="module")
def given() -> Benchmark:
    return benchmark((260, 230), share=0.6)  # so many seeds that some are held out


@pytest.fixture(scope="module", params=CONFIGS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def whole(
    kind: str, given: Benchmark, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Ran]:
    """A run of each kind; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / kind
    return folder, run(folder, given, CONFIGS[kind], min_confidence=0.1, top=60)


class TestLoaded:
    def test_all_is_as_it_was(self, whole: tuple[Path, Ran], given: Benchmark) -> None:
        folder, (fresh, metrics) = whole
        found = load_run(folder, need="match")
        assert_same(found, fresh)
        assert found.config == fresh.config
        assert (found.min_confidence, found.top) == (0.1, 60)
        assert len(found.alignment.links) == 60 < len(found.all_links.links)
        assert torch.equal(found.alignment.links, fresh.alignment.links)
        assert found.evaluate() == fresh.evaluate() == metrics
        for entity in (*fresh.alignment.links[:3, 0], *fresh.alignment.unmatched.source[:9]):
            name = given.names.source[int(entity)]
            assert repr(found.explain(name)) == repr(fresh.explain(name))
        stages = [cost.stage for cost in found.timings]
        assert stages == [*(cost.stage for cost in fresh.timings), "evaluation", "writing"]

    def test_its_files(self, whole: tuple[Path, Ran], tmp_path: Path) -> None:
        folder, (fresh, metrics) = whole
        assert all((folder / name).is_file() for name in OUTPUTS)
        assert metrics is not None
        assert json.loads((folder / "metrics.json").read_text()) == metrics.to_dict()
        assert len((folder / "alignment.tsv").read_text().splitlines()) == 1 + 60
        load_run(folder).export(tmp_path / "links.tsv", "tsv")
        fresh.export(tmp_path / "fresh.tsv", "tsv")
        assert (tmp_path / "links.tsv").read_bytes() == (tmp_path / "fresh.tsv").read_bytes()
        load_run(folder).report(tmp_path / f"{folder.name}.html")
        assert (tmp_path / f"{folder.name}.html").stat().st_size > 10_000
        values = Manifest.read(folder).values
        assert values["links"] == 60
        rows = [(row["fit"], row["round"]) for row in values["self_training"]]
        assert rows == sorted(set(rows))
        assert [fit - 1 for fit, _ in rows] == [each.fit for each in fresh.rounds]

    def test_nothing_is_read_before_it_is_asked_for(
        self, whole: tuple[Path, Ran], tmp_path: Path
    ) -> None:
        folder = Path(shutil.copytree(whole[0], tmp_path / "run"))
        for stage in ("train", "fuse"):
            for place in artifacts(folder, stage):
                shutil.rmtree(place)
        found = load_run(folder)
        assert len(found.alignment.links) == 60
        with pytest.raises(DamagedError, match="fuse-.* is missing; run `clusterea fuse` or"):
            _ = found.similarity


@pytest.mark.parametrize(("until", "then"), [("train", "sample"), ("sample", "fuse")])
def test_a_stage_that_was_not_reached_is_named(
    until: Stage, then: Stage, given: Benchmark, tmp_path: Path
) -> None:
    result, metrics = run(tmp_path, given, until=until)
    assert metrics is None
    assert [name for name in OUTPUTS if (tmp_path / name).exists()] == ["run.json"]
    found = load_run(tmp_path)
    assert found.keys == result.keys
    assert found.config == result.config
    for need in ("fuse", "match"):
        with pytest.raises(DataError, match=f"has no result of `clusterea {need}` yet"):
            load_run(tmp_path, need=need)
    with pytest.raises(InputError, match="stopped before `fuse`"):
        _ = found.similarity
    further, _ = run(tmp_path, given, until=then)
    assert "training" in reused(further)
    values = Manifest.read(tmp_path).values
    assert [cost["stage"] for cost in values["stages"]] == [cost.stage for cost in further.timings]
    assert not values["stages"][0]["reused"]  # what it took when it was made
    assert set(values["num_batches"]) == set(CONFIGS["samplers"].samplers)
    assert load_run(tmp_path).keys == further.keys


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a run"):
        load_run(tmp_path)


class TestStoppedEarly:
    """In a folder that has a whole run already."""

    @pytest.fixture
    def folder(self, given: Benchmark, tmp_path: Path) -> Path:
        run(tmp_path, given, top=9)
        return tmp_path

    def test_the_same_run_keeps_what_it_had(self, given: Benchmark, folder: Path) -> None:
        before = (folder / "run.json").read_bytes()
        run(folder, given, until="train")
        assert (folder / "run.json").read_bytes() == before

    @pytest.mark.parametrize("change", ["config", "data", "damage"])
    def test_another_does_not(self, change: str, given: Benchmark, folder: Path) -> None:
        config = CONFIGS["samplers"]
        if change == "config":
            config = config_with(config, ["matching.method=greedy"])
        elif change == "data":
            given = replace(given, test_links=given.test_links[1:])
        else:
            (folder / "run.json").write_text("")
        run(folder, given, config, until="train")
        found = Manifest.read(folder)
        assert set(found.artifacts) == {"data", "train"}
        assert "links" not in found.values
        assert found.config == config


def test_metrics_of_other_test_links_do_not_stay(given: Benchmark, tmp_path: Path) -> None:
    run(tmp_path, given)
    assert (tmp_path / "metrics.json").exists()
    _, metrics = run(tmp_path, replace(given, test_links=given.test_links[:0]))
    assert metrics is None
    assert not (tmp_path / "metrics.json").exists()


class TestFromPython:
    """`clusterea.align(…, run=…)` leaves a folder that the commands can read."""

    def test_a_task_alone_has_numbers_for_names(self, given: Benchmark, tmp_path: Path) -> None:
        result = clusterea.align(given.task, "fast", device="cpu", run=tmp_path)
        found = load_run(tmp_path, need="match")
        assert_same(found, result)
        assert found.named.names.source[7] == "7"
        source, target = result.alignment.links[0].tolist()
        assert (
            (tmp_path / "alignment.tsv")
            .read_text()
            .splitlines()[1]
            .startswith(f"{source}\t{target}\t")
        )
        assert repr(found.explain(source)) == repr(result.explain(source))
        assert found.evaluate(given.test_links) == result.evaluate(given.test_links)
        with pytest.raises(InputError, match="no test links to judge by"):
            found.evaluate()
        found.export(tmp_path / "links.tsv", "tsv")
        assert (tmp_path / "links.tsv").stat().st_size

    def test_other_data_are_refused_unless_told_to_overwrite(
        self, given: Benchmark, tmp_path: Path
    ) -> None:
        clusterea.align(given, "fast", device="cpu", run=tmp_path)
        other = replace(given, task=given.task.with_seeds(given.task.seeds[1:]))
        with pytest.raises(InputError, match="other graphs or seeds.*with overwrite=True"):
            clusterea.align(other, "fast", device="cpu", run=tmp_path)
        result = clusterea.align(other, "fast", device="cpu", run=tmp_path, overwrite=True)
        assert not reused(result)
        assert len(artifacts(tmp_path, "match")) == 1
