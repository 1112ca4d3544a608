"""Linear pools of calibrators: their probabilities out of fold, and weights that do no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant._blocks import map_blocks
from calibrant._crossfit.members import fit_fold, proba_of
from calibrant._folds import Fold
from calibrant._optim.mixture import mixture_weights
from calibrant._simplex import EPS, log_floored
from calibrant._typing import FloatArray, IntArray
from calibrant.inference._gains import Gain, paired_gain

_PREDICT_ELEMENTS = 2**20


class Pool(NamedTuple):
    """Probabilities that members gave to what happened, by maps that had not seen it; the first
    member is the identity and the last one the uniform forecast.

    A row of weight 2 may be here twice, judged by two folds.
    """

    likelihood: FloatArray
    weight: FloatArray
    fold: IntArray


def out_of_fold(
    members: Mapping[str, Any], scores: FloatArray, y: IntArray, folds: Sequence[Fold], inputs: str
) -> Pool:
    """Judge every member on the rows that its maps were not fitted on."""
    n_classes = scores.shape[1]
    parts = []
    for fold in folds:
        maps = [fit_fold(member, scores, y, fold, inputs) for member in members.values()]
        columns = [likelihood(fitted, scores[fold.judge], y[fold.judge], inputs) for fitted in maps]
        parts.append(np.column_stack([*columns, np.full(len(fold.judge), 1.0 / n_classes)]))
    weight = np.concatenate([fold.judge_weight for fold in folds])
    number = np.repeat(np.arange(len(folds)), [len(fold.judge) for fold in folds])
    return Pool(np.concatenate(parts), weight, number)


def likelihood(fitted: Any, scores: FloatArray, y: IntArray, inputs: str) -> FloatArray:
    """Probability of the true class of each row, floored as in the log-loss."""

    def block(rows: slice) -> FloatArray:
        proba = proba_of(fitted, scores[rows], inputs)
        return np.maximum(proba[np.arange(len(proba)), y[rows]], EPS)

    return np.concatenate(list(map_blocks(block, *scores.shape, elements=_PREDICT_ELEMENTS)))


def cautious_weights(pool: Pool) -> FloatArray:
    r"""Weights of the members: of highest out-of-fold likelihood, with two rows' worth of caution.

    They maximise :math:`\sum_i c_i \log \sum_j w_j P_{ij} + \log w_1`: one row more, which only the
    identity (member 1) foresaw (others gave it 1e-6, for arithmetic's sake). Then the uniform
    forecast (the last) gives one row's worth, 1/n, of its weight to the identity: a single surprise
    is no reason to spread probability over all classes.
    """
    n_samples, n_members = float(pool.weight.sum()), pool.likelihood.shape[1]
    prior = np.where(np.arange(n_members) == 0, 1.0, 1e-6)[None, :]
    solution = mixture_weights(np.vstack([pool.likelihood, prior]), np.append(pool.weight, 1.0))
    weights = solution.parameters.copy()
    returned = min(weights[-1], 1.0 / n_samples)
    weights[-1] -= returned
    weights[0] += returned
    return weights


def pool_gain(pool: Pool, folds: Sequence[Fold]) -> Gain:
    """Log-loss gain of the pool; the weights, too, have not seen the rows that they are judged
    on.
    """
    after = np.empty(len(pool.weight))
    for number in range(len(folds)):
        held = pool.fold == number
        others = Pool(pool.likelihood[~held], pool.weight[~held], pool.fold[~held])
        weights = (
            cautious_weights(others)
            if len(others.weight)
            else np.eye(1, pool.likelihood.shape[1])[0]
        )
        after[held] = -log_floored(pool.likelihood[held] @ weights, EPS)
    return paired_gain(
        -log_floored(pool.likelihood[:, 0], EPS), after, pool.weight, folds, score="log_loss"
    )
