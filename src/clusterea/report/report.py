"""`write_report`: one HTML file that shows an alignment."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from clusterea.beside import Beside
from clusterea.files import replacing
from clusterea.report import charts, readable
from clusterea.report.calibration import ConfidenceBin, Reliability, histogram, reliability
from clusterea.report.data import ReportData
from clusterea.report.link_index import LinkIndex, pack_links
from clusterea.report.payload import embed_json, encode_matches


def write_report(path: str | os.PathLike[str], data: ReportData) -> None:
    """Writes the page, atomically."""
    with replacing(Path(path)) as beside:
        beside.write_text(render_report(data), encoding="utf-8", newline="\n")


def render_report(data: ReportData) -> str:
    """The HTML of the page, with style, scripts, charts and data inside.

    Its content security policy forbids loading anything and running other scripts.
    """
    with Beside() as beside:
        return _rendered(data, beside.start(pack_links, data))


def _rendered(data: ReportData, packed: Future[LinkIndex]) -> str:
    from bokeh.resources import Resources
    from jinja2 import Environment, StrictUndefined

    library = "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)
    scripts = [library, _asset("links.js"), _asset("script.js")]
    spread = histogram(data.confidence, data.correctness)
    points = () if data.correctness is None else reliability(data.confidence, data.correctness)
    plots = _plots(data, spread, points)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "percent": readable.percent,
        "mrr": readable.mean_reciprocal_rank,
        "count": readable.count,
        "duration": readable.duration,
        "size": readable.size,
        "seeds_origin": readable.seeds_origin,
    }
    drawn, matches = charts.as_json(plots), encode_matches(data.matches, data.match_labels)
    index = packed.result()
    payload = {
        "charts": drawn,
        **matches,
        "rows": [int(index.rows[match.link]) for match in data.matches],
        "links": data.num_links,
        "measure": data.measure,
    }
    return environment.from_string(_asset("template.html")).render(
        data=data,
        degrees=readable.degrees,
        measured=lambda value: readable.measured(value, data.measure),
        round_value=_round_value,
        style=palette() + _asset("style.css"),
        scripts=scripts,
        policy=_policy(*scripts),
        payload=embed_json(payload),
        index=index.packed,
        plots=plots,
        spread=[each for each in spread if each.links],
        points=points,
        verdicts=_verdicts(data),
        drawn=Counter(match.drawn for match in data.matches),
        settings=list(_flat(data.config)),
    )


def palette() -> str:
    """The style sheet with the colors of all pages."""
    return _asset("palette.css")


def _asset(name: str) -> str:
    return files("clusterea.report").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """A content security policy: no network and no other scripts, so names can't inject code."""
    hashes = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _plots(
    data: ReportData, spread: Sequence[ConfidenceBin], points: Sequence[Reliability]
) -> dict[str, charts.Chart]:
    """The charts that have data, by their name in the page."""
    plots = {}
    if data.metrics and data.metrics.get("by_degree"):
        plots["by-degree"] = charts.by_degree(data.metrics["by_degree"])
    if data.num_links:
        judged = data.correctness is not None
        plots["histogram"] = charts.confidence_histogram(spread, data.measure, judged=judged)
    if points:
        plots["reliability"] = charts.reliability(points, data.measure)
    if data.stages:
        plots["seconds"] = charts.seconds(data.stages)
    if any(stage.peak_host_bytes or stage.peak_gpu_bytes for stage in data.stages):
        plots["memory"] = charts.memory(data.stages)
    for number, batches in enumerate(data.mini_batches):
        plots[f"mini-batches-{number}"] = charts.mini_batch_sizes(batches)
    return plots


def _verdicts(data: ReportData) -> dict[str, int] | None:
    if data.correctness is None:
        return None
    wrong, right = ((data.correctness == each).sum() for each in (0, 1))
    return {
        "right": int(right),
        "wrong": int(wrong),
        "unknown": data.num_links - int(right + wrong),
    }


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names as `--set` takes them and values: `training.epochs`, `10`."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _shown(value)


def _round_value(name: str, value: Any) -> str:
    if isinstance(value, float) and name.endswith("seconds"):
        return readable.duration(value)
    if isinstance(value, float) and 0 <= value <= 1:
        return readable.percent(value)
    return _shown(value)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    return str(value)
