"""Calibrators of whole vectors: a method writes ``_fit(sample)`` and ``_log_proba(u)``."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np

from calibrant._data.sample import Sample
from calibrant._kernels.simplex import (
    EPS,
    as_proba,
    centred,
    finite_logits,
    log_clipped,
    log_softmax,
    log_true_class,
    softmax_in_place,
)
from calibrant._typing import FloatArray, IntArray
from calibrant.base._calibrator import Calibrator


class BaseCalibrator(Calibrator):
    """A calibrator of the whole vector.

    A method sets ``form``, the inner form that it works on, and writes ``_fit`` and ``_log_proba``:

    - ``"log"``: ``log(clip(p, eps, 1 - eps))`` of probabilities, logits minus their row mean;
    - ``"log_softmax"``: the same of probabilities, ``log_softmax`` of logits, unfloored;
    - ``"proba"``: probabilities.

    Log-probabilities are taken as logits, which they are. A logit of -inf has the floor of a
    probability of zero, ``eps``.
    """

    form: ClassVar[Literal["log", "log_softmax", "proba"]] = "log"
    eps: float = EPS

    _is_centred: ClassVar[bool] = True
    """Whether logits enter minus their row mean; not so where no constant of a row matters."""

    @property
    def _takes_logarithms(self) -> bool:
        return self.form != "proba"

    @abstractmethod
    def _fit(self, sample: Sample) -> None:
        """Set the fitted attributes. ``sample.u`` holds scores in the form of the method, for a
        method with ``needs_rows``; others add up ``sample.sum(function)``.
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
            return log_softmax(finite_logits(scores, self.eps))
        return (centred if self._is_centred else finite_logits)(scores, self.eps)


class SoftmaxCalibrator(BaseCalibrator):
    """A calibrator that is the softmax of new logits: it writes ``_fit`` and ``_logits``."""

    @abstractmethod
    def _logits(self, u: FloatArray) -> FloatArray:
        """The logits of the calibrated probabilities of a block, in an array of their own."""

    def _log_proba(self, u: FloatArray) -> FloatArray:
        return log_softmax(self._logits(u))

    def _proba(self, u: FloatArray) -> FloatArray:
        return softmax_in_place(self._logits(u))

    def _log_true_of(self, scores: FloatArray, y: IntArray) -> FloatArray:
        return log_true_class(self._logits(self._transform(scores)), y, "logits")
