"""Proper scores of rows before and after recalibration by maps that have not seen them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from calibrant._blocks import map_blocks
from calibrant._simplex import EPS, as_proba, log_floored
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, check_count, check_option, check_predictions
from calibrant.multiclass import StructuredScaling

# Scores that all maps predict at a time: large, because a prediction has fixed costs.
_PREDICT_ELEMENTS = 2**20


class Calibrator(Protocol):
    """What is needed of a calibrator: any of this package, or a scikit-learn classifier of
    scores.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any: ...

    def predict_proba(self, X: Any) -> Any: ...


def default_calibrator(inputs: str) -> Calibrator:
    """The strongest default known for several classes."""
    return StructuredScaling(inputs=inputs)


@dataclass(frozen=True)
class ProperScore:
    """A proper score of each row, and its divergence: what forecasting q costs where p is true,
    (m,) each.
    """

    losses: Callable[[FloatArray, IntArray], FloatArray]
    divergence: Callable[[FloatArray, FloatArray], FloatArray]


def _log_losses(proba: FloatArray, y: IntArray) -> FloatArray:
    return -log_floored(proba[np.arange(len(y)), y], EPS)


def _relative_entropy(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", p, log_floored(p, EPS) - log_floored(q, EPS))


def _brier_scores(proba: FloatArray, y: IntArray) -> FloatArray:
    residual = np.array(proba, dtype=np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    return np.einsum("ij,ij->i", residual, residual)


def _squared_distance(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", p - q, p - q)


SCORES = {
    "log_loss": ProperScore(_log_losses, _relative_entropy),
    "brier_score": ProperScore(_brier_scores, _squared_distance),
}


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of every row as it is and as recalibrated, with the rows' weights.

    ``excess`` estimates how much better the best map of the family would be than a map fitted on
    all rows: by the grouped jackknife ``(J - 1) / J`` times the sum of the divergences of the J
    maps from their mean.
    """

    before: FloatArray
    after: FloatArray
    excess: FloatArray
    weight: FloatArray
    n_folds: int

    def mean(self, values: FloatArray) -> float:
        """Weighted mean over rows."""
        return float(self.weight @ values / self.weight.sum())


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
    """Scores of the predictions as they are, and as recalibrated by maps that were fitted on other
    rows.
    """
    rule = SCORES[check_option(score, "score", tuple(SCORES))]
    data, y, weight, _ = check_predictions(
        y_true, scores, sample_weight, classes, inputs=inputs, hint=LOGITS_HINT
    )
    check_count(cv, "cv", minimum=2)
    present = np.flatnonzero(weight)
    if present.size < 2:
        raise ValueError(
            f"cross-fitting needs at least 2 rows of positive weight, got {present.size}"
        )
    if present.size < len(y):
        data, y, weight = data[present], y[present], weight[present]
    fold = random_folds(len(y), cv, rng)
    maps = fold_maps(calibrator or default_calibrator(inputs), data, y, weight, fold)

    def of_rows(rows: slice) -> FloatArray:
        block = as_proba(data[rows], inputs)
        each = np.array([predicted(fitted, data[rows]) for fitted in maps])
        after = each[fold[rows], np.arange(len(block))]
        centre = each.mean(axis=0)
        excess = (1 - 1 / len(maps)) * np.sum(
            [rule.divergence(centre, one) for one in each], axis=0
        )
        return np.array([rule.losses(block, y[rows]), rule.losses(after, y[rows]), excess])

    before, after, excess = np.concatenate(
        list(map_blocks(of_rows, *data.shape, elements=_PREDICT_ELEMENTS)), axis=1
    )
    return PairedScores(before, after, excess, weight, len(maps))


def random_folds(n_rows: int, cv: int, rng: Rng) -> IntArray:
    """Fold of each row, at random.

    Not stratified by label: that would tell the map the label frequencies of the rows that it is
    judged on.
    """
    generator = np.random.default_rng(rng)
    return generator.permutation(n_rows) % min(cv, n_rows)


def fold_maps(
    calibrator: Calibrator, scores: FloatArray, y: IntArray, weight: FloatArray, fold: IntArray
) -> list[Any]:
    """Clones of the calibrator, each fitted on all folds but one."""
    kept = [fold != held for held in range(int(fold.max()) + 1)]
    return [
        clone(calibrator).fit(scores[rows], y[rows], sample_weight=weight[rows]) for rows in kept
    ]


def predicted(fitted: Any, scores: FloatArray) -> FloatArray:
    """Probabilities of a fitted map, with a column for each class."""
    proba = np.asarray(fitted.predict_proba(scores), dtype=np.float64)
    if proba.shape != scores.shape:
        raise ValueError(
            f"{type(fitted).__name__} gave {proba.shape[1]} columns for {scores.shape[1]} classes: "
            "a calibrator must keep the classes that do not occur in the rows that it was fitted on"
        )
    return proba
