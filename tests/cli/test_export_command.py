"""`clusterea export`: every format, and each read back as links."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from tiny_runs import Command, aligned, rows, write_pair, write_rdf

from clusterea.data.links import read_links
from clusterea.pipeline import load_run
from clusterea.types import Pair, Texts
from clusterea.types.alignment import NOT_CALIBRATED

FILES = {
    "tsv": "exported.tsv",
    "parquet": "exported.parquet",
    "ntriples": "exported.nt",
    "sssom": "exported.sssom.tsv",
    "oaei": "exported.rdf",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def run(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "run"
    aligned(pair, folder)
    return folder


@pytest.fixture(scope="module")
def graphs(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair[Path]:
    return write_rdf(pair, tmp_path_factory.mktemp("rdf"))


@pytest.fixture(scope="module")
def links(run: Path) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows(run / "alignment.tsv")[1:]]


@pytest.mark.parametrize("format_name", FILES)
def test_it_says_how_many_and_where(
    format_name: str, run: Path, links: list[tuple[str, str]], clusterea_command: Command
) -> None:
    ran = clusterea_command("export", run, "--format", format_name)
    assert ran.code == 0, ran.err
    assert ran.out == f"{len(links)} links:\n  {run / FILES[format_name]}\n"
    assert ran.err == ""


@pytest.mark.parametrize("format_name", ["tsv", "parquet", "ntriples", "sssom"])
def test_what_is_exported_loads_again_as_links(
    format_name: str,
    run: Path,
    graphs: Pair[Path],
    links: list[tuple[str, str]],
    tmp_path: Path,
    clusterea_command: Command,
) -> None:
    out = tmp_path / "deep" / FILES[format_name]
    assert clusterea_command("export", run, "--format", format_name, "--out", out).code == 0
    first = read_links(out).readings[0]
    assert list(zip(first.source.to_pylist(), first.target.to_pylist(), strict=True)) == links
    seen = clusterea_command("info", graphs.source, graphs.target, "--links", out, "--json")
    assert seen.code == 0, seen.err
    told = json.loads(seen.out)
    assert told["seeds"] + told["test_links"] == len(links)


def test_the_unmatched_stand_in_sssom_if_asked_for(
    run: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    out = tmp_path / "links.sssom.tsv"
    asked = ["export", run, "--format", "sssom", "--out", out]
    assert clusterea_command(*asked).code == 0
    assert "sssom:NoTermFound" not in out.read_text()
    assert clusterea_command(*asked, "--with-unmatched").code == 0
    missing = [line for line in out.read_text().splitlines() if "sssom:NoTermFound" in line]
    unmatched = [rows(run / f"unmatched_{side}.tsv")[1:] for side in ("source", "target")]
    assert len(missing) == sum(map(len, unmatched))


def test_labels_are_written_if_the_run_has_them(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusterea_command: Command
) -> None:
    result = load_run(run, need="match")
    names = result.named.names
    labels = names.map(lambda side: Texts.of_lists([f"thing {name}"] for name in side))
    labeled = replace(result, benchmark=replace(result.named, labels=labels))
    monkeypatch.setattr("clusterea.pipeline.load_run", lambda *_args, **_options: labeled)
    out = tmp_path / "links.parquet"
    assert clusterea_command("export", run, "--format", "parquet", "--out", out).code == 0
    table = pq.read_table(out)
    assert table.num_rows > 10
    for side in ("source", "target"):
        wanted = [f"thing {name}" for name in table[side].to_pylist()]
        assert table[f"{side}_label"].to_pylist() == wanted


def test_oaei_is_xml_with_a_cell_a_link(
    run: Path, links: list[tuple[str, str]], tmp_path: Path, clusterea_command: Command
) -> None:
    out = tmp_path / "links.rdf"
    clusterea_command("export", run, "--format", "oaei", "--out", out)
    root = ElementTree.fromstring(out.read_text())
    alignment = "{http://knowledgeweb.semanticweb.org/heterogeneity/alignment#}"
    resource = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource"
    found = [
        tuple(cell.find(f"{alignment}entity{n}").get(resource) for n in (1, 2))  # type: ignore[union-attr]
        for cell in root.iter(f"{alignment}Cell")
    ]
    assert found == links


def test_tsv_is_alignment_tsv(run: Path, tmp_path: Path, clusterea_command: Command) -> None:
    clusterea_command("export", run, "--format", "tsv", "--out", tmp_path / "links.tsv")
    assert (tmp_path / "links.tsv").read_bytes() == (run / "alignment.tsv").read_bytes()


def test_only_the_sure_ones(run: Path, tmp_path: Path, clusterea_command: Command) -> None:
    confidence = [float(row[2]) for row in rows(run / "alignment.tsv")[1:]]
    least = sorted(confidence)[len(confidence) // 2]
    out = tmp_path / "sure.parquet"
    asked = ["export", run, "--format", "parquet", "--out", out, "--min-confidence"]
    assert clusterea_command(*asked, str(least)).code == 0
    kept = pq.read_table(out)["score"].to_pylist()
    assert len(kept) == sum(each >= least for each in confidence)
    assert min(kept) == pytest.approx(least)
    assert clusterea_command(*asked, "1").out.startswith("0 links:")


def test_only_the_first(run: Path, tmp_path: Path, clusterea_command: Command) -> None:
    out = tmp_path / "top.tsv"
    ran = clusterea_command("export", run, "--format", "tsv", "--out", out, "--top", "5")
    assert ran.out == f"5 links:\n  {out}\n"
    assert rows(out) == rows(run / "alignment.tsv")[:6]
    both = ["--top", "5", "--min-confidence", rows(run / "alignment.tsv")[3][2]]
    clusterea_command("export", run, "--format", "tsv", "--out", out, *both)
    assert rows(out) == rows(run / "alignment.tsv")[:4]


def test_parquet_says_whether_confidence_is_a_probability(
    run: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    out = tmp_path / "links.parquet"
    assert clusterea_command("export", run, "--format", "parquet", "--out", out).code == 0
    told = pq.read_schema(out).metadata
    assert told[b"confidence_examples"] == b"0"
    assert told[b"confidence_note"].decode() == NOT_CALIBRATED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "rdf"], "unknown format 'rdf'; choose one of tsv, parquet, ntriples"),
        (["--format", "ssom"], "Did you mean 'sssom'?"),
        ([], "Missing option '--format'"),
        (["--format", "tsv", "--min-confidence", "2"], "must be a number in [0, 1]. Got 2.0"),
        (["--format", "tsv", "--top", "-1"], "--top must be an int in [0, inf). Got -1 instead."),
        (["--format", "tsv", "--with-unmatched"], "needs --format sssom. Got --format t"),
        (["--format", "tsv", "--min-confidence", "nan"], "must be a number in [0, 1]. Got nan"),
    ],
)
def test_bad_options(
    arguments: list[str], message: str, run: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command("export", run, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_a_place_that_can_not_be_written(
    run: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command("export", run, "--format", "tsv", "--out", tmp_path)
    assert ran.code == 2
    assert ran.err == f"error: {tmp_path}: can't be written: Is a directory.\n"
    (tmp_path / "file").touch()
    ran = clusterea_command("export", run, "--format", "tsv", "--out", tmp_path / "file" / "links")
    assert ran.code == 2
    assert re.fullmatch(r"error: .*file/links: can't be written: .*\.\n", ran.err)
    assert not list(tmp_path.rglob("*.part"))


def test_the_run_can_be_carried_elsewhere(
    run: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    moved = Path(shutil.copytree(run, tmp_path / "a folder [with] odd = names"))
    ran = clusterea_command("export", moved, "--format", "tsv")
    assert ran.out.splitlines()[1] == f"  {moved / 'exported.tsv'}"


class TestStreams:
    def test_standard_output_holds_the_data_alone(
        self, run: Path, clusterea_command: Command
    ) -> None:
        ran = clusterea_command("export", run, "--format", "tsv", "--out", "-")
        assert ran.code == 0, ran.err
        assert ran.out == (run / "alignment.tsv").read_text()
        assert ran.err == f"{len(rows(run / 'alignment.tsv')) - 1} links:\n  -\n"

    @pytest.mark.parametrize("format_name", FILES)
    def test_a_fifo(
        self, format_name: str, run: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        clusterea_command("export", run, "--format", format_name, "--out", tmp_path / "file")
        os.mkfifo(tmp_path / "pipe")
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
        reader.start()
        ran = clusterea_command("export", run, "--format", format_name, "--out", tmp_path / "pipe")
        reader.join(timeout=20)
        assert ran.code == 0, ran.err
        assert ran.out == ""
        assert read == [(tmp_path / "file").read_bytes()]
        assert (tmp_path / "pipe").is_fifo()

    def test_a_reader_that_has_enough(self, run: Path, clusterea_command: Command) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        ran = clusterea_command("export", run, "--format", "tsv", "--out", f"/dev/fd/{writer}")
        os.close(writer)
        assert (ran.code, ran.out, ran.err) == (128 + signal.SIGPIPE, "", "")


@pytest.mark.parametrize("asked", [["align", "{pair}", "--out"], ["generate"]])
def test_a_folder_can_not_be_a_fifo(
    asked: list[str], pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ran = clusterea_command(*(word.format(pair=pair) for word in asked), tmp_path / "pipe")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "folder" in ran.err
    assert (tmp_path / "pipe").is_fifo()
