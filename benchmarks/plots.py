"""`small_multiples`: panels of lines side by side with one legend, as SVG or PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

PANEL_INCHES = 2.9, 2.45
INK, FAINT = "#333333", "#e3e3e3"
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelcolor": INK,
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "clusterea",  # the same figures give the same bytes
}


class Point(NamedTuple):
    """A mean and its range."""

    x: float
    mean: float
    low: float
    high: float


class Look(NamedTuple):
    """How a line differs from the others, also without color."""

    label: str
    color: str
    marker: str = ""
    line: str = "-"


@dataclass(frozen=True, slots=True)
class Panel:
    """One small plot; without lines, its place stays empty."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Sequence[Point]]  # by the name of a look
    y_limits: tuple[float, float] | None = None
    log_x: bool = False
    log_y: bool = False
    ticks: Sequence[float] = ()  # of x; none: a tick at each point


def small_multiples(
    path: Path, columns: Sequence[Sequence[Panel]], looks: Mapping[str, Look]
) -> None:
    """Draws columns of panels to a file; its suffix is the format."""
    matplotlib: Any = import_module("matplotlib")  # imported here: only plots need it
    matplotlib.use("agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    rows = max(len(column) for column in columns)
    width, height = PANEL_INCHES
    with pyplot.rc_context(STYLE):
        figure, grid = pyplot.subplots(
            rows,
            len(columns),
            figsize=(width * len(columns) + 0.2, height * rows + 0.8),
            squeeze=False,
            layout="constrained",
        )
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
        for i, column in enumerate(columns):
            for j in range(rows):
                if j < len(column) and any(column[j].lines.values()):
                    _draw(grid[j][i], column[j], looks)
                else:
                    grid[j][i].set_axis_off()
        drawn = {n for column in columns for panel in column for n in panel.lines if panel.lines[n]}
        handles = [
            matplotlib.lines.Line2D(
                [], [], color=look.color, marker=look.marker, linestyle=look.line, label=look.label
            )
            for name, look in looks.items()
            if name in drawn
        ]
        lines = math.ceil(len(handles) / (2 * len(columns) + 1))
        across = math.ceil(len(handles) / lines)
        figure.legend(handles=handles, loc="outside upper center", ncols=across, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=160, facecolor="white", metadata=metadata)
        pyplot.close(figure)


def _draw(axes: Any, panel: Panel, looks: Mapping[str, Look]) -> None:
    ticker: Any = import_module("matplotlib.ticker")
    for name, look in looks.items():
        points = sorted(panel.lines.get(name, ()))
        if points:
            xs, means, lows, highs = zip(*points, strict=True)
            axes.fill_between(xs, lows, highs, color=look.color, alpha=0.2, linewidth=0)
            axes.plot(xs, means, color=look.color, marker=look.marker, linestyle=look.line)
    axes.set_title(panel.title, loc="left", color=INK)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    every = {point.x for points in panel.lines.values() for point in points}
    ticks = panel.ticks or sorted(every)
    axes.set_xticks(ticks, [_short(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    if panel.y_limits:
        axes.set_ylim(*panel.y_limits)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def _short(number: float) -> str:
    """15K, 1.5M."""
    for unit, name in ((1e6, "M"), (1e3, "K")):
        if number >= unit:
            return f"{number / unit:g}{name}"
    return f"{number:g}"
