"""Calibrant: probabilities of multiclass classifiers that can be acted on."""

from calibrant import datasets, metrics, notions
from calibrant.evaluation import Evaluation, MetricAccumulator, evaluate

__version__ = "0.1.0"

__all__ = [
    "Evaluation",
    "MetricAccumulator",
    "datasets",
    "evaluate",
    "metrics",
    "notions",
]
