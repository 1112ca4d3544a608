r"""Weights of a mixture of predictions that minimize the log-loss.

If :math:`\sum_i c_i = 1`, the minimum of :math:`-\sum_i c_i \log (P w)_i` over the simplex does not
change if :math:`\sum_j w_j` is added and only :math:`w \ge 0` is required. Newton steps
solve the problem. The quadratic models of these steps are non-negative least-squares problems (Kim,
Carbonetto, Stephens and Anitescu 2020, arXiv:1806.01412). Newton's method needs about a dozen
steps. Expectation maximization needs thousands of steps, because its convergence is sublinear at
the boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from calibrant._kernels.blocks import READ_BLOCK, sum_blocks
from calibrant._kernels.simplex import TINY
from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray

_TOLERANCE = 1e-10
"""Tolerance of the optimality conditions."""

_AT_ROUND_OFF = 1e-8
"""Tolerance of the optimality conditions if no step improves them, because the ratios of
likelihoods have rounding errors."""

_LEAST_SHARE = 1e-290
"""The smallest share that a line search gives to a member. This share is close to the smallest
float, because likelihoods may differ by hundreds of orders of magnitude."""


def mixture_weights(
    likelihood: FloatArray,
    weight: FloatArray,
    *,
    max_iter: int = 100,
    start: FloatArray | None = None,
) -> Solution:
    """Find the weights (J,) on the simplex that minimize the log-loss of a mixture.

    ``likelihood`` (n, J) contains the probability of the true label under each member. The search
    starts at ``start``, such as the weights of similar rows, or at equal weights. The optimality
    condition is that the mean of ``P_ij / (P w)_i`` does not exceed one for any member. The search
    ends when this condition holds up to 1e-10, or up to 1e-8 if rounding errors prevent further
    progress.
    """
    if start is None and likelihood.size >= READ_BLOCK:
        solution = _search_blocks(likelihood, np.asarray(weight))
        if solution.converged:
            return solution
    p = np.maximum(likelihood, TINY)
    c = np.asarray(weight) / weight.sum()
    w = np.full(p.shape[1], 1.0 / p.shape[1]) if start is None else start
    value = _value(p, c, w)
    for n_iter in range(1, max_iter + 1):
        ratio = p / (p @ w)[:, None]
        mean = ratio.T @ c
        if _violation(mean, w) <= _TOLERANCE:
            return Solution(w, value, n_iter, Outcome.CONVERGED)
        better = _next_weights(p, c, w, value, ratio, mean)
        if better is None:
            is_near = _violation(mean, w) <= _AT_ROUND_OFF
            return Solution(w, value, n_iter, Outcome.CONVERGED if is_near else Outcome.STALLED)
        w = better
        value = _value(p, c, w)
    return Solution(w, value, max_iter, Outcome.ITERATION_LIMIT)


def _search_blocks(likelihood: FloatArray, weight: FloatArray) -> Solution:
    """Find the weights by sums over row blocks, without arrays of the size of the data."""

    def sums_at(w: FloatArray) -> MixtureSums:
        def block_sums(rows: slice) -> MixtureSums:
            return MixtureSums.of_rows(likelihood[rows], weight[rows], w)

        total: MixtureSums = sum_blocks(block_sums, *likelihood.shape)
        return total

    return search_mixture(likelihood.shape[1], sums_at)


def _violation(mean: FloatArray, w: FloatArray) -> float:
    """Return the violation of the optimality conditions, which is 0 at the optimum.

    The mean ratio must be at most one for all members, and one for members with positive weight.
    """
    return max(0.0, float((mean - 1.0).max()), float((w * (1.0 - mean)).max()))


def _next_weights(
    p: FloatArray,
    c: FloatArray,
    w: FloatArray,
    value: float,
    ratio: FloatArray,
    mean: FloatArray,
) -> FloatArray | None:
    """Return weights with a lower loss, or None if the search finds none.

    A Newton step is tried first. If the step fails, the weight of the member with the largest mean
    ratio is increased. If rounding hides the difference in loss, the Newton point is used if it is
    closer to the optimum.
    """
    point = newton_point((ratio * c[:, None]).T @ ratio, mean)
    # A mean ratio above two means that a weight is far too small. A Newton step would at best
    # double this weight.
    lower = None if mean.max() > 2.0 else _step_down(p, c, w, point - w, value)
    if lower is not None:
        return lower / lower.sum()
    raised = _raise_member(p, c, w, int(mean.argmax()))
    if _value(p, c, raised) < value:
        return raised
    total = point.sum()
    if total > 0 and _violation((p / (p @ point)[:, None]).T @ c * total, point / total) < (
        _violation(mean, w)
    ):
        return point / total
    return None


def _step_down(
    p: FloatArray, c: FloatArray, w: FloatArray, step: FloatArray, value: float
) -> FloatArray | None:
    """Try steps of length 1, 1/2, 1/4, ... and return the first that reduces the loss, or None."""
    length = 1.0
    while length > 1e-10:
        if _value(p, c, w + length * step) < value:
            return w + length * step
        length *= 0.5
    return None


def _raise_member(p: FloatArray, c: FloatArray, w: FloatArray, member: int) -> FloatArray:
    """Increase the share of one member to minimize the loss.

    Bisection uses the logarithm of the share, because a share as small as 1e-15 can be optimal.
    """
    mixed, likelihood = p @ w, p[:, member]

    def slope(share: float) -> float:
        return float(c @ ((likelihood - mixed) / ((1.0 - share) * mixed + share * likelihood)))

    low, high = np.log(_LEAST_SHARE), 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(np.exp(middle)) > 0 else (low, middle)
    share = float(np.exp(low))
    raised = (1.0 - share) * w
    raised[member] += share
    return raised


def _value(p: FloatArray, c: FloatArray, w: FloatArray) -> float:
    return float(w.sum() - 1.0 - c @ np.log(np.maximum(p @ w, TINY)))


def newton_point(hessian: FloatArray, mean: FloatArray) -> FloatArray:
    """Minimize over x >= 0 the quadratic model at w, with Hessian R' diag(c) R and H w = R' c."""
    # Scale the Hessian to a unit diagonal. A member with weight zero may have entries of 1e10 in R,
    # which would dominate all others. A small ridge keeps the Hessian positive definite if members
    # are nearly equal.
    scale = np.sqrt(np.diag(hessian))
    hessian = hessian / np.outer(scale, scale)
    hessian[np.diag_indices_from(hessian)] += 1e-10
    lower = np.linalg.cholesky(hessian)
    target = np.linalg.solve(lower, (2.0 * mean - 1.0) / scale)
    return scipy.optimize.nnls(lower.T, target)[0] / scale


@dataclass(frozen=True, eq=False)
class MixtureSums:
    """Sums over rows for given mixture weights.

    The sums are those of the row weights c, of the log-loss, of the ratios ``P_ij / (P w)_i``,
    (J,), and of their products, (J, J).
    """

    total: float
    loss: float
    ratio: FloatArray
    product: FloatArray

    @classmethod
    def of_rows(cls, likelihood: FloatArray, weight: FloatArray, w: FloatArray) -> MixtureSums:
        """Compute the sums of some rows."""
        p = np.maximum(likelihood, TINY)
        mixed = np.maximum(p @ w, TINY)
        ratio = p / mixed[:, None]
        # Products of huge ratios may overflow. `is_below` rejects such weights.
        with np.errstate(over="ignore", invalid="ignore"):
            product = (ratio * weight[:, None]).T @ ratio
        loss = -float(weight @ np.log(mixed))
        return cls(float(weight.sum()), loss, ratio.T @ weight, product)

    def is_below(self, value: float) -> bool:
        """Return whether the mean loss is lower and the search can continue at this point."""
        return self.loss / self.total < value and bool(np.isfinite(self.product).all())

    def __add__(self, other: MixtureSums) -> MixtureSums:
        return MixtureSums(
            self.total + other.total,
            self.loss + other.loss,
            self.ratio + other.ratio,
            self.product + other.product,
        )


def search_mixture(
    n_members: int, sums_at: Callable[[FloatArray], MixtureSums], *, max_iter: int = 100
) -> Solution:
    """Find the weights of `mixture_weights` from sums alone, for rows that are not in memory.

    ``sums_at(w)`` returns the sums over all rows at the weights ``w``, which is one pass.
    """
    w = np.full(n_members, 1.0 / n_members)
    sums = sums_at(w)
    for n_iter in range(1, max_iter + 1):
        value, mean = sums.loss / sums.total, sums.ratio / sums.total
        if _violation(mean, w) <= _TOLERANCE:
            return Solution(w, value, n_iter, Outcome.CONVERGED)
        trials = _trial_weights(w, newton_point(sums.product / sums.total, mean), mean)
        better = next(
            (
                (trial, trial_sums)
                for trial in trials
                if (trial_sums := sums_at(trial)).is_below(value)
            ),
            None,
        )
        if better is None:
            is_near = _violation(mean, w) <= _AT_ROUND_OFF
            return Solution(w, value, n_iter, Outcome.CONVERGED if is_near else Outcome.STALLED)
        w, sums = better
    return Solution(w, sums.loss / sums.total, max_iter, Outcome.ITERATION_LIMIT)


def _trial_weights(w: FloatArray, point: FloatArray, mean: FloatArray) -> Iterator[FloatArray]:
    """Yield weights to try: along the Newton step, then one step of expectation maximization."""
    length = 1.0
    while length > 1e-3:
        trial = w + length * (point - w)
        yield trial / trial.sum()
        length *= 0.25
    yield w * mean / (w @ mean)
