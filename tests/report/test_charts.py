from __future__ import annotations

import numpy as np
import pytest
from bokeh.models import Line

from clusterea.report import charts
from clusterea.report.calibration import histogram, reliability
from clusterea.types import Measure

SURE = np.array([0.2, 0.4, 0.6, 0.8])
RIGHT = np.array([0, 1, 1, 1], dtype=np.int8)
BOTH = pytest.mark.parametrize(
    ("measure", "tick", "shown"), [("confidence", "0%", "20.0%"), ("score", "0.0", "0.200")]
)


def tips(chart: charts.Chart) -> list[str]:
    """What a pointer shows."""
    columns = (renderer.data_source.data for renderer in chart.renderers)
    return [tip for data in columns for tip in data.get("label", ())]


@BOTH
def test_the_histogram_is_of_the_confidence_or_score(
    measure: Measure, tick: str, shown: str
) -> None:
    chart = charts.confidence_histogram(histogram(SURE, RIGHT, bins=10), measure, judged=True)
    assert chart.xaxis.axis_label == measure
    assert chart.xaxis.formatter.format == tick
    assert any(tip.startswith(f"{shown} to ") for tip in tips(chart))


@BOTH
def test_precision_is_by_the_confidence_or_score(measure: Measure, tick: str, shown: str) -> None:
    chart = charts.reliability(reliability(SURE, RIGHT), measure)
    assert chart.xaxis.axis_label == measure
    assert chart.xaxis.formatter.format == tick
    assert chart.yaxis.formatter.format == "0%"
    assert f"{measure} {shown}: 0.0% of 1 links are right" in tips(chart)


def test_only_a_confidence_is_compared_with_the_precision() -> None:
    def dashed(measure: Measure) -> int:
        chart = charts.reliability(reliability(SURE, RIGHT), measure)
        lines = (each.glyph for each in chart.renderers if isinstance(each.glyph, Line))
        return sum(line.line_dash != [] for line in lines)

    assert dashed("confidence") == 1
    assert dashed("score") == 0
