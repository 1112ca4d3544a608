"""Recalibrated predictions of rows that the map has not seen, and proper scores row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from calibrant._simplex import EPS, finite_logits, log_floored, softmax
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, check_count, check_option, check_predictions


class Calibrator(Protocol):
    """What is needed of a calibrator: any of this package, or a scikit-learn classifier of scores."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any: ...

    def predict_proba(self, X: Any) -> Any: ...


def default_calibrator(inputs: str) -> Calibrator:
    """`StructuredScaling`, the strongest default known for several classes; loaded when it is first needed."""
    made: Calibrator = import_module("calibrant.multiclass").StructuredScaling(inputs=inputs)
    return made


def log_losses(proba: FloatArray, y: IntArray) -> FloatArray:
    """``-log p_y`` of each row, with the floor of `calibrant.metrics.log_loss`."""
    return -log_floored(proba[np.arange(len(y)), y], EPS)


def brier_scores(proba: FloatArray, y: IntArray) -> FloatArray:
    """``sum_k (p_k - 1[y = k])^2`` of each row."""
    residual = np.array(proba, dtype=np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    return np.einsum("ij,ij->i", residual, residual)


SCORES: dict[str, Callable[[FloatArray, IntArray], FloatArray]] = {"log_loss": log_losses, "brier_score": brier_scores}


@dataclass(frozen=True, eq=False)
class PairedScores:
    """A proper score of every row before and after cross-fitted recalibration, with the rows' weights."""

    before: FloatArray
    after: FloatArray
    weight: FloatArray

    @property
    def gain(self) -> FloatArray:
        return self.before - self.after


def paired_scores(
    y_true: LabelsLike,
    scores: ScoresLike,
    calibrator: Calibrator | None,
    *,
    score: str,
    inputs: str,
    cv: int,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    rng: Rng,
) -> PairedScores:
    """Scores of the predictions as they are, and as recalibrated by maps that were fitted on other rows."""
    losses = SCORES[check_option(score, "score", tuple(SCORES))]
    data, y, weight, _ = check_predictions(y_true, scores, sample_weight, classes, inputs=inputs, hint=LOGITS_HINT)
    check_count(cv, "cv", minimum=2)
    present = np.flatnonzero(weight)
    if present.size < 2:
        raise ValueError(f"cross-fitting needs at least 2 rows of positive weight, got {present.size}")
    data, y, weight = data[present], y[present], np.asarray(weight[present])
    proba = softmax(finite_logits(data)) if inputs == "logits" else data
    after = cross_fitted(calibrator or default_calibrator(inputs), data, y, weight, folds(y, cv, rng))
    return PairedScores(losses(proba, y), losses(after, y), weight)


def folds(y: IntArray, cv: int, rng: Rng) -> IntArray:
    """Fold of each row: stratified by label, shuffled; classes of less than ``cv`` rows are spread as far as they go."""
    generator = np.random.default_rng(rng)
    order = np.lexsort((generator.random(len(y)), y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % min(cv, len(y))
    return fold


def cross_fitted(calibrator: Calibrator, scores: FloatArray, y: IntArray, weight: FloatArray, fold: IntArray) -> FloatArray:
    """Probabilities of every row by a clone of the calibrator that was fitted on the other folds."""
    proba = np.empty(scores.shape)
    for held in range(int(fold.max()) + 1):
        out = fold == held
        fitted = clone(calibrator).fit(scores[~out], y[~out], sample_weight=weight[~out])
        predicted = np.asarray(fitted.predict_proba(scores[out]), dtype=np.float64)
        if predicted.shape != scores[out].shape:
            raise ValueError(
                f"{type(calibrator).__name__} gave {predicted.shape[1]} columns for {scores.shape[1]} classes: "
                "a calibrator must keep the classes that do not occur in the rows that it was fitted on"
            )
        proba[out] = predicted
    return proba
