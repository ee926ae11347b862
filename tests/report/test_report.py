from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from demo_run import METRICS, demo_run

from chromium import PROGRAMS, Browser, Page, find_program, running_browser
from clusterea.evaluation.judge import judge
from clusterea.report import (
    GraphSize,
    MiniBatches,
    ReportData,
    render_report,
    write_report,
)
from clusterea.report.data import WRONG
from clusterea.report.payload import CONFIDENCE_STEPS, embed_json
from clusterea.report.readable import measured, percent
from clusterea.types import Measure, Pair, StageCost
from clusterea.types.alignment import NOT_CALIBRATED

HOSTILE = "<script>alert(1)</script><!--<img src=x onerror=alert(2)>\u2028'\"&amp; {{ 1 }} "
READY = (
    "document.documentElement.dataset.charts === 'drawn' && "
    "(document.documentElement.dataset.matches === 'ready' || "
    "!document.getElementById('match-table'))"
)

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@cache
def demo_report(*, test_links: bool = True) -> ReportData:
    return demo_run(test_links=test_links).report()


def local(name: str) -> str:
    return name.rsplit("/", 1)[1]


def label_of(side: str, name: str) -> str:
    """In an order of its own, and different on both sides."""
    return f"{name[:-7:-1]} a {side.capitalize()} thing"


@cache
def labeled_report() -> ReportData:
    """Entities of both sides have the same names, but other labels; every tenth has none."""
    origins = {"links": 95, "names": 500}
    return demo_run(rename=local).labeled(label_of, origins).report(sample=400)


def shown(data: ReportData, side: str, link: int) -> list[str]:
    """The label and the name of an end of a link, or the name alone."""
    assert data.labels is not None
    label, name = (getattr(each, side)[link].as_py() for each in (data.labels, data.names))
    return [name] if label is None else [label, name]


@cache
def scored_report() -> ReportData:
    """Of a run that held out no seeds."""
    run = demo_run()
    return replace(run, alignment=replace(run.alignment, examples=0)).report(sample=100)


@pytest.fixture(scope="module")
def show(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Writes a report, once, and opens it; charts and table are there when this returns."""
    written: list[tuple[ReportData, Path]] = []

    def open_report(data: ReportData, **options: Any) -> Page:
        path = next((path for known, path in written if known is data), None)
        if path is None:
            path = tmp_path_factory.mktemp("report") / "report.html"
            write_report(path, data)
            written.append((data, path))
        page = browser.open(path, **options)
        page.wait_for(READY)
        return page

    return open_report


def bare_report(confidence: Sequence[float] = (), measure: Measure = "confidence") -> ReportData:
    """As little as a report can be made of."""
    names = [f"e{number}" for number in range(len(confidence))]
    size = GraphSize(0, 0, 0)
    return ReportData(
        title="bare",
        sizes=Pair(size, size),
        num_seeds=0,
        names=Pair(names, names).map(lambda some: pa.array(some, pa.large_string())),
        confidence=np.array(confidence, dtype=np.float64),
        measure=measure,
        confidence_note="",
        unmatched=Pair(0, 0),
    )


def choose(page: Page, verdict: int | None) -> None:
    """In the field of what the test links say."""
    value = "" if verdict is None else str(verdict)
    page.evaluate(
        f"(e => {{ e.value = '{value}'; e.dispatchEvent(new Event('change')); }})"
        "(document.querySelector('#verdict'))"
    )


def assert_quiet(page: Page) -> None:
    """No error, and nothing asked of the network."""
    assert page.errors() == []
    asked = [url for url in page.requests() if not url.startswith(("data:", "blob:"))]
    assert len(asked) == 1
    assert asked[0].startswith("file:")


# ---- in a browser


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_without_an_error_or_a_request(show: Open, dark: bool, width: int) -> None:
    page = show(demo_report(), dark=dark, width=width)
    assert_quiet(page)
    assert page.text("h1") == "demo"
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out
    # Each chart has its place, and a canvas in it that is not blank.
    charts = page.evaluate("document.querySelectorAll('[data-chart]').length")
    assert charts == 8
    assert page.evaluate("Bokeh.documents.length") == charts
    assert page.evaluate(
        "[...document.querySelectorAll('[data-chart]')].every(e => e.offsetHeight > 150)"
    )


def test_the_headline_is_in_percent(show: Open) -> None:
    page = show(demo_report())
    shown = page.text("#summary")
    for number in ("73.1%", "90.2%", "0.795", "77.5%", "1,785", "67.9%", "0.749"):
        assert number in shown
    assert "89.3%" in page.text("#mini-batches")
    assert "1 min 23 s" in page.evaluate("document.querySelector('#cost').textContent")


def test_charts_follow_light_and_dark(show: Open) -> None:
    page = show(demo_report())
    color = (
        "[...Bokeh.documents[0].roots()[0].references()]"
        ".find(m => m.tags[0] === '--series-1').fill_color.value"
    )
    light = page.evaluate(color)
    page.set_dark(True)
    page.wait_for(f"{color} !== {json.dumps(light)}")
    wanted = "getComputedStyle(document.documentElement).getPropertyValue('--series-1').trim()"
    assert page.evaluate(color) == page.evaluate(wanted)


def test_the_table_searches(show: Open) -> None:
    data = demo_report()
    page = show(data)
    assert page.text("#shown") == "Showing 50 of 1,785 matches"
    wanted = data.matches[700]
    local = wanted.entities.target.rsplit("/", 1)[1]
    page.type("#search", f"EXAMPLE target.example/resource/{local.lower()}")
    assert page.texts(".match td:nth-child(2)") == [local]
    assert page.text("#shown") == "Showing 1 of 1 matches (of 1,785)"
    page.type("#search", "no such thing")
    assert page.text("#shown") == "No matches found."
    assert page.texts(".match") == []
    page.type("#search", "e")
    page.click("#more")
    assert page.text("#shown") == "Showing 100 of 1,785 matches"
    assert len(page.texts(".match")) == 100
    assert_quiet(page)


def test_the_table_sorts_and_filters(show: Open) -> None:
    data = demo_report()
    page = show(data)
    sure = "#match-table th[data-key=confidence]"
    assert page.evaluate(f"document.querySelector('{sure}').ariaSort") == "descending"
    page.click(f"{sure} button")
    assert page.texts(".match td:nth-child(3)")[0] == percent(data.matches[-1].confidence)
    page.click("#match-table th[data-key=source] button")
    names = page.texts(".match .open")
    assert names == sorted(names)
    choose(page, WRONG)
    wrong = sum(match.right is False for match in data.matches)
    assert page.text("#shown") == f"Showing 50 of {wrong} matches (of 1,785)"


@pytest.mark.parametrize("width", [1200, 390])
def test_the_evidence_opens_and_closes(show: Open, width: int) -> None:
    data = demo_report()
    page = show(data, width=width)
    match = next(match for match in data.matches if match.num_supports > 12)
    page.type("#search", f"{match.entities.source} {match.entities.target}")
    page.click(".match .open")
    assert page.evaluate("document.querySelector('.open').ariaExpanded") == "true"
    assert page.evaluate(
        "document.querySelector('.evidence').id === "
        "document.querySelector('.open').getAttribute('aria-controls')"
    )
    shown = page.text(".evidence")
    assert match.entities.source in shown
    assert match.entities.target in shown
    assert (
        f"{match.num_supports} pairs are matched to each other. The strongest 12 are shown" in shown
    )
    rows = page.texts(".supports tbody tr")
    assert len(rows) == 12
    first = match.supports[0]
    for neighbor, steps in zip(first.neighbors, first.relations, strict=True):
        assert neighbor.rsplit("/", 1)[1] in rows[0]
        for step in steps:
            local = step.relation.rsplit("/", 1)[1]
            assert (f"{local} →" if step.outward else f"← {local}") in rows[0]
    # It fills the table and no more.
    assert page.evaluate(
        "document.querySelector('.evidence').offsetWidth === "
        "document.querySelector('.match').offsetWidth"
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.click(".match .open")
    assert page.texts(".evidence") == []
    assert_quiet(page)


def test_the_evidence_opens_from_the_keyboard(show: Open) -> None:
    page = show(demo_report())
    page.evaluate("document.querySelector('.open').focus()")
    page.press("Enter")
    assert len(page.texts(".evidence")) == 1
    page.press("Tab")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.open')[1]")


def test_a_wrong_match_names_the_right_one(show: Open) -> None:
    data = demo_report()
    page = show(data)
    match = next(match for match in data.matches if match.right is False)
    page.type("#search", f"{match.entities.source} {match.entities.target}")
    page.click(".match .open")
    assert match.truth is not None
    assert match.truth in page.text(".evidence")


def test_without_test_links_it_says_so(show: Open) -> None:
    page = show(demo_report(test_links=False))
    assert_quiet(page)
    assert "There are no test links" in page.text("#summary")
    assert "%" not in page.text("#summary")
    assert page.evaluate("document.querySelector('#verdict')") is None
    assert page.evaluate("document.querySelector('#chart-reliability')") is None
    page.click(".match .open")
    assert len(page.texts(".evidence")) == 1


def test_a_run_that_was_not_evaluated_says_so(show: Open) -> None:
    page = show(replace(demo_report(), metrics=None))
    assert_quiet(page)
    assert "This run was not evaluated" in page.text("#summary")


def test_every_link_is_in_the_table_also_without_evidence(show: Open) -> None:
    data = demo_run().report(sample=100)
    page = show(data)
    note = re.sub(r"\s+", " ", page.text("#matches .note"))
    sample = "the 25 with the highest confidence, the 25 with the lowest, and 50 at random"
    assert f"the evidence for 100 of them: {sample}." in note
    assert page.text("#shown") == "Showing 50 of 1,785 matches"

    drawn = {match.link for match in data.matches}
    other = next(link for link in range(data.num_links) if link not in drawn)
    source, target = (side[other].as_py() for side in data.names)
    page.type("#search", f"{source} {target}")
    assert page.text("#shown") == "Showing 1 of 1 matches (of 1,785)"
    shown = percent(data.confidence[other])
    assert page.texts(".match td:not(.verdict)")[1:] == [shown, "–\nnot on this page"]
    page.click(".match .open")
    assert f"clusterea explain RUN '{source}'" in page.text(".evidence pre")

    match = data.matches[30]
    page.type("#search", f"{match.entities.source} {match.entities.target}")
    assert page.texts(".match td:last-child") == [str(match.num_supports)]
    page.click(".match .open")
    assert f"{match.num_neighbors.source} neighbor" in page.text(".evidence")
    assert_quiet(page)


def test_sorting_and_filtering_cover_every_link(show: Open) -> None:
    data = demo_run().report(sample=100)
    page = show(data)
    assert data.correctness is not None
    locals_ = [name.rsplit("/", 1)[1] for name in data.names.target.to_pylist()]
    page.click("#match-table th[data-key=target] button")
    assert page.texts(".match td:nth-child(2)") == sorted(locals_)[:50]
    choose(page, WRONG)
    wrong = [name for name, verdict in zip(locals_, data.correctness, strict=True) if not verdict]
    page.click("#match-table th[data-key=target] button")
    page.click("#more")
    assert page.texts(".match td:nth-child(2)") == sorted(wrong, reverse=True)[:100]
    assert page.text("#shown") == f"Showing 100 of {len(wrong)} matches (of 1,785)"
    # Links without evidence come last, whichever way.
    choose(page, None)
    totals = sorted(match.num_supports for match in data.matches)
    for expected in (totals[::-1], totals):
        page.click("#match-table th[data-key=evidence] button")
        assert page.texts(".match td:last-child") == [str(total) for total in expected[:50]]


def test_a_browser_that_cannot_unpack_shows_the_sample(show: Open) -> None:
    data = demo_run().report(sample=100)
    page = show(data, before="delete window.DecompressionStream")
    assert page.evaluate("typeof DecompressionStream") == "undefined"
    notes = page.evaluate(
        "[...document.querySelectorAll('#matches .note')].filter(e => !e.hidden)"
        ".map(e => e.innerText.replace(/\\s+/g, ' '))"
    )
    assert notes == [
        "This browser could not unpack the list of all links. "
        "The table has a sample of 100; all links are in alignment.tsv."
    ]
    assert page.text("#shown") == "Showing 50 of 100 matches"
    match = next(match for match in data.matches if match.num_supports)
    page.type("#search", f"{match.entities.source} {match.entities.target}")
    page.click(".match .open")
    assert page.texts(".match td:nth-child(3)") == [percent(match.confidence)]
    assert match.entities.source in page.text(".evidence")
    assert page.texts(".supports tbody tr")
    assert_quiet(page)


@pytest.mark.parametrize("width", [1200, 390])
def test_labels_come_first_and_names_below_them(show: Open, width: int) -> None:
    data = labeled_report()
    page = show(data, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    by_confidence = np.argsort(-data.confidence, kind="stable")[:20].tolist()
    for side, selector in (("source", ".match .open"), ("target", ".match td:nth-child(2)")):
        cells = [each.split("\n") for each in page.texts(selector)[:20]]
        assert cells == [shown(data, side, link) for link in by_confidence]
        assert {len(each) for each in cells} == {1, 2}
    sizes = (
        "['bdi', '.id'].map(s => parseFloat(getComputedStyle("
        "document.querySelector('.match ' + s)).fontSize))"
    )
    label, name = page.evaluate(sizes)
    assert name < label
    assert (
        page.evaluate("document.querySelector('#search').placeholder") == "part of a label or name"
    )
    assert "595 seeds (95 from links, 500 from equal names): 1,785 links" in re.sub(
        r"\s+", " ", page.text(".lead")
    )
    assert_quiet(page)


def test_search_finds_labels_and_names(show: Open) -> None:
    data = labeled_report()
    page = show(data)
    link = next(link for link in range(data.num_links) if len(shown(data, "target", link)) == 2)
    label, name = shown(data, "target", link)
    for query in (label.upper(), f"thing {label.split()[0]} {name}"):
        page.type("#search", query)
        found = page.texts(".match td:nth-child(2)")
        assert f"{label}\n{name}" in found
        assert len(found) < 5
    page.type("#search", "not preferred")
    assert page.texts(".match") == []


def test_sorting_is_by_what_is_shown(show: Open) -> None:
    data = labeled_report()
    page = show(data)
    for side, selector in (("source", ".match .open"), ("target", ".match td:nth-child(2)")):
        page.click(f"#match-table th[data-key={side}] button")
        every = sorted(shown(data, side, link)[0].lower() for link in range(data.num_links))
        first = [each.split("\n")[0].lower() for each in page.texts(selector)]
        assert first == every[:50]
        page.click(f"#match-table th[data-key={side}] button")
        first = [each.split("\n")[0].lower() for each in page.texts(selector)]
        assert first == every[:-51:-1]


@pytest.mark.parametrize("before", ["", "delete window.DecompressionStream"])
def test_the_evidence_has_labels_of_the_right_side(show: Open, before: str) -> None:
    data = labeled_report()
    page = show(data, before=before)

    def words(side: str, name: str, between: str = " ") -> str:
        label = getattr(data.match_labels, side).get(name)
        return name if label is None else f"{label}{between}{name}"

    match = next(
        match
        for match in data.matches
        if match.truth in data.match_labels.target
        and match.supports
        and all(len(shown(data, side, match.link)) == 2 for side in ("source", "target"))
    )
    page.type("#search", f"{match.entities.source} {match.entities.target}")
    rows = page.texts(".match .open")
    wanted = rows.index(words("source", match.entities.source, "\n"))
    page.evaluate(f"document.querySelectorAll('.match .open')[{wanted}].click()")
    assert match.truth is not None
    assert page.texts(".evidence dd") == [
        words("source", match.entities.source),
        words("target", match.entities.target),
        words("target", match.truth),
    ]
    cells = page.evaluate(
        "[...document.querySelectorAll('.supports tbody tr')].map(r => [r.cells[0], r.cells[2]]"
        ".map(c => c.innerText.split('\\n')[0]))"
    )
    assert cells == [
        [words("source", each.neighbors.source), words("target", each.neighbors.target)]
        for each in match.supports
    ]
    assert_quiet(page)


def test_a_label_that_is_the_name_is_shown_once(show: Open) -> None:
    data = named_report("http://e.example/Paris", "Q90", "Q91")
    labels = pa.array(["Paris", "Paris", " "], pa.large_string())
    page = show(replace(data, labels=Pair(labels, labels)))
    assert sorted(page.texts(".match .open")) == ["Paris", "Paris\nQ90", "Q91"]


def test_without_labels_the_payload_has_none() -> None:
    def payload(data: ReportData) -> dict[str, Any]:
        text = render_report(data).split('id="report-data">')[1].split("</script>")[0]
        return dict(json.loads(text))

    plain = payload(demo_run().report(sample=10))
    assert "labels" not in plain
    labeled = payload(labeled_report())
    assert labeled.keys() == plain.keys() | {"labels"}
    assert labeled["labels"].keys() == {"source", "target"}


def named_report(*names: str) -> ReportData:
    """Links from each name to itself."""
    return replace(
        bare_report([0.5] * len(names)),
        names=Pair(names, names).map(lambda some: pa.array(some, pa.large_string())),
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("café", ["Café_Müller", "Café_50%"]),
        ("caf%c3%a9", ["Café_Müller"]),
        ("müller EXAMPLE", ["Café_Müller"]),
        ("50%_", ["50%_off%ZZ"]),
        ("50%", ["Café_50%", "50%_off%ZZ"]),
        ("off%zz", ["50%_off%ZZ"]),
        ("İSTANBUL", ["İstanbul"]),
    ],
)
def test_search_finds_any_part_of_a_name_also_decoded(
    show: Open, query: str, expected: list[str]
) -> None:
    base = "http://e.example/"
    page = show(
        named_report(
            f"{base}Caf%C3%A9_M%C3%BCller", f"{base}Café_50%25", "50%_off%ZZ", f"{base}İstanbul"
        )
    )
    page.type("#search", query)
    assert sorted(page.texts(".match .open")) == sorted(expected)


def test_names_that_break_lines_are_shown_as_they_are(show: Open) -> None:
    names = ("a\tb", "c\nd", "", "urn:clusterea:source:e%20f", "it's", "100%\n%0A")
    page = show(named_report(*names))
    page.click("#match-table th[data-key=source] button")
    shown = page.evaluate("[...document.querySelectorAll('.match .open')].map(e => e.textContent)")
    assert sorted(shown) == sorted(names)
    page.type("#search", "it's")
    page.click(".match .open")
    assert page.text(".evidence pre") == r"clusterea explain RUN 'it'\''s'"
    assert_quiet(page)


def test_it_says_what_confidence_was_calibrated_on(show: Open) -> None:
    page = show(demo_report())
    shown = re.sub(r"\s+", " ", page.text("#confidence"))
    assert (
        "the probability that a link is right, calibrated on 214 links of held-out seeds" in shown
    )
    assert "On the dashed line, precision equals confidence" in shown
    assert page.texts("#confidence figcaption") == [
        "Links by confidence",
        "Precision by confidence",
    ]
    assert page.texts("nav a")[2] == page.text("#confidence-title") == "Confidence"


@pytest.mark.parametrize("width", [1200, 390])
def test_a_score_does_not_look_like_a_probability(show: Open, width: int) -> None:
    data = scored_report()
    page = show(data, width=width)
    assert page.text("#confidence .note") == NOT_CALIBRATED
    assert page.texts("#confidence figcaption") == ["Links by score", "Precision by score"]
    assert page.texts("nav a")[2] == page.text("#confidence-title") == "Score"
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; }); 0")
    ranges = page.texts("#confidence tbody th")
    assert ranges
    assert all(re.fullmatch(r"[01]\.\d{3,4}( to [01]\.\d{3})?", each) for each in ranges)
    assert page.text("#match-table th[data-key=confidence]") == "Score"
    assert "the 25 with the highest score" in page.text("#matches .note")
    shown = page.texts(".match td:nth-child(3)")
    assert shown[0] == measured(max(data.confidence), "score")
    assert not any("%" in each for each in shown)
    found = (each for each in data.matches if not all(pair.by_seed for pair in each.supports))
    match = next(found)
    page.type("#search", f"{match.entities.source} {match.entities.target}")
    page.click(".match .open")
    ways = set(page.texts(".supports td.link")) - {"seed"}
    assert ways
    assert all(re.fullmatch(r"0\.\d{3}", each) for each in ways)
    read_aloud = "[...document.querySelectorAll('[aria-label]')].map(e => e.ariaLabel)"
    for text in (page.text("body"), *page.evaluate(read_aloud)):
        assert "onfiden" not in text
    assert_quiet(page)


def test_the_page_writes_scores_as_python_does(show: Open) -> None:
    ends = [1.0, 0.99999, 0.9999, 0.9997, 0.9995, 0.00048, 0.00002, 0.0]
    data = bare_report([*ends, 0.1225, 0.0145, 0.6035, 0.5], "score")
    shown = show(data).texts(".match td:nth-child(3)")
    assert shown[:3] == ["1.000", ">0.9999", "0.9999"]
    assert shown[-2:] == ["<0.0001", "0.000"]
    assert shown == [measured(each, "score") for each in sorted(data.confidence, reverse=True)]


def test_the_page_writes_percents_as_python_does(show: Open) -> None:
    ends = [1.0, 0.99999, 0.9999, 0.9997, 0.9995, 0.00048, 0.00002, 0.0]
    steps = np.random.default_rng(0).integers(0, CONFIDENCE_STEPS, 38) / CONFIDENCE_STEPS
    halves = [0.1225, 0.0145, 0.0155, 0.6035]
    data = bare_report([*ends, *steps, *halves])
    shown = show(data).texts(".match td:nth-child(3)")
    assert shown[:3] == ["100.0%", ">99.99%", "99.99%"]
    assert shown[-2:] == ["<0.01%", "0.0%"]
    assert shown == [percent(share) for share in sorted(data.confidence, reverse=True)]


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("at", [(0.02, 0.05), (0.98, 0.95)])
def test_a_click_anywhere_in_a_header_cell_sorts(
    show: Open, width: int, at: tuple[float, float]
) -> None:
    page = show(demo_report(), width=width)
    for key, order in (
        ("source", "ascending"),
        ("target", "ascending"),
        ("evidence", "descending"),
    ):
        page.click(f"#match-table th[data-key={key}]", at=at)
        sorted_by = (
            "[...document.querySelectorAll('[aria-sort]')].map(e => [e.dataset.key, e.ariaSort])"
        )
        assert page.evaluate(sorted_by) == [[key, order]]


def test_headers_sort_from_the_keyboard(show: Open) -> None:
    page = show(demo_report())
    page.evaluate("document.querySelector('th[data-key=source] button').focus()")
    page.press("Tab")
    page.press("Enter")
    assert page.evaluate("document.querySelector('th[data-key=target]').ariaSort") == "ascending"
    page.press("Enter")
    assert page.evaluate("document.querySelector('th[data-key=target]').ariaSort") == "descending"


def test_the_evidence_column_is_there_in_a_narrow_window(show: Open) -> None:
    data = demo_report()
    page = show(data, width=400)
    page.click("#match-table th[data-key=evidence]")
    most = max(match.num_supports for match in data.matches)
    assert page.texts(".match td:last-child")[0] == str(most)
    assert page.text("th[data-key=evidence]").startswith("Evid.")
    assert page.evaluate("document.querySelector('.match td:last-child').offsetWidth") > 30
    right = "document.querySelector('{}').getBoundingClientRect().right"
    assert page.evaluate(right.format(".match td:last-child")) <= page.evaluate(
        right.format("#matches")
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_precision_is_explained_where_test_links_cover_few_links(show: Open) -> None:
    run = demo_run()
    benchmark = replace(run.benchmark, test_links=run.benchmark.test_links[::10], dangling=None)
    scores = judge(run.alignment.links, benchmark.test_links)
    matching = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
    data = replace(run, benchmark=benchmark).report(metrics=METRICS | {"matching": matching})
    assert data.correctness is not None
    right, wrong, unknown = (int((data.correctness == each).sum()) for each in (1, 0, -1))
    assert scores.precision == right / data.num_links
    assert unknown > right + wrong
    shown = re.sub(r"\s+", " ", show(data).text("#precision-note"))
    assert f"confirm {right} of the 1,785 links and contradict {wrong}." in shown
    assert f"The other {unknown:,} have no entity of a test link or seed." in shown
    judged = f"Of the {right + wrong} links that can be judged, {percent(right / (right + wrong))}"
    assert f"{judged} are right" in shown


def test_precision_needs_no_words_where_every_link_is_judged(show: Open) -> None:
    page = show(demo_report())
    assert page.evaluate("document.querySelector('#precision-note')") is None


def hostile(name: str) -> str:
    return HOSTILE + name.rsplit("/", 1)[1]


def hostile_label(side: str, name: str) -> str:
    return f"{side}{HOSTILE}\u202e{name[-6:]}"


def test_hostile_names_and_labels_are_only_text(show: Open) -> None:
    data = demo_run(rename=hostile).labeled(hostile_label).report(sample=200)
    data = replace(
        data,
        title=HOSTILE,
        stages=(StageCost(HOSTILE, 1.0, 2**30), StageCost(HOSTILE, 2.0, 2**30)),
        mini_batches=(MiniBatches(HOSTILE, Pair((1, 2), (3, 4)), {"seeds": 0.5}),),
        config={HOSTILE: {HOSTILE: HOSTILE}},
        versions={HOSTILE: HOSTILE},
        rounds=({HOSTILE: HOSTILE},),
    )
    page = show(data)
    page.evaluate("window.alerted = []; window.alert = (what) => window.alerted.push(what); 0")
    assert data.labels is not None
    wanted = data.matches[0].entities.source
    label = data.labels.source[data.matches[0].link].as_py()
    page.type("#search", f"source<script>alert(1)</script> {wanted[-6:]}")
    page.click(".match .open")
    assert page.evaluate("window.alerted") == []
    assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0
    assert page.evaluate("document.title").startswith("<script>alert(1)</script>")
    assert page.evaluate("document.querySelector('.evidence dd .id').textContent") == wanted
    texts = page.evaluate("[...document.querySelectorAll('main bdi')].map(e => e.textContent)")
    assert texts[0] == label.strip()
    assert len(texts) > 4  # also in the evidence
    assert all("<script>alert(1)</script>" in text for text in texts)
    assert_quiet(page)


@pytest.mark.parametrize("confidence", [[], [0.5], [1.0, 1.0]])
def test_it_opens_with_hardly_anything_in_it(show: Open, confidence: list[float]) -> None:
    data = bare_report(confidence)
    assert_quiet(show(data))
    judged = np.full(len(confidence), -1, dtype=np.int8)
    assert_quiet(show(replace(data, correctness=judged, metrics=METRICS | {"by_degree": []})))


# ---- without one


def test_one_file_is_written_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(path, bare_report())
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


def test_importing_it_loads_neither_torch_nor_bokeh() -> None:
    check = (
        "import sys, clusterea.report; print(sorted({'torch', 'bokeh', 'jinja2'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_same_data_gives_the_same_page_but_for_bokehs_ids() -> None:
    pages = [
        re.sub(r'"(p\d+|[0-9a-f-]{36})"', '""', render_report(demo_run().report(sample=10)))
        for _ in range(2)
    ]
    assert pages[0] == pages[1]


def test_two_thousand_matches_fit_into_few_megabytes() -> None:
    assert len(render_report(demo_report()).encode()) < 4_000_000


def test_embedded_json_is_no_markup_and_reads_back() -> None:
    text = embed_json({HOSTILE: [HOSTILE, 0.5, None]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {HOSTILE: [HOSTILE, 0.5, None]}


def test_arrays_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"confidence must have shape \(n,\)"):
        replace(bare_report(), confidence=np.zeros((2, 1)))
    with pytest.raises(ValueError, match="names must have 2 sources and targets. Got 0 and 0"):
        replace(bare_report(), confidence=np.zeros(2))
    lone = pa.array(["label"], pa.large_string())
    with pytest.raises(ValueError, match="labels must have 0 sources and targets. Got 1 and 1"):
        replace(bare_report(), labels=Pair(lone, lone))
    with pytest.raises(ValueError, match=r"correctness must have shape \(0,\)"):
        replace(bare_report(), correctness=np.zeros(2, dtype=np.int8))


@pytest.mark.parametrize(
    ("variable", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_no_browser_is_a_failure_where_ci_is_set(
    monkeypatch: pytest.MonkeyPatch, variable: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", variable)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(outcome, match=f"no browser: none of {PROGRAMS[0]}"):
        find_program()
