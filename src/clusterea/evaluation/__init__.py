"""How good a similarity and an alignment are. The only stage that takes test links."""

from clusterea.evaluation.evaluate import evaluate
from clusterea.evaluation.judge import judge

__all__ = ["evaluate", "judge"]
