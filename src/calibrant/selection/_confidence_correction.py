"""Member of a stacked ensemble that averages other members and calibrates the confidence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibrant._crossfit.members import proba_of
from calibrant._data.fold_plan import FoldPlan, HeldOut
from calibrant._data.top_scores import TopSample, TopScores
from calibrant._kernels.simplex import EPS, log_of, true_class, uniform_proba
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.binary import SplineCalibration
from calibrant.notions import Claim
from calibrant.reductions import MulticlassToBinary
from calibrant.selection._out_of_fold import FoldFits


class EnsembleRows(NamedTuple):
    """Out-of-fold predictions of an ensemble, with column codes, weights and groups.

    ``top`` is the predicted class, ``confidence`` is its probability, and ``true`` is the
    probability of the true class.
    """

    top: IntArray
    confidence: FloatArray
    true: FloatArray
    y: IntArray
    weight: FloatArray
    group: IntArray

    def claim(self, rows: BoolArray | slice = slice(None)) -> Claim:
        """Return the binary problem "the predicted class is correct" for the given rows."""
        is_correct = (self.top == self.y)[rows].astype(np.float64)
        return Claim(0, slice(None), self.confidence[rows], is_correct, self.weight[rows])

    def sample(self, n_classes: int) -> TopSample:
        """Return the predicted classes and their probabilities as top-1 scores."""
        top = TopScores(self.top[:, None], log_of(self.confidence)[:, None], n_classes)
        return TopSample(top, self.y, self.weight)


def predict_ensemble(
    fits: FoldFits, weights: FloatArray, plan: FoldPlan, inputs: str
) -> EnsembleRows:
    """Return out-of-fold predictions of the weighted ensemble."""
    shares = zip(weights[:-1].tolist(), fits.values(), strict=True)
    used = [(weight, folds) for weight, folds in shares if weight > 0]
    chunks = plan.sum_held_out(partial(_mix, used, float(weights[-1]), inputs))
    return EnsembleRows(*map(np.concatenate, zip(*chunks, strict=True)))


def _mix(
    used: Sequence[tuple[float, Sequence[Any]]], uniform: float, inputs: str, held_out: HeldOut
) -> list[EnsembleRows]:
    rows, scores = held_out.rows, held_out.rows.u[:]
    proba = uniform * uniform_proba(scores)
    for weight, fits in used:
        proba += weight * proba_of(fits[held_out.fold], scores, inputs)
    top = proba.argmax(axis=1)
    columns = true_class(proba, top), true_class(proba, rows.y)
    return [EnsembleRows(top, *columns, rows.y, rows.weight, held_out.group)]


FEWEST_ROWS = 300
"""Minimum number of rows, 50 per knot of the spline. With fewer rows, the spline often fits noise
and makes calibrated scores worse. """

_POINTS = 128
"""Number of points at which the fitted curve is stored. A curve with six knots does not need one
point per row."""


def fit_correction(rows: EnsembleRows, n_classes: int) -> MulticlassToBinary:
    """Fit the calibrator of the confidence on all out-of-fold predictions."""
    calibrator = MulticlassToBinary(SplineCalibration(), notion="confidence")
    calibrator._fit_checked(rows.sample(n_classes))
    (curve,) = calibrator.calibrators_
    # Keep evenly spaced points of the curve, including its ends.
    kept = np.linspace(0, len(curve.scores_) - 1, _POINTS).round().astype(np.intp)
    curve.scores_, curve.values_ = (
        values[np.unique(kept)] for values in (curve.scores_, curve.values_)
    )
    curve.values_ = _clip(curve.values_, rows.claim())
    return calibrator


def corrected_likelihood(rows: EnsembleRows, n_classes: int) -> FloatArray:
    """Return the probabilities of the true classes after corrections fitted on other groups.

    The correction rescales the probabilities of the other classes by a common factor.
    """
    confidence = np.empty(len(rows.y))
    for number in np.unique(rows.group):
        held_out = rows.group == number
        curve, others = SplineCalibration(), rows.claim(~held_out)
        curve._fit_claims([curve], [others])
        confidence[held_out] = _clip(curve._predict_claim(rows.confidence[held_out]), others)
    tail = 1.0 - rows.confidence
    # If the confidence is 1, the other classes have no proportions and share the remaining mass
    # evenly, as in `MulticlassToBinary`.
    even = np.full(len(tail), 1.0 / n_classes)
    share = np.divide(rows.true, tail, out=even, where=tail > 0)
    return np.maximum(np.where(rows.top == rows.y, confidence, share * (1.0 - confidence)), EPS)


def _clip(proba: FloatArray, claim: Claim) -> FloatArray:
    """Clip probabilities away from 0 and 1 by the rule of succession."""
    edge = 1.0 / (float(claim.weight.sum()) + 2.0)
    return np.clip(proba, edge, 1.0 - edge)
