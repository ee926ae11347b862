"""Metrics of a similarity and of an alignment. The only stage that sees test links."""

from clusterea.evaluation.evaluate import evaluate
from clusterea.evaluation.judge import judge

__all__ = ["evaluate", "judge"]
