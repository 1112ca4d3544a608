"""Base classes of calibrators: they own the boundary, a method owns the mathematics.

`BaseCalibrator` maps whole vectors: a method writes ``_fit(u, y, weight)`` and ``_log_proba(u)``.
`BaseBinaryCalibrator` maps one claim: a method writes ``_fit(score, outcome, weight)`` and
``_predict(score)``. Validation, classes, dtypes, blocks and output frames live here and nowhere
else.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant._blocks import LiftedRows, lifted, map_blocks, row_blocks
from calibrant._optim.solution import Solution
from calibrant._simplex import (
    EPS,
    centred,
    finite_logits,
    log_clipped,
    log_odds,
    log_softmax,
    softmax,
)
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import (
    LOGITS_HINT,
    check_fitted,
    check_option,
    check_predictions,
    check_scores,
)
from calibrant.base import _frames
from calibrant.base._training import TrainingSummary, training_summary
from calibrant.exceptions import ConvergenceWarning

Rows = FloatArray | LiftedRows
"""Lifted scores: an array, or something that gives one when its rows are asked for."""


class _Boundary(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]  # scikit-learn is not typed
    """What all calibrators share: checked fit, output in the dtype of the input, frames on
    request.
    """

    inputs: str
    classes: Any
    training_: TrainingSummary
    _block_elements: ClassVar[int | None] = None
    """Elements of a block at prediction, where a method has reason to differ."""

    def fit(self, X: ScoresLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Learn the map from scores and labels.

        Parameters
        ----------
        X : scores of shape (n, K), or (n,) for class 1 of a binary problem
            Probabilities, or logits with ``inputs="logits"``.
        y : labels of shape (n,)
        sample_weight : weights of shape (n,), optional

        Returns
        -------
        self
        """
        scores, codes, weight = self._prepared(X, y, sample_weight)
        self._fit_scores(scores, codes, weight)
        self.training_ = training_summary(scores, codes, weight, self.inputs, self._proba_of)
        return self

    def _prepared(
        self, X: ScoresLike, y: LabelsLike, sample_weight: WeightsLike | None
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Checked data for `_fit_scores`, after the attributes that all calibrators have are
        set.
        """
        scores, codes, weight, classes = check_predictions(
            y, X, sample_weight, self.classes, inputs=self.inputs, hint=LOGITS_HINT
        )
        self._check_parameters(scores.shape[1])
        self.classes_ = classes
        self.n_classes_ = scores.shape[1]
        self.n_features_in_ = _frames.n_columns(X)
        self.class_prior_ = np.bincount(codes, weight, minlength=self.n_classes_) / weight.sum()
        return scores, codes, weight

    def _check_parameters(self, n_classes: int) -> None:
        """Raise on a parameter that makes no sense, before anything is computed."""

    @abstractmethod
    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit on checked scores."""

    @abstractmethod
    def _proba_of(self, scores: FloatArray) -> FloatArray:
        """Calibrated probabilities of a block of checked scores, (m, K)."""

    def predict_proba(self, X: ScoresLike) -> Any:
        """Calibrated probabilities of shape (n, K): NumPy, or a frame where `set_output` asks for
        one.

        float32 scores give float32 probabilities. Works block by block: memory is that of the
        output.
        """
        scores = self._check_new(X)
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        out = np.empty(scores.shape, dtype=dtype)
        for rows in row_blocks(*scores.shape, elements=self._block_elements):
            out[rows] = self._proba_of(scores[rows])
        return _frames.wrapped(out, X, self.classes_, self._output)

    def predict(self, X: ScoresLike) -> AnyArray:
        """Label of the highest calibrated probability; ties go to the lowest column."""
        scores = self._check_new(X)
        codes = map_blocks(
            lambda rows: self._codes_of(scores[rows]), *scores.shape, elements=self._block_elements
        )
        return self.classes_[np.concatenate(list(codes))]

    def _codes_of(self, scores: FloatArray) -> IntArray:
        """Predicted columns of a block of checked scores, (m,)."""
        return np.asarray(self._proba_of(scores).argmax(axis=1))

    def _check_new(self, X: ScoresLike) -> FloatArray:
        """Scores to predict, checked against those of the fit."""
        check_fitted(self)
        scores = check_scores(X, inputs=self.inputs)
        if scores.shape[1] != self.n_classes_:
            raise ValueError(
                f"X has {scores.shape[1]} columns, but {type(self).__name__} was fitted with "
                f"{self.n_classes_} classes"
            )
        return scores

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Choose what `predict_proba` returns: "default" (NumPy), "pandas" or "polars" frames with
        the index of the input.
        """
        if transform is not None:
            check_option(transform, "transform", ("default", "pandas", "polars"))
            self._sklearn_output_config = {
                "transform": transform
            }  # the name that sklearn.base.clone copies
        return self

    @property
    def _output(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("transform", "default"))


class BaseCalibrator(_Boundary):
    """A calibrator of the whole vector.

    A method sets ``form``, the inner form that it works on, and writes ``_fit`` and ``_log_proba``:

    - ``"log"``: ``log(clip(p, eps, 1 - eps))`` of probabilities, logits minus their row mean;
    - ``"log_softmax"``: the same of probabilities, ``log_softmax`` of logits, unfloored;
    - ``"proba"``: probabilities.
    """

    form: ClassVar[Literal["log", "log_softmax", "proba"]] = "log"
    eps: float = EPS

    @abstractmethod
    def _fit(self, u: Rows, y: IntArray, weight: FloatArray) -> None:
        """Set the fitted attributes. ``u[rows]`` is an array for any slice of rows; ``u.shape`` is
        (n, K).
        """

    @abstractmethod
    def _log_proba(self, u: FloatArray) -> FloatArray:
        """Logarithms of the calibrated probabilities of a block."""

    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._fit(lifted(scores, self._lift), y, weight)

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        return np.exp(self._log_proba(self._lift(scores)))

    def _lift(self, scores: FloatArray) -> FloatArray:
        if self.inputs == "proba":
            return (
                np.asarray(scores, dtype=np.float64)
                if self.form == "proba"
                else log_clipped(scores, self.eps)
            )
        if self.form == "log":
            return centred(scores)
        finite = finite_logits(scores)
        return softmax(finite) if self.form == "proba" else log_softmax(finite)


def declared_exceptions(calibrator: Any) -> dict[str, str]:
    """Promises of `calibrant.testing` that this calibrator does not keep, with the reason."""
    return dict(getattr(calibrator, "_calibrator_exceptions", {}))


def record(calibrator: Any, solution: Solution) -> None:
    """Store how a fit ended, and warn once with cause and remedy where it did not converge."""
    calibrator.converged_ = solution.converged
    calibrator.n_iter_ = solution.n_iter
    calibrator.objective_ = solution.objective
    if not solution.converged:
        message = f"{type(calibrator).__name__}: {solution.outcome.value}"
        warnings.warn(message, ConvergenceWarning, stacklevel=5)


class BaseBinaryCalibrator(_Boundary):
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
