"""Proper scores of rows: the log-loss and the Brier score of each, before and after recalibration
by calibrators that were fitted on other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibrant._crossfit.members import fit_folds, proba_of, set_up
from calibrant._data.fold_plan import RowFolds
from calibrant._data.folds import as_folds, check_groups
from calibrant._data.sample import ArraySample
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import EPS, as_proba, brier_scores, log_floored, log_losses
from calibrant._typing import FloatArray, IntArray, Rng
from calibrant._validation import Predictions, check_option
from calibrant.multiclass import StructuredScaling


class AnyCalibrator(Protocol):
    """What is needed of a calibrator: any of this package, or a scikit-learn classifier of
    probabilities.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any: ...

    def predict_proba(self, X: Any) -> Any: ...


@dataclass(frozen=True)
class ProperScore:
    """A proper score of each row, and its divergence: what forecasting q costs where p is true,
    (m,) each; and the score that each class would give if it were the true one, (m, K).
    """

    of_block: Callable[[FloatArray, IntArray], FloatArray]
    divergence: Callable[[FloatArray, FloatArray], FloatArray]
    of_classes: Callable[[FloatArray], FloatArray]

    def losses(self, proba: FloatArray, y: IntArray) -> FloatArray:
        """The score of each row, block by block."""
        parts = [self.of_block(proba[rows], y[rows]) for rows in row_blocks(*proba.shape)]
        return np.concatenate(parts)


def likelihood_losses(likelihood: FloatArray) -> FloatArray:
    """Log-loss of each row from the probability that was given to its true class."""
    return -log_floored(likelihood, EPS)


def _relative_entropy(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", p, log_floored(p, EPS) - log_floored(q, EPS))


def _squared_distance(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", p - q, p - q)


def _log_losses_of_classes(proba: FloatArray) -> FloatArray:
    return -log_floored(proba, EPS)


def _brier_scores_of_classes(proba: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", proba, proba)[:, None] - 2 * proba + 1


SCORES = {
    "log_loss": ProperScore(log_losses, _relative_entropy, _log_losses_of_classes),
    "brier_score": ProperScore(brier_scores, _squared_distance, _brier_scores_of_classes),
}
"""The proper scores that gains are measured in, by name."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of rows as they are and as recalibrated, fold after fold, with the rows' weights.

    A row of weight 2 may be here twice, held out by two folds. ``excess`` estimates how much better
    the best map of the family would be than a map fitted on all rows: by the grouped jackknife
    ``(J - 1) / J`` times the sum of the divergences of the J maps from their mean. ``own`` (2, m)
    holds the first two moments of the gain of a row if its label were drawn from the scores.
    """

    before: FloatArray
    after: FloatArray
    excess: FloatArray
    own: FloatArray
    weight: FloatArray
    n_folds: int

    def mean(self, values: FloatArray) -> float:
        """Weighted mean over rows."""
        return float(self.weight @ values / self.weight.sum())


def _seed_of(rng: Rng) -> int:
    """A function's randomness: a generator is advanced by it, None is new at every call."""
    if isinstance(rng, int | np.integer):
        return int(rng)
    return int(np.random.default_rng(rng).integers(2**63))


def paired_scores(
    data: Predictions,
    calibrator: AnyCalibrator | None,
    *,
    score: str,
    inputs: str,
    cv: Any,
    rng: Rng,
    groups: Any = None,
) -> PairedScores:
    """Scores of checked predictions as they are, and as recalibrated by maps that were fitted on
    other rows; by default by `StructuredScaling`, the strongest default known for several classes.
    """
    rule = SCORES[check_option(score, "score", tuple(SCORES))]
    scores, y, weight, _ = data
    codes = check_groups(groups, len(y))
    folds = as_folds(cv, scores, y, weight, _seed_of(rng), codes)
    if len(folds) < 2:
        raise ValueError(
            f"cross-fitting needs at least 2 rows of positive weight, got "
            f"{np.count_nonzero(weight)}"
        )
    chosen = StructuredScaling() if calibrator is None else calibrator
    plan = RowFolds(ArraySample(scores, y, weight, groups=codes), folds)
    calibrators = fit_folds(set_up(chosen, inputs, scores.shape[1]), plan, inputs)
    parts = [
        _score_block(rule, calibrators, number, scores[rows], y[rows], inputs)
        for number, fold in enumerate(folds)
        # Blocks of rows, because the predictions of all calibrators are held at once.
        for block in row_blocks(len(fold.judge), scores.shape[1], elements=READ_BLOCK)
        for rows in [fold.judge[block]]
    ]
    before, after, excess, *moments = np.concatenate(parts, axis=1)
    weight = np.concatenate([fold.judge_weight for fold in folds])
    return PairedScores(before, after, excess, np.array(moments), weight, len(calibrators))


def _score_block(
    rule: ProperScore,
    calibrators: Sequence[Any],
    number: int,
    scores: FloatArray,
    y: IntArray,
    inputs: str,
) -> FloatArray:
    """Scores before and after by calibrator ``number``, the excess, and the moments of the gain
    under the scores, of some rows: (5, m).
    """
    each = [proba_of(fitted, scores, inputs) for fitted in calibrators]
    centre = np.mean(each, axis=0)
    divergences = [rule.divergence(centre, predicted) for predicted in each]
    excess = (1 - 1 / len(calibrators)) * np.sum(divergences, axis=0)
    proba = as_proba(scores, inputs)
    gains = rule.of_classes(proba) - rule.of_classes(each[number])
    moments = [np.einsum("ij,ij->i", proba, gains**power) for power in (1, 2)]
    return np.array([rule.losses(proba, y), rule.losses(each[number], y), excess, *moments])
