"""All everyday measures at once; a public path to `calibrant.metrics`, and to what makes rows of
images and sequences.
"""

from calibrant._data.top_scores import TopScores
from calibrant._validation import FlatPredictions, flatten_predictions, map_scores
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._evaluation import evaluate
from calibrant.metrics._groups import GroupedEvaluation, GroupEvaluation
from calibrant.metrics._top_scores import TopEvaluation

__all__ = [
    "Evaluation",
    "FlatPredictions",
    "GroupEvaluation",
    "GroupedEvaluation",
    "MetricAccumulator",
    "TopEvaluation",
    "TopScores",
    "evaluate",
    "flatten_predictions",
    "map_scores",
]
