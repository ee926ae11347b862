"""Input from pipes: read once, whole, by the real command line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clusterea
from clusterea.errors import InputError
from conftest import Ran

COUNT = 700  # more links than any reader's first look takes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("source", "target"):
        rows = (f"{name}{i}\tr\t{name}{(i * 7 + 1) % COUNT}\n" for i in range(COUNT))
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
    (tmp_path / "links.tsv").write_text("".join(f"source{i}\ttarget{i}\n" for i in range(COUNT)))
    return tmp_path


def shell(folder: Path, line: str) -> Ran:
    """What bash does with a line of commands in which `clusterea` is the command line."""
    command = f'clusterea() {{ "{sys.executable}" -m clusterea "$@"; }}; {line}'
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "line",
    [
        "clusterea info source.tsv target.tsv --links <(cat links.tsv)",
        "clusterea info <(cat source.tsv) <(gzip -c target.tsv) --links - < links.tsv",
        "cat source.tsv | clusterea info - target.tsv --links <(gzip -c links.tsv)",
        "xz -c links.tsv | clusterea info source.tsv target.tsv --links /dev/stdin",
    ],
)
def test_every_link_is_read(line: str, folder: Path) -> None:
    ran = shell(folder, line)
    assert ran.code == 0, ran.err
    assert f"Links: {COUNT}, all of them seeds" in ran.out
    assert "Left out: nothing." in ran.out


def test_an_alignment_is_judged_by_all_of_it(folder: Path) -> None:
    line = "clusterea evaluate --alignment <(head -n 350 links.tsv) --test-links - < links.tsv"
    ran = shell(folder, line)
    assert ran.out == "Precision 100.0%, recall 50.0%, F1 66.7% on 700 test links.\n", ran


def test_standard_input_by_its_name_in_messages(folder: Path) -> None:
    ran = shell(folder, "echo nonsense | clusterea info source.tsv target.tsv --links -")
    assert ran.code == 2
    assert ran.err.startswith("error: standard input line 1: expected 2 tab-separated columns")


@pytest.mark.parametrize("second", ["-", "/dev/stdin"])
def test_standard_input_twice(second: str, folder: Path) -> None:
    ran = shell(folder, f"cat source.tsv | clusterea info - target.tsv --links {second}")
    assert ran.code == 2
    assert "can be read only once; give a file for one of the two." in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_pipe_is_no_folder(folder: Path) -> None:
    ran = shell(folder, "cat source.tsv | clusterea info -")
    assert ran.err.startswith("error: standard input is one file. Give a folder, or two files")


def through_fifo(place: Path, content: bytes) -> threading.Thread:
    os.mkfifo(place)
    writer = threading.Thread(target=lambda: place.write_bytes(content))
    writer.start()
    return writer


def parquet(text: bytes) -> bytes:
    cells = [line.split("\t") for line in text.decode().splitlines()]
    sink = pa.BufferOutputStream()
    columns = dict(zip(("source", "target"), zip(*cells, strict=True), strict=True))
    pq.write_table(pa.table(columns), sink)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def zstandard(text: bytes) -> bytes:
    packed: bytes = pa.compress(text, codec="zstd", asbytes=True)
    return packed


PACKERS: list[Callable[[bytes], bytes]] = [
    *(bytes, gzip.compress, bz2.compress, lzma.compress, zstandard, parquet)
]


@pytest.mark.parametrize("pack", PACKERS)
def test_fifos(pack: Callable[[bytes], bytes], folder: Path) -> None:
    fifo = folder / "fifo"
    writer = through_fifo(fifo, pack((folder / "links.tsv").read_bytes()))
    benchmark = clusterea.load(folder / "source.tsv", folder / "target.tsv", links=fifo)
    writer.join()
    assert benchmark.task.num_seeds == COUNT


def test_no_copy_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = folder / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    writer = through_fifo(folder / "fifo", b"one column\n")
    with pytest.raises(InputError, match="fifo line 1: expected 2 tab-separated columns, got 1"):
        clusterea.load(folder / "source.tsv", folder / "target.tsv", links=folder / "fifo")
    writer.join()
    assert list(copies.iterdir()) == []


def test_files_need_no_place_for_copies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder / "nowhere"))
    paths = [folder / f"{name}.tsv" for name in ("source", "target", "links")]
    assert clusterea.load(*paths[:2], links=paths[2]).task.num_seeds == COUNT
    writer = through_fifo(folder / "fifo", b"a\tb\n")
    with pytest.raises(InputError, match="fifo: can't be copied to .*nowhere: No such file"):
        clusterea.load(*paths[:2], links=folder / "fifo")
    (folder / "fifo").read_bytes()  # or the writer would wait forever
    writer.join()
