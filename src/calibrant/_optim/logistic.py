"""Logistic regression of claims by Newton's method, of many at once: what Platt scaling and beta
calibration share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant._kernels.blocks import CACHE_BLOCK, row_blocks
from calibrant._kernels.simplex import log_sigmoids, sigmoid
from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import BoolArray, FloatArray, IntArray

# Newton's method takes ten steps or so; with separated outcomes it is stopped after thirty.
_MAX_ITER = 100
# Newton's decrement is about twice the excess of the mean loss, the square of the distance; the
# next step squares that distance, 1e-6, once more.
_CONVERGED = 1e-12
# Near a finite optimum the decrement collapses (quadratic convergence). Without one it falls by a
# factor e a step.
_SUSPICIOUS, _SLOW = 1e-8, 0.1
# Directions of less relative curvature than this are not determined by the data.
_RANK = 1e-12
# A column that varies by no more than this share of its size is constant: the rounding of a mean.
_CONSTANT = 1e-12
# Directions of more relative curvature than this are determined beyond doubt.
_DETERMINED = 1e-8
_SHRINKAGE = 0.7


# Large data start from the optimum of every 16th row where that has so many of both outcomes, else
# from the rate of the outcome, and go on in single precision where there are so many in all; the
# decrement at which that is good enough.
_WARM_FROM, _WARM_ROWS, _WARM_OUTCOMES, _WARM_DECREMENT = 5_000, 16, 20.0, 1e-7
# A step is taken for good where the slope at its end is at most this share of that at its start.
_GOOD_STEP = 0.1


def fit_logistic(
    columns: FloatArray, target: FloatArray, weight: FloatArray, *, intercept: bool = True
) -> Solution:
    r"""Minimize the weighted mean of :math:`\log(1 + e^{\eta}) - t\,\eta` over the d coefficients
    and the intercept of ``eta``: the parameters, (d + 1,), the intercept last (0 without one).

    ``columns`` has shape (m, d), d may be 0; the ``target`` t lies in [0, 1]. Columns are centred
    and scaled first, and the start is 0, or where large data have the optimum of a part: a
    direction that the data do not determine (a constant column) keeps the coefficient 0. O(m) for
    each of a few passes, in O(m d) memory.
    """
    each = [column[None] for column in columns.T]
    return fit_logistics(each, target[None], weight, intercept=intercept)[0]


def fit_logistics(
    columns: Sequence[FloatArray],
    target: FloatArray,
    weight: FloatArray,
    *,
    intercept: bool = True,
) -> list[Solution]:
    """`fit_logistic` of J claims about the same m rows, all at once: ``columns`` are d arrays (J,
    m), the ``target`` has their shape, the ``weight`` (m,) is common.
    """
    share = weight / weight.sum()
    centre = (
        np.stack([x @ share if intercept else np.zeros(len(x)) for x in columns], axis=-1)
        if columns
        else np.zeros((len(target), 0))
    )
    design, scale = [], np.ones(centre.shape)
    for j, x in enumerate(columns):
        spread = np.sqrt(_square_sums(x, centre[:, j], share))
        # A constant column, up to round-off, has no scale of its own.
        size = np.maximum(x.max(axis=1, initial=0.0), -x.min(axis=1, initial=0.0))
        is_constant = spread <= _CONSTANT * size
        scale[~is_constant, j] = spread[~is_constant]
        width = np.where(is_constant, np.inf, spread)
        design.append(_standardised(x, centre[:, j], width))
    problem = _Problem(design, target, share, intercept)
    solutions = _newton(problem, problem.start(_shrunken_start(centre, scale)), _CONVERGED)
    return [
        _unscaled(solution, middle, width, intercept)
        for solution, middle, width in zip(solutions, centre, scale, strict=True)
    ]


def _square_sums(x: FloatArray, centre: FloatArray, share: FloatArray) -> FloatArray:
    """``sum_i share_i (x_i - centre)^2`` of each claim."""
    total = np.zeros(len(x))
    for rows in row_blocks(x.shape[1], len(x)):
        away = x[:, rows] - centre[:, None]
        total += np.einsum("ij,ij,j->i", away, away, share[rows])
    return total


def _standardised(x: FloatArray, centre: FloatArray, width: FloatArray) -> FloatArray:
    """``(x - centre) / width`` of each claim."""
    out = np.empty(x.shape)
    for rows in row_blocks(x.shape[1], len(x)):
        part = np.subtract(x[:, rows], centre[:, None], out=out[:, rows])
        part /= width[:, None]
    return out


def _shrunken_start(centre: FloatArray, scale: FloatArray) -> FloatArray:
    """Standardised parameters of equal coefficients and the intercept 0, (J, d + 1): log-odds a
    little closer to zero than they are, which for scores that are any good is nearer to the optimum
    than a constant. Steps from an overconfident start are too long.
    """
    return _SHRINKAGE * np.column_stack([scale, centre.sum(axis=1)])


def _unscaled(
    solution: Solution, centre: FloatArray, scale: FloatArray, intercept: bool
) -> Solution:
    """The solution for columns as they were."""
    beta = solution.parameters
    coef = beta[: len(scale)] / scale
    last = beta[-1] - coef @ centre if intercept else 0.0
    return replace(solution, parameters=np.append(coef, last))


class _Problem(NamedTuple):
    """Standardised columns, (J, m) each, targets (J, m), and shares of the weight, (m,)."""

    design: list[FloatArray]
    target: FloatArray
    share: FloatArray
    intercept: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Claims, and parameters of each."""
        return len(self.target), len(self.design) + self.intercept

    def take(self, claims: IntArray) -> _Problem:
        """The same for some of the claims, in their order."""
        if len(claims) == len(self.target):
            return self
        return self._replace(design=[x[claims] for x in self.design], target=self.target[claims])

    def start(self, shrunken: FloatArray) -> FloatArray:
        """Zeros; for many rows the best of a fit to some of them, the ``shrunken`` identity and
        the rate of the outcome.
        """
        start = np.zeros(self.shape)
        if len(self.share) < _WARM_FROM or not self.intercept:
            return start
        rate = self.target @ self.share
        known = np.flatnonzero((rate > 0.0) & (rate < 1.0))
        start[known, -1] = np.log(rate[known] / (1.0 - rate[known]))
        least = np.minimum(rate, 1.0 - rate) * len(self.share)
        often = np.flatnonzero(least >= _WARM_ROWS * _WARM_OUTCOMES)
        enough = np.flatnonzero(least >= _WARM_OUTCOMES)
        rows = slice(None, None, _WARM_ROWS)
        total = self.share[rows].sum()
        if enough.size and total > 0:
            part = _Problem(
                [x[:, rows] for x in self.design],
                self.target[:, rows],
                self.share[rows] / total,
                True,
            )
            start = np.where(part._is_better(shrunken, start)[:, None], shrunken, start)
            if often.size:
                _improve(start, often, part.take(often))
        if enough.size:
            _improve(start, enough, self._in_single_precision().take(enough))
        return start

    def _is_better(self, beta: FloatArray, other: FloatArray) -> BoolArray:
        """Of which claims one start has a lower loss than another, and no direction in which it
        leads away from zero without any effect.
        """
        curvature = np.linalg.eigvalsh(self.derivatives(beta)[1])
        is_determined = curvature[:, 0] > _DETERMINED * curvature[:, -1]
        is_lower: BoolArray = self.loss(beta) < self.loss(other)
        return is_lower & is_determined

    def _in_single_precision(self) -> _Problem:
        """The same in numbers whose exponentials cost a quarter."""
        target, share = self.target.astype(np.float32), self.share.astype(np.float32)
        return self._replace(
            design=[x.astype(np.float32) for x in self.design], target=target, share=share
        )

    def _blocks(self) -> list[slice]:
        return list(row_blocks(len(self.share), len(self.target), elements=CACHE_BLOCK // 2))

    def _eta(self, beta: FloatArray, rows: slice) -> FloatArray:
        last = beta[:, -1:] if self.intercept else np.zeros((len(beta), 1))
        beta, last = (b.astype(self.target.dtype, copy=False) for b in (beta, last))
        if not self.design:
            return np.repeat(last, len(self.share[rows]), axis=1)
        out = self.design[0][:, rows] * beta[:, :1]
        for j in range(1, len(self.design)):
            out += self.design[j][:, rows] * beta[:, j : j + 1]
        out += last
        return out

    def loss(self, beta: FloatArray) -> FloatArray:
        """The mean of ``log(1 + e^eta) - t eta`` of each claim."""
        total = np.zeros(len(beta))
        for rows in self._blocks():
            eta = self._eta(beta, rows)
            loss = np.maximum(eta, 0.0) - log_sigmoids(np.abs(eta))[0]
            eta *= self.target[:, rows]
            loss -= eta
            total += loss @ self.share[rows]
        return total

    def derivatives(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The direction of descent, minus the gradient, (J, p), and the Hessian, (J, p, p)."""
        n_claims, size = self.shape
        gradient, hessian = np.zeros((n_claims, size)), np.zeros((n_claims, size, size))
        for rows in self._blocks():
            columns: list[FloatArray | None] = [x[:, rows] for x in self.design]
            columns += [None] if self.intercept else []
            proba, share = sigmoid(self._eta(beta, rows)), self.share[rows]
            residual = self.target[:, rows] - proba
            residual *= share
            curvature = 1.0 - proba
            curvature *= proba
            curvature *= share
            for j, x in enumerate(columns):
                gradient[:, j] += _sum_with(residual, x)
                weighted = curvature if x is None else curvature * x
                for k in range(j, size):
                    hessian[:, j, k] += _sum_with(weighted, columns[k])
        for j in range(size):
            hessian[:, j + 1 :, j] = hessian[:, j, j + 1 :]
        return gradient, hessian


def _improve(start: FloatArray, claims: IntArray, problem: _Problem) -> None:
    """Put the starts of some claims where a problem like theirs has its optimum."""
    solutions = _newton(problem, start[claims], _WARM_DECREMENT, with_loss=False)
    for claim, solution in zip(claims, solutions, strict=True):
        start[claim] = solution.parameters if solution.converged else start[claim]


def _sum_with(a: FloatArray, column: FloatArray | None) -> FloatArray:
    """Row sums of ``a``, or of its product with a column of the design."""
    return a.sum(axis=1) if column is None else np.einsum("ij,ij->i", a, column)


def _newton(
    problem: _Problem, start: FloatArray, converged: float, *, with_loss: bool = True
) -> list[Solution]:
    """Newton's method with step halving; one pass over the data a step, for those that need it."""
    n_claims = len(start)
    beta, ends = start.copy(), [Outcome.ITERATION_LIMIT] * n_claims
    n_iter = np.full(n_claims, _MAX_ITER)
    left, previous, part = np.arange(n_claims), np.full(n_claims, np.inf), problem
    gradient, hessian = part.derivatives(beta)
    for iteration in range(1, _MAX_ITER + 1):
        step, decrement = _directions(gradient, hessian)
        is_done = decrement <= converged
        is_slow = ~is_done & (_SLOW * previous <= decrement) & (decrement <= _SUSPICIOUS)
        beta[left[is_done]] += step[is_done]
        for claim in left[is_done | is_slow]:
            n_iter[claim] = iteration
        for mask, outcome in ((is_done, Outcome.CONVERGED), (is_slow, Outcome.SEPARABLE)):
            for claim in left[mask]:
                ends[claim] = outcome
        goes_on = ~(is_done | is_slow)
        if not goes_on.any():
            break
        if not goes_on.all():
            part, left = part.take(np.flatnonzero(goes_on)), left[goes_on]
        previous = decrement[goes_on]
        moved = _moved(part, beta[left], step[goes_on], previous)
        beta[left], gradient, hessian = moved
    loss = problem.loss(beta) if with_loss else np.zeros(n_claims)
    return [Solution(beta[j], float(loss[j]), int(n_iter[j]), ends[j]) for j in range(n_claims)]


def _directions(gradient: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton's steps of least norm, (J, p), and their decrements, (J,)."""
    curvature, axes = np.linalg.eigh(hessian)
    least = _RANK * curvature.max(axis=1, keepdims=True, initial=0.0)
    along = np.einsum("jpa,jp->ja", axes, gradient)
    along = np.divide(along, curvature, out=np.zeros_like(along), where=curvature > least)
    step = np.einsum("jpa,ja->jp", axes, along)
    return step, np.einsum("jp,jp->j", gradient, step)


def _moved(
    problem: _Problem, beta: FloatArray, step: FloatArray, decrement: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The ends of the steps with their derivatives, where the loss still falls there or all but;
    else of the first of the half, the quarter ... that lowers the loss enough.
    """
    trial = beta + step
    gradient, hessian = problem.derivatives(trial)
    slope = -np.einsum("jp,jp->j", gradient, step)
    for j in np.flatnonzero(~(slope <= _GOOD_STEP * decrement)):
        single = problem.take(np.array([j]))
        shorter = _halved(single, beta[j], step[j], float(decrement[j]))
        if not np.array_equal(shorter, trial[j]):
            trial[j] = shorter
            derivatives = single.derivatives(shorter[None])
            gradient[j], hessian[j] = derivatives[0][0], derivatives[1][0]
    return trial, gradient, hessian


def _halved(problem: _Problem, beta: FloatArray, step: FloatArray, decrement: float) -> FloatArray:
    """The first of the step, its half, its quarter ... that lowers the loss enough."""
    loss, size = float(problem.loss(beta[None])[0]), 1.0
    while True:
        trial = beta + size * step
        value = float(problem.loss(trial[None])[0])
        # The second term forgives round-off; it also ends the search.
        if value <= loss - 1e-4 * size * decrement + 1e-15 * (1.0 + abs(loss)) or size < 1e-12:
            return trial
        size /= 2.0
