"""What stages return comes back as it was, and is made once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clusterea.errors import DamagedError
from clusterea.pipeline.artifacts import (
    Artifacts,
    pack_alignment,
    pack_pair,
    pack_partition,
    pack_similarity,
    read_artifact,
    unpack_alignment,
    unpack_links,
    unpack_pair,
    unpack_partition,
    unpack_similarity,
)
from clusterea.types import Alignment, Pair, Partition, Similarity
from clusterea.workspace import Workspace, read_tensors, recipe_key, write_tensors

NOBODY = torch.empty(0, dtype=torch.int64)


def through_a_file(tensors: dict[str, Tensor], folder: Path) -> dict[str, Tensor]:
    write_tensors(folder / "file", tensors)
    return read_tensors(folder / "file")


class TestForms:
    @pytest.mark.parametrize("rows", [3, 0])
    def test_embeddings(self, rows: int, tmp_path: Path) -> None:
        both = torch.randn(rows + 2, 4)
        pair = Pair(both[:rows], both[rows:])  # parts of one tensor
        found = unpack_pair(through_a_file(dict(pack_pair(pair)), tmp_path), Pair(rows, 2))
        for one, other in found.zip(pair):
            assert torch.equal(one, other)

    def test_partition(self, tmp_path: Path) -> None:
        partition = Partition(Pair(torch.tensor([0, 3, 3]), torch.tensor([1])), 5)
        found = unpack_partition(
            through_a_file(dict(pack_partition(partition)), tmp_path), Pair(3, 1)
        )
        assert found.num_batches == 5
        for one, other in found.labels.zip(partition.labels):
            assert torch.equal(one, other)
            assert one.dtype == torch.int64

    @pytest.mark.parametrize("width", [4, 2**31, 2**40])
    def test_similarity(self, width: int, tmp_path: Path) -> None:
        columns = torch.tensor([0, width - 1, 2])
        values = torch.tensor([0.5, 1.0, 0.0])
        similarity = Similarity(torch.tensor([0, 2, 2, 3]), columns, values, Pair(3, width))
        packed = dict(pack_similarity(similarity))
        assert packed["columns"].dtype == (torch.int32 if width < 2**31 else torch.int64)
        found = unpack_similarity(through_a_file(packed, tmp_path), Pair(3, width))
        assert found.num_entities == Pair(3, width)
        assert torch.equal(found.row_offsets, similarity.row_offsets)
        assert torch.equal(found.columns, columns)
        assert torch.equal(found.values, values)

    def test_similarity_without_a_cell(self, tmp_path: Path) -> None:
        similarity = Similarity(torch.zeros(1).long(), NOBODY, torch.empty(0), Pair(0, 7))
        found = unpack_similarity(
            through_a_file(dict(pack_similarity(similarity)), tmp_path), Pair(0, 7)
        )
        assert found.num_cells == 0
        assert found.num_entities == Pair(0, 7)

    @pytest.mark.parametrize("count", [2, 0])
    def test_alignment(self, count: int, tmp_path: Path) -> None:
        alignment = Alignment(
            torch.tensor([[1, 0], [2, 3]])[:count],
            torch.tensor([0.75, 0.5])[:count],
            Pair(torch.tensor([0]), NOBODY),
            examples=31,
        )
        found = unpack_alignment(
            through_a_file(dict(pack_alignment(alignment)), tmp_path), Pair(3, 4)
        )
        assert torch.equal(found.links, alignment.links)
        assert torch.equal(found.confidence, alignment.confidence)
        assert found.unmatched.map(Tensor.tolist) == Pair([0], [])
        assert found.examples == 31


class TestDamagedForms:
    """Files that are whole, and hold what can't be of these graphs: 3 and 4 entities."""

    SIZES = Pair(3, 4)
    ROWS = Pair(torch.zeros(3, 2), torch.zeros(4, 2))
    LABELS = Pair(torch.zeros(3).long(), torch.zeros(4).long())

    @pytest.mark.parametrize(
        "rows",
        [
            Pair(torch.zeros(2, 2), ROWS.target),
            Pair(ROWS.source, torch.zeros(4, 3)),
            Pair(torch.zeros(3), torch.zeros(4)),
            Pair(torch.tensor(0.0), ROWS.target),
            ROWS.map(Tensor.long),
        ],
    )
    def test_embeddings(self, rows: Pair[Tensor]) -> None:
        unpack_pair(pack_pair(self.ROWS), self.SIZES)
        with pytest.raises((ValueError, IndexError)):
            unpack_pair(pack_pair(rows), self.SIZES)

    @pytest.mark.parametrize(
        "links",
        [
            torch.tensor([[3, 0]]),
            torch.tensor([[0, 4]]),
            torch.tensor([[-1, 0]]),
            torch.tensor([0, 1]),
            torch.tensor([[0, 1, 2]]),
            torch.tensor([[0.0, 1.0]]),
        ],
    )
    def test_links(self, links: Tensor) -> None:
        unpack_links({"links": torch.tensor([[2, 3]])}, self.SIZES)
        with pytest.raises(ValueError, match="links must"):
            unpack_links({"links": links}, self.SIZES)
        alignment = {
            "confidence": torch.ones(len(links)),
            "unmatched_source": NOBODY,
            "unmatched_target": NOBODY,
        }
        with pytest.raises(ValueError, match="links must"):
            unpack_alignment({"links": links, **alignment}, self.SIZES)

    def test_unmatched_entities(self) -> None:
        tensors = {
            "links": torch.empty(0, 2).long(),
            "confidence": torch.empty(0),
            "unmatched_source": torch.tensor([2]),
            "unmatched_target": torch.tensor([3]),
            "examples": torch.tensor([0]),
        }
        unpack_alignment(tensors, self.SIZES)
        with pytest.raises(ValueError, match="unmatched entities must lie in"):
            unpack_alignment({**tensors, "unmatched_source": torch.tensor([3])}, self.SIZES)

    @pytest.mark.parametrize(
        "missing", ["links", "confidence", "unmatched_source", "unmatched_target", "examples"]
    )
    def test_an_alignment_that_lacks_something(self, missing: str) -> None:
        links = torch.empty(0, 2).long()
        whole = pack_alignment(Alignment(links, torch.empty(0), Pair(NOBODY, NOBODY), 31))
        with pytest.raises(KeyError, match=missing):
            unpack_alignment({k: v for k, v in whole.items() if k != missing}, self.SIZES)

    def test_partition(self) -> None:
        whole = pack_partition(Partition(self.LABELS, 2))
        unpack_partition(whole, self.SIZES)
        with pytest.raises(ValueError, match="one for each entity"):
            unpack_partition(whole, Pair(3, 5))

    def test_similarity(self) -> None:
        none = Similarity(torch.zeros(4).long(), NOBODY, torch.empty(0), self.SIZES)
        unpack_similarity(pack_similarity(none), self.SIZES)
        with pytest.raises(ValueError, match="must be of 3 and 5 entities"):
            unpack_similarity(pack_similarity(none), Pair(3, 5))


def kept(artifacts: Artifacts, value: float | None, recipe: dict[str, int]) -> tuple[str, float]:
    """The number that `make` gives, as an artifact; None: it must not be made."""

    def make() -> float:
        if value is None:
            raise RuntimeError("not to be made")
        return value

    return artifacts.tensors(
        "number",
        recipe,
        {"task": "task-0"},
        make,
        lambda number: {"number": torch.tensor([number])},
        lambda tensors: float(tensors["number"]),
    )


class TestKept:
    def test_made_once(self, tmp_path: Path) -> None:
        artifacts = Artifacts(Workspace(tmp_path))
        key, value = kept(artifacts, 0.5, {"a": 1})
        assert (key, value) == (recipe_key("number", {"a": 1}, {"task": "task-0"}), 0.5)
        assert artifacts.made == {key}
        assert artifacts.has(key)
        later = Artifacts(Workspace(tmp_path))
        assert kept(later, None, {"a": 1}) == (key, 0.5)
        assert not later.made
        assert kept(later, 0.25, {"a": 2})[1] == 0.25

    def test_the_recipe_lies_beside_it(self, tmp_path: Path) -> None:
        key, _ = kept(Artifacts(Workspace(tmp_path)), 0.5, {"a": 1})
        assert json.loads((tmp_path / key / "recipe.json").read_text()) == {
            "stage": "number",
            "config": {"a": 1},
            "parents": {"task": "task-0"},
        }

    def test_an_error_leaves_nothing(self, tmp_path: Path) -> None:
        artifacts = Artifacts(Workspace(tmp_path))
        with pytest.raises(RuntimeError, match="not to be made"):
            kept(artifacts, None, {"a": 1})
        assert not artifacts.made
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", ["tensors.safetensors", "recipe.json"])
    @pytest.mark.parametrize("content", [None, b"", b"half of it", b"{}"])
    def test_what_was_damaged_is_named_and_made_again(
        self, name: str, content: bytes | None, tmp_path: Path
    ) -> None:
        key, _ = kept(Artifacts(Workspace(tmp_path)), 0.5, {"a": 1})
        path = tmp_path / key / name
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(DamagedError, match=rf"{name}: is (damaged|missing).* run `clusterea "):
            read_artifact(Workspace(tmp_path), key, dict)
        said: list[str] = []
        again = Artifacts(Workspace(tmp_path), said.append)
        assert kept(again, 0.25, {"a": 1}) == (key, 0.25)
        assert again.made == {key}
        assert said == [f"{path} is damaged or missing: the stage number is run again."]
        assert kept(Artifacts(Workspace(tmp_path)), None, {"a": 1}) == (key, 0.25)

    def test_what_does_not_fit_is_made_again(self, tmp_path: Path) -> None:
        key, _ = kept(Artifacts(Workspace(tmp_path)), 0.5, {"a": 1})
        write_tensors(tmp_path / key / "tensors.safetensors", {"other": torch.zeros(1)}, key)
        said: list[str] = []
        assert kept(Artifacts(Workspace(tmp_path), said.append), 0.25, {"a": 1}) == (key, 0.25)
        assert len(said) == 1

    def test_without_a_folder(self) -> None:
        artifacts = Artifacts(None)
        key, value = kept(artifacts, 0.5, {"a": 1})
        assert value == 0.5
        assert artifacts.made == {key}
        assert not artifacts.has(key)
        with pytest.raises(RuntimeError, match="not to be made"):
            kept(artifacts, None, {"a": 1})
