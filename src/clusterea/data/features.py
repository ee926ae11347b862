"""Vectors of the user's own, one for each entity: NumPy, Parquet and safetensors files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.data.inputs import note, regular_file
from clusterea.data.streams import open_plain, suffix_of
from clusterea.errors import DataError, InputError, cut
from clusterea.types import Names, Pair

Floats = NDArray[np.float32]
SUFFIXES = (".npy", ".parquet", ".pq", ".safetensors")


def read_features(paths: Pair[Path], rows: Pair[Names], entities: Pair[Names]) -> Pair[Floats]:
    """(entities, dim) of each side. An entity without a row has zeros.

    Args:
        paths: The files.
        rows: Whose vectors the rows of each file are, if the file does not say.
        entities: The entities of each side, in the order of the result.
    """
    read = paths.zip(rows.zip(entities)).map(lambda side: _read(side[0], *side[1]))
    check_features(read, paths)
    return read


def check_features(features: Pair[Floats], origins: Pair[Any]) -> None:
    """Raises unless both sides have the same number of dimensions."""
    widths = features.map(lambda side: side.shape[1])
    if widths.source != widths.target:
        raise InputError(
            "--features must have the same number of dimensions on both sides. Got "
            f"{widths.source:,} in {origins.source} and {widths.target:,} in {origins.target}."
        )


def given_features(features: Any, num_entities: Pair[int]) -> Pair[Floats]:
    """Vectors that are arrays: row i is that of entity i."""
    try:
        source, target = features
    except (TypeError, ValueError):
        raise InputError("features must be two arrays: of the source and of the target.") from None
    given = Pair(source, target).zip(Pair("features' source", "features' target"))
    arrays = given.map(lambda side: _checked(side[0], side[1]))
    for rows, count, side in zip(arrays, num_entities, ("source", "target"), strict=True):
        if len(rows) != count:
            raise InputError(
                f"features must have a row for each of the {count:,} {side} entities. "
                f"Got {len(rows):,} rows instead."
            )
    check_features(arrays, Pair("source", "target"))
    return arrays


def _read(path: Path, rows: Names, entities: Names) -> Floats:
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise DataError(
            path, f"expected vectors as one of {', '.join(SUFFIXES)}, got {suffix or 'no suffix'}."
        )
    with open_plain(path):
        pass
    names: pa.Array | None = None
    try:
        if suffix == ".npy":
            values = _npy(path)
        elif suffix == ".safetensors":
            values = _safetensors(path)
        else:
            names, values = _parquet(path)
    except (OSError, ValueError, EOFError, pa.ArrowException) as error:
        told = cut(error).rstrip(".")
        raise DataError(path, f"can't be read as vectors: {told}.") from error
    if names is None:
        return _placed(path, values, rows, entities)
    ids = entities.ids_of(names)
    known = ids >= 0
    if not known.any():
        raise DataError(path, "expected vectors of entities of the graph, got none.")
    if not known.all():
        note(path, f"{int((~known).sum()):,} rows are of entities in no triple.")
    found, counts = np.unique(ids[known], return_counts=True)
    if (counts > 1).any():
        twice = cut(repr(entities[int(found[counts > 1][0])]))
        raise DataError(path, f"expected one row for each entity, got several for {twice}.")
    checked = _checked(values, path)
    result = np.zeros((len(entities), checked.shape[1]), dtype=np.float32)
    result[ids[known]] = checked[known]
    return result


def _placed(path: Path, values: Any, rows: Names, entities: Names) -> Floats:
    """The vectors in the order of the entities."""
    checked = _checked(values, path)
    if len(checked) != len(rows):
        raise DataError(
            path,
            f"expected a row for each of {len(rows):,} entities, in their order in the graph's "
            f"file or in --name-files, got {len(checked):,} rows.",
        )
    ids = entities.ids_of(rows.arrow)
    result = np.zeros((len(entities), checked.shape[1]), dtype=np.float32)
    result[ids[ids >= 0]] = checked[ids >= 0]
    return result


def _checked(values: Any, origin: Path | str) -> Floats:
    if hasattr(values, "detach"):  # of torch, on any device
        values = values.detach().float().cpu()
    array = np.asarray(values)
    is_real = np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)
    if array.ndim != 2 or not is_real:
        raise DataError(origin, f"expected a matrix of numbers, got {array.ndim}-d {array.dtype}.")
    if not array.shape[1]:
        raise DataError(origin, "expected vectors of at least one dimension, got none.")
    with np.errstate(over="ignore"):  # what is too large is not finite, and refused below
        floats: Floats = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(floats).all():
        row = int(np.flatnonzero(~np.isfinite(floats).all(1))[0])
        raise DataError(origin, f"expected finite numbers, got another one in row {row + 1:,}.")
    return floats


def _npy(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(regular_file(path), allow_pickle=False)
    except ValueError as error:
        if "pickle" in str(error):  # NumPy says the same of a file that is none of its own
            raise ValueError("expected numbers that NumPy saved, got other data") from error
        raise
    return array


def _safetensors(path: Path) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load_file  # NumPy has no bfloat16

    try:
        tensors = load_file(regular_file(path))
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    if len(tensors) != 1:
        raise ValueError(f"expected one tensor, got {len(tensors)}")
    return next(iter(tensors.values()))


def _parquet(path: Path) -> tuple[pa.Array | None, NDArray[Any]]:
    """The entities, if the table has a column of strings, and the vectors."""
    import pyarrow.parquet as pq

    table = pq.read_table(regular_file(path))
    names: dict[str, pa.Array] = {}
    numbers: list[NDArray[Any]] = []
    for title, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            names[title] = column.combine_chunks().cast(pa.large_string())
        elif isinstance(kind, (pa.ListType, pa.LargeListType, pa.FixedSizeListType)):
            numbers.append(_vectors(column.combine_chunks()))
        else:
            numbers.append(column.to_numpy().reshape(-1, 1))
    if len(names) > 1:
        raise ValueError(f"expected one column of entities, got {', '.join(names)}")
    if not numbers or not table.num_rows:
        raise ValueError("expected a column of vectors, or columns of numbers")
    return next(iter(names.values()), None), np.concatenate(numbers, axis=1)


def _vectors(lists: pa.Array) -> NDArray[Any]:
    """(rows, dim): lists that have one length."""
    lengths = pc.unique(pc.fill_null(pc.list_value_length(lists), 0)).to_pylist()
    if len(lengths) > 1:
        raise ValueError(
            f"expected vectors of one length, got lengths from {min(lengths)} to {max(lengths)}"
        )
    flat: NDArray[Any] = lists.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(lists), *lengths)
