"""The last step of a stack: its top probability made honest, where rows out of fold show that it
is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._crossfit.scores import likelihood_losses
from calibrant._data.top_scores import TopSample, TopScores
from calibrant._kernels.simplex import log_of, true_class
from calibrant._optim.mixture import mixture_weights
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.base import BaseBinaryCalibrator
from calibrant.binary import BetaCalibration, SplineCalibration
from calibrant.inference import Gain, paired_gain
from calibrant.notions import Claim
from calibrant.reductions import MulticlassToBinary

_MAPS: tuple[tuple[BaseBinaryCalibrator, float], ...] = (
    (BetaCalibration(), 30.0),
    (SplineCalibration(), 100.0),
)
"""What may correct the top probability, three parameters or a smooth curve, with the rows that must
be right and that must be wrong: with fewer a map learns them by heart, and folds with none of them
do not notice."""

_SURE = 1.0 / 3.0
"""Standard errors that a correction must gain by on rows that it has not seen: half of one of rows,
which is widened by a half for the folds that overlap."""

_NOTHING = 1e-9
"""Gains up to here, in nats, are rounding: a mixture that is all the top probability as it is."""

_POINTS = 128
"""Points that a curve is kept at: it bends at six knots, and is not drawn through every row."""


class StackedRows(NamedTuple):
    """What a stack predicted for held-out rows: the top class, its probability and that of the
    true class; with column codes, weights and the group of each row.
    """

    top: IntArray
    score: FloatArray
    true: FloatArray
    y: IntArray
    weight: FloatArray
    fold: IntArray

    @classmethod
    def of_proba(
        cls, proba: FloatArray, y: IntArray, weight: FloatArray, fold: IntArray
    ) -> StackedRows:
        """The rows of a stack that predicted ``proba``."""
        top = proba.argmax(axis=1)
        return cls(top, true_class(proba, top), true_class(proba, y), y, weight, fold)

    def claims(self) -> _Claims:
        return _Claims(self.score, (self.top == self.y).astype(np.float64), self.weight)


class _Claims(NamedTuple):
    """Confidences, whether they were correct, and weights."""

    score: FloatArray
    outcome: FloatArray
    weight: FloatArray

    def of_rows(self, rows: BoolArray) -> _Claims:
        return _Claims(*(values[rows] for values in self))

    def likelihood(self, score: FloatArray) -> FloatArray:
        """What scores predicted for the outcomes."""
        return np.where(self.outcome > 0, score, 1.0 - score)


class ConfidenceCorrection(NamedTuple):
    """A map of the top probability, and what it gains over the stack on other folds than its
    own.
    """

    map: MulticlassToBinary
    gain: Gain


def correct_confidence(
    rows: StackedRows, n_classes: int, ratios: FloatArray
) -> ConfidenceCorrection | None:
    """A curve of the top probability: the mixture of it as it is and of maps of it that rows tell
    which these have not seen; none where it gains too little in log-loss to be sure.

    The likelihood of a row is that of the claim "the top class is right" times that of the true
    class among the others, which a map of the top probability leaves as it is: so the gain in
    log-loss is the calibration error of the claim that the map mends, minus what its fit costs.
    """
    claims = rows.claims()
    right = float(claims.weight @ claims.outcome)
    rarer = min(right, float(claims.weight.sum()) - right)
    maps = [one for one, needed in _MAPS if rarer >= needed]
    if len(np.unique(rows.fold)) < 2 or not maps:
        return None
    given = np.column_stack(
        [claims.score, *(_unseen_values(one, claims, rows.fold) for one in maps)]
    )
    gain = _gain(given, claims, rows, n_classes, ratios)
    if not (gain.gain > _NOTHING and gain.statistic > _SURE):
        return None
    fitted = [_fit(one, claims) for one in maps]
    return ConfidenceCorrection(_curve(fitted, _weights(given, claims), rows, n_classes), gain)


def _unseen_values(one: BaseBinaryCalibrator, claims: _Claims, fold: IntArray) -> FloatArray:
    """What maps make of the top probabilities that they have not seen."""
    out = np.empty(len(fold))
    for number in np.unique(fold):
        held = fold == number
        others = claims.of_rows(~held)
        out[held] = _sober(_fit(one, others)._predict_claim(claims.score[held]), others)
    return out


def _fit(one: BaseBinaryCalibrator, claims: _Claims) -> BaseBinaryCalibrator:
    return _fit_one(clone(one), claims)


def _fit_one(one: BaseBinaryCalibrator, claims: _Claims) -> BaseBinaryCalibrator:
    one._fit_claims([one], [Claim(0, slice(None), *claims)])
    return one


def _sober(score: FloatArray, claims: _Claims) -> FloatArray:
    """Away from certainty by the rule of succession."""
    edge = 1.0 / (float(claims.weight.sum()) + 2.0)
    return np.clip(score, edge, 1.0 - edge)


def _weights(given: FloatArray, claims: _Claims) -> FloatArray:
    """Weights of highest likelihood, of the top probability as it is and of maps of it."""
    likelihood = np.column_stack([claims.likelihood(score) for score in given.T])
    return mixture_weights(likelihood, claims.weight).parameters


def _gain(
    given: FloatArray, claims: _Claims, rows: StackedRows, n_classes: int, ratios: FloatArray
) -> Gain:
    """Cross-fitted gain of the mixture; its weights, too, have not seen what they are judged on."""
    score = np.empty(len(rows.y))
    for number in np.unique(rows.fold):
        held = rows.fold == number
        score[held] = given[held] @ _weights(given[~held], claims.of_rows(~held))
    before = rows.true
    left = 1.0 - claims.score
    share = np.where(left > 0, before / np.where(left > 0, left, 1.0), 1.0 / n_classes)
    after = np.where(claims.outcome > 0, score, share * (1.0 - score))
    losses = likelihood_losses(before), likelihood_losses(after)
    return paired_gain(*losses, rows.weight, ratios, score="log_loss")


def _curve(
    maps: Sequence[BaseBinaryCalibrator], weights: FloatArray, rows: StackedRows, n_classes: int
) -> MulticlassToBinary:
    """The mixture as a calibrator of the whole vector, kept at few points."""
    claims = rows.claims()
    top = TopScores(rows.top[:, None], log_of(claims.score)[:, None], n_classes)
    made = MulticlassToBinary(SplineCalibration(), notion="confidence")
    made._fit_checked(TopSample(top, rows.y, rows.weight))
    (curve,) = made.calibrators_
    known = np.unique(claims.score[claims.weight > 0])
    kept = np.unique(np.linspace(0, len(known) - 1, _POINTS).round().astype(np.intp))
    curve.scores_ = known[kept]
    mapped = [_sober(one._predict_claim(curve.scores_), claims) for one in maps]
    curve.values_ = np.clip(np.column_stack([curve.scores_, *mapped]) @ weights, 0.0, 1.0)
    return made
