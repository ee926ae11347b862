"""Files at a URI, on three kinds of file systems, and the lock of a run there."""

from __future__ import annotations

import json
import socket
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow.fs import FSSpecHandler, PyFileSystem

import clusterea.workspace.place as place_module
from clusterea.errors import DataError, InputError, address, copy_path
from clusterea.run_lock import LOCK
from clusterea.workspace import FileCheckpoints, Place
from clusterea.workspace.place_lock import place_lock as lock

ELSEWHERE = {"process": 1, "host": "elsewhere", "command": "clusterea align", "since": "noon"}


@pytest.fixture(params=["memory", "file", "mock", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any) -> Place:
    name = f"{uuid.uuid4().hex}/run"
    uris = {"file": f"fsspec+file://{tmp_path}/{name}", "mock": f"mock:///{name}"}
    found = Place(uris.get(request.param, f"fsspec+memory://{name}"))
    if request.param == "object store":  # files are written where they are to be
        monkeypatch.setattr(place_module, "OBJECT_STORES", (found._files.type_name,))
    return found


def test_files_are_written_read_listed_and_removed(place: Place, tmp_path: Path) -> None:
    sent, got = tmp_path / "sent", tmp_path / "got"
    sent.write_bytes(b"one")
    assert place.read("file") == b""
    place.send(sent, "file")
    place.send(sent, "folder/inner")
    assert place.has("file")
    assert place.has("folder/inner")
    assert not place.has("folder")
    assert not place.has("other")
    assert place.names() == ["file", "folder"]
    assert place.names("folder") == ["inner"]
    assert place.names("other") == []
    sent.write_bytes(b"another")
    place.send(sent, "file")  # replaces it
    place.fetch("file", got)
    assert got.read_bytes() == place.read("file") == b"another"
    place.write("file", b"")
    assert place.read("file") == b""
    for name in ("file", "folder", "never there"):
        place.remove(name)
    assert place.names() == []


def test_a_file_system_whose_move_does_not_replace(tmp_path: Path) -> None:
    class Strict(FSSpecHandler):  # type: ignore[misc]  # as HDFS
        def move(self, src: str, dest: str) -> None:
            if self.fs.exists(dest):
                raise OSError("it exists")
            super().move(src, dest)

    place = Place(f"fsspec+memory://{uuid.uuid4().hex}/run")
    place._files = PyFileSystem(Strict(place._files.handler.fs))
    for content in (b"one", b"two"):
        place.write("file", content)
    assert place.read("file") == b"two"
    assert place.names() == ["file"]


def test_a_file_that_arrives_cut_is_an_error(tmp_path: Path, monkeypatch: Any) -> None:
    place = Place(f"fsspec+file://{tmp_path}/run")
    monkeypatch.setattr(Place, "_move", lambda *paths: (tmp_path / "run" / "file").write_bytes(b""))
    with pytest.raises(DataError, match=r"run/file: can't be written: 3 bytes were sent"):
        place.write("file", b"one")


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("nope://bucket/run", "nope://bucket/run can't be opened: Unrecognized filesystem type"),
        ("fsspec+memory:///", "must name a folder"),
        ("s3://bucket/../run", "must be without `..`"),
        ("nope://key:secret@bucket/run?key=secret", "nope://bucket/run can't be opened"),
    ],
)
def test_a_bad_uri_is_one_clear_message(uri: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        Place(uri)
    assert told in str(error.value)
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_place_that_cannot_be_written_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"^fsspec\+file://.*/file/run/a: can't be written: "):
        Place(f"fsspec+file://{tmp_path}/file/run").write("a", b"")


def test_a_folder_of_this_machine_is_no_other_place(tmp_path: Path) -> None:
    assert Place(f"file://{tmp_path}/run").local == tmp_path / "run"
    assert Place(f"fsspec+file://{tmp_path}/run").local is None


def test_a_copy_is_called_by_the_address_of_its_original(tmp_path: Path) -> None:
    assert address(copy_path(tmp_path, "s3://bucket/a/run") / "x.tsv") == "s3://bucket/a/run/x.tsv"
    assert address(tmp_path / "x.tsv") == str(tmp_path / "x.tsv")


def test_checkpoints(place: Place, tmp_path: Path) -> None:
    state = {"a": torch.arange(3)}
    for machine in ("one", "other"):
        path = tmp_path / machine / "checkpoints" / "train-1.safetensors"
        path.parent.parent.mkdir()
        kept = FileCheckpoints(path, 1e12, place=place)
        if machine == "one":
            assert kept.latest() is None
            kept.save(state)
    found = kept.latest()
    assert found is not None
    assert torch.equal(found["a"], state["a"])
    kept.remove()
    assert kept.latest() is None
    assert "checkpoints" not in place.names()


class TestLock:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("clusterea.workspace.place_lock.RENEWED", 0.05)
        monkeypatch.setattr("clusterea.workspace.place_lock.PATIENCE", 0.5)
        monkeypatch.setattr("clusterea.workspace.place_lock._LOOK", 0.05)

    @pytest.fixture
    def place(self) -> Place:
        return Place(f"fsspec+memory://{uuid.uuid4().hex}/run")

    def test_one_at_a_time(self, place: Place) -> None:
        with (
            lock(place, "first"),
            pytest.raises(InputError, match="in use by `first`"),
            lock(place, "second"),
        ):
            pass
        assert place.names() == []

    def test_of_a_dead_process_here_is_taken_at_once(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("clusterea.workspace.place_lock.PATIENCE", 1e9)
        dead = {**ELSEWHERE, "process": 2**22 + 1, "host": socket.gethostname()}
        place.write(LOCK, json.dumps(dead).encode())
        with lock(place, "second"):
            assert json.loads(place.read(LOCK))["command"] == "second"

    @pytest.mark.parametrize("content", [json.dumps(ELSEWHERE), '{"process": ', "[]", "{}"])
    def test_that_is_not_renewed_is_taken_over(self, content: str, place: Place) -> None:
        place.write(LOCK, content.encode())
        with lock(place, "second") as held:
            held.check()

    def test_that_was_taken_over_is_noticed_and_left(self, place: Place) -> None:
        with lock(place, "first") as held:
            place.write(LOCK, json.dumps(ELSEWHERE).encode())
            time.sleep(0.2)
            with pytest.raises(DataError, match="another command has taken over"):
                held.check()
        assert json.loads(place.read(LOCK)) == ELSEWHERE

    def test_outlives_a_lost_connection(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with lock(place, "first") as held:
            with monkeypatch.context() as lost:
                lost.setattr(Place, "read", _raise)
                time.sleep(0.2)
            time.sleep(0.2)
            held.check()
        with lock(place, "first"):
            monkeypatch.setattr(Place, "read", _raise)


def _raise(place: Place, name: str) -> bytes:
    raise DataError(place.at(name), "can't be read: no connection.")
