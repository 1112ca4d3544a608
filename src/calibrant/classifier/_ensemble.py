"""Ensembles of fitted classifiers: average probabilities of new and of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._crossfit.members import proba_of
from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import as_proba, effective_weights, log_losses
from calibrant._typing import FloatArray, Inputs, IntArray
from calibrant._validation import check_scores
from calibrant.classifier._responses import SLACK, Response, Scorer
from calibrant.classifier._training import ScoredRows, Split, TrainingData
from calibrant.multiclass import TemperatureScaling

_SINGLE_ROUNDING = 1e-5
"""Upper bound of the rounding error of row sums in single precision."""

_FEWEST_FOLDS = 5
"""With fewer folds, clones that leave out two of them would be fitted on half of the rows or
less."""

_LOG_TEMPERATURE_SCALE = 0.5
"""Standard deviation of a normal prior of log T when averages of different sizes are compared.
Temperatures of rows without errors would be zero otherwise. Scales from 0.25 to infinity lead to
equal log-losses on the development data sets (within 0.0005)."""

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Values of the share of large fits that are weighed by their likelihoods."""


@dataclass(frozen=True, eq=False)
class AveragedResponse:
    """Average probabilities of several fitted classifiers, with the interface of a `Response`.

    The scale of decision values is arbitrary, so decision values are divided by one ``temperature``
    before they are converted to probabilities. ``least`` replaces averages of zero.
    """

    responses: Sequence[Scorer]
    weights: FloatArray
    temperature: float
    least: float

    @property
    def inputs(self) -> Inputs:
        return "proba"

    @property
    def method(self) -> str:
        return self.responses[0].method

    @property
    def estimators(self) -> list[Any]:
        """The fitted classifiers."""
        return [fitted for response in self.responses for fitted in response.estimators]

    def scores(self, X: Any) -> FloatArray:
        """Return average probabilities of shape (n, K)."""
        total = np.zeros(1)
        for weight, response in zip(self.weights, self.responses, strict=True):
            total = total + weight * _as_proba(response, response.scores(X), self.temperature)
        return _fill_zeros(total, self.least)


def _fill_zeros(proba: FloatArray, least: float) -> FloatArray:
    """Replace zeros by a small probability if all classifiers predict zero.

    Tree ensembles and nearest neighbors often predict zero with all classifiers. The calibration
    rows may contain none of the few rows for which this zero is wrong.
    """
    is_zero = proba <= 0.0
    others = 1.0 - least * is_zero.sum(axis=1, keepdims=True)
    return np.where(is_zero, least, proba * others)


def _least_probability(average: FloatArray, n_rows: float) -> float:
    """Return 1 / (n + K) (rule of succession), or the smallest positive average if it is lower."""
    share = 1.0 / (n_rows + average.shape[1])
    return float(np.min(average, where=average > 0.0, initial=share))


def _as_proba(response: Scorer, scores: FloatArray, temperature: float) -> FloatArray:
    checked = check_scores(scores, inputs=response.inputs, slack=SLACK)
    if response.inputs == "proba":
        return np.asarray(checked, dtype=np.float64)
    return as_proba(np.asarray(checked, dtype=np.float64) / temperature, "logits")


class AverageScores(NamedTuple):
    """Out-of-fold probabilities of an ensemble: no classifier predicts a row that it was fitted on.

    The calibrator is fitted on ``average``. ``clone_average`` contains only the clones that were
    fitted without two folds, and ``pair_proba`` contains averages of two of these clones.
    """

    rows: IntArray
    average: FloatArray
    clone_average: FloatArray
    pair_rows: IntArray
    pair_proba: FloatArray
    temperature: float
    least: float
    share: float
    """Weight of the large fits in ``average``."""

    inverse_clones: float
    """Mean over rows of one divided by the number of clones in ``clone_average``."""

    @property
    def inverse_size(self) -> float:
        """Sum of the squared weights in ``average``."""
        return (1.0 - self.share) ** 2 * self.inverse_clones + self.share**2


def combine_folds(splits: Sequence[Split], n_rows: int) -> list[Split]:
    """Return splits that hold out every row four times, from folds that hold out every row once.

    Each fold is left out together with each of the next two folds. With five folds, the splits
    leave out all ten pairs of folds. Splits are returned unchanged if they do not partition the
    rows into at least five folds.
    """
    n_folds, n_tested = len(splits), sum(len(test) for _, test in splits)
    is_partition = n_tested == n_rows and all(sum(map(len, split)) == n_rows for split in splits)
    if n_folds < _FEWEST_FOLDS or not is_partition:
        return list(splits)
    fold = np.empty(n_rows, dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    pairs = [(k, (k + step) % n_folds) for step in (1, 2) for k in range(n_folds)]
    left_out = [np.isin(fold, pair) for pair in pairs]
    return [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in left_out]


def holds_out_repeatedly(splits: Sequence[Split]) -> bool:
    """Return whether rows are held out at least twice on average, so averages can be scored."""
    tested = np.concatenate([test for _, test in splits])
    return len(tested) >= 2 * len(np.unique(tested))


def average_parts(
    data: TrainingData, clones: Sequence[ScoredRows], folds: Sequence[ScoredRows]
) -> AverageScores:
    """Average the out-of-fold probabilities of each row.

    ``clones`` were fitted without two folds and hold out each row several times. ``folds`` were
    fitted without one fold. This sequence may be empty.
    """
    temperature = _clone_temperature(data, clones)
    total = np.zeros((len(data.y), len(data.classes)))
    last, count, pairs = total.copy(), np.zeros(len(data.y)), []
    for part in clones:
        proba = _as_proba(part.response, part.scores, temperature)
        has_clone = count[part.rows] > 0
        again = part.rows[has_clone]
        pairs.append((again, (last[again] + proba[has_clone]) / 2.0))
        last[part.rows] = proba
        total[part.rows] += proba
        count[part.rows] += 1
    rows = np.flatnonzero(count)
    average = total[rows] / count[rows, None]
    least = _least_probability(average, data.n_rows)
    average = _fill_zeros(average, least)
    mixed, share = _mix_folds(data, rows, average, folds, (temperature, least))
    return AverageScores(
        rows=rows,
        average=mixed,
        clone_average=average,
        pair_rows=np.concatenate([pair_rows for pair_rows, _ in pairs]),
        pair_proba=_fill_zeros(np.concatenate([proba for _, proba in pairs]), least),
        temperature=temperature,
        least=least,
        share=share,
        inverse_clones=float((1.0 / count[rows]).mean()),
    )


def _mix_folds(
    data: TrainingData,
    rows: IntArray,
    average: FloatArray,
    folds: Sequence[ScoredRows],
    scale: tuple[float, float],
) -> tuple[FloatArray, float]:
    """Mix the average of the clones with the fits without one fold, and return the share.

    The share is a posterior mean, because each share is weighted by the out-of-fold likelihood of
    its mixture after temperature scaling. The share is rounded, so negligible fits have weight
    zero.
    """
    if not folds:
        return average, 0.0
    temperature, least = scale
    single = np.empty_like(average)  # folds partition the rows
    for part in folds:
        single[part.rows] = _as_proba(part.response, part.scores, temperature)
    single = _fill_zeros(single, least)
    losses = np.array([_tempered_loss(data, rows, _mix(average, single, s)) for s in _SHARES])
    likelihood = np.exp(losses.min() - losses)
    share = round(float(likelihood @ _SHARES / likelihood.sum()), 2)
    return _mix(average, single, share), share


def _mix(small: FloatArray, large: FloatArray, share: float) -> FloatArray:
    return (1.0 - share) * small + share * large


def _tempered_loss(data: TrainingData, rows: IntArray, proba: FloatArray) -> float:
    """Negative log-likelihood after temperature scaling, for an effective number of rows."""
    sample = _sample_of(data, rows, proba)
    fitted = TemperatureScaling(inputs="proba")._fit_checked(sample)
    losses = log_losses(proba_of(fitted, proba, "proba"), data.codes[rows])
    return float(effective_weights(sample.weight) @ losses)


def _clone_temperature(data: TrainingData, parts: Sequence[ScoredRows]) -> float:
    """Return the temperature of the decision values of single clones, 1 for probabilities."""
    if parts[0].response.inputs == "proba":
        return 1.0
    scores = np.concatenate(
        [check_scores(part.scores, inputs="logits", slack=SLACK) for part in parts]
    )
    rows = np.concatenate([part.rows for part in parts])
    scaling = TemperatureScaling(inputs="logits")
    return scaling._fit_checked(_sample_of(data, rows, scores)).temperature_


def average_responses(
    clones: Sequence[ScoredRows],
    folds: Sequence[ScoredRows],
    whole: Response,
    scores: AverageScores,
) -> AveragedResponse:
    """Return the ensemble that predicts. Fits without weight are left out.

    The large fits have the same weight together as in the out-of-fold average. The share also
    divides the weight of the large fits between fits without one fold and the fit on all rows. The
    fit on all rows has no out-of-fold scores, from which a separate share could be estimated.
    """
    share = scores.share
    small, large = ([part.response for part in parts] for parts in (clones, folds))
    groups: list[tuple[list[Scorer], float]] = [([*small, whole], 1.0)]
    if folds:
        groups = [(small, 1.0 - share), (large, share * (1.0 - share)), ([whole], share**2)]
    members = [(fit, total / len(fits)) for fits, total in groups for fit in fits if total > 0.0]
    responses, weights = zip(*members, strict=True)
    return AveragedResponse(responses, np.array(weights), scores.temperature, scores.least)


def find_size_correction(
    data: TrainingData, scores: AverageScores, calibrator: Any, weights: FloatArray
) -> float:
    """Return the temperature that accounts for the size of the ensemble that predicts.

    The calibrator was fitted on averages of a few clones, but more clones predict. A larger average
    is more accurate and less confident, so it needs a lower temperature. The logarithm of this
    temperature is close to linear in the standard deviation of an average. The standard deviation
    is proportional to the root of the sum of the squared weights. Averages of two and of all
    held-out clones determine the slope of the line. The average that predicts has a smaller
    standard deviation than the out-of-fold average, by the ratio of the two roots.
    """
    pair_deviation, deviation = np.sqrt(0.5), np.sqrt(scores.inverse_clones)
    if deviation >= pair_deviation:
        return 1.0
    log_pairs, log_average = (
        _log_temperature(data, rows, proba_of(calibrator, proba, "proba", columns=by))
        for proba, rows in (
            (scores.pair_proba, scores.pair_rows),
            (scores.clone_average, scores.rows),
        )
        for by in [data.by_of(rows)]
    )
    slope = max(log_pairs - log_average, 0.0) / (pair_deviation - deviation)
    ratio = np.sqrt(weights @ weights / scores.inverse_size)
    return float(np.exp(slope * deviation * (ratio - 1.0)))


def _log_temperature(data: TrainingData, rows: IntArray, proba: FloatArray) -> float:
    scaling = TemperatureScaling(_LOG_TEMPERATURE_SCALE, inputs="proba")
    return float(np.log(scaling._fit_checked(_sample_of(data, rows, proba)).temperature_))


def _sample_of(data: TrainingData, rows: IntArray, scores: FloatArray) -> ArraySample:
    weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    return ArraySample(scores, data.codes[rows], weight)


def without_rounding(proba: FloatArray) -> FloatArray:
    """Divide rows by their sum if it differs from one by rounding in single precision.

    Rows that do not sum to one because their calibrator does not normalize them stay unchanged.
    """
    sums = proba.sum(axis=1, keepdims=True)
    return np.where(np.abs(sums - 1.0) < _SINGLE_ROUNDING, proba / sums, proba)
