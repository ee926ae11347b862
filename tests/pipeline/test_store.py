"""What stages make: read when asked for, made once, and back from a file as it was."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clusterea.errors import DamagedError
from clusterea.pipeline.cuts import Parts
from clusterea.pipeline.store import MOST_WAITING, Made, Store, read
from clusterea.types import Alignment, Embeddings, Links, Pair, Partition, Similarity, Stored
from clusterea.workspace import Workspace, read_tensors, recipe_key, write_tensors

NOBODY = torch.empty(0, dtype=torch.int64)
SIZES = Pair(3, 4)
LINKS = torch.tensor([[1, 0], [2, 3]])
SIMILARITY = Similarity(
    torch.tensor([0, 2, 2, 3]), torch.tensor([0, 3, 2]), torch.tensor([0.5, 1.0, 0.0]), SIZES
)
ROWS = torch.randn(7, 2)
WHOLE: dict[str, Any] = {
    "embeddings": Embeddings(ROWS[:3], ROWS[3:]),  # parts of one tensor
    "links": Links(LINKS),
    "no links": Links(LINKS[:0]),
    "partition": Partition(Pair(torch.tensor([0, 3, 3]), torch.tensor([1, 0, 0, 4])), 5),
    "similarity": SIMILARITY,
    "no cells": Similarity(torch.zeros(4).long(), NOBODY, torch.empty(0), SIZES),
    "alignment": Alignment(
        LINKS, torch.tensor([0.75, 0.5]), Pair(torch.tensor([0]), torch.tensor([1, 2])), 31
    ),
    "no alignment": Alignment(LINKS[:0], torch.empty(0), Pair(NOBODY, NOBODY)),
    "source parts": Parts(np.array([0, 2, 1])),
    "target parts": Parts(np.array([0, 2, 1, 0])),
}


class TestForms:
    @pytest.mark.parametrize("value", WHOLE.values(), ids=WHOLE)
    def test_they_come_back_as_they_were(self, value: Stored, tmp_path: Path) -> None:
        write_tensors(tmp_path / "file", value.tensors())
        back = type(value).from_tensors(read_tensors(tmp_path / "file"), SIZES)
        assert list(back.tensors()) == list(value.tensors())
        for name, tensor in value.tensors().items():
            assert torch.equal(back.tensors()[name], tensor)
            assert back.tensors()[name].dtype == tensor.dtype

    def test_fields_are_not_taken_for_each_other(self) -> None:
        one = WHOLE["alignment"]
        back = Alignment.from_tensors(one.tensors(), SIZES)
        assert torch.equal(back.links, one.links)
        assert back.unmatched.map(torch.Tensor.tolist) == Pair([0], [1, 2])
        assert back.examples == 31
        partition = Partition.from_tensors(WHOLE["partition"].tensors(), SIZES)
        assert partition.labels.source.tolist() == [0, 3, 3]
        assert partition.num_batches == 5

    @pytest.mark.parametrize("value", WHOLE.values(), ids=WHOLE)
    def test_nothing_may_be_missing(self, value: Stored) -> None:
        whole = value.tensors()
        for missing in whole:
            with pytest.raises(KeyError, match=missing):
                type(value).from_tensors({k: v for k, v in whole.items() if k != missing}, SIZES)

    @pytest.mark.parametrize(
        "name", ["embeddings", "links", "partition", "similarity", "alignment", "source parts"]
    )
    def test_of_other_graphs_they_are_refused(self, name: str) -> None:
        value: Stored = WHOLE[name]
        with pytest.raises(ValueError, match="must"):
            type(value).from_tensors(value.tensors(), Pair(2, 2))

    @pytest.mark.parametrize("width", [2**31 - 1, 2**31, 2**40])
    def test_columns_have_the_bits_they_need(self, width: int) -> None:
        columns = torch.tensor([0, width - 1])
        wide = Similarity(torch.tensor([0, 2]), columns, torch.ones(2), Pair(1, width))
        stored = wide.tensors()
        assert stored["columns"].dtype == (torch.int32 if width < 2**31 else torch.int64)
        back = Similarity.from_tensors(stored, Pair(1, width))
        assert torch.equal(back.columns.long(), columns)


class TestDamagedForms:
    """Files that are whole, and hold what can't be of 3 and 4 entities."""

    @pytest.mark.parametrize(
        ("source", "target"),
        [
            (torch.zeros(2, 2), torch.zeros(4, 2)),
            (torch.zeros(3, 2), torch.zeros(4, 3)),
            (torch.zeros(3), torch.zeros(4)),
            (torch.tensor(0.0), torch.zeros(4, 2)),
            (torch.zeros(3, 2).long(), torch.zeros(4, 2).long()),
        ],
    )
    def test_embeddings(self, source: torch.Tensor, target: torch.Tensor) -> None:
        with pytest.raises((ValueError, IndexError)):
            Embeddings.from_tensors({"source": source, "target": target}, SIZES)

    @pytest.mark.parametrize(
        "links", [[[3, 0]], [[0, 4]], [[-1, 0]], [0, 1], [[0, 1, 2]], [[0.0, 1.0]]]
    )
    def test_links(self, links: list[Any]) -> None:
        changed = {"links": torch.tensor(links)}
        with pytest.raises(ValueError, match="links must"):
            Links.from_tensors(changed, SIZES)
        with pytest.raises(ValueError, match="links must"):
            Alignment.from_tensors(WHOLE["alignment"].tensors() | changed, SIZES)

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("alignment", {"unmatched_source": torch.tensor([3])}),
            ("alignment", {"unmatched_target": torch.tensor([-1])}),
            ("alignment", {"confidence": torch.ones(3)}),
            ("alignment", {"confidence": torch.tensor([0.5, 1.5])}),
            ("partition", {"num_batches": torch.tensor([4])}),
            ("partition", {"target": torch.tensor([0, 1])}),
            ("similarity", {"num_entities": torch.tensor([3, 5])}),
            ("similarity", {"columns": torch.tensor([0, 4, 2])}),
            ("similarity", {"values": torch.ones(2)}),
            ("source parts", {"parts": torch.tensor([0, -1, 0])}),
            ("source parts", {"parts": torch.zeros(3, 1).long()}),
            ("source parts", {"parts": torch.zeros(5).long()}),
        ],
    )
    def test_others(self, name: str, change: dict[str, torch.Tensor]) -> None:
        with pytest.raises(ValueError, match="must"):
            type(WHOLE[name]).from_tensors(WHOLE[name].tensors() | change, SIZES)


class TestMade:
    def test_it_is_got_once_and_only_when_asked_for(self) -> None:
        calls: list[int] = []

        def get() -> list[int]:
            calls.append(0)
            return calls

        made = Made("train-0", get)
        assert made.key == "train-0"
        assert not calls
        assert made.value is made.value is calls
        assert calls == [0]

    def test_an_error_is_no_value(self) -> None:
        found: list[int] = []
        made = Made("train-0", lambda: found[0])
        with pytest.raises(IndexError):
            _ = made.value
        found.append(7)
        assert made.value == 7

    def test_a_value_at_hand(self) -> None:
        value = object()
        assert Made.of("a", value).value is value
        assert not Made.of("a", value).reused


def kept(
    store: Store,
    links: torch.Tensor | None,
    stored: Callable[[str], None] | None = None,
    **recipe: int,
) -> Made[Links]:
    """The links as an artifact; None: they must not be made."""

    def make(key: str) -> Links:
        assert key == recipe_key("pseudo", recipe, {"task": "task-0"})
        if links is None:
            raise RuntimeError("not to be made")
        return Links(links)

    return store.made("pseudo", recipe, {"task": "task-0"}, Links, SIZES, make, stored)


class TestStore:
    def test_made_once(self, tmp_path: Path) -> None:
        store = Store(Workspace(tmp_path))
        first = kept(store, LINKS, a=1)
        assert first.key == recipe_key("pseudo", {"a": 1}, {"task": "task-0"})
        assert not first.reused
        assert store.has(first.key)
        found = kept(Store(Workspace(tmp_path)), None, a=1)
        assert found.reused
        assert torch.equal(found.value.pairs, LINKS)
        other = kept(store, LINKS[:1], a=2)
        assert not other.reused
        assert other.key != first.key

    def test_what_is_there_is_not_read_before_it_is_asked_for(self, tmp_path: Path) -> None:
        key = kept(Store(Workspace(tmp_path)), LINKS, a=1).key
        (tmp_path / key / "tensors.safetensors").unlink()
        said: list[str] = []
        found = kept(Store(Workspace(tmp_path), said.append), LINKS, a=1)
        assert not said
        assert torch.equal(found.value.pairs, LINKS)
        assert len(said) == 1

    def test_the_recipe_lies_beside_it(self, tmp_path: Path) -> None:
        key = kept(Store(Workspace(tmp_path)), LINKS, a=1).key
        assert json.loads((tmp_path / key / "recipe.json").read_text()) == {
            "stage": "pseudo",
            "config": {"a": 1},
            "parents": {"task": "task-0"},
        }

    def test_an_error_leaves_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match="not to be made"):
            kept(Store(Workspace(tmp_path)), None, a=1)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", ["tensors.safetensors", "recipe.json"])
    @pytest.mark.parametrize("content", [None, b"", b"half of it", b"{}"])
    def test_what_was_damaged_is_named_and_made_again(
        self, name: str, content: bytes | None, tmp_path: Path
    ) -> None:
        workspace = Workspace(tmp_path)
        key = kept(Store(workspace), LINKS, a=1).key
        path = tmp_path / key / name
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(DamagedError, match=rf"{name}: is (damaged|missing).* run `clusterea "):
            read(workspace, key, Links, SIZES)
        said: list[str] = []
        again = kept(Store(workspace, said.append), LINKS[:1], a=1)
        assert torch.equal(again.value.pairs, LINKS[:1])
        assert said == [f"{path} is damaged or missing: the stage pseudo is run again."]
        assert torch.equal(read(workspace, key, Links, SIZES).pairs, LINKS[:1])

    @pytest.mark.parametrize("tensors", [{"other": LINKS}, {"links": LINKS + 2}])
    def test_what_does_not_fit_is_made_again(
        self, tensors: dict[str, torch.Tensor], tmp_path: Path
    ) -> None:
        key = kept(Store(Workspace(tmp_path)), LINKS, a=1).key
        write_tensors(tmp_path / key / "tensors.safetensors", tensors, key)
        said: list[str] = []
        found = kept(Store(Workspace(tmp_path), said.append), LINKS, a=1)
        assert torch.equal(found.value.pairs, LINKS)
        assert len(said) == 1

    def test_what_can_not_be_made_again_is_gone(self, tmp_path: Path) -> None:
        """And so the next run makes it."""
        key = kept(Store(Workspace(tmp_path)), LINKS, a=1).key
        (tmp_path / key / "tensors.safetensors").write_bytes(b"")
        with pytest.raises(RuntimeError, match="not to be made"):
            _ = kept(Store(Workspace(tmp_path)), None, a=1).value
        assert not kept(Store(Workspace(tmp_path)), LINKS, a=1).reused

    @pytest.mark.parametrize(
        ("stage", "command"),
        [("train", "`clusterea train` or `align`"), ("pseudo", "`clusterea align`")],
    )
    def test_the_message_names_a_command_that_makes_it(
        self, stage: str, command: str, tmp_path: Path
    ) -> None:
        with pytest.raises(DamagedError, match=f"is missing; run {command} again"):
            read(Workspace(tmp_path), f"{stage}-0123456789ab", Links, SIZES)

    def test_without_a_folder_everything_is_made(self) -> None:
        store = Store()
        for links in (LINKS, LINKS[:1]):
            made = kept(store, links, a=1)
            assert not made.reused
            assert not store.has(made.key)
            assert torch.equal(made.value.pairs, links)


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterea.pipeline.store.LARGE", 0)


class Held(Workspace):
    """Results are written when `go` is set."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        super().__init__(folder)
        self.go = threading.Event()
        self.error = error

    def save_tensors(self, *arguments: Any) -> None:
        assert threading.current_thread() is not threading.main_thread()
        assert self.go.wait(60)
        if self.error is not None:
            raise self.error
        super().save_tensors(*arguments)


@pytest.mark.usefixtures("all_large")
class TestLargeResults:
    def test_they_are_written_beside_what_follows(self, tmp_path: Path) -> None:
        workspace = Held(tmp_path)
        told: list[str] = []

        def on_disk(key: str) -> None:
            assert Workspace(tmp_path).has(key)
            told.append(key)

        with Store(workspace) as store:
            found = [kept(store, LINKS[:number], on_disk, a=number) for number in range(3)]
            keys = [each.key for each in found]
            assert all(map(store.has, keys))
            assert not any(map(workspace.has, keys))
            assert not told
            workspace.go.set()
            store.wait()
            assert told == keys
            later = kept(store, LINKS, on_disk, a=3)
        assert told == [*keys, later.key]
        for number, key in enumerate(keys):
            assert len(read(workspace, key, Links, SIZES)) == len(LINKS[:number])

    def test_most_wait_in_memory(self, tmp_path: Path) -> None:
        workspace = Held(tmp_path)
        with Store(workspace) as store:
            for number in range(1 + MOST_WAITING):
                kept(store, LINKS, a=number)
            threading.Timer(0.2, workspace.go.set).start()
            last = kept(store, LINKS, a=-1)
            assert workspace.go.is_set()
        assert workspace.has(last.key)

    def test_one_that_is_being_written_is_not_made_again(self, tmp_path: Path) -> None:
        workspace = Held(tmp_path)
        with Store(workspace) as store:
            kept(store, LINKS, a=1)
            threading.Timer(0.2, workspace.go.set).start()
            again = kept(store, None, a=1)
            assert again.reused
            assert torch.equal(again.value.pairs, LINKS)

    def test_an_error_is_told_by_what_follows(self, tmp_path: Path) -> None:
        workspace = Held(tmp_path, OSError("the disk is full"))
        workspace.go.set()
        told: list[str] = []
        with pytest.raises(OSError, match="the disk is full"), Store(workspace) as store:
            kept(store, LINKS, told.append, a=1)
            with suppress(TimeoutError):
                store._writing[0].done.exception(60)
            kept(store, None, a=2)
        assert not told

    def test_or_at_the_end(self, tmp_path: Path) -> None:
        workspace = Held(tmp_path, OSError("the disk is full"))
        with pytest.raises(OSError, match="the disk is full"), Store(workspace) as store:
            made = kept(store, LINKS, a=1)
            workspace.go.set()
        assert not store.has(made.key)

    def test_another_error_is_told_and_what_was_made_is_stored(self, tmp_path: Path) -> None:
        workspace = Held(tmp_path)
        with pytest.raises(RuntimeError, match="not to be made"), Store(workspace) as store:
            made = kept(store, LINKS, a=1)
            workspace.go.set()
            kept(store, None, a=2)
        assert workspace.has(made.key)

    def test_after_the_block_they_are_stored_at_once(self, tmp_path: Path) -> None:
        with Store(Workspace(tmp_path)) as store:
            key = kept(store, LINKS, a=1).key
        (tmp_path / key / "tensors.safetensors").write_bytes(b"")
        with Store(Workspace(tmp_path)) as store:
            found = kept(store, LINKS[:1], a=1)
        assert len(found.value.pairs) == 1  # computed again, when it was asked for
        assert len(read(Workspace(tmp_path), key, Links, SIZES)) == 1
