"""Decisions from probabilities: when to answer, what an error costs, and sets of labels.

- `SelectiveClassifier` answers or abstains. The error rate of its answers on new rows exceeds
  ``risk`` with probability at most ``delta``.
- `select_answers` answers or abstains in one batch of rows. The error rate is bounded on average
  over batches.
- `DecisionRule` minimizes the expected cost of actions, one of which may be an abstention.
- `PredictionSets` predicts sets that contain the true label with a stated probability.

Guarantees need rows that were used to fit neither the classifier nor its calibrator. "Answered" is
the share of rows with an answer. "Set coverage" is the share of sets that contain the true label.
"""

from calibrant.decisions._batch import Selection, select_answers
from calibrant.decisions._rule import DecisionClassifier, DecisionRule
from calibrant.decisions._selective import SelectiveClassifier
from calibrant.decisions._sets import PredictionSets

__all__ = [
    "DecisionClassifier",
    "DecisionRule",
    "PredictionSets",
    "Selection",
    "SelectiveClassifier",
    "select_answers",
]


def __dir__() -> list[str]:
    return __all__
