"""All everyday measures at once; a public path to `calibrant.metrics`."""

from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._evaluation import evaluate

__all__ = ["Evaluation", "MetricAccumulator", "evaluate"]
