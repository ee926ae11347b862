"""Evaluation of similarities and alignments: the only code that sees test links."""

from clusterea.evaluation.evaluate import evaluate
from clusterea.evaluation.judge import judge

__all__ = ["evaluate", "judge"]
