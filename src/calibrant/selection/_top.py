"""The last step of a stack: its top probability made honest, where rows out of fold show that it
is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibrant._crossfit.members import proba_of
from calibrant._crossfit.scores import likelihood_losses
from calibrant._folds import Fold
from calibrant._simplex import true_class
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.base import BaseBinaryCalibrator
from calibrant.binary import BetaCalibration, SplineCalibration
from calibrant.inference._gain import Gain, paired_gain
from calibrant.reductions import MulticlassToBinary

_MAPS: tuple[tuple[BaseBinaryCalibrator, float], ...] = (
    (BetaCalibration(), 30.0),
    (SplineCalibration(), 100.0),
)
"""What may correct the top probability, three parameters or a smooth curve, with the rows that must
be right and that must be wrong: with fewer a map learns them by heart, and folds with none of them
do not notice."""

_SURE = 2.0 / 3.0
"""Standard errors that a map must gain by on rows that it has not seen: one of rows, which is
widened by a half for the folds that overlap."""

_POINTS = 128
"""Points that a curve is kept at: it bends at six knots, and is not drawn through every row."""


class StackedRows(NamedTuple):
    """Probabilities of a stack for rows that its maps had not seen, as its `Pool` has them."""

    proba: FloatArray
    y: IntArray
    weight: FloatArray
    fold: IntArray


class TopCorrection(NamedTuple):
    """A map of the top probability, and what it gains over the stack on other folds than its
    own.
    """

    map: MulticlassToBinary
    gain: Gain


def correct_top(rows: StackedRows, folds: Sequence[Fold]) -> TopCorrection | None:
    """The map of the top probability that gains most on rows that it has not seen; none where it
    gains no more than a standard error in log-loss.

    The likelihood of a row is that of the claim "the top class is right" times that of the true
    class among the others, which a map of the top probability leaves as it is: so the gain in
    log-loss is the calibration error of the claim that the map mends, minus what its fit costs.
    """
    rarer = min(_right_and_wrong(rows))
    fitting = [one for one, needed in _MAPS if rarer >= needed]
    if len(np.unique(rows.fold)) < 2 or not fitting:
        return None
    judged = [(_gain(one, rows, folds), one) for one in fitting]
    gain, best = max(judged, key=lambda pair: pair[0].gain)
    everything = np.ones(len(rows.y), dtype=bool)
    return TopCorrection(_fit(best, rows, everything), gain) if gain.statistic > _SURE else None


def _right_and_wrong(rows: StackedRows) -> tuple[float, float]:
    """Rows on which the top class was right, and those on which it was wrong."""
    right = float(rows.weight @ (rows.proba.argmax(axis=1) == rows.y))
    return right, float(rows.weight.sum()) - right


def _gain(one: BaseBinaryCalibrator, rows: StackedRows, folds: Sequence[Fold]) -> Gain:
    """Cross-fitted gain of a map of the top probability."""
    after = np.empty(len(rows.y))
    for number in np.unique(rows.fold):
        held = rows.fold == number
        proba = proba_of(_fit(one, rows, ~held), rows.proba[held], "proba")
        after[held] = likelihood_losses(true_class(proba, rows.y[held]))
    before = likelihood_losses(true_class(rows.proba, rows.y))
    return paired_gain(before, after, rows.weight, folds, score="log_loss")


def _fit(one: BaseBinaryCalibrator, rows: StackedRows, which: BoolArray) -> MulticlassToBinary:
    made = MulticlassToBinary(one, notion="confidence")
    made._fit_checked(rows.proba[which], rows.y[which], rows.weight[which])
    (fitted,) = made.calibrators_
    if isinstance(fitted, SplineCalibration):
        _soften(fitted, float(rows.weight[which].sum()))
    return made


def _soften(spline: SplineCalibration, n_samples: float) -> None:
    """Keep a curve at few points, and away from certainty by the rule of succession."""
    last = len(spline.scores_) - 1
    kept = np.unique(np.linspace(0, last, _POINTS).round().astype(np.intp))
    edge = 1.0 / (n_samples + 2.0)
    spline.scores_ = spline.scores_[kept]
    spline.values_ = np.clip(spline.values_[kept], edge, 1.0 - edge)
