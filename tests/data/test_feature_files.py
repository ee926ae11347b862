"""Vectors of the user's own: files, the order of rows, and what is wrong with them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

import clusterea
from clusterea.data.features import given_features
from clusterea.errors import DataError, InputError
from clusterea.types import Benchmark, Pair
from conftest import Ran

# In the order of their first appearance, entities are a, c, b and x, y.
SOURCE = [("a", "r", "c"), ("b", "r", "c")]
TARGET = [("x", "s", "y")]
LINKS = [("a", "x")]
VECTORS = {"a": [1.0, 2.0], "c": [3.0, 4.0], "b": [5.0, 6.0]}
ROWS = np.array(list(VECTORS.values()))
Write = Callable[[Any], Path]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("target.npy", np.array([[7.0, 8.0], [9.0, 0.0]]))


def npy(rows: Any) -> Path:
    np.save("source.npy", rows, allow_pickle=True)
    return Path("source.npy")


def parquet(columns: Any) -> Path:
    pq.write_table(pa.table(columns), "source.parquet")
    return Path("source.parquet")


def safetensors(tensors: dict[str, Any]) -> Path:
    save_file(tensors, "source.safetensors")
    return Path("source.safetensors")


def loaded(path: Path | str, **options: Any) -> Benchmark:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return clusterea.load(SOURCE, TARGET, links=LINKS, features=(path, "target.npy"), **options)


def vectors(benchmark: Benchmark) -> dict[str, list[float]]:
    assert benchmark.task.features is not None
    rows = benchmark.task.features.source
    assert rows.dtype == np.float32
    return dict(zip(benchmark.names.source, rows.tolist(), strict=True))


class TestFiles:
    @pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int8"])
    def test_npy(self, kind: str) -> None:
        benchmark = loaded(npy(ROWS.astype(kind)))
        assert vectors(benchmark) == VECTORS
        assert benchmark.task.features is not None
        targets = dict(zip(benchmark.names.target, benchmark.task.features.target, strict=True))
        assert targets["x"].tolist() == [7, 8]

    @pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
    def test_safetensors(self, kind: torch.dtype) -> None:
        assert vectors(loaded(safetensors({"any": torch.tensor(ROWS, dtype=kind)}))) == VECTORS

    @pytest.mark.parametrize(
        "columns",
        [
            {"vector": ROWS.tolist()},
            {"vector": pa.array(ROWS.tolist(), pa.list_(pa.float32(), 2))},
            {"x": ROWS[:, 0], "y": ROWS[:, 1]},
            {"x": ROWS[:, 0].astype(int), "rest": [[2.0], [4.0], [6.0]]},
        ],
    )
    def test_parquet(self, columns: Any) -> None:
        assert vectors(loaded(parquet(columns))) == VECTORS

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
    @pytest.mark.parametrize("is_dictionary", [False, True])
    def test_parquet_with_a_column_of_entities(
        self, kind: pa.DataType, is_dictionary: bool
    ) -> None:
        entities = pa.array(["b", "nobody", "a"], kind)
        rows = [[5.0, 6.0], [0.0, 0.5], [1.0, 2.0]]
        names = entities.dictionary_encode() if is_dictionary else entities
        benchmark = loaded(parquet({"vector": rows, "entity": names}))
        assert vectors(benchmark) == VECTORS | {"c": [0, 0]}  # c has no row
        assert "source.parquet: 1 rows are of entities in no triple." in benchmark.notes

    def test_rows_in_the_order_of_a_table_of_names(self) -> None:
        tables = {"b": "Bert", "nobody": "N", "a": "Anna"}, {"y": "Y", "x": "X"}
        benchmark = loaded(npy([[5, 6], [0, 1], [1, 2]]), name_files=tables)
        assert vectors(benchmark) == VECTORS | {"c": [0, 0]}
        assert benchmark.task.features is not None
        targets = dict(zip(benchmark.names.target, benchmark.task.features.target, strict=True))
        assert targets["x"].tolist() == [9, 0]


OBJECTS = np.array([["a", {}]] * 3, dtype=object)
TENSOR = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("write", "value", "message"),
    [
        (npy, np.ones((4, 2)), "expected a row for each of 3 entities, .* got 4 rows.$"),
        (npy, np.ones((2, 2)), "expected a row for each of 3 entities, .* got 2 rows.$"),
        (npy, np.ones(3), "expected a matrix of numbers, got 1-d float64.$"),
        (npy, np.ones((3, 2, 1)), "expected a matrix of numbers, got 3-d float64.$"),
        (npy, np.ones((3, 0)), "expected vectors of at least one dimension, got none.$"),
        (npy, np.full((3, 2), "a"), "expected a matrix of numbers, got 2-d <U1.$"),
        (npy, np.full((3, 2), 1j), "expected a matrix of numbers, got 2-d complex128.$"),
        (npy, [[1, 2], [np.nan, 1], [1, 2]], "finite numbers, got another one in row 2.$"),
        (npy, [[1, 2], [1, 2], [-np.inf, 1]], "finite numbers, got another one in row 3.$"),
        (npy, [[1e300, 2], [1, 2], [1, 1]], "finite numbers, got another one in row 1.$"),
        (npy, OBJECTS, "can't be read as vectors: expected numbers that NumPy saved, got other"),
        (safetensors, {"a": TENSOR, "b": TENSOR + 1}, "vectors: expected one tensor, got 2.$"),
        (safetensors, {"a": TENSOR[:2]}, "expected a row for each of 3 entities, .* got 2 rows.$"),
        (parquet, {"v": [[1.0], [1.0, 2.0], [1.0]]}, "one length, got lengths from 1 to 2.$"),
        (parquet, {"v": [[1.0], None, [1.0]]}, "one length, got lengths from 0 to 1.$"),
        (parquet, {"v": [1.0, None, 1.0]}, "finite numbers, got another one in row 2.$"),
        (parquet, {"entity": ["a"]}, "expected a column of vectors, or columns of numbers.$"),
        (parquet, {"v": pa.array([], pa.list_(pa.float32()))}, "expected a column of vectors"),
        (parquet, {"entity": ["q"], "v": [1.0]}, "vectors of entities of the graph, got none.$"),
        (
            parquet,
            {"entity": ["a", "b", "a"], "v": [1.0, 2.0, 3.0]},
            "expected one row for each entity, got several for 'a'.$",
        ),
        (
            parquet,
            {"entity": ["a"], "name": ["A"], "v": [1.0]},
            "expected one column of entities, got entity, name.$",
        ),
    ],
)
def test_values_that_are_refused(write: Write, value: Any, message: str) -> None:
    path = write(value)
    with pytest.raises(DataError, match=message) as raised:
        loaded(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert str(raised.value).count(path.name) == 1
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"1 2", "v.txt: expected vectors as one of .npy, .parquet, .* got .txt.$"),
        ("v", b"1 2", "v: expected vectors as one of .npy, .* got no suffix.$"),
        ("v.npy", b"rubbish", "v.npy: can't be read as vectors: expected numbers that NumPy"),
        ("v.npy", b"", "v.npy: can't be read as vectors: "),
        ("v.parquet", b"rubbish", "v.parquet: can't be read as vectors: "),
        ("v.safetensors", b"rubbish", "v.safetensors: can't be read as vectors: "),
        ("v.npy", None, "v.npy: expected a file, but there is none.$"),
        ("v.safetensors", None, "v.safetensors: expected a file, but there is none.$"),
    ],
)
def test_files_that_are_refused(name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(DataError, match=f"^{message}"):
        loaded(name)


class Trap:
    """Unpickling one makes a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("trapped", "w")


def test_pickled_objects_are_never_loaded() -> None:
    np.save("source.npy", np.array([[Trap()]]), allow_pickle=True)
    with pytest.raises(DataError, match="expected numbers that NumPy saved") as raised:
        loaded("source.npy")
    assert not Path("trapped").exists()
    assert "allow_pickle" not in str(raised.value)  # nobody is told how to load them


def test_both_sides_have_one_width(clusterea_command: Callable[..., Ran]) -> None:
    path = npy(np.ones((3, 5)))
    with pytest.raises(
        InputError,
        match="^features must have the same number of dimensions on both sides. Got 5 in "
        "source.npy and 2 in target.npy",
    ):
        loaded(path)
    Path("a.tsv").write_text("a\tr\tc\nb\tr\tc\n")
    Path("b.tsv").write_text("x\ts\ty\n")
    Path("links").write_text("a\tx\n")
    asked = ["info", "a.tsv", "b.tsv", "--links", "links", "--features"]
    ran = clusterea_command(*asked, path, "target.npy")
    assert ran.code == 2
    assert ran.err.startswith("error: --features must have the same number of dimensions")
    assert clusterea_command(*asked, npy(ROWS), "target.npy").code == 0


@pytest.mark.parametrize("given", ["a.npy", ("a.npy",), ("a.npy",) * 3, 5])
def test_there_are_two_files(given: Any) -> None:
    with pytest.raises(InputError, match="^features must be two files: .* Got .* instead"):
        clusterea.load(SOURCE, TARGET, links=LINKS, features=given)


def test_load_takes_files_only() -> None:
    with pytest.raises(InputError, match="^features must be two files; only `align` takes arrays"):
        clusterea.load(SOURCE, TARGET, links=LINKS, features=(ROWS, ROWS))  # type: ignore[arg-type]


class TestArrays:
    SIZES = Pair(3, 2)

    def test_of_numpy_and_torch(self) -> None:
        tensor = torch.ones(2, 2, requires_grad=True)
        found = given_features((ROWS, tensor), self.SIZES)
        assert found.source.tolist() == ROWS.tolist()
        assert found.target.tolist() == [[1, 1], [1, 1]]
        assert found.map(lambda side: str(side.dtype)) == Pair("float32", "float32")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (ROWS, "^features must be two arrays: of the source and of the target"),
            (None, "^features must be two arrays"),
            ((ROWS, ROWS), "^features must have a row for each of the 2 target .* Got 3 rows"),
            ((ROWS, [[1], [2]]), "the same number of dimensions on both sides. Got 2 in source"),
            ((ROWS * np.nan, ROWS[:2]), "^features' source: expected finite numbers, .* in row 1"),
        ],
    )
    def test_refused(self, given: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            given_features(given, self.SIZES)
