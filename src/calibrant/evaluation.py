"""All everyday measures at once; a public path to `calibrant.metrics`."""

from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._evaluation import evaluate
from calibrant.metrics._groups import GroupedEvaluation, GroupEvaluation

__all__ = [
    "Evaluation",
    "GroupEvaluation",
    "GroupedEvaluation",
    "MetricAccumulator",
    "evaluate",
]
