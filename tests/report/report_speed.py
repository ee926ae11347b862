"""How large a report of many links is, and how fast a browser opens, searches and sorts it.

    PYTHONPATH=tests .venv/bin/python tests/report/report_speed.py [--links 2000 1000000] [--labels]

Names are made up, of the lengths and as compressible as those of DBP15K FR-EN. Chromium has to be
installed. The times are those of the page's own clock, until the rows are laid out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from demo_run import demo_run

from chromium import Browser, Page, running_browser
from clusterea.report import ReportData, write_report
from clusterea.types import Pair

VOCABULARY = 50_000
READY = "document.documentElement.dataset.matches === 'ready'"


def words(rng: np.random.Generator) -> list[str]:
    """Made-up words, a few of them with letters beyond ASCII."""
    starts = ["", *"bcdfghjklmnprstvwz", "br", "ch", "cl", "fr", "gr", "kr", "pl", "st", "th", "tr"]
    middles = ["a", "e", "i", "o", "u", "ai", "ea", "ie", "ou", "é", "ö", "ć"]
    ends = ["", "", "n", "r", "s", "l", "t", "nd", "ck", "rs"]
    weights = np.array([8, 8, 8, 8, 8, 2, 2, 2, 2, 1, 0.5, 0.5])
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        syllables = [
            rng.choice(starts) + rng.choice(middles, p=weights / weights.sum()) + rng.choice(ends)
            for _ in range(rng.integers(1, 4))
        ]
        made["".join(syllables).capitalize()] = None
    return list(made)


def names_like_dbpedia(number: int, seed: int = 0) -> Pair[pa.Array]:
    """Sources and targets: half of the pairs have the same title, the others share a word."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array(words(rng))
    ranks = (rng.pareto(0.3, (number, 3)) * 40).clip(max=1e12).astype(np.int64) % VOCABULARY
    titles = vocabulary[ranks]
    years = rng.integers(1700, 2030, number)
    lengths = rng.integers(1, 4, number)
    kinds = rng.random((number, 3))
    sources, targets = [], []
    for i in range(number):
        source = "_".join(titles[i, : lengths[i]].tolist())
        target = source if kinds[i, 0] < 0.5 else f"{titles[i, 0]}_of_{titles[i - 1, 1]}"
        if kinds[i, 1] < 0.3:
            source = f"{source}_({years[i]}_film)"
        if kinds[i, 2] < 0.02:
            target = f"{target}%C3%A9_{years[i]}"
        sources.append(f"http://fr.dbpedia.org/resource/{source}")
        targets.append(f"http://dbpedia.org/resource/{target}")
    return Pair(sources, targets).map(lambda some: pa.array(some, pa.large_string()))


def labels_of(names: pa.Array) -> pa.Array:
    """Titles as labels."""
    titles = (name.rpartition("/")[2].replace("_", " ") for name in names.to_pylist())
    return pa.array(titles, pa.large_string())


def report_of(number: int, *, labels: bool) -> ReportData:
    """The demo's report with made-up links in place of its own, as many with evidence as it has."""
    rng = np.random.default_rng(1)
    demo = demo_run().report()
    drawn = rng.permutation(number)[: len(demo.matches)].tolist()
    names = names_like_dbpedia(number)
    return replace(
        demo,
        names=names,
        labels=names.map(labels_of) if labels else None,
        confidence=rng.beta(5, 2, number),
        correctness=rng.integers(-1, 2, number).astype(np.int8),
        matches=tuple(
            replace(match, link=link) for match, link in zip(demo.matches, drawn, strict=False)
        ),
    )


def timed(page: Page, action: str) -> float:
    """Milliseconds of `action` and of laying out what it changed."""
    script = (
        "(() => { const start = performance.now(); "
        f"{action}; document.getElementById('match-rows').offsetHeight; "
        "return performance.now() - start; })()"
    )
    return float(page.evaluate(script))


def measure(browser: Browser, number: int, folder: Path, *, labels: bool) -> dict[str, Any]:
    path = folder / f"{number}.html"
    data = report_of(number, labels=labels)
    start = time.perf_counter()
    write_report(path, data)
    written = time.perf_counter() - start
    page = browser.open(path)
    page.wait_for(READY)
    opened = page.evaluate("performance.now()")
    title = data.names.source[number // 2].as_py().rpartition("/")[2]
    query = f"dbpedia {title.lower()}"
    typed = [json.dumps(query[:length]) for length in range(1, len(query) + 1)]
    keys = [
        timed(page, f"search.value = {text}; search.dispatchEvent(new Event('input'))")
        for text in typed
    ]
    assert page.texts(".match")
    sorts = [
        timed(page, f"document.querySelector('[data-key={key}] button').click()")
        for key in ("evidence", "source", "target", "target")
    ]
    result = {
        "links": number,
        "page_mb": round(path.stat().st_size / 1e6, 1),
        "write_s": round(written, 1),
        "open_s": round(opened / 1000, 1),
        "key_median_ms": round(float(np.median(keys))),
        "key_slowest_ms": round(max(keys)),
        "sort_ms": dict(
            zip(("evidence", "source", "target", "again"), map(round, sorts), strict=True)
        ),
        "heap_mb": round(page.evaluate("performance.memory.usedJSHeapSize") / 1e6),
        "shown": page.text("#shown"),
        "errors": page.errors(),
    }
    path.unlink()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, nargs="+", default=[2_000, 100_000, 1_000_000])
    parser.add_argument("--labels", action="store_true", help="with a label for each entity")
    asked = parser.parse_args()
    with running_browser() as browser, tempfile.TemporaryDirectory() as folder:
        for number in asked.links:
            measured = measure(browser, number, Path(folder), labels=asked.labels)
            print(json.dumps(measured), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
