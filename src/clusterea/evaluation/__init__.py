"""Metrics of a similarity and of an alignment. The only stage that sees test links."""

from clusterea.evaluation.evaluate import evaluate
from clusterea.evaluation.judge import judge
from clusterea.evaluation.precision import PrecisionEstimate, estimated_precision, half_widths

__all__ = ["PrecisionEstimate", "estimated_precision", "evaluate", "half_widths", "judge"]
