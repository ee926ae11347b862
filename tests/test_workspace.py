"""Artifacts: whole or not there, found by what they were made from."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from clusterea.config import training_config
from clusterea.data.synthetic import SHAPES, generate
from clusterea.errors import DamagedError, InputError
from clusterea.export import EXPORTERS
from clusterea.types import Benchmark, Pair
from clusterea.workspace import (
    EXPORTED,
    FileCheckpoints,
    Workspace,
    fingerprint,
    read_tensors,
    recipe_key,
    write_tensors,
)


@pytest.fixture(scope="module")
def benchmark_() -> Benchmark:
    shape = replace(
        SHAPES["demo"], entities=Pair(120, 100), triples=Pair(500, 400), relations=Pair(8, 6)
    )
    whole = generate(shape, seed=0)
    seeds = whole.task.seeds
    dangling = whole.dangling
    assert dangling is not None
    never = dangling.map(lambda side: side[:4])
    task = type(whole.task)(whole.task.graphs, seeds[:20], structural=never)
    return replace(whole, task=task, test_links=seeds[20:], seeds_from={"links": 12, "iris": 8})


def test_data_comes_back_as_it_was(benchmark_: Benchmark, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "run")
    key = workspace.save_benchmark(benchmark_)
    back = workspace.load_benchmark()
    assert fingerprint(back) == fingerprint(benchmark_)
    for name in ("dropped", "format", "seeds_from"):
        assert getattr(back, name) == getattr(benchmark_, name)
    assert back.dangling is not None
    assert benchmark_.dangling is not None
    for mine, theirs in zip(back.dangling, benchmark_.dangling, strict=True):
        assert np.array_equal(mine, theirs)
    assert workspace.save_benchmark(back) == key


def test_the_fingerprint_sees_every_part(benchmark_: Benchmark) -> None:
    task = benchmark_.task
    others = [
        benchmark_.swap(),
        replace(benchmark_, test_links=benchmark_.test_links[1:]),
        replace(benchmark_, task=task.with_seeds(task.seeds[::-1])),
        replace(benchmark_, task=replace(task, structural=task.structural.map(lambda s: s[1:]))),
        replace(benchmark_, dangling=None),
    ]
    assert len({fingerprint(each) for each in [benchmark_, *others]}) == 6


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    number = gone.stdout.decode().strip()
    (tmp_path / "checkpoints").mkdir()
    dead = tmp_path / "checkpoints" / f".a-{number}-0123abcd.part"
    alive = tmp_path / f".b-{os.getpid()}-0123abcd.part"
    foreign = [tmp_path / name for name in (".mine.part", ".a-b.part", ".a-12-not.part")]
    dead.write_text("half")
    alive.mkdir()
    for path in foreign:
        path.touch()
    Workspace(tmp_path)
    assert not dead.exists()
    assert alive.exists()
    assert all(path.exists() for path in foreign)


def test_a_damaged_checkpoint_is_named_and_removed(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"rubbish")
    said: list[str] = []
    assert FileCheckpoints(tmp_path / "state", warn=said.append).latest() is None
    assert said == [f"{tmp_path / 'state'} is damaged: training begins anew."]
    assert not (tmp_path / "state").exists()


@pytest.fixture
def no_more_files() -> Iterator[None]:
    """This process may open no file."""
    number = os.open(os.devnull, os.O_RDONLY)  # the lowest that is free
    os.close(number)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestFilesThatCanNotBeOpened:
    """They are neither damaged nor missing, so nobody may remove them."""

    @pytest.fixture
    def tensors(self, tmp_path: Path) -> Path:
        write_tensors(tmp_path / "t", {"x": torch.arange(3)}, "t")
        return tmp_path / "t"

    @pytest.mark.usefixtures("tensors", "no_more_files")
    def test_tensors(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match="Too many open files"):
            read_tensors(tmp_path / "t", "t")

    @pytest.mark.usefixtures("tensors", "no_more_files")
    def test_a_checkpoint(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match="Too many open files"):
            FileCheckpoints(tmp_path / "t").latest()
        assert (tmp_path / "t").exists()

    def test_data(
        self, benchmark_: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        workspace = Workspace(tmp_path)
        workspace.save_benchmark(benchmark_)

        def denied(path: Path) -> str:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        monkeypatch.setattr("clusterea.workspace.file_checksum", denied)
        with pytest.raises(PermissionError):
            workspace.load_benchmark()


class TestChecksums:
    def test_every_flipped_bit_of_the_tensors_is_noticed(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        tensors = {"x": torch.arange(6.0).view(2, 3), "y": torch.tensor(7), "none": torch.empty(0)}
        write_tensors(path, tensors, "train-1")
        whole = path.read_bytes()
        assert read_tensors(path, "train-1")["y"] == 7
        start = 8 + int.from_bytes(whole[:8], "little")  # where the header ends
        for place in range(start, len(whole)):
            for bit in range(8):
                damaged = bytearray(whole)
                damaged[place] ^= 1 << bit
                path.write_bytes(damaged)
                with pytest.raises(DamagedError, match="t: is damaged"):
                    read_tensors(path, "train-1")

    def test_a_flipped_bit_of_the_header_changes_no_tensor_unnoticed(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        tensors = {"first": torch.arange(6), "other": torch.arange(6) + 1}
        write_tensors(path, tensors, "train-1")
        whole = path.read_bytes()
        for place in range(len(whole) - 96):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << (place % 8)
            path.write_bytes(damaged)
            try:
                back = read_tensors(path, "train-1")
            except DamagedError:
                continue
            assert {name: value.tolist() for name, value in back.items()} == {
                name: value.tolist() for name, value in tensors.items()
            }

    def test_files_that_were_exchanged_are_noticed(self, tmp_path: Path) -> None:
        write_tensors(tmp_path / "one", {"x": torch.arange(3)}, "train-1")
        write_tensors(tmp_path / "other", {"x": torch.arange(3)}, "train-2")
        read_tensors(tmp_path / "one", "train-1")
        with pytest.raises(DamagedError):
            read_tensors(tmp_path / "other", "train-1")

    def test_tensors_of_several_chunks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("clusterea.checksums.CHUNK", 64)
        write_tensors(tmp_path / "t", {"x": torch.arange(100)})
        assert torch.equal(read_tensors(tmp_path / "t")["x"], torch.arange(100))
        content = bytearray((tmp_path / "t").read_bytes())
        content[-64:], content[-128:-64] = content[-128:-64], content[-64:]
        (tmp_path / "t").write_bytes(content)
        with pytest.raises(DamagedError):
            read_tensors(tmp_path / "t")

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "7", '{"key": "a-1"}', '{"key": "a-2", "checksum": "0"}', "\0"]
    )
    def test_a_damaged_pointer_is_named(self, text: str, tmp_path: Path) -> None:
        workspace = Workspace(tmp_path)
        workspace.point("train", "a-1")
        assert workspace.current("train") == "a-1"
        (tmp_path / "train.json").write_text(text)
        with pytest.raises(DamagedError, match="train.json: is damaged.* `clusterea align`"):
            workspace.current("train")

    def test_pointers_that_were_exchanged_are_noticed(self, tmp_path: Path) -> None:
        workspace = Workspace(tmp_path)
        workspace.point("train", "a-1")
        (tmp_path / "train.json").rename(tmp_path / "train-2.json")
        with pytest.raises(DamagedError):
            workspace.current("train-2")

    @pytest.mark.parametrize(
        "name", ["about.json", "tensors.safetensors", "source_entities.parquet"]
    )
    @pytest.mark.parametrize("damage", ["gone", "empty", "bit", "tail"])
    def test_damaged_data_are_named_and_stored_again(
        self, name: str, damage: str, benchmark_: Benchmark, tmp_path: Path
    ) -> None:
        workspace = Workspace(tmp_path)
        key = workspace.save_benchmark(benchmark_)
        path = tmp_path / key / name
        whole = path.read_bytes()
        middle = len(whole) // 2
        bit = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
        changed = {"empty": b"", "bit": bit, "tail": whole[:-7]}
        path.unlink() if damage == "gone" else path.write_bytes(changed[damage])
        what = "missing" if damage == "gone" else "damaged"
        with pytest.raises(DamagedError, match=rf"{name}: is {what}.*`clusterea align`"):
            workspace.load_benchmark()
        said: list[str] = []
        assert workspace.save_benchmark(benchmark_, said.append) == key
        assert len(said) == 1
        assert str(path) in said[0]
        assert path.read_bytes() == whole
        assert fingerprint(workspace.load_benchmark()) == fingerprint(benchmark_)


def test_files_may_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    write_tensors(tmp_path / "t", {"x": torch.zeros(1)})
    (tmp_path / "plain").touch()
    assert (tmp_path / "t").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a run, as `clusterea train` makes one"):
        Workspace(tmp_path).load_benchmark()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; a run needs a folder"):
        Workspace(tmp_path / "file")


def test_clearing_removes_what_every_export_format_wrote(tmp_path: Path) -> None:
    assert set(EXPORTED) == set(EXPORTERS)
    for name in (*EXPORTED.values(), "exported.mine"):
        (tmp_path / name).touch()
    Workspace(tmp_path).clear()
    assert [path.name for path in tmp_path.iterdir()] == ["exported.mine"]


def test_an_artifact_that_fails_leaves_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with pytest.raises(RuntimeError, match="half way"), workspace.new("a-1", {}) as place:
        (place / "big").write_text("half of it")
        assert workspace.find("a-1") is None
        raise RuntimeError("half way")
    assert list(tmp_path.iterdir()) == []


def test_two_makers_of_one_artifact_do_not_hurt_each_other(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with workspace.new("a-1", {}) as mine:
        (mine / "file").write_text("mine")
        with workspace.new("a-1", {}) as theirs:
            (theirs / "file").write_text("theirs")
    assert (tmp_path / "a-1" / "file").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["a-1"]


def test_a_key_follows_what_the_result_depends_on_and_nothing_else() -> None:
    config = training_config("dual-amn")

    def key(other: object) -> str:
        assert isinstance(other, type(config))
        return recipe_key("train", other.recipe(), {"data": "data-1"})

    assert key(replace(config)) == key(config)
    changed = [
        replace(config, epochs=3),
        replace(config, seed=1),
        replace(config, fanout=None),
        training_config("rrea"),
    ]
    assert len({key(config), *map(key, changed)}) == 5
    assert recipe_key("train", config.recipe(), {"data": "data-2"}) != key(config)


def test_tensors_are_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.safetensors"
    checkpoints = FileCheckpoints(path)
    assert checkpoints.latest() is None
    checkpoints.save({"x": torch.arange(3)})

    def fails(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("safetensors.torch.save_file", fails)
        with pytest.raises(InputError, match="can't be written: disk full"):
            checkpoints.save({"x": torch.arange(9)})
    state = checkpoints.latest()
    assert state is not None
    assert state["x"].tolist() == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    checkpoints.remove()
    assert checkpoints.latest() is None


def test_a_view_is_saved_by_itself(tmp_path: Path) -> None:
    whole = torch.arange(10.0).view(5, 2)
    write_tensors(tmp_path / "t", {"source": whole[:2], "target": whole[2:]})
    back = read_tensors(tmp_path / "t")
    assert torch.equal(back["target"], whole[2:])


def test_an_artifact_says_what_it_is(tmp_path: Path) -> None:
    Workspace(tmp_path).save_tensors("a-1", {"stage": "a", "config": {"x": 1}}, {})
    recipe = json.loads((tmp_path / "a-1" / "recipe.json").read_text())
    assert recipe == {"stage": "a", "config": {"x": 1}}
