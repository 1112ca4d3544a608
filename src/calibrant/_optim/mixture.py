r"""Weights of a mixture of forecasts that minimise the log-loss.

Over the simplex, :math:`\min_w -\sum_i c_i \log (P w)_i` has the solution of the same problem over
:math:`w \ge 0` with
:math:`\sum_j w_j` added, for :math:`\sum_i c_i = 1`. That is solved by Newton steps whose quadratic
models are non-negative least-squares problems (Kim, Carbonetto, Stephens and Anitescu 2020,
arXiv:1806.01412): a dozen steps where plain EM, whose convergence is sublinear at the boundary,
needs thousands.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from calibrant._optim.solution import Outcome, Solution
from calibrant._simplex import TINY
from calibrant._typing import FloatArray

_TOLERANCE = 1e-10
"""Of the conditions of optimality."""

_AT_ROUND_OFF = 1e-6
"""Their tolerance where no step lowers the loss any more: an error d of the conditions is one of
about d^2 in the loss, and that of 1e-12 is lost in its rounding."""


def mixture_weights(likelihood: FloatArray, weight: FloatArray, *, max_iter: int = 100) -> Solution:
    """Weights (J,) on the simplex; ``likelihood`` (n, J) holds each member's probability of what
    happened.

    Optimal to 1e-10 in the conditions of optimality: no member's mean of ``P_ij / (P w)_i`` exceeds
    one.
    """
    p = np.maximum(likelihood, TINY)
    c = np.asarray(weight) / weight.sum()
    w = np.full(p.shape[1], 1.0 / p.shape[1])
    value = _value(p, c, w)
    for n_iter in range(1, max_iter + 1):
        ratio = p / (p @ w)[:, None]
        mean = ratio.T @ c
        if _is_optimal(mean, w, _TOLERANCE):
            return Solution(w / w.sum(), value, n_iter, Outcome.CONVERGED)
        lower = _step_down(p, c, w, _newton_point(ratio, c, mean) - w, value)
        if lower is None:
            outcome = Outcome.CONVERGED if _is_optimal(mean, w, _AT_ROUND_OFF) else Outcome.STALLED
            return Solution(w / w.sum(), value, n_iter, outcome)
        w = lower / lower.sum()
        value = _value(p, c, w)
    return Solution(w, value, max_iter, Outcome.ITERATION_LIMIT)


def _is_optimal(mean: FloatArray, w: FloatArray, tolerance: float) -> bool:
    """Whether no member deserves more weight, and none that has some deserves less."""
    return bool((mean <= 1 + tolerance).all() and (w * (1 - mean) <= tolerance).all())


def _step_down(
    p: FloatArray, c: FloatArray, w: FloatArray, step: FloatArray, value: float
) -> FloatArray | None:
    """The first of the whole step, its half, its quarter ... that lowers the loss, or None."""
    length = 1.0
    while length > 1e-10:
        if _value(p, c, w + length * step) < value:
            return w + length * step
        length *= 0.5
    return None


def _value(p: FloatArray, c: FloatArray, w: FloatArray) -> float:
    return float(w.sum() - 1.0 - c @ np.log(np.maximum(p @ w, TINY)))


def _newton_point(ratio: FloatArray, c: FloatArray, mean: FloatArray) -> FloatArray:
    """Minimum over x >= 0 of the quadratic model at w, with Hessian R' diag(c) R and H w = R' c."""
    hessian = (ratio * c[:, None]).T @ ratio
    hessian[np.diag_indices_from(hessian)] += 1e-10 * np.trace(hessian) / len(hessian)
    lower = cholesky(hessian, lower=True)
    target = solve_triangular(lower, 2.0 * mean - 1.0, lower=True)
    return nnls(lower.T, target)[0]
