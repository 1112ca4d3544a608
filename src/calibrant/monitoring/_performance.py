"""How good predictions are, without their labels: what the calibrated claims say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._simplex import EPS, as_proba, log_floored
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike
from calibrant._validation import check_count, check_predictions, check_scores
from calibrant.binary import IsotonicCalibration
from calibrant.multiclass import StructuredScaling
from calibrant.notions import complete_rows
from calibrant.reductions import MulticlassToBinary

_QUANTILE = 1.959963984540054
_SMOOTHING = 1.0
"""Pseudo-counts of the maps, so that no claim is certain."""


@dataclass(frozen=True, eq=False)
class PerformanceEstimate:
    """What is expected of unlabelled rows.

    Attributes
    ----------
    accuracy, log_loss, brier_score : float
    low, high : float
        Interval of the accuracy of these rows; ``assumes`` says what it rests on.
    reference_accuracy : float
    confusion : array of shape (K, K)
        Expected rows: of true class k (row) and predicted class l (column).
    n_rows : int
    assumes : str
    """

    accuracy: float
    low: float
    high: float
    log_loss: float
    brier_score: float
    reference_accuracy: float
    confusion: FloatArray
    n_rows: int
    assumes: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "confusion": self.confusion.tolist()}

    def __str__(self) -> str:
        return (
            f"Expected accuracy of {self.n_rows:,} rows without labels: {self.accuracy:.4f} "
            f"({self.low:.4f} to {self.high:.4f}); it was {self.reference_accuracy:.4f} on the "
            f"reference. {self.assumes}"
        )


def estimate_performance(
    reference: tuple[LabelsLike, ScoresLike],
    proba: ScoresLike,
    *,
    within: float = 0.0,
    n_resamples: int = 100,
    inputs: str = "proba",
    classes: LabelsLike | None = None,
    rng: Rng = None,
) -> PerformanceEstimate:
    r"""Accuracy, confusion matrix, log-loss and Brier score of rows whose labels are not known.

    The top claim ("this class, with 0.8") is calibrated on the reference by isotonic regression;
    the expected accuracy is the mean of the calibrated claims. Calibrated vectors would estimate it
    worse; they say only how the rest of a row is spread over the other classes.

    Parameters
    ----------
    reference : (labels, scores)
        Rows with labels that the classifier was not trained on.
    proba : scores of the rows without labels
    within : float
        Widens the interval by so much: "if the claims hold within 0.02 on average".
    n_resamples : int
        Bootstrap samples of the reference.
    inputs : {"proba", "logits"}
    classes : labels of the columns, optional
    rng : int, Generator or None

    Notes
    -----
    **What cannot be known.** A model that became worse at the same confidence looks the same
    without labels. The estimate holds if rows of a given confidence (and, for the interval,
    predicted class) are right as often as in the reference: under a shift that depends on the
    scores alone. The interval is the hull of two, of claims by confidence and of claims by
    confidence and predicted class, each plus and minus 1.96 standard errors: those of the map by
    bootstrap of the reference, and of the outcomes of so many rows. It is asymptotic, and it knows
    nothing of changes that the scores do not show: ``assumes`` says so wherever it is printed.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> reference = (data.val_labels, data.val_proba)
    >>> found = estimate_performance(reference, data.test_proba, n_resamples=20, rng=0)
    >>> bool(found.low < (data.test_proba.argmax(1) == data.test_labels).mean() < found.high)
    True
    """
    check_count(n_resamples, "n_resamples", minimum=2)
    scores, y, _, names = check_predictions(
        reference[0], reference[1], None, classes, inputs=inputs
    )
    known = as_proba(scores, inputs)
    target = as_proba(check_scores(proba, inputs=inputs), inputs)
    if target.shape[1] != known.shape[1]:
        raise ValueError(
            f"reference and rows must have the same classes, got {known.shape[1]} and "
            f"{target.shape[1]} columns"
        )
    claims = {notion: _fit(notion, known, y) for notion in ("confidence", "top-label")}
    claim, top = claims["confidence"].predict_claims(target), target.argmax(axis=1)
    vector = StructuredScaling("vector").fit(known, y).predict_proba(target)
    rows = complete_rows(vector, top[:, None], claim)
    low, high = _interval(claims, known, y, target, n_resamples, np.random.default_rng(rng))
    confusion = np.zeros((len(names), len(names)))
    np.add.at(confusion.T, top, rows)
    return PerformanceEstimate(
        float(claim.mean()),
        max(0.0, low - within),
        min(1.0, high + within),
        float(-(rows * log_floored(target, EPS)).sum(axis=1).mean()),
        float(((target**2).sum(axis=1) - 2 * (rows * target).sum(axis=1) + 1).mean()),
        float((known.argmax(axis=1) == y).mean()),
        confusion,
        len(target),
        _assumption(within),
    )


def _assumption(within: float) -> str:
    margin = f" within {within:g}" if within else ""
    return (
        f"This assumes that rows of equal scores are right as often as in the reference{margin}; "
        "whether they are, only labels can tell."
    )


def _fit(notion: str, proba: FloatArray, y: IntArray) -> MulticlassToBinary:
    calibrator = IsotonicCalibration(smoothing=_SMOOTHING if notion == "top-label" else None)
    return MulticlassToBinary(calibrator, notion).fit(proba, y)


def _interval(
    claims: dict[str, MulticlassToBinary],
    known: FloatArray,
    y: IntArray,
    target: FloatArray,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The hull of the intervals of both kinds of claims."""
    draws = np.empty((n_resamples, len(claims)))
    for b in range(n_resamples):
        rows = rng.integers(0, len(y), len(y))
        for j, notion in enumerate(claims):
            draws[b, j] = _fit(notion, known[rows], y[rows]).predict_claims(target).mean()
    ends = []
    for j, fitted in enumerate(claims.values()):
        claim = fitted.predict_claims(target)[:, 0]
        outcomes = float((claim * (1 - claim)).sum()) / len(target) ** 2
        error = np.sqrt(draws[:, j].var(ddof=1) + outcomes)
        ends += [float(claim.mean() - _QUANTILE * error), float(claim.mean() + _QUANTILE * error)]
    return min(ends), max(ends)
