"""Calibrators of one claim: a method writes ``_fit(score, outcome, weight)`` and
``_predict(score)``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from calibrant._simplex import EPS, finite_logits, log_odds
from calibrant._typing import FloatArray, IntArray
from calibrant.base._calibrator import Calibrator


class BaseBinaryCalibrator(Calibrator):
    """A calibrator of one claim: a score in [0, 1] or its log-odds, and an outcome.

    A method sets ``form``, ``"score"`` or ``"log_odds"``, and writes ``_fit`` and ``_predict`` for
    one-dimensional float64 arrays. It is fitted with scores of shape (n,) or (n, 2); for more
    classes there is `MulticlassToBinary`.
    """

    form: ClassVar[Literal["score", "log_odds"]] = "score"
    eps: float = EPS

    @abstractmethod
    def _fit(self, score: FloatArray, outcome: FloatArray, weight: FloatArray) -> None:
        """Set the fitted attributes; ``outcome`` is 0.0 or 1.0."""

    @abstractmethod
    def _predict(self, score: FloatArray) -> FloatArray:
        """Calibrated probability of outcome 1."""

    def _check_parameters(self, n_classes: int) -> None:
        if n_classes > 2:
            name = type(self).__name__
            raise ValueError(
                f"{name} calibrates one claim at a time and the scores have {n_classes} classes; "
                f'use MulticlassToBinary({name}(), notion="class-wise", normalize=True)'
            )

    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._fit(self._lift(scores), (y == 1).astype(np.float64), weight)

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        one = self._predict(self._lift(scores))
        return np.column_stack([1.0 - one, one])

    def _lift(self, scores: FloatArray) -> FloatArray:
        if self.inputs == "logits":
            finite = finite_logits(scores)
            odds = finite[:, 1] - finite[:, 0]
            return odds if self.form == "log_odds" else np.asarray(expit(odds))
        score = np.asarray(scores[:, 1], dtype=np.float64)
        return log_odds(score, self.eps) if self.form == "log_odds" else score
