r"""Test of differences between groups, and the effect of recalibration on each group.

The null hypothesis is that all groups have the same calibration function with a slope and an offset
per class, :math:`P(y = k) \propto \exp((1 + a) u_k + b_k)` with logits u. With the gradient
:math:`S_g` and the Hessian :math:`H_g` of the log-loss of group g at the common optimum, the
statistic is

.. math:: T = \sum_g \tilde S_g' (H_g + s I)^{-1} \tilde S_g, \quad
    \tilde S_g = S_g - H_g H^{-1} S, \quad H = \sum_g H_g, \; S = \sum_g S_g .

This test is the score test of effects of groups with a normal prior of precision s. Labels that are
drawn from the common function give the distribution of the statistic under the null hypothesis.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from calibrant._data.fold_plan import plan_folds
from calibrant._data.sample import ArraySample
from calibrant._kernels.blocks import CALL_BLOCK, row_blocks
from calibrant._kernels.simplex import EPS, score_logits, softmax_in_place, true_class
from calibrant._optim.group_effects import Cells, effect_logits, fit_effects, group_derivatives
from calibrant._typing import FloatArray, IntArray

MOST_SCORES = 2**22
"""Maximum number of scores. A test of more scores would take more than about ten seconds."""

STRENGTH = 10.0
"""Precision of the effects of groups. It corresponds to a standard deviation of 0.3 in the logit,
which is typical of groups in real data."""

COMMON_STRENGTH = 1e-3
"""Precision of the effects of all rows. This precision is so small that the prior has no
influence."""

_MOST_CLASSES = 50
"""Maximum number of classes with offsets. With more classes, effects are slopes only, because
offsets need a K x K matrix per group.
"""

_RESAMPLED_SCORES = 2**27
_MOST_RESAMPLES, _FEWEST_RESAMPLES = 999, 99
_FOLDS = 5


class GroupDifference(NamedTuple):
    """Test of the null hypothesis that all groups have the same calibration function.

    Attributes
    ----------
    statistic : float
        Score statistic of the effects of groups.
    p_value : float
        P-value, ``(1 + k) / (1 + n_resamples)`` with the number k of resamples whose statistic is
        at least as large.
    n_resamples : int
        Number of resamples.
    """

    statistic: float
    p_value: float
    n_resamples: int


class GroupGain(NamedTuple):
    """Cross-fitted reduction of the log-loss of a group, with its confidence interval."""

    value: float
    low: float
    high: float


class _Problem(NamedTuple):
    """Rows sorted by group, and whether effects are slopes only."""

    rows: ArraySample
    n_groups: int
    slopes_only: bool

    def cells(self, *, with_common: bool) -> Cells:
        identity = sparse.eye(self.n_groups, format="csr")
        groups = sparse.hstack([np.ones((self.n_groups, 1)), identity]) if with_common else identity
        return Cells(sparse.csr_matrix(groups), self.slopes_only)


def _problem(sample: ArraySample, group: IntArray, n_groups: int, inputs: str) -> _Problem:
    order = np.argsort(group, kind="stable")
    rows = sample.subset(order).transformed(partial(score_logits, inputs=inputs))
    rows.columns = (group[order],)
    return _Problem(rows, n_groups, sample.n_columns > _MOST_CLASSES)


def compare_groups(
    sample: ArraySample, group: IntArray, n_groups: int, inputs: str
) -> GroupDifference:
    """Test whether groups, given by their numbers, have different calibration functions."""
    problem = _problem(sample, group, n_groups, inputs)
    common = Cells(sparse.csr_matrix(np.ones((n_groups, 1))), problem.slopes_only)
    effects = fit_effects(problem.rows, common, np.array([COMMON_STRENGTH]))
    repeated = np.repeat(effects, n_groups, axis=0)
    gradient, hessian = group_derivatives(problem.rows, repeated)
    form = _QuadraticForm.of(hessian)
    (statistic,) = form.values(gradient[None])
    u = problem.rows.u[:]
    proba = softmax_in_place(effect_logits(u, repeated[problem.rows.columns[0]]))
    n_resamples = int(np.clip(_RESAMPLED_SCORES // u.size, _FEWEST_RESAMPLES, _MOST_RESAMPLES))
    draws = _drawn_gradients(problem, u, proba, n_resamples)
    n_above = sum(int((form.values(drawn) >= statistic).sum()) for drawn in draws)
    return GroupDifference(float(statistic), (1 + n_above) / (1 + n_resamples), n_resamples)


class _QuadraticForm(NamedTuple):
    """The statistic as a function of the gradients of all groups."""

    hessian: FloatArray
    total_inverse: FloatArray
    factor: FloatArray
    """Cholesky factors of the inverses of the Hessians with the prior, (groups, d, d)."""

    @classmethod
    def of(cls, hessian: FloatArray) -> _QuadraticForm:
        size = np.eye(hessian.shape[1])
        return cls(
            hessian,
            np.linalg.inv(hessian.sum(axis=0) + COMMON_STRENGTH * size),
            np.linalg.cholesky(np.linalg.inv(hessian + STRENGTH * size)),
        )

    def values(self, gradients: FloatArray) -> FloatArray:
        """Compute the statistics of gradients (resamples, groups, d)."""
        shared = gradients.sum(axis=1) @ self.total_inverse
        deviations = gradients.transpose(1, 0, 2) - shared @ self.hessian  # (groups, resamples, d)
        statistics: FloatArray = ((deviations @ self.factor) ** 2).sum(axis=(0, 2))
        return statistics


def _drawn_gradients(
    problem: _Problem, u: FloatArray, proba: FloatArray, n_resamples: int
) -> Iterator[FloatArray]:
    """Yield gradients of the groups for labels drawn from the common calibration function.

    The gradients come in blocks of resamples, (resamples, groups, d).
    """
    rng = np.random.default_rng(0)
    rows, (n_rows, n_classes) = problem.rows, u.shape
    group, weight = rows.columns[0], rows.weight
    # The last label gets the remaining probability.
    cumulative = np.cumsum(proba, axis=1)[:, :-1].T.copy()
    indicator = sparse.csr_matrix((weight, (group, np.arange(n_rows))), (problem.n_groups, n_rows))
    slope = indicator @ np.einsum("ij,ij->i", proba, u)
    offsets = indicator @ proba
    for block in row_blocks(n_resamples, u.size, elements=CALL_BLOCK):
        n_draws = block.stop - block.start
        uniform = rng.random((n_draws, n_rows))
        y = np.zeros(uniform.shape, dtype=np.intp)
        for limit in cumulative:
            y += uniform >= limit
        scores = weight * u[np.arange(n_rows), y]
        slopes = slope - _group_sums(scores, group, problem.n_groups)
        if problem.slopes_only:
            yield slopes[:, :, None]
            continue
        size = problem.n_groups * n_classes
        place = (np.arange(n_draws)[:, None] * size + group * n_classes + y).ravel()
        counts = np.bincount(place, np.tile(weight, n_draws), n_draws * size)
        offset_gradients = offsets - counts.reshape(n_draws, *offsets.shape)
        yield np.concatenate([slopes[:, :, None], offset_gradients], axis=2)


def _group_sums(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Sum over the rows of each group, (resamples, groups). Rows must be sorted by group."""
    edges = np.searchsorted(group, np.arange(n_groups))
    sums: FloatArray = np.add.reduceat(values, edges, axis=1)
    return sums


def recalibration_gains(
    sample: ArraySample, group: IntArray, n_groups: int, inputs: str, alpha: float
) -> list[GroupGain | None]:
    """Estimate the reduction of the log-loss of each group by recalibration, on held-out rows.

    Each normal interval has the level 1 - alpha. The result is None for a group with fewer than two
    rows.
    """
    sample = sample.subset(slice(None))
    sample.columns = (group,)
    plan = plan_folds(_FOLDS, sample)
    if plan.n_folds < 2:
        return [None] * n_groups
    rows = plan.rescored(lambda _, part: score_logits(part.u[:], inputs)).rows("by")
    order = np.argsort(rows.columns[0], kind="stable")
    problem = _Problem(rows.subset(order), n_groups, sample.n_columns > _MOST_CLASSES)
    losses = _held_out_losses(problem, plan.n_folds)
    starts = np.searchsorted(problem.rows.columns[0], np.arange(1, n_groups))
    places = np.split(np.arange(len(order)), starts)
    return [_gain(losses[part], problem.rows.weight[part], alpha) for part in places]


def _held_out_losses(problem: _Problem, n_folds: int) -> FloatArray:
    """Return the reduction of the log-loss of each row by out-of-fold recalibration."""
    rows = problem.rows
    group, fold = rows.columns
    cells = problem.cells(with_common=True)
    strength = np.append(COMMON_STRENGTH, np.full(problem.n_groups, STRENGTH))
    u, effects = rows.u[:], None
    before = _log_true(u, rows.y)
    gain = np.empty(len(before))
    for number in range(n_folds):
        held_out = fold == number
        train = rows.weighted(np.where(held_out, 0.0, rows.weight))
        effects = fit_effects(train, cells, strength, effects)
        logits = effect_logits(u[held_out], cells.sums(effects)[group[held_out]])
        gain[held_out] = _log_true(logits, rows.y[held_out]) - before[held_out]
    return gain


def _log_true(logits: FloatArray, y: IntArray) -> FloatArray:
    proba = softmax_in_place(logits.copy())
    return np.log(np.maximum(true_class(proba, y), EPS))


def _gain(gains: FloatArray, weight: FloatArray, alpha: float) -> GroupGain | None:
    total = float(weight.sum())
    n_effective = total**2 / float(weight @ weight) if total > 0 else 0.0
    if n_effective < 2:
        return None
    mean = float(weight @ gains) / total
    variance = float(weight @ (gains - mean) ** 2) / total
    reach = float(-ndtri(alpha / 2)) * np.sqrt(variance / (n_effective - 1))
    return GroupGain(mean, mean - reach, mean + reach)
