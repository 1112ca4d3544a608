"""Proper scores and calibration errors.

Metrics are functions ``(y_true, y_prob, *, ...)`` that return a float. `evaluate` computes the
common ones in one pass, `evaluate_confidence` evaluates stated confidences, and `MetricAccumulator`
evaluates data in batches. `flatten_predictions` and `map_scores` prepare images and sequences.
`TopScores` holds the top m of many classes.
"""

from calibrant._data.top_scores import TopScores
from calibrant._validation import FlatPredictions, flatten_predictions, map_scores
from calibrant.metrics import registry
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._binned import calibration_curve
from calibrant.metrics._evaluation import evaluate
from calibrant.metrics._groups import GroupedEvaluation, GroupEvaluation
from calibrant.metrics._scorer import scorer
from calibrant.metrics._stated_confidence import ConfidenceEvaluation, evaluate_confidence
from calibrant.metrics._top_scores import TopEvaluation, log_loss_bounds
from calibrant.metrics.registry import *  # noqa: F403  # the metrics: stated once, in the registry
from calibrant.metrics.registry import Metric

__all__ = [
    "ConfidenceEvaluation",
    "Evaluation",
    "FlatPredictions",
    "GroupEvaluation",
    "GroupedEvaluation",
    "Metric",
    "MetricAccumulator",
    "TopEvaluation",
    "TopScores",
    "calibration_curve",
    "evaluate",
    "evaluate_confidence",
    "flatten_predictions",
    "log_loss_bounds",
    "map_scores",
    "scorer",
]
__all__ += registry.__all__
