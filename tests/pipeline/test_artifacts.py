"""What stages return comes back as it was, and is made once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clusterea.errors import DataError
from clusterea.pipeline.artifacts import (
    Artifacts,
    pack_alignment,
    pack_pair,
    pack_partition,
    pack_similarity,
    unpack_alignment,
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
        found = unpack_pair(through_a_file(dict(pack_pair(pair)), tmp_path))
        for one, other in found.zip(pair):
            assert torch.equal(one, other)

    def test_partition(self, tmp_path: Path) -> None:
        partition = Partition(Pair(torch.tensor([0, 3, 3]), torch.tensor([1])), 5)
        found = unpack_partition(through_a_file(dict(pack_partition(partition)), tmp_path))
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
        found = unpack_similarity(through_a_file(packed, tmp_path))
        assert found.num_entities == Pair(3, width)
        assert torch.equal(found.row_offsets, similarity.row_offsets)
        assert torch.equal(found.columns, columns)
        assert torch.equal(found.values, values)

    def test_similarity_without_a_cell(self, tmp_path: Path) -> None:
        similarity = Similarity(torch.zeros(1).long(), NOBODY, torch.empty(0), Pair(0, 7))
        found = unpack_similarity(through_a_file(dict(pack_similarity(similarity)), tmp_path))
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
        found = unpack_alignment(through_a_file(dict(pack_alignment(alignment)), tmp_path))
        assert torch.equal(found.links, alignment.links)
        assert torch.equal(found.confidence, alignment.confidence)
        assert found.unmatched.map(Tensor.tolist) == Pair([0], [])
        assert found.examples == 31


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

    @pytest.mark.parametrize("content", [None, b"", b"half of it"])
    def test_what_was_damaged_is_named(self, content: bytes | None, tmp_path: Path) -> None:
        key, _ = kept(Artifacts(Workspace(tmp_path)), 0.5, {"a": 1})
        path = tmp_path / key / "tensors.safetensors"
        path.unlink() if content is None else path.write_bytes(content)
        why = "missing" if content is None else "damaged"
        with pytest.raises(DataError, match=rf"is {why}; delete the folder .*{key}"):
            kept(Artifacts(Workspace(tmp_path)), 0.25, {"a": 1})

    def test_without_a_folder(self) -> None:
        artifacts = Artifacts(None)
        key, value = kept(artifacts, 0.5, {"a": 1})
        assert value == 0.5
        assert artifacts.made == {key}
        assert not artifacts.has(key)
        with pytest.raises(RuntimeError, match="not to be made"):
            kept(artifacts, None, {"a": 1})
