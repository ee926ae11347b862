"""`write_openea`: writes a benchmark as a folder in OpenEA's layout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.errors import InputError
from clusterea.types import Benchmark, IntArray, Names

FOLDS = 5
_TEXT = pa.large_string()
_ROWS = 1 << 20  # lines made at a time: about 100 MB of text


def write_openea(benchmark: Benchmark, folder: Path, *, seed: int = 0) -> None:
    """Writes `folder` whole or not at all; `seed` shuffles the links into folds.

    Its train parts are disjoint fifths of the links; of what a fold leaves, a random tenth of all
    links is for validation and the rest for testing. Seeds and test links are split alike.

    Raises:
        InputError: `folder` exists and is not empty, or a name holds a tab or a line break.
    """
    folder = check_free(folder)
    for names in (*benchmark.names, *benchmark.relation_names):
        if pc.any(pc.match_substring_regex(names.arrow, r"[\t\r\n]")).as_py():
            raise InputError("names must be free of tabs and line breaks. Got some with instead.")
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


def _write_files(benchmark: Benchmark, folder: Path, seed: int) -> None:
    names, relation_names = benchmark.names, benchmark.relation_names
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
            alphabetical = pc.array_sort_indices(entities.arrow.take(pa.array(ids))).to_numpy()
            _write_lines(folder / f"dangling_{number}", ids[alphabetical][:, None], entities)


def _write_lines(path: Path, rows: IntArray, *columns: Names) -> None:
    """One line a row: the names of its ids, tab-separated."""
    *front, last = [names.arrow for names in columns]
    last = pc.binary_join_element_wise(last, pa.scalar("\n", _TEXT), pa.scalar("", _TEXT))
    with path.open("wb") as file:
        for start in range(0, len(rows), _ROWS):
            block = rows[start : start + _ROWS]
            cells = [
                names.take(pa.array(block[:, column]))
                for column, names in enumerate([*front, last])
            ]
            lines = pc.binary_join_element_wise(*cells, pa.scalar("\t", _TEXT))
            for chunk in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
                _, offsets, text = chunk.buffers()
                ends = np.frombuffer(offsets, dtype=np.int64)[
                    [chunk.offset, chunk.offset + len(chunk)]
                ]
                file.write(memoryview(text)[ends[0] : ends[1]])
