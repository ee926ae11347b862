from __future__ import annotations

import gzip
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from demo_run import demo_run

from clusterea.report import ReportData
from clusterea.report.link_index import pack_links
from clusterea.report.payload import CONFIDENCE_STEPS, in_steps
from clusterea.types import Pair


def unpacked(data: ReportData) -> tuple[np.ndarray, np.ndarray, list[list[str]]]:
    """Confidence in steps, verdicts and names, as the page reads them."""
    content = gzip.decompress(b64decode(pack_links(data).packed))
    number = data.num_links
    confidence = np.frombuffer(content, "<u2", number)
    verdicts = np.frombuffer(content, np.int8, number, 2 * number)
    lines = content[3 * number :].decode().split("\n")
    return confidence, verdicts, [line.split("\t") for line in lines]


@pytest.mark.parametrize("test_links", [True, False])
def test_every_link_is_packed_and_found_by_its_row(test_links: bool) -> None:
    data = demo_run(test_links=test_links).report(sample=10)
    confidence, verdicts, names = unpacked(data)
    rows = pack_links(data).rows
    assert sorted(rows.tolist()) == list(range(data.num_links))
    for link in range(data.num_links):
        assert names[rows[link]] == [side[link].as_py() for side in data.names]
    assert np.abs(confidence[rows] / CONFIDENCE_STEPS - data.confidence).max() <= 1e-5
    wanted = np.full(data.num_links, -1) if data.correctness is None else data.correctness
    assert verdicts[rows].tolist() == wanted.tolist()


def test_names_in_order_take_few_bytes() -> None:
    data = demo_run().report(sample=10)
    assert len(pack_links(data).packed) < 20 * data.num_links


def test_labels_are_two_more_cells_of_each_line() -> None:
    data = demo_run().labeled(lambda side, name: f"{side}\tof\r\n{name[-6:]} ").report(sample=10)
    assert data.labels is not None
    _, _, cells = unpacked(data)
    rows = pack_links(data).rows
    for link in range(data.num_links):
        labels = [(side[link].as_py() or "") for side in data.labels]
        wanted = [" ".join(label.split()) for label in labels]
        assert cells[rows[link]] == [*(side[link].as_py() for side in data.names), *wanted]


def test_long_labels_are_cut() -> None:
    """A file may have a label of megabytes."""
    data = demo_run().labeled(lambda side, _: "é" * (200 if side == "source" else 201))
    _, _, cells = unpacked(data.report(sample=10))
    assert {tuple(row[2:]) for row in cells} <= {
        (one, other) for one in ("", "é" * 200) for other in ("", "é" * 199 + "…")
    }
    assert any(row[2] for row in cells)
    assert any(row[3] for row in cells)


def test_where_no_linked_entity_has_a_label_nothing_is_added() -> None:
    data = demo_run().report(sample=10)
    nothing = pa.nulls(data.num_links, pa.large_string())
    unlabeled = replace(data, labels=Pair(nothing, nothing))
    assert pack_links(unlabeled).packed == pack_links(data).packed


def test_no_confidence_is_rounded_to_zero_or_one() -> None:
    steps = in_steps([0, 1e-9, 0.25, 0.9997, 1 - 1e-9, 1])
    assert steps.tolist() == [0, 1, 12_500, 49_985, CONFIDENCE_STEPS - 1, CONFIDENCE_STEPS]
    assert CONFIDENCE_STEPS < 2**16
