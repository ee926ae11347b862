"""Metrics of a similarity and of an alignment. The only stage that sees test links."""

from clusterea.evaluation.evaluate import evaluate
from clusterea.evaluation.judge import judge
from clusterea.evaluation.precision import PrecisionEstimate, estimated_precision, now_and_later

__all__ = ["PrecisionEstimate", "estimated_precision", "evaluate", "judge", "now_and_later"]
