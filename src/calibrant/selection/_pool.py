"""Linear pools of calibrators: their probabilities out of fold, and cautious weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant._crossfit.members import fit_folds, proba_blocks
from calibrant._crossfit.scores import likelihood_losses
from calibrant._folds import Fold
from calibrant._optim.mixture import mixture_weights
from calibrant._simplex import EPS, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.inference._gain import Gain, paired_gain


class Pool(NamedTuple):
    """Probabilities that members gave to what happened, by maps that had not seen it; the first
    member is the identity and the last one the uniform forecast.

    A row of weight 2 may be here twice, judged by two folds.
    """

    likelihood: FloatArray
    weight: FloatArray
    fold: IntArray


def pool_members(
    members: Mapping[str, Any], scores: FloatArray, y: IntArray, folds: Sequence[Fold], inputs: str
) -> Pool:
    """Judge every member on the rows that its maps were not fitted on."""
    judged = [_likelihood(member, scores, y, folds, inputs) for member in members.values()]
    uniform = np.full(len(judged[0]), 1.0 / scores.shape[1])
    weight = np.concatenate([fold.judge_weight for fold in folds])
    number = np.repeat(np.arange(len(folds)), [len(fold.judge) for fold in folds])
    return Pool(np.column_stack([*judged, uniform]), weight, number)


def _likelihood(
    member: Any, scores: FloatArray, y: IntArray, folds: Sequence[Fold], inputs: str
) -> FloatArray:
    """Probability of the true class of each judged row, fold after fold, floored as in the
    log-loss.
    """
    maps = fit_folds(member, scores, y, folds, inputs)
    parts = [
        np.maximum(true_class(proba, y[fold.judge[rows]]), EPS)
        for fitted, fold in zip(maps, folds, strict=True)
        for rows, proba in proba_blocks(fitted, scores, inputs, fold.judge)
    ]
    return np.concatenate(parts)


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
        after[held] = likelihood_losses(pool.likelihood[held] @ weights)
    before = likelihood_losses(pool.likelihood[:, 0])
    return paired_gain(before, after, pool.weight, folds, score="log_loss")
