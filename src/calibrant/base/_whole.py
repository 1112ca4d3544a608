"""Calibrators of whole vectors: subclasses define ``_fit(sample)`` and ``_log_proba(u)``."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np

from calibrant._data.sample import Sample
from calibrant._kernels.simplex import (
    EPS,
    absent_as_impossible,
    as_proba,
    centered,
    finite_logits,
    log_clipped,
    log_softmax,
    log_true_class,
    softmax_in_place,
)
from calibrant._typing import FloatArray, IntArray
from calibrant.base._calibrator import Calibrator


class BaseCalibrator(Calibrator):
    """Base class of calibrators of the whole vector of scores.

    A subclass sets ``form``, the form of scores that it works with, and defines ``_fit`` and
    ``_log_proba``. The forms are:

    - ``"log"``: ``log(clip(p, eps, 1 - eps))`` of probabilities, or logits minus their row mean.
    - ``"log_softmax"``: as ``"log"`` for probabilities, or ``log_softmax`` of logits, not clipped.
    - ``"proba"``: probabilities.

    Log-probabilities are treated as logits. A logit of -inf gets the floor ``eps``, like a
    probability of zero.

    See Also
    --------
    SoftmaxCalibrator : Base class of calibrators that end in a softmax.
    BaseBinaryCalibrator : Base class of calibrators of one binary problem.
    """

    form: ClassVar[Literal["log", "log_softmax", "proba"]] = "log"
    eps: float = EPS

    _is_centered: ClassVar[bool] = True
    """Whether to subtract the row mean from logits. This is not needed if the method is invariant
    to a constant per row."""

    @property
    def _takes_logarithms(self) -> bool:
        return self.form != "proba"

    @abstractmethod
    def _fit(self, sample: Sample) -> None:
        """Set the fitted attributes from a sample in the form of the method.

        A method with ``needs_rows`` reads ``sample.u``. Other methods use ``sample.sum(function)``,
        which also works for chunked data.
        """

    @abstractmethod
    def _log_proba(self, u: FloatArray) -> FloatArray:
        """Logarithms of the calibrated probabilities of a block."""

    def _proba(self, u: FloatArray) -> FloatArray:
        """The calibrated probabilities of a block."""
        return np.exp(self._log_proba(u))

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        return self._proba(self._transform(scores))

    def _log_proba_of(self, scores: FloatArray) -> FloatArray:
        return self._log_proba(self._transform(scores))

    def _transform(self, scores: FloatArray) -> FloatArray:
        if self.form == "proba":
            return as_proba(scores, self.inputs)
        if self.inputs == "proba":
            return log_clipped(scores, self.eps)
        if self.form == "log_softmax":
            return log_softmax(finite_logits(absent_as_impossible(scores), self.eps))
        return (centered if self._is_centered else finite_logits)(scores, self.eps)


class SoftmaxCalibrator(BaseCalibrator):
    """Base class of calibrators that end in a softmax.

    A subclass defines ``_fit`` and ``_logits``. The base class computes ``_log_proba`` from
    ``_logits``.

    See Also
    --------
    BaseCalibrator : Base class of calibrators of whole vectors.
    """

    @abstractmethod
    def _logits(self, u: FloatArray) -> FloatArray:
        """The logits of the calibrated probabilities of a block.

        The result must be a new array, because the softmax is computed in place.
        """

    def _log_proba(self, u: FloatArray) -> FloatArray:
        return log_softmax(self._logits(u))

    def _proba(self, u: FloatArray) -> FloatArray:
        return softmax_in_place(self._logits(u))

    def _log_true_of(self, scores: FloatArray, y: IntArray) -> FloatArray:
        return log_true_class(self._logits(self._transform(scores)), y, "logits")
