"""`clusterea sample`: the mini-batches of a run, their sizes and their overlap."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from tiny_runs import SHARE, Command, command, write_pair

from clusterea.evaluation.overlap import Overlap
from clusterea.samplers import SAMPLERS
from conftest import stored

SAMPLE = import_module("clusterea.cli.sample")  # the package's `sample` is the command
CHEAP = ["--set", "gcn_epochs=5", "--classifier", "softmax", "--device", "cpu"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    pair = write_pair(folder / "pair")
    quick = ["--set", "epochs=2", "--set", "dimension=16", "--device", "cpu"]
    ran = command("train", pair, "--out", folder / "run", *SHARE, *quick)
    assert ran.code == 0, ran.err
    return folder / "run"


def written(out: str) -> Path:
    return Path(out.splitlines()[-1].strip())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_puts_every_entity_somewhere(
    sampler: str, run: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command("sample", run, "--sampler", sampler, "--num-batches", "3", *CHEAP)
    assert ran.code == 0, ran.err
    tensors = stored(written(ran.out))
    assert tensors["source"].shape == (300,)
    assert tensors["target"].shape == (250,)
    assert int(tensors["num_batches"]) == 3
    for side in ("source", "target"):
        assert set(tensors[side].tolist()) <= {0, 1, 2}


def test_it_prints_sizes_and_overlap(run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("sample", run, "--sampler", "vps", "--num-batches", "4", *CHEAP)
    sizes = re.findall(r"^ *(source|target) +(\d+) +(\d+) +(\d+) +([\d.]+) *$", ran.out, re.M)
    assert [size[0] for size in sizes] == ["source", "target"]
    assert [int(size[2]) for size in sizes] == [75, 62]
    share = r"[\d.]+%"
    assert re.search(
        rf"Overlap: {share} of the test links, 100\.0% of the seeds, {share} of all", ran.out
    )


def test_the_same_again_is_found(run: Path, clusterea_command: Command) -> None:
    asked = ["sample", run, "--num-batches", "2", *CHEAP]
    first = clusterea_command(*asked)
    made = written(first.out).stat().st_mtime_ns
    again = clusterea_command(*asked)
    assert again.out == first.out
    assert written(again.out).stat().st_mtime_ns == made
    other = clusterea_command(*asked, "--seed", "1")
    assert written(other.out) != written(first.out)


def test_one_that_is_too_large_is_split(run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command(
        "sample", run, "--sampler", "vps", "--set", "num_batches=2", "--max-batch", "100", *CHEAP
    )
    assert ran.code == 0, ran.err
    found = re.search(r"(\d+) mini-batches: some of the 2 had more than 100 entities", ran.out)
    assert found is not None, ran.out
    tensors = stored(written(ran.out))
    assert int(tensors["num_batches"]) == int(found[1]) > 2
    for side in ("source", "target"):
        assert int(tensors[side].bincount().max()) <= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sampler", "iscss"], "unknown sampler 'iscss'; choose one of cmcs.*'iscs'"),
        (["--num-batches", "0"], r"num_batches must be an int in \[1, inf\). Got 0"),
        (["--num-batches", "few"], "Invalid value for '--num-batches'"),
        (["--classifier", "forest"], "unknown classifier 'forest'; choose one of xgboost, softmax"),
        (["--max-batch", "0"], "max_batch must be"),
        (["--set", "gcn_epcohs=3"], "unknown setting 'gcn_epcohs'.*Did you mean 'gcn_epochs'"),
        (["--device", "gpu"], "--device must be auto, cpu or cuda"),
    ],
)
def test_bad_options(
    arguments: list[str], message: str, run: Path, clusterea_command: Command
) -> None:
    before = set(run.iterdir())
    ran = clusterea_command("sample", run, *arguments)
    assert ran.code == 2
    assert re.search(message, ran.err, re.DOTALL), ran.err
    assert set(run.iterdir()) == before


def test_a_folder_that_is_no_run(tmp_path: Path, clusterea_command: Command) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        ran = clusterea_command("sample", folder)
        assert ran.code == 2
        assert ran.err == (
            f"error: {folder}: expected a run, made by `clusterea align`; got none.\n"
        )
    assert not (tmp_path / "nowhere").exists()


def test_an_overlap_of_not_quite_all_is_not_shown_as_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    SAMPLE._print_overlap(
        Overlap(seeds=1.0, test=0.9997, all=0.9998, macro=0.0002), has_test_links=True
    )
    assert capsys.readouterr().out == (
        "Overlap: 99.97% of the test links, 100.0% of the seeds, 99.98% of all (0.02% as the "
        "authors' release counts it).\n"
    )
