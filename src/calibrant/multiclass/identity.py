"""A calibrator that does not change probabilities."""

from __future__ import annotations

from typing import Any, ClassVar

from calibrant._data.sample import Sample
from calibrant._kernels.simplex import as_proba, log_softmax
from calibrant._typing import FloatArray, Inputs
from calibrant.base import Calibrator, Citation


class Identity(Calibrator):
    """Return probabilities unchanged, and the softmax of logits, as a baseline for comparisons.

    Parameters
    ----------
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Examples
    --------
    >>> Identity().fit([[0.9, 0.1]], [0]).predict_proba([[0.3, 0.7]]).tolist()
    [[0.3, 0.7]]
    """

    def __init__(self, *, inputs: Inputs = "proba", classes: Any = None) -> None:
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("the identity")

    def _fit(self, sample: Sample) -> None:
        """Do nothing, because the identity has no parameters."""

    def _description(self) -> str:
        return "The probabilities are not changed."

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        return as_proba(scores, self.inputs)

    def _log_proba_of(self, scores: FloatArray) -> FloatArray:
        if self.inputs != "proba":
            return log_softmax(scores)
        return super()._log_proba_of(scores)
