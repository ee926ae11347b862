"""Artifacts: whole or not there, found by what they were made from."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from clusterea.checksums import tensors_checksum
from clusterea.config import preset, training_config
from clusterea.data.synthetic import SHAPES, generate
from clusterea.errors import DamagedError, DataError, InputError
from clusterea.export import EXPORTERS
from clusterea.types import AlignmentTask, Benchmark, KnowledgeGraph, Pair, Texts
from clusterea.workspace import (
    EXPORTED,
    OUTPUTS,
    FileCheckpoints,
    Manifest,
    Workspace,
    fingerprint,
    read_tensors,
    recipe_key,
    task_key,
    write_tensors,
)
from clusterea.workspace.tensors import TYPES


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
    back = workspace.load_benchmark(key)
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


def with_contents(benchmark: Benchmark) -> Benchmark:
    """With names, labels, presumed pairs and features."""
    task = benchmark.task
    left = benchmark.test_links[:7]

    def texts(side: str) -> Callable[[int], Texts]:
        return lambda size: Texts.of_lists(
            [[f"{side} {n}", "Zoë\n\0"][: n % 3] for n in range(size)]
        )

    names = Pair("one", "two").zip(task.num_entities).map(lambda each: texts(each[0])(each[1]))
    features = task.num_entities.map(
        lambda size: np.arange(3 * size, dtype=np.float32).reshape(size, 3)
    )
    return replace(
        benchmark,
        task=replace(task, presumed=left, names=names, features=features),
        labels=task.num_entities.map(texts("label")),
    )


class TestContents:
    """Names, labels, presumed pairs and features."""

    def test_come_back_as_they_were(self, benchmark_: Benchmark, tmp_path: Path) -> None:
        whole = with_contents(benchmark_)
        workspace = Workspace(tmp_path / "run")
        back = workspace.load_benchmark(workspace.save_benchmark(whole))
        assert fingerprint(back) == fingerprint(whole)
        assert back.task.presumed.tolist() == whole.task.presumed.tolist()
        for kept, given in (
            (back.task.names, whole.task.names),
            (back.labels, whole.labels),
        ):
            assert kept is not None
            assert given is not None
            for mine, theirs in kept.zip(given):
                assert mine.offsets.tolist() == theirs.offsets.tolist()
                assert mine.values.equals(theirs.values)
        assert back.task.features is not None
        assert whole.task.features is not None
        for one, other in back.task.features.zip(whole.task.features):
            assert one.dtype == np.float32
            assert np.array_equal(one, other)

    def test_none_come_back_as_none(self, benchmark_: Benchmark, tmp_path: Path) -> None:
        workspace = Workspace(tmp_path / "run")
        key = workspace.save_benchmark(benchmark_)
        back = workspace.load_benchmark(key)
        assert back.labels is None
        assert back.task.names is None
        assert back.task.features is None
        assert not len(back.task.presumed)
        assert not list((tmp_path / "run" / key).glob("*names*"))

    def test_names_that_are_damaged_or_missing_are_noticed(
        self, benchmark_: Benchmark, tmp_path: Path
    ) -> None:
        workspace = Workspace(tmp_path / "run")
        key = workspace.save_benchmark(with_contents(benchmark_))
        path = tmp_path / "run" / key / "target_names.parquet"
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(DamagedError, match="target_names.parquet: is damaged"):
            workspace.load_benchmark(key)
        path.unlink()
        with pytest.raises(DamagedError, match="target_names.parquet: is missing"):
            workspace.load_benchmark(key)

    def test_the_key_of_a_task_sees_names_and_features_but_not_labels(
        self, benchmark_: Benchmark
    ) -> None:
        whole = with_contents(benchmark_)
        task = whole.task
        assert task.names is not None
        assert task.features is not None
        one_name = task.names.source.without(np.array([1]))
        one_less = Pair(task.features.source, task.features.target + 1)
        others = [
            task,
            replace(task, names=None),
            replace(task, names=Pair(one_name, task.names.target)),
            replace(task, presumed=task.presumed[:-1]),
            replace(task, presumed=task.presumed[::-1]),
            replace(task, features=None),
            replace(task, features=one_less),
            task.with_seeds(task.all_seeds),
        ]
        assert len({task_key(each) for each in others}) == len(others)
        assert task_key(replace(whole, labels=None).task) == task_key(task)
        assert fingerprint(replace(whole, labels=None)) != fingerprint(whole)

    def test_names_moved_to_another_entity_give_another_key(self, benchmark_: Benchmark) -> None:
        sizes = benchmark_.task.num_entities
        lists = sizes.map(lambda size: [["same"], [], *[[]] * (size - 2)])
        moved = sizes.map(lambda size: [[], ["same"], *[[]] * (size - 2)])
        keys = {
            task_key(replace(benchmark_.task, names=each.map(Texts.of_lists)))
            for each in (lists, moved)
        }
        assert len(keys) == 2

    def test_a_key_without_them_is_that_of_structure_alone(self) -> None:
        """Artifacts of runs without names stay valid. The hash is spelled out."""
        graph = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
        task = AlignmentTask(Pair(graph, graph), np.array([[0, 1]]))
        digest = hashlib.sha256(b"2 12 1")
        for array in (graph.triples, graph.triples, task.seeds, *task.tie_keys):
            digest.update(str(array.shape).encode())
            digest.update(array.tobytes())
        assert task_key(task) == recipe_key("task", {"fingerprint": digest.hexdigest()}, {})

    def test_a_slice_of_names_has_the_key_of_a_copy(self, benchmark_: Benchmark) -> None:
        size = benchmark_.task.num_entities
        whole = size.map(lambda count: pa.array(["left out", *map(str, range(count))]))
        offsets = size.map(lambda count: np.arange(count + 1))
        sliced = offsets.zip(whole).map(lambda side: Texts(side[0], side[1][1:]))
        copied = size.map(lambda count: Texts.of_lists([[str(each)] for each in range(count)]))
        one, other = (replace(benchmark_.task, names=each) for each in (sliced, copied))
        assert task_key(one) == task_key(other)


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
    assert said == [f"{tmp_path / 'state'} is damaged: training starts over."]
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
        key = workspace.save_benchmark(benchmark_)

        def denied(path: Path) -> str:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        monkeypatch.setattr("clusterea.workspace.data.file_checksum", denied)
        with pytest.raises(PermissionError):
            workspace.load_benchmark(key)


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
            workspace.load_benchmark(key)
        said: list[str] = []
        assert workspace.save_benchmark(benchmark_, said.append) == key
        assert len(said) == 1
        assert str(path) in said[0]
        assert path.read_bytes() == whole
        assert fingerprint(workspace.load_benchmark(key)) == fingerprint(benchmark_)


def test_files_may_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    write_tensors(tmp_path / "t", {"x": torch.zeros(1)})
    (tmp_path / "plain").touch()
    assert (tmp_path / "t").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_run_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; a run needs a folder"):
        Workspace(tmp_path / "file")
    with pytest.raises(InputError, match="can't be written to standard output"):
        Workspace(Path("-"))


class TestManifest:
    VALUES: ClassVar[dict[str, Any]] = {
        "data": {"task": "task-1"},
        "config": preset("fast", 100).to_dict(),
        "artifacts": {"data": "data-1", "train": "train-1"},
        "leaves": {"pseudo": [], "trained": []},
    }

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        Manifest(tmp_path, self.VALUES).write()
        return tmp_path

    def test_it_comes_back_as_it_was(self, folder: Path) -> None:
        back = Manifest.read(folder)
        assert back.task == "task-1"
        assert back.config == preset("fast", 100)
        assert back.data == "data-1"
        assert back.reaching("train") is back
        assert back.bounds == (0.0, None)
        bounds = {"min_confidence": 0.5, "top": 7}
        Manifest(folder, self.VALUES | {"bounds": bounds}).write()
        assert Manifest.read(folder).bounds == (0.5, 7)

    def test_a_stage_that_was_not_reached_is_named(self, folder: Path) -> None:
        with pytest.raises(DataError, match="has no result of `clusterea fuse` yet. Run that, or"):
            Manifest.read(folder).reaching("fuse")

    def test_a_folder_without_one_is_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="expected a run, made by `clusterea align`"):
            Manifest.read(tmp_path)
        with pytest.raises(DataError, match="expected a run"):
            Manifest.read(tmp_path / "nowhere")

    @pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"data": {}}', "\0"])
    def test_a_damaged_one_is_named(self, text: str, folder: Path) -> None:
        (folder / "run.json").write_text(text)
        with pytest.raises(DamagedError, match="run.json: is damaged.* `clusterea align`"):
            Manifest.read(folder)

    def test_a_changed_value_is_noticed(self, folder: Path) -> None:
        whole = (folder / "run.json").read_text()
        (folder / "run.json").write_text(whole.replace("train-1", "train-2"))
        with pytest.raises(DamagedError):
            Manifest.read(folder)

    @pytest.mark.parametrize("missing", ["data", "config", "artifacts"])
    def test_one_of_another_version(self, missing: str, tmp_path: Path) -> None:
        Manifest(tmp_path, {k: v for k, v in self.VALUES.items() if k != missing}).write()
        with pytest.raises(DamagedError, match="run.json: is of another version"):
            Manifest.read(tmp_path)

    @pytest.mark.parametrize("config", [{}, None, [], {"training": {"speed": 3}}])
    def test_settings_of_another_version(self, config: Any, tmp_path: Path) -> None:
        Manifest(tmp_path, self.VALUES | {"config": config}).write()
        with pytest.raises(DataError, match="run.json: has settings of another version"):
            _ = Manifest.read(tmp_path).config

    def test_a_setting_that_is_missing_has_no_default(self, tmp_path: Path) -> None:
        config = json.loads(json.dumps(preset("default", 300).to_dict()))
        Manifest(tmp_path, self.VALUES | {"config": config}).write()
        assert Manifest.read(tmp_path).config == preset("default", 300)
        del config["matching"]["fits"]
        Manifest(tmp_path, self.VALUES | {"config": config}).write()
        with pytest.raises(DataError, match="run.json: has settings of another version"):
            _ = Manifest.read(tmp_path).config


class TestWhoseFolder:
    """A run goes on in its own folder, and takes nobody else's."""

    @pytest.fixture
    def task(self, benchmark_: Benchmark) -> str:
        return task_key(benchmark_.task)

    @pytest.fixture
    def run(self, benchmark_: Benchmark, task: str, tmp_path: Path) -> Path:
        """One that has come to an end."""
        workspace = Workspace(tmp_path)
        key = workspace.save_benchmark(benchmark_)
        (tmp_path / "alignment.tsv").write_text("links")
        values = TestManifest.VALUES | {"data": {"task": task}, "artifacts": {"data": key}}
        Manifest(tmp_path, values).write()
        return tmp_path

    def test_the_same_data_go_on(self, run: Path, task: str) -> None:
        Workspace(run).claim(task)
        assert (run / "alignment.tsv").exists()

    @pytest.mark.parametrize("ended", [True, False])
    def test_other_data_are_refused(self, ended: bool, run: Path) -> None:
        if not ended:  # the stored data say whose run it is
            (run / "run.json").unlink()
            (run / "alignment.tsv").unlink()
        before = sorted(run.rglob("*"))
        with pytest.raises(
            InputError, match="holds a run of other graphs or seeds. .* remove that run with --over"
        ):
            Workspace(run).claim("task-other")
        with pytest.raises(InputError, match="with overwrite=True"):
            Workspace(run).check_task("task-other", "overwrite=True")
        assert sorted(run.rglob("*")) == before

    @pytest.mark.parametrize("damage", ["", "{}", None])
    def test_without_its_manifest_the_data_tell(
        self, damage: str | None, run: Path, task: str
    ) -> None:
        manifest = run / "run.json"
        manifest.unlink() if damage is None else manifest.write_text(damage)
        Workspace(run).claim(task)
        with pytest.raises(InputError, match="of other graphs or seeds"):
            Workspace(run).claim("task-other")

    def test_where_nothing_tells_results_are_not_replaced(self, run: Path, task: str) -> None:
        (run / "run.json").write_text("")
        (recipe,) = run.glob("data-*/recipe.json")
        recipe.write_text("")
        with pytest.raises(
            InputError, match="of other graphs or seeds, or one that can't be read or is of an"
        ):
            Workspace(run).claim(task)
        for name in ("run.json", "alignment.tsv"):
            (run / name).unlink()
        Workspace(run).claim(task)  # there is nothing to lose

    @pytest.mark.parametrize("name", sorted({*OUTPUTS} - {"run.json"}))
    def test_a_file_that_no_run_made_is_not_replaced(
        self, name: str, task: str, tmp_path: Path
    ) -> None:
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match=f"{name} exists, but no run made it"):
            Workspace(tmp_path).claim(task)
        assert (tmp_path / name).read_text() == "mine"

    def test_other_files_are_nobodys_business(self, task: str, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").touch()
        (tmp_path / "data-of-mine").mkdir()
        Workspace(tmp_path).claim(task)
        Workspace(tmp_path / "new").claim(task)

    def test_overwriting_removes_what_a_run_made_and_nothing_else(self, run: Path) -> None:
        mine = ["notes.txt", "data-of-mine/a", "train-0123456789ab.txt", "checkpoints/mine"]
        made = [
            *OUTPUTS,
            *(f"{stage}-0123456789ab/tensors.safetensors" for stage in ("train", "sample")),
            "checkpoints/train-0123456789ab.safetensors",
        ]
        for name in [*mine, *made]:
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text(name)
        Workspace(run).claim("task-other", overwrite=True)
        left = [path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()]
        assert sorted(left) == sorted(mine)
        (run / "checkpoints/mine").unlink()
        Workspace(run).clear()
        assert not (run / "checkpoints").exists()


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
        assert not workspace.has("a-1")
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
        patched.setattr("os.pwrite", fails)
        with pytest.raises(InputError, match="can't be written: disk full"):
            checkpoints.save({"x": torch.arange(9)})
    state = checkpoints.latest()
    assert state is not None
    assert state["x"].tolist() == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    checkpoints.remove()
    assert checkpoints.latest() is None


def test_files_are_those_of_safetensors(tmp_path: Path) -> None:
    every = {f"{number * 5 % 13}-{name}": name for number, name in enumerate(TYPES)}
    for tensors in (
        {key: torch.arange(3).to(getattr(torch, name)) for key, name in every.items()},
        {'"é\n': torch.empty(0, 2), "one": torch.tensor(7.0), "t": torch.ones(3, 5).T},
        {},
    ):
        write_tensors(tmp_path / "ours", tensors, "train-1")
        whole = {key: value.contiguous() for key, value in tensors.items()}
        checksum = {"checksum": tensors_checksum("train-1", whole)}
        save_file(whole, tmp_path / "theirs", checksum)
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_the_system_may_write_less_than_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda number, some, at: write(number, some[:7], at))
    write_tensors(tmp_path / "t", {"x": torch.arange(100)})
    assert torch.equal(read_tensors(tmp_path / "t")["x"], torch.arange(100))


def test_a_view_is_saved_by_itself(tmp_path: Path) -> None:
    whole = torch.arange(10.0).view(5, 2)
    write_tensors(tmp_path / "t", {"source": whole[:2], "target": whole[2:]})
    back = read_tensors(tmp_path / "t")
    assert torch.equal(back["target"], whole[2:])


def test_an_artifact_says_what_it_is(tmp_path: Path) -> None:
    Workspace(tmp_path).save_tensors("a-1", {"stage": "a", "config": {"x": 1}}, {})
    recipe = json.loads((tmp_path / "a-1" / "recipe.json").read_text())
    assert recipe == {"stage": "a", "config": {"x": 1}}
