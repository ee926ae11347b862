"""`write_openea`: writes a benchmark as a folder in OpenEA's layout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.errors import InputError
from clusterea.types import Benchmark, IntArray

FOLDS = 5
_TEXT = pa.large_string()
_ROWS = 1 << 20  # lines made at a time: about 100 MB of text


def write_openea(benchmark: Benchmark, folder: Path, *, seed: int = 0) -> None:
    """Writes `folder` whole or not at all; `seed` shuffles the links into folds.

    Its train parts are disjoint fifths of the links; of what a fold leaves, a random tenth of all
    links is for validation and the rest for testing. Seeds and test links are split alike.

    Raises:
        InputError: `folder` exists and is not empty, or a name or a label holds a tab or a line
            break.
    """
    folder = check_free(folder)
    for names in (*benchmark.names, *benchmark.relation_names):
        _check_lines(names.arrow, "names")
    for labels in benchmark.labels or ():
        _check_lines(labels.values, "labels")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        _write_files(benchmark, partial, seed)
        partial.rename(folder)
    except OSError as error:
        raise InputError(f"can't write {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_free(folder: Path) -> Path:
    """The folder's full path; raises unless it is new or empty."""
    folder = Path(folder).resolve()
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"folder must be new or empty. Got the file {folder} instead.")
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"folder must be new or empty. Got {folder} instead; remove it first.")
    except OSError as error:
        raise InputError(f"can't write {folder}: {error.strerror or error}.") from error
    return folder


def _check_lines(texts: pa.Array, what: str) -> None:
    if pc.any(pc.match_substring_regex(texts, r"[\t\r\n]")).as_py():
        raise InputError(f"{what} must be free of tabs and line breaks. Got some with instead.")


def _write_files(benchmark: Benchmark, folder: Path, seed: int) -> None:
    names, relation_names = (
        pair.map(lambda each: each.arrow) for pair in (benchmark.names, benchmark.relation_names)
    )
    for number, graph, entities, relations in zip(
        (1, 2), benchmark.task.graphs, names, relation_names, strict=True
    ):
        _write_lines(folder / f"rel_triples_{number}", graph.triples, entities, relations, entities)
    links = np.concatenate([benchmark.task.seeds, benchmark.test_links])
    _write_lines(folder / "ent_links", links, *names)
    rng = np.random.Generator(np.random.PCG64(seed))
    bounds = np.arange(FOLDS + 1) * len(links) // FOLDS
    order = rng.permutation(len(links))
    for fold in range(FOLDS):
        train = order[bounds[fold] : bounds[fold + 1]]
        rest = np.concatenate([order[: bounds[fold]], order[bounds[fold + 1] :]])
        rest = rng.permutation(rest)
        valid, test = np.split(rest, [round(0.1 * len(links))])
        fold_folder = folder / f"721_{FOLDS}fold" / str(fold + 1)
        fold_folder.mkdir(parents=True)
        for name, part in (("train", train), ("valid", valid), ("test", test)):
            _write_lines(fold_folder / f"{name}_links", links[part], *names)
    if benchmark.dangling is not None:
        for number, ids, entities in zip((1, 2), benchmark.dangling, names, strict=True):
            alphabetical = pc.array_sort_indices(entities.take(pa.array(ids))).to_numpy()
            _write_lines(folder / f"dangling_{number}", ids[alphabetical][:, None], entities)
    if benchmark.labels is not None:
        for number, labels, entities in zip((1, 2), benchmark.labels, names, strict=True):
            shuffled = rng.permutation(labels.num_entities)  # an entity's labels keep their order
            ordered = labels.take(shuffled)
            rows = np.column_stack([shuffled[ordered.owners], np.arange(len(ordered.values))])
            _write_lines(folder / f"labels_{number}", rows, entities, ordered.values)


def _write_lines(path: Path, rows: IntArray, *columns: pa.Array) -> None:
    """One line a row: the texts of its ids, tab-separated, each from its own column."""
    *front, last = columns
    last = pc.binary_join_element_wise(last, pa.scalar("\n", _TEXT), pa.scalar("", _TEXT))
    with path.open("wb") as file:
        for start in range(0, len(rows), _ROWS):
            block = rows[start : start + _ROWS]
            cells = [
                texts.take(pa.array(block[:, column]))
                for column, texts in enumerate([*front, last])
            ]
            lines = pc.binary_join_element_wise(*cells, pa.scalar("\t", _TEXT))
            for chunk in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
                _, offsets, text = chunk.buffers()
                ends = np.frombuffer(offsets, dtype=np.int64)[
                    [chunk.offset, chunk.offset + len(chunk)]
                ]
                file.write(memoryview(text)[ends[0] : ends[1]])
