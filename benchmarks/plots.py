"""`small_multiples`: panels of lines side by side, one legend for all, as SVG or PNG."""

from __future__ import annotations

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
    """A mean and the range it is the mean of."""

    x: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Look:
    """How a line is told from the others, also without colour."""

    label: str
    color: str
    marker: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One small plot; an empty `lines` leaves its place empty."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Sequence[Point]]  # by a name that has a look
    y_limits: tuple[float, float]
    logarithmic: bool = False


def small_multiples(
    path: Path, columns: Sequence[Sequence[Panel]], looks: Mapping[str, Look]
) -> None:
    """Draws columns of panels to a file; its ending says in which format."""
    matplotlib: Any = import_module("matplotlib")  # here, and untyped: only who plots needs it
    matplotlib.use("agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    ticker: Any = import_module("matplotlib.ticker")

    def draw(axes: Any, panel: Panel) -> None:
        for name, look in looks.items():
            points = sorted(panel.lines.get(name, ()))
            if not points:
                continue
            xs, means, lows, highs = zip(*points, strict=True)
            axes.fill_between(xs, lows, highs, color=look.color, alpha=0.2, linewidth=0)
            axes.plot(xs, means, color=look.color, marker=look.marker, clip_on=False)
        axes.set_title(panel.title, loc="left", color=INK)
        axes.set_xlabel(panel.x_label)
        axes.set_ylabel(panel.y_label)
        ticks = sorted({point.x for points in panel.lines.values() for point in points})
        axes.set_xticks(ticks)
        room = 0.06 * (ticks[-1] - ticks[0]) or 1
        axes.set_xlim(ticks[0] - room, ticks[-1] + room)
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%d"))
        if panel.logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 3.0)))
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.set_ylim(*panel.y_limits)
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(length=0)

    rows = max(len(column) for column in columns)
    width, height = PANEL_INCHES
    with pyplot.rc_context(STYLE):
        figure, grid = pyplot.subplots(
            rows,
            len(columns),
            figsize=(width * len(columns) + 0.2, height * rows + 0.6),
            squeeze=False,
            layout="constrained",
        )
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
        for i, column in enumerate(columns):
            for j in range(rows):
                if j < len(column) and any(column[j].lines.values()):
                    draw(grid[j][i], column[j])
                else:
                    grid[j][i].set_axis_off()
        shown = {n for column in columns for panel in column for n in panel.lines if panel.lines[n]}
        handles = [
            matplotlib.lines.Line2D([], [], color=each.color, marker=each.marker, label=each.label)
            for name, each in looks.items()
            if name in shown
        ]
        figure.legend(
            handles=handles, loc="outside upper center", ncols=max(len(handles), 1), frameon=False
        )
        save(figure, path)
        pyplot.close(figure)


def save(figure: Any, path: Path) -> None:
    """Writes a figure; its folder may be missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=160, facecolor="white", metadata=metadata)
