"""The report's charts, drawn by Bokeh in the browser.

Colors are not set here. Each glyph is tagged with the name of a CSS variable, and the page's script
colors it for light or dark mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from clusterea.report.calibration import ConfidenceBin, Reliability
from clusterea.report.data import MiniBatches
from clusterea.report.readable import count, degrees, duration, measured, percent, size
from clusterea.types import Measure, StageCost

# A bokeh figure. Bokeh's own types lack the ends of a range and options that are passed on.
Chart: TypeAlias = Any

HEIGHT = 260


def by_degree(buckets: Sequence[Mapping[str, Any]]) -> Chart:
    """Hits@1 and Hits@10 by the degree of the source entity."""
    labels = [degrees(bucket["least"], bucket["most"]) for bucket in buckets]
    rates = [key for key in ("hits@1", "hits@10") if all(key in bucket for bucket in buckets)]
    series = [[float(bucket[key]) for bucket in buckets] for key in rates]
    notes = [f"{count(bucket['test_links'])} test links" for bucket in buckets]
    plot = _figure(x_range=labels, y_range=(0, 1.0), x_axis_label="triples of the source entity")
    names = [key.replace("hits", "Hits") for key in rates]
    _grouped_bars(plot, labels, dict(zip(names, series, strict=True)), percent, notes)
    _percent_axis(plot.yaxis)
    return plot


def confidence_histogram(bins: Sequence[ConfidenceBin], measure: Measure, *, judged: bool) -> Chart:
    """Links by confidence or score; if they are judged, split into right and wrong."""
    parts = {
        "right": ([each.right for each in bins], "--right"),
        "wrong": ([each.wrong for each in bins], "--wrong"),
        "not judged" if judged else "links": ([each.unknown for each in bins], "--unknown"),
    }
    if not judged:
        parts = {"links": (parts["links"][0], "--series-1")}
    plot = _figure(x_range=(0, 1), x_axis_label=measure, y_axis_label="links")
    bottom = [0] * len(bins)
    for name, (values, color) in parts.items():
        top = [low + value for low, value in zip(bottom, values, strict=True)]
        if any(values):
            source = {
                "left": [each.least for each in bins],
                "right": [each.most for each in bins],
                "bottom": bottom,
                "top": top,
                "label": [
                    f"{measured(each.least, measure)} to {measured(each.most, measure)}: "
                    f"{count(value)} {name}"
                    for each, value in zip(bins, values, strict=True)
                ],
            }
            legend = {"legend_label": name} if judged else {}
            bars = plot.quad(
                source=source, left="left", right="right", bottom="bottom", top="top", **legend
            )
            _color(bars.glyph, color, edge="--surface")
            plot.add_tools(_hover(bars))
        bottom = top
    plot.y_range.start = 0
    _count_axis(plot)
    _measure_axis(plot.xaxis, measure)
    return _finish(plot)


def reliability(points: Sequence[Reliability], measure: Measure) -> Chart:
    """Measured precision against confidence or score.

    On the diagonal, confidence and precision are equal. For a score there is no diagonal.
    """
    from bokeh.models import ColumnDataSource, Segment

    plot = _figure(
        x_range=(0, 1.02),
        y_range=(0, 1.02),
        x_axis_label=measure,
        y_axis_label="measured precision",
    )
    if measure == "confidence":
        diagonal = plot.line([0, 1], [0, 1], line_dash="dashed")
        _color(diagonal.glyph, "--ink-muted")
    columns = ColumnDataSource(
        {
            "x": [point.confidence for point in points],
            "y": [point.precision for point in points],
            "low": [point.low for point in points],
            "high": [point.high for point in points],
            "label": [
                f"{measure} {measured(point.confidence, measure)}: {percent(point.precision)} "
                f"of {count(point.links)} links are right"
                for point in points
            ],
        }
    )
    spread = plot.add_glyph(columns, Segment(x0="x", x1="x", y0="low", y1="high", line_width=2))
    _color(spread.glyph, "--series-1")
    line = plot.line("x", "y", source=columns, line_width=2)
    _color(line.glyph, "--series-1")
    dots = plot.scatter("x", "y", source=columns, size=9)
    _color(dots.glyph, "--series-1", edge="--surface")
    plot.add_tools(_hover(dots))
    _measure_axis(plot.xaxis, measure)
    _percent_axis(plot.yaxis)
    return _finish(plot)


def seconds(stages: Sequence[StageCost]) -> Chart:
    """Seconds of each stage."""
    series = {"time": [stage.seconds for stage in stages]}
    return _stage_bars(stages, series, "seconds", duration)


def memory(stages: Sequence[StageCost]) -> Chart:
    """Peak memory of each stage."""
    gibibyte = 2**30
    series = {"host": [(stage.peak_host_bytes or 0) / gibibyte for stage in stages]}
    if any(stage.peak_gpu_bytes for stage in stages):
        series["GPU"] = [(stage.peak_gpu_bytes or 0) / gibibyte for stage in stages]
    return _stage_bars(
        stages, series, "peak memory, GiB", lambda value: size(int(value * gibibyte))
    )


def mini_batch_sizes(batches: MiniBatches) -> Chart:
    """Entities of each side in each mini-batch, the largest first."""
    pairs = sorted(zip(*batches.sizes, strict=True), key=sum, reverse=True)
    labels = [str(i + 1) for i in range(len(pairs))]
    plot = _figure(
        height=200,
        x_range=labels,
        x_axis_label="mini-batch, largest first",
        y_axis_label="entities",
    )
    series = {
        "source": [float(source) for source, _ in pairs],
        "target": [float(target) for _, target in pairs],
    }
    _grouped_bars(plot, labels, series, lambda value: f"{count(int(value))} entities")
    if len(labels) > 12:
        plot.xaxis.major_label_text_font_size = "0px"
        plot.xaxis.major_tick_line_color = None
    plot.y_range.start = 0
    _count_axis(plot)
    return plot


def as_json(plots: Mapping[str, Chart]) -> dict[str, Any]:
    """Each chart in the form that `Bokeh.embed.embed_item` takes."""
    from bokeh.embed import json_item

    return {name: json_item(plot) for name, plot in plots.items()}


def _stage_bars(
    stages: Sequence[StageCost],
    series: Mapping[str, Sequence[float]],
    label: str,
    read: Callable[[float], str],
) -> Chart:
    # A stage may run twice, but a categorical axis needs distinct names.
    names: list[str] = []
    for stage in stages:
        shown = stage.stage if len(stage.stage) <= 24 else stage.stage[:23] + "…"
        while shown in names:
            shown += "′"
        names.append(shown)
    plot = _figure(height=90 + 36 * len(names), y_range=names[::-1], x_axis_label=label)
    _grouped_bars(plot, names, series, read, horizontal=True)
    plot.x_range.start = 0
    _count_axis(plot, plot.xaxis)
    return plot


def _grouped_bars(
    plot: Chart,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    read: Callable[[float], str],
    notes: Sequence[str] | None = None,
    *,
    horizontal: bool = False,
) -> None:
    """Draws the bars of all series side by side for each label."""
    from bokeh.models import ColumnDataSource
    from bokeh.transform import dodge

    width = 0.8 / len(series)
    for index, (name, values) in enumerate(series.items()):
        shift = (index - (len(series) - 1) / 2) * width
        tips = [
            f"{label}: {name} {read(value)}" + (f", {notes[i]}" if notes else "")
            for i, (label, value) in enumerate(zip(labels, values, strict=True))
        ]
        source = ColumnDataSource({"at": list(labels), "value": list(values), "label": tips})
        legend = {"legend_label": name} if len(series) > 1 else {}
        if horizontal:
            at = dodge("at", -shift, range=plot.y_range)
            bars = plot.hbar(y=at, right="value", height=width * 0.92, source=source, **legend)
        else:
            at = dodge("at", shift, range=plot.x_range)
            bars = plot.vbar(x=at, top="value", width=width * 0.92, source=source, **legend)
        _color(bars.glyph, f"--series-{index + 1}")
        plot.add_tools(_hover(bars))
    (plot.ygrid if horizontal else plot.xgrid).visible = False
    _finish(plot)


def _figure(*, height: int = HEIGHT, **options: Any) -> Chart:
    from bokeh.plotting import figure

    plot = figure(
        height=height, sizing_mode="stretch_width", toolbar_location=None, tools="", **options
    )
    plot.min_border_right = 16
    plot.background_fill_color = None
    plot.border_fill_color = None
    plot.outline_line_color = None
    return plot


def _finish(plot: Chart) -> Chart:
    """Styles the axes and the legend, the same for all charts."""
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.minor_tick_line_color = None
        axis.major_tick_in = 0
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = "system-ui, sans-serif"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
    for key in plot.legend:
        key.background_fill_alpha = 0
        key.border_line_color = None
        key.label_text_font = "system-ui, sans-serif"
        key.label_text_font_size = "12px"
        key.padding = 2
        key.margin = 0
        key.location = "top_left"
        key.spacing = 14
        key.glyph_width = key.glyph_height = 14
        key.orientation = "horizontal"
        plot.add_layout(key, "above")
    return plot


def _hover(bars: Any) -> Any:
    from bokeh.models import HoverTool

    return HoverTool(renderers=[bars], tooltips="@label", show_arrow=False)


def _color(glyph: Any, color: str, edge: str | None = None) -> None:
    glyph.tags = [color, edge or color]


def _percent_axis(axes: Iterable[Any]) -> None:
    from bokeh.models import NumeralTickFormatter

    for axis in axes:
        axis.formatter = NumeralTickFormatter(format="0%")


def _measure_axis(axes: Iterable[Any], measure: Measure) -> None:
    from bokeh.models import NumeralTickFormatter

    if measure == "confidence":
        _percent_axis(axes)
        return
    for axis in axes:
        axis.formatter = NumeralTickFormatter(format="0.0")


def _count_axis(plot: Chart, axes: Iterable[Any] | None = None) -> None:
    from bokeh.models import NumeralTickFormatter

    for axis in plot.yaxis if axes is None else axes:
        axis.formatter = NumeralTickFormatter(format="0,0.[00]")
