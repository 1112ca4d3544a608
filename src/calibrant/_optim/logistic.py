"""Fit logistic regressions of many binary problems at once by Newton's method.

Platt scaling and beta calibration use this module.
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

# Newton's method needs about ten steps, and about thirty until it detects separated outcomes.
_MAX_ITER = 100
# Newton's decrement is about twice the excess of the mean loss, which is quadratic in the distance
# to the optimum. At 1e-12 the distance is about 1e-6, and the last step squares this distance.
_CONVERGED = 1e-12
# Near a finite optimum the decrement collapses, because convergence is quadratic. Without a finite
# optimum, the decrement falls only by a factor of e per step. So a small decrement that exceeds a
# tenth of the previous decrement means separated outcomes.
_SUSPICIOUS, _SLOW = 1e-8, 0.1
# The data do not determine directions with less relative curvature than this limit.
_RANK = 1e-12
# A column that varies by at most this share of its size counts as constant, because its mean has a
# rounding error.
_CONSTANT = 1e-12
# The data determine directions with more relative curvature than this limit.
_DETERMINED = 1e-8
# Factor of the log-odds in the shrunken start, see `_shrunken_start`.
_SHRINKAGE = 0.7


# With at least _WARM_FROM rows, the start is the optimum of a subsample (every _WARM_ROWS-th row),
# if the subsample has about _WARM_OUTCOMES rows of each outcome. If all rows have this many rows of
# each outcome, a search in single precision then improves the start. Both searches end at
# _WARM_DECREMENT.
_WARM_FROM, _WARM_ROWS, _WARM_OUTCOMES, _WARM_DECREMENT = 5_000, 16, 20.0, 1e-7
# A full Newton step is accepted without a pass for the loss if the slope along the step has almost
# vanished at the end. The slope at the end must be negative, or at most this share of the slope at
# the start.
_GOOD_STEP = 0.1


def fit_logistic(
    columns: FloatArray, target: FloatArray, weight: FloatArray, *, intercept: bool = True
) -> Solution:
    r"""Minimize the weighted mean of :math:`\log(1 + e^{\eta}) - t\,\eta`.

    The parameters are the d coefficients and the intercept of ``eta``, (d + 1,). The intercept is
    last, and 0 if ``intercept`` is False. ``columns`` has shape (m, d), and d may be 0. The
    ``target`` t is in [0, 1]. Columns are standardized first. The search starts at 0, or at the
    optimum of a subsample for large data. A direction that the data do not determine (a constant
    column) therefore keeps the coefficient 0. Each of a few passes takes O(m d) time, and the
    memory is O(m d).
    """
    claim_columns = [column[None] for column in columns.T]
    return fit_logistics(claim_columns, target[None], weight, intercept=intercept)[0]


def fit_logistics(
    columns: Sequence[FloatArray],
    target: FloatArray,
    weight: FloatArray,
    *,
    intercept: bool = True,
) -> list[Solution]:
    """Fit J binary problems with the same m rows at once, as `fit_logistic` does.

    ``columns`` are d arrays of shape (J, m). ``target`` has shape (J, m), and the problems share
    the ``weight`` (m,).
    """
    share = weight / weight.sum()
    center = (
        np.stack([x @ share if intercept else np.zeros(len(x)) for x in columns], axis=-1)
        if columns
        else np.zeros((len(target), 0))
    )
    design, scale = [], np.ones(center.shape)
    for j, x in enumerate(columns):
        spread = np.sqrt(_square_sums(x, center[:, j], share))
        # A column that is constant up to round-off must not be scaled by its round-off. The column
        # becomes zero (division by infinity), so its coefficient stays 0.
        size = np.maximum(x.max(axis=1, initial=0.0), -x.min(axis=1, initial=0.0))
        is_constant = spread <= _CONSTANT * size
        scale[~is_constant, j] = spread[~is_constant]
        width = np.where(is_constant, np.inf, spread)
        design.append(_standardized(x, center[:, j], width))
    problem = _Problem(design, target, share, intercept)
    solutions = _newton(problem, problem.start(_shrunken_start(center, scale)), _CONVERGED)
    return [
        _unscaled(solution, middle, width, intercept)
        for solution, middle, width in zip(solutions, center, scale, strict=True)
    ]


def _square_sums(x: FloatArray, center: FloatArray, share: FloatArray) -> FloatArray:
    """``sum_i share_i (x_i - center)^2`` of each claim."""
    total = np.zeros(len(x))
    for rows in row_blocks(x.shape[1], len(x)):
        deviation = x[:, rows] - center[:, None]
        total += np.einsum("ij,ij,j->i", deviation, deviation, share[rows])
    return total


def _standardized(x: FloatArray, center: FloatArray, width: FloatArray) -> FloatArray:
    """``(x - center) / width`` of each claim."""
    out = np.empty(x.shape)
    for rows in row_blocks(x.shape[1], len(x)):
        part = np.subtract(x[:, rows], center[:, None], out=out[:, rows])
        part /= width[:, None]
    return out


def _shrunken_start(center: FloatArray, scale: FloatArray) -> FloatArray:
    """Return standardized parameters that shrink the log-odds toward zero, shape (J, d + 1).

    All coefficients are equal, and the intercept is zero. For informative scores, this start is
    closer to the optimum than a constant. The identity would be closer still, but Newton steps from
    an overconfident start are too long.
    """
    return _SHRINKAGE * np.column_stack([scale, center.sum(axis=1)])


def _unscaled(
    solution: Solution, center: FloatArray, scale: FloatArray, intercept: bool
) -> Solution:
    """Convert the solution to the original columns."""
    beta = solution.parameters
    coef = beta[: len(scale)] / scale
    last = beta[-1] - coef @ center if intercept else 0.0
    return replace(solution, parameters=np.append(coef, last))


class _Problem(NamedTuple):
    """Standardized columns, (J, m) each, targets (J, m), and shares of the weight, (m,)."""

    design: list[FloatArray]
    target: FloatArray
    share: FloatArray
    intercept: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Number of claims, and number of parameters per claim."""
        return len(self.target), len(self.design) + self.intercept

    def take(self, claims: IntArray) -> _Problem:
        """Return the problem for some of the claims, in their order."""
        if len(claims) == len(self.target):
            return self
        return self._replace(design=[x[claims] for x in self.design], target=self.target[claims])

    def start(self, shrunken: FloatArray) -> FloatArray:
        """Return the start of the search, which is zero for small data.

        For large data, the start is the best of a subsample fit, the ``shrunken`` identity and the
        base rate.
        """
        start = np.zeros(self.shape)
        if len(self.share) < _WARM_FROM or not self.intercept:
            return start
        rate = self.target @ self.share
        mixed_claims = np.flatnonzero((rate > 0.0) & (rate < 1.0))
        start[mixed_claims, -1] = np.log(rate[mixed_claims] / (1.0 - rate[mixed_claims]))
        least = np.minimum(rate, 1.0 - rate) * len(self.share)
        subsample_claims = np.flatnonzero(least >= _WARM_ROWS * _WARM_OUTCOMES)
        claims = np.flatnonzero(least >= _WARM_OUTCOMES)
        rows = slice(None, None, _WARM_ROWS)
        total = self.share[rows].sum()
        if claims.size and total > 0:
            part = _Problem(
                [x[:, rows] for x in self.design],
                self.target[:, rows],
                self.share[rows] / total,
                True,
            )
            start = np.where(part._is_better(shrunken, start)[:, None], shrunken, start)
            if subsample_claims.size:
                _improve(start, subsample_claims, part.take(subsample_claims))
        if claims.size:
            _improve(start, claims, self._in_single_precision().take(claims))
        return start

    def _is_better(self, beta: FloatArray, other: FloatArray) -> BoolArray:
        """Return whether ``beta`` is a better start than ``other``, for each problem.

        A better start has a lower loss, and the data must determine all directions. Otherwise a
        direction without any effect would get a nonzero coefficient.
        """
        curvature = np.linalg.eigvalsh(self.derivatives(beta)[1])
        is_determined = curvature[:, 0] > _DETERMINED * curvature[:, -1]
        is_lower: BoolArray = self.loss(beta) < self.loss(other)
        return is_lower & is_determined

    def _in_single_precision(self) -> _Problem:
        """Return the problem in single precision, which is faster."""
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
            # log(1 + e^eta) = max(eta, 0) + log(1 + e^-|eta|), which cannot overflow.
            loss = np.maximum(eta, 0.0) - log_sigmoids(np.abs(eta))[0]
            eta *= self.target[:, rows]
            loss -= eta
            total += loss @ self.share[rows]
        return total

    def derivatives(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minus the gradient (the descent direction), (J, p), and the Hessian, (J, p, p)."""
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
                factor = curvature if x is None else curvature * x
                for k in range(j, size):
                    hessian[:, j, k] += _sum_with(factor, columns[k])
        for j in range(size):
            hessian[:, j + 1 :, j] = hessian[:, j, j + 1 :]
        return gradient, hessian


def _improve(start: FloatArray, claims: IntArray, problem: _Problem) -> None:
    """Replace the starts of claims by the optimum of a similar problem, if its fit converged."""
    solutions = _newton(problem, start[claims], _WARM_DECREMENT, with_loss=False)
    for claim, solution in zip(claims, solutions, strict=True):
        start[claim] = solution.parameters if solution.converged else start[claim]


def _sum_with(a: FloatArray, column: FloatArray | None) -> FloatArray:
    """Return row sums of ``a``, or of its product with a column of the design."""
    return a.sum(axis=1) if column is None else np.einsum("ij,ij->i", a, column)


def _newton(
    problem: _Problem, start: FloatArray, converged: float, *, with_loss: bool = True
) -> list[Solution]:
    """Minimize by Newton's method with step halving.

    Each step is one pass over the data of the claims that have not converged yet.
    """
    n_claims = len(start)
    beta, ends = start.copy(), [Outcome.ITERATION_LIMIT] * n_claims
    n_iter = np.full(n_claims, _MAX_ITER)
    active, previous_decrement, part = np.arange(n_claims), np.full(n_claims, np.inf), problem
    gradient, hessian = part.derivatives(beta)
    for iteration in range(1, _MAX_ITER + 1):
        step, decrement = _directions(gradient, hessian)
        is_done = decrement <= converged
        is_slow = ~is_done & (_SLOW * previous_decrement <= decrement) & (decrement <= _SUSPICIOUS)
        # The last step needs no extra pass and squares the error once more.
        beta[active[is_done]] += step[is_done]
        for claim in active[is_done | is_slow]:
            n_iter[claim] = iteration
        for mask, outcome in ((is_done, Outcome.CONVERGED), (is_slow, Outcome.SEPARABLE)):
            for claim in active[mask]:
                ends[claim] = outcome
        continues = ~(is_done | is_slow)
        if not continues.any():
            break
        if not continues.all():
            part, active = part.take(np.flatnonzero(continues)), active[continues]
        previous_decrement = decrement[continues]
        beta[active], gradient, hessian = _step(
            part, beta[active], step[continues], previous_decrement
        )
    loss = problem.loss(beta) if with_loss else np.zeros(n_claims)
    return [Solution(beta[j], float(loss[j]), int(n_iter[j]), ends[j]) for j in range(n_claims)]


def _directions(gradient: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Newton steps of least norm, (J, p), and their decrements, (J,).

    The eigendecomposition excludes directions without curvature, along which a step would be
    arbitrarily long.
    """
    curvature, axes = np.linalg.eigh(hessian)
    least = _RANK * curvature.max(axis=1, keepdims=True, initial=0.0)
    along = np.einsum("jpa,jp->ja", axes, gradient)
    along = np.divide(along, curvature, out=np.zeros_like(along), where=curvature > least)
    step = np.einsum("jpa,ja->jp", axes, along)
    return step, np.einsum("jp,jp->j", gradient, step)


def _step(
    problem: _Problem, beta: FloatArray, step: FloatArray, decrement: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Take the steps, and return the new points and their derivatives.

    A full step is accepted if the slope at its end is small or still negative. Otherwise the step
    is halved until it reduces the loss enough.
    """
    trial = beta + step
    gradient, hessian = problem.derivatives(trial)
    slope = -np.einsum("jp,jp->j", gradient, step)
    for j in np.flatnonzero(~(slope <= _GOOD_STEP * decrement)):
        claim_problem = problem.take(np.array([j]))
        shorter = _halved(claim_problem, beta[j], step[j], float(decrement[j]))
        if not np.array_equal(shorter, trial[j]):
            trial[j] = shorter
            derivatives = claim_problem.derivatives(shorter[None])
            gradient[j], hessian[j] = derivatives[0][0], derivatives[1][0]
    return trial, gradient, hessian


def _halved(problem: _Problem, beta: FloatArray, step: FloatArray, decrement: float) -> FloatArray:
    """Try steps of length 1, 1/2, 1/4, ... and return the first that reduces the loss enough."""
    loss, size = float(problem.loss(beta[None])[0]), 1.0
    while True:
        trial = beta + size * step
        value = float(problem.loss(trial[None])[0])
        # Armijo's rule with the usual factor 1e-4. The last term tolerates round-off of the loss.
        # Without this term, the search would not end near the optimum.
        if value <= loss - 1e-4 * size * decrement + 1e-15 * (1.0 + abs(loss)) or size < 1e-12:
            return trial
        size /= 2.0
