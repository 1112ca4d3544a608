"""Log-loss and Brier score of each row, before and after cross-fitted recalibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibrant._crossfit.members import fit_folds, proba_of, set_up
from calibrant._data.fold_plan import RowFolds
from calibrant._data.folds import Fold, as_folds, check_groups
from calibrant._data.sample import ArraySample
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import EPS, as_proba, brier_scores, log_floored, log_losses
from calibrant._typing import FloatArray, IntArray, Rng
from calibrant._validation import Predictions, check_option
from calibrant.multiclass import StructuredScaling


class AnyCalibrator(Protocol):
    """A calibrator of this package, or a scikit-learn classifier."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any: ...

    def predict_proba(self, X: Any) -> Any: ...


@dataclass(frozen=True)
class ProperScore:
    """A proper score per row, its divergence, and its value for each possible true class.

    ``of_block`` (m,) is the score. ``divergence`` (m,) is the expected additional cost of
    predicting q instead of p, if p is the true distribution. ``of_classes`` (m, K) is the score for
    each possible true class.
    """

    of_block: Callable[[FloatArray, IntArray], FloatArray]
    divergence: Callable[[FloatArray, FloatArray], FloatArray]
    of_classes: Callable[[FloatArray], FloatArray]

    def losses(self, proba: FloatArray, y: IntArray) -> FloatArray:
        """Score of each row, computed in blocks."""
        parts = [self.of_block(proba[rows], y[rows]) for rows in row_blocks(*proba.shape)]
        return np.concatenate(parts)


def likelihood_losses(likelihood: FloatArray) -> FloatArray:
    """Log-loss of each row from the predicted probability of its true class."""
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
"""Proper scores by name."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of rows before and after recalibration, fold by fold, with the row weights.

    A row with weight 2 may occur twice, because two folds can hold out its copies. ``excess``
    estimates how much better the best calibrator of the family is than the calibrator that is
    fitted on all rows. The estimate is the grouped jackknife, ``(J - 1) / J`` times the sum of the
    divergences of the J calibrators from their mean. ``moments`` (2, m) contains the mean and the
    mean square of the gain of each row if its label is drawn from the scores.
    """

    before: FloatArray
    after: FloatArray
    excess: FloatArray
    moments: FloatArray
    weight: FloatArray
    n_folds: int

    def mean(self, values: FloatArray) -> float:
        """Weighted mean over rows."""
        return float(self.weight @ values / self.weight.sum())


def _seed_of(rng: Rng) -> int:
    """Return a seed.

    An int is returned unchanged, a generator draws the seed, and None draws a new seed.
    """
    if isinstance(rng, int | np.integer):
        return int(rng)
    return int(np.random.default_rng(rng).integers(2**63))


class CrossFit(NamedTuple):
    """Folds of rows in memory, and one calibrator per fold that was fitted on the other rows."""

    folds: list[Fold]
    plan: RowFolds
    calibrators: list[Any]


def cross_fit(
    data: Predictions,
    calibrator: AnyCalibrator | None,
    *,
    inputs: str,
    cv: Any,
    rng: Rng,
    groups: Any,
) -> CrossFit:
    """Fit a calibrator once per fold, on the checked predictions outside the fold.

    The default calibrator is `StructuredScaling`.
    """
    scores, y, weight, classes = data
    codes = check_groups(groups, len(y))
    folds = as_folds(cv, scores, y, weight, _seed_of(rng), codes)
    if len(folds) < 2:
        raise ValueError(
            f"Cross-fitting needs at least 2 rows with positive weight, got "
            f"{np.count_nonzero(weight)}. Pass more rows."
        )
    base = StructuredScaling() if calibrator is None else calibrator
    plan = RowFolds(ArraySample(scores, y, weight, groups=codes), folds)
    adapted = set_up(base, inputs, scores.shape[1], classes)
    return CrossFit(folds, plan, fit_folds(adapted, plan, inputs))


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
    """Score checked predictions before and after cross-fitted recalibration.

    The default calibrator is the default of `cross_fit`.
    """
    rule = SCORES[check_option(score, "score", tuple(SCORES))]
    scores, y = data.scores, data.y
    folds, _, calibrators = cross_fit(
        data, calibrator, inputs=inputs, cv=cv, rng=rng, groups=groups
    )
    parts = [
        _score_block(rule, calibrators, number, scores[rows], y[rows], inputs)
        for number, fold in enumerate(folds)
        # Process rows in blocks, because the predictions of all calibrators are in memory at once.
        for block in row_blocks(len(fold.held_out), scores.shape[1], elements=READ_BLOCK)
        for rows in [fold.held_out[block]]
    ]
    before, after, excess, *moments = np.concatenate(parts, axis=1)
    weight = np.concatenate([fold.held_out_weight for fold in folds])
    return PairedScores(before, after, excess, np.array(moments), weight, len(calibrators))


def _score_block(
    rule: ProperScore,
    calibrators: Sequence[Any],
    number: int,
    scores: FloatArray,
    y: IntArray,
    inputs: str,
) -> FloatArray:
    """Return losses before and after, the excess and moments of the gain of rows, (5, m).

    ``number`` is the index of the calibrator that was fitted without these rows.
    """
    predictions = [proba_of(fitted, scores, inputs) for fitted in calibrators]
    center = np.mean(predictions, axis=0)
    divergences = [rule.divergence(center, predicted) for predicted in predictions]
    excess = (1 - 1 / len(calibrators)) * np.sum(divergences, axis=0)
    proba = as_proba(scores, inputs)
    gains = rule.of_classes(proba) - rule.of_classes(predictions[number])
    moments = [np.einsum("ij,ij->i", proba, gains**power) for power in (1, 2)]
    return np.array([rule.losses(proba, y), rule.losses(predictions[number], y), excess, *moments])
