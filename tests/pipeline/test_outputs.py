"""The files of a run: all are written, whichever of them can't be."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest
from small_runs import CPU, Ear, benchmark, quick

from clusterea.errors import DataError
from clusterea.pipeline import AlignmentResult, run_in_folder
from clusterea.pipeline.outputs import write_outputs
from clusterea.workspace import DataKeys, Workspace

FILES = (
    *("alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv", "metrics.json"),
    *("report.html", "candidates.parquet"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AlignmentResult]:
    folder = tmp_path_factory.mktemp("run")
    return folder, run_in_folder(Workspace(folder), benchmark(), quick(), CPU, Ear())[0]


def write(folder: Path, result: AlignmentResult) -> None:
    write_outputs(folder, result, DataKeys("task", "data"), CPU, Ear())


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_all_files(whole: tuple[Path, AlignmentResult], tmp_path: Path) -> None:
    folder, result = whole
    write(tmp_path, result)
    assert names(tmp_path) == {*FILES, "run.json"}
    for name in FILES:
        if name != "report.html":  # it has the seconds that the stages took
            assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("name", ["alignment.tsv", "unmatched_target.tsv", "report.html"])
def test_the_others_are_written_if_one_of_them_cannot_be(
    name: str, whole: tuple[Path, AlignmentResult], tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=rf"{name}: can't be written: Is a directory\."):
        write(tmp_path, whole[1])
    assert names(tmp_path) == {*FILES}  # a manifest would tell of a finished run
    assert all((tmp_path / each).stat().st_size for each in FILES)


def test_a_disk_that_gets_full(
    whole: tuple[Path, AlignmentResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "candidates.parquet").write_text("old")

    def full(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(DataError, match=r"candidates.parquet: can't be written: the disk is full"):
        write(tmp_path, whole[1])
    assert (tmp_path / "candidates.parquet").read_text() == "old"
    assert names(tmp_path) == {*FILES}
