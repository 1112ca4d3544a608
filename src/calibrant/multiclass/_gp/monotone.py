"""Fit a latent mean that increases on an interval.

The latent mean ``u + g(x)`` with ``x = (u - center) / scale`` and ``g(x) = a(x) . m`` has slope ``1
+ g'(x) / scale``. A logarithmic barrier keeps the slope above a floor at the points of a grid with
step h. Between the points, ``g'`` differs from its linear interpolation by at most ``h^2 / 8 max
|g'''|``. Here ``|g'''| <= |m| sqrt(15 v) / l^3``, because ``|m|`` bounds the norm of g in the
reproducing kernel Hilbert space. At the end, m is shrunk slightly to compensate for this
difference. After shrinking, the slope is at least the floor on the whole interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from calibrant._typing import FloatArray
from calibrant.multiclass._gp.ascent import Posterior, ascend
from calibrant.multiclass._gp.bound import ResidualOf, SparseBound
from calibrant.multiclass._gp.kernel import InducingInputs
from calibrant.multiclass._gp.scores import ScoreSummary
from calibrant.multiclass._gp.search import TOLERANCE, Evidence, fit_evidence

_SEARCH_POINTS = 300
_GRID_POINTS = (300, 20_000)
# Strength of the barrier in units of the bound, during the search and at the end.
_SEARCH_BARRIER = 3.0
_LAST_BARRIERS = (1e-2, 1e-4)


def min_slope(scale: float) -> float:
    """Return the smallest allowed slope of a monotone latent mean.

    ``scale`` is the standard deviation of the scores. The prior mean has slope 1. The calibration
    of widely spread scores may need a temperature as large as their spread. The floor for such
    scores is therefore lower.
    """
    return 1e-3 / max(1.0, scale)


def fit_free(summary: ScoreSummary, residual: ResidualOf, *, n_inducing: int) -> Evidence:
    """Maximize the evidence for a latent mean without a constraint."""
    return fit_evidence(
        summary,
        lambda inducing: SparseBound(summary.rows, inducing, residual),
        n_inducing=n_inducing,
    )


def fit_increasing(summary: ScoreSummary, residual: ResidualOf, *, n_inducing: int) -> Evidence:
    """Maximize the evidence for a latent mean that increases on the range of the scores."""
    free = fit_free(summary, residual, n_inducing=n_inducing)
    slopes = _certify(summary, free.inducing, free.point.mean)
    if slopes.floor(free.point.mean) >= min_slope(summary.rows.scale):
        return free
    grid = np.linspace(summary.low, summary.high, _SEARCH_POINTS)

    def bound_of(inducing: InducingInputs) -> _BarrierBound:
        return _BarrierBound(SparseBound(summary.rows, inducing, residual), grid, _SEARCH_BARRIER)

    evidence = fit_evidence(summary, bound_of, n_inducing=n_inducing, starts=[free.inducing])
    point = _tighten(
        SparseBound(summary.rows, evidence.inducing, residual), summary, evidence.point.mean
    )
    solution = replace(
        evidence.solution,
        n_iter=free.solution.n_iter + evidence.solution.n_iter,
        objective=evidence.solution.objective
        + (evidence.point.value - point.value) / summary.total,
    )
    return Evidence(evidence.inducing, point, solution)


def _tighten(bound: SparseBound, summary: ScoreSummary, mean: FloatArray) -> Posterior:
    """Reduce the barrier for fixed kernel parameters, then correct for the interpolation error."""
    slopes = _certify(summary, bound.inducing, mean)
    for cost in _LAST_BARRIERS:
        mean = _BarrierBound(bound, slopes.grid, cost).maximum(mean, TOLERANCE * summary.total).mean
    return bound.at(mean * slopes.shrinkage(mean))


@dataclass(frozen=True, eq=False)
class Slopes:
    """Slopes ``1 + matrix @ m`` of the latent mean on a grid, and a bound between its points."""

    grid: FloatArray
    matrix: FloatArray
    gap: float
    """Maximum drop of a slope below the lower slope of the adjacent grid points, for ``|m| =
    1``."""
    lowest: float
    """The required floor of the slope."""

    def floor(self, mean: FloatArray) -> float:
        """Return a lower bound for the slope on the whole interval."""
        return 1.0 + float((self.matrix @ mean).min()) - self.gap * float(np.linalg.norm(mean))

    def shrinkage(self, mean: FloatArray) -> float:
        """Return the factor by which m is shrunk to raise the smallest slope to the floor.

        Such a factor exists because slopes are 1 plus a linear function of m.
        """
        drop = 1.0 - self.floor(mean)
        return min(1.0, (1.0 - self.lowest) / drop) if drop > 0 else 1.0


def certified_slopes(
    inducing: InducingInputs, low: float, high: float, scale: float, size: float
) -> Slopes:
    """Return slopes on a grid from ``low`` to ``high``.

    If the norm of the mean is at most ``size``, the slope changes only slightly between adjacent
    points of the grid.
    """
    variance, lengthscale, _ = inducing.kernel
    lowest = min_slope(scale)
    third = (15 * variance) ** 0.5 / lengthscale**3 / (8 * scale)
    n_steps = int(np.clip(np.ceil((high - low) * (third * size / lowest) ** 0.5), *_GRID_POINTS))
    grid = np.linspace(low, high, n_steps + 1)
    return Slopes(
        grid, inducing.slopes(grid) / scale, third * ((high - low) / n_steps) ** 2, lowest
    )


def _certify(summary: ScoreSummary, inducing: InducingInputs, mean: FloatArray) -> Slopes:
    return certified_slopes(
        inducing, summary.low, summary.high, summary.rows.scale, float(np.linalg.norm(mean))
    )


class _BarrierBound:
    """The bound with a barrier: ``F(m) + strength * mean_g log(slope_g - floor)``.

    The value is -inf if a slope is below the floor.
    """

    def __init__(self, bound: SparseBound, grid: FloatArray, strength: float) -> None:
        self.bound = bound
        self.grid = grid
        self.slopes = bound.inducing.slopes(grid) / bound.rows.scale
        self.strength = strength / len(grid)
        self.max_drop = 1.0 - min_slope(bound.rows.scale)

    def slack(self, mean: FloatArray) -> FloatArray:
        """Return the slopes minus the floor."""
        return self.max_drop + self.slopes @ mean

    def at(self, mean: FloatArray) -> Posterior:
        slack = self.slack(mean)
        if slack.min() <= 0:
            return Posterior(-np.inf, mean, np.eye(len(mean)), np.eye(len(mean)))
        inside = self.bound.at(mean)
        value = inside.value + self.strength * float(np.log(slack).sum())
        return inside._replace(value=value, metric=self._metric(inside.covariance, slack))

    def gradient(self, posterior: Posterior) -> FloatArray:
        barrier = self.slopes.T @ (1 / self.slack(posterior.mean))
        return np.asarray(self.bound.gradient(posterior) + self.strength * barrier)

    def outer_gradient(self, posterior: Posterior) -> FloatArray:
        mean = posterior.mean
        weight = self.strength / self.bound.rows.scale / self.slack(mean)
        barrier = self.bound.inducing.slope_gradient(self.grid, weight, mean)
        return self.bound.outer_gradient(posterior) + barrier

    def maximum(self, start: FloatArray, tolerance: float) -> Posterior:
        # Secants are not used, because the curvature of the barrier changes too fast for secants of
        # earlier steps. The metric of `ascend` contains the exact curvature.
        return ascend(self, self._feasible(start), tolerance=tolerance, n_secants=0)

    def _feasible(self, mean: FloatArray) -> FloatArray:
        drop = -float((self.slopes @ mean).min())
        return mean if drop < self.max_drop else mean * (0.5 * self.max_drop / drop)

    def _metric(self, covariance: FloatArray, slack: FloatArray) -> FloatArray:
        """Return ``(S^-1 + D' D)^-1``.

        The matrix is computed as ``Q Q'`` with ``Q = C T^-1``, ``C C' = S`` and ``T'T = I + C' D' D
        C``.
        """
        root = cholesky(covariance, lower=True)
        scaled = (self.slopes @ root) * (self.strength**0.5 / slack)[:, None]
        triangle = np.linalg.qr(np.vstack([scaled, np.eye(len(root))]), mode="r")
        factor = solve_triangular(triangle, root.T, trans=1).T
        return factor @ factor.T
