"""Ensembles of fitted classifiers: average probabilities of new and of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._crossfit.members import proba_of
from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import as_proba
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

_WHOLE_WEIGHT = 3.0
"""Weight of the classifier that is fitted on all rows, relative to a clone. A larger weight is
better for classifiers that need every row, and a smaller one for unstable classifiers such as
trees. Among weights from 1 to 10, this weight had the lowest mean log-loss on the development data
sets (benchmarks/default.py)."""


@dataclass(frozen=True, eq=False)
class AveragedResponse:
    """Average probabilities of several fitted classifiers, with the interface of a `Response`.

    Decision values have no scale of their own, so they are divided by one ``temperature`` before
    they become probabilities. ``least`` replaces averages of zero.
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

    Tree ensembles and nearest neighbors often agree on zeros. The calibration rows may contain none
    of the few rows on which all of them are wrong.
    """
    is_zero = proba <= 0.0
    others = 1.0 - least * is_zero.sum(axis=1, keepdims=True)
    return np.where(is_zero, least, proba * others)


def _least_probability(average: FloatArray, n_rows: float) -> float:
    """Return 1 / (n + K) by the rule of succession, or less if a positive average is smaller."""
    share = 1.0 / (n_rows + average.shape[1])
    return float(np.min(average, where=average > 0.0, initial=share))


def _as_proba(response: Scorer, scores: FloatArray, temperature: float) -> FloatArray:
    checked = check_scores(scores, inputs=response.inputs, slack=SLACK)
    if response.inputs == "proba":
        return np.asarray(checked, dtype=np.float64)
    return as_proba(np.asarray(checked, dtype=np.float64) / temperature, "logits")


class AverageScores(NamedTuple):
    """Out-of-fold probabilities of an ensemble and of its single clones.

    ``average`` is taken over the clones that were fitted without the row.
    """

    rows: IntArray
    average: FloatArray
    clone_rows: IntArray
    clone_proba: FloatArray
    temperature: float
    least: float
    inverse_size: float
    """Mean over rows of one divided by the number of clones."""


def combine_folds(splits: Sequence[Split], n_rows: int) -> list[Split]:
    """Return splits that hold out every row four times, from folds that hold it out once.

    Each fold is left out together with each of the next two folds. With five folds, these are all
    ten pairs. Splits are returned unchanged if they do not partition the rows into at least five
    folds.
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


def average_parts(data: TrainingData, parts: Sequence[ScoredRows]) -> AverageScores:
    """Average the out-of-fold probabilities of each row over the clones fitted without it."""
    temperature = _clone_temperature(data, parts)
    proba = [_as_proba(part.response, part.scores, temperature) for part in parts]
    total = np.zeros((len(data.y), len(data.classes)))
    count = np.zeros(len(data.y))
    for part, values in zip(parts, proba, strict=True):
        total[part.rows] += values
        count[part.rows] += 1
    rows = np.flatnonzero(count)
    average = total[rows] / count[rows, None]
    least = _least_probability(average, data.n_rows)
    return AverageScores(
        rows=rows,
        average=_fill_zeros(average, least),
        clone_rows=np.concatenate([part.rows for part in parts]),
        clone_proba=_fill_zeros(np.concatenate(proba), least),
        temperature=temperature,
        least=least,
        inverse_size=float((1.0 / count[rows]).mean()),
    )


def _clone_temperature(data: TrainingData, parts: Sequence[ScoredRows]) -> float:
    """Return the temperature of the decision values of single clones, 1 for probabilities."""
    if parts[0].response.inputs == "proba":
        return 1.0
    scores = np.concatenate(
        [check_scores(part.scores, inputs="logits", slack=SLACK) for part in parts]
    )
    rows = np.concatenate([part.rows for part in parts])
    return _fit_temperature(data, rows, scores, "logits")


def average_responses(
    clones: Sequence[Scorer], whole: Response, scores: AverageScores
) -> AveragedResponse:
    """Return the ensemble that predicts: all clones, and the classifier fitted on all rows."""
    weights = np.append(np.ones(len(clones)), _WHOLE_WEIGHT)
    return AveragedResponse(
        [*clones, whole], weights / weights.sum(), scores.temperature, scores.least
    )


def find_size_correction(
    data: TrainingData, scores: AverageScores, calibrator: Any, weights: FloatArray
) -> float:
    """Return the temperature that accounts for the size of the ensemble that predicts.

    The calibrator was fitted on averages of a few clones, but more clones predict. A larger average
    is more accurate and less confident, so it needs a lower temperature. The logarithm of that
    temperature is close to linear in the inverse size, the sum of the squared weights. Single
    clones and averages determine two points of the line.
    """
    if scores.inverse_size >= 1.0:
        return 1.0
    single, average = (
        proba_of(calibrator, proba, "proba", columns=data.by_of(rows))
        for proba, rows in (
            (scores.clone_proba, scores.clone_rows),
            (scores.average, scores.rows),
        )
    )
    log_single = np.log(_fit_temperature(data, scores.clone_rows, single, "proba"))
    log_average = np.log(_fit_temperature(data, scores.rows, average, "proba"))
    slope = (log_single - log_average) / (1.0 - scores.inverse_size)
    return float(np.exp(slope * (float(weights @ weights) - scores.inverse_size)))


def _fit_temperature(
    data: TrainingData, rows: IntArray, scores: FloatArray, inputs: Inputs
) -> float:
    weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    sample = ArraySample(scores, data.codes[rows], weight)
    return TemperatureScaling(inputs=inputs)._fit_checked(sample).temperature_


def without_rounding(proba: FloatArray) -> FloatArray:
    """Divide rows by their sum if it differs from one by rounding in single precision.

    Rows that do not sum to one because their calibrator does not normalize them stay unchanged.
    """
    sums = proba.sum(axis=1, keepdims=True)
    return np.where(np.abs(sums - 1.0) < _SINGLE_ROUNDING, proba / sums, proba)
