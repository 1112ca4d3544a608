"""Proper scores, calibration errors and other metrics.

Metrics are functions ``(y_true, y_prob, *, ...)`` that return a float. `evaluate` computes the
common metrics in one pass. `evaluate_answers` evaluates stated confidences, and `MetricAccumulator`
evaluates data in batches. `flatten_predictions` and `map_scores` prepare images and sequences.
`TopScores` contains only the top m classes of each row, and `OptionScores` contains questions with
different numbers of options.
"""

from calibrant._data.top_scores import TopScores
from calibrant._validation import FlatPredictions, OptionScores, flatten_predictions, map_scores
from calibrant.metrics import registry
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._answers import AnswerEvaluation, evaluate_answers
from calibrant.metrics._binned import calibration_curve
from calibrant.metrics._evaluation import evaluate
from calibrant.metrics._group_difference import GroupDifference, GroupGain
from calibrant.metrics._multilabel import LabelEvaluation, MultilabelEvaluation
from calibrant.metrics._net_benefit import net_benefit
from calibrant.metrics._scorer import scorer
from calibrant.metrics._top_scores import TopEvaluation, log_loss_bounds
from calibrant.metrics.groups import GroupedEvaluation, GroupEvaluation
from calibrant.metrics.registry import *  # noqa: F403  # the registry lists all metrics
from calibrant.metrics.registry import Metric

__all__ = [
    "AnswerEvaluation",
    "Evaluation",
    "FlatPredictions",
    "GroupDifference",
    "GroupEvaluation",
    "GroupGain",
    "GroupedEvaluation",
    "LabelEvaluation",
    "Metric",
    "MetricAccumulator",
    "MultilabelEvaluation",
    "OptionScores",
    "TopEvaluation",
    "TopScores",
    "calibration_curve",
    "evaluate",
    "evaluate_answers",
    "flatten_predictions",
    "log_loss_bounds",
    "map_scores",
    "net_benefit",
    "scorer",
]
__all__ += registry.__all__
