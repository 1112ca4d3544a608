r"""The posterior of the logarithm of a temperature, as a few temperatures with weights.

The log-likelihood of :math:`\mathrm{softmax}(u / T)` is smooth in :math:`g = \log T`: its value and
two derivatives at some of the `KNOTS` give a piecewise quintic. With a prior on a fine
grid that is the posterior, and the Gauss quadrature of it a handful of points that have all of its
first moments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from calibrant._data.sample import Sample
from calibrant._kernels.blocks import READ_BLOCK
from calibrant._optim.fast_temperature import loss_sums_at
from calibrant._typing import FloatArray

KNOTS = np.linspace(-4.0, 4.0, 33)
"""Logarithms of temperatures at which the likelihood is computed; there are none beyond the ends,
1/55 and 55."""

_POINTS = 2001
_NEGLIGIBLE = 40.0
"""Points of a grid, and how far below its highest a logarithm of the posterior counts as none."""


class Posterior(NamedTuple):
    """Points and weights of a distribution, and the logarithm of what it was divided by."""

    points: FloatArray
    weights: FloatArray
    log_evidence: float


def log_temperature_posterior(
    sample: Sample, log_prior: Callable[[FloatArray], FloatArray], n_points: int
) -> Posterior:
    """Logarithms of temperatures, with weights: the Gauss quadrature of their posterior. The prior
    is given up to a factor.
    """
    log_likelihood = _log_likelihood(sample, log_prior)
    low, high = log_likelihood.x[[0, -1]]
    grid, log_mass = np.linspace(low, high, _POINTS), np.empty(0)
    for _ in range(2):  # where the mass is, and once more there
        log_mass = log_likelihood(grid) + log_prior(grid)
        grid = _zoom(grid, log_mass)
    log_mass = log_likelihood(grid) + log_prior(grid)
    highest = log_mass.max()
    mass = np.exp(log_mass - highest)
    mass[[0, -1]] *= 0.5  # by trapezoids
    log_evidence = highest + np.log(mass.sum() * (grid[1] - grid[0]))
    return Posterior(*gauss_quadrature(grid, mass, n_points), float(log_evidence))


def _zoom(grid: FloatArray, log_mass: FloatArray) -> FloatArray:
    """A finer grid where the mass is. Around a single point, between its neighbors."""
    inside = np.flatnonzero(log_mass - log_mass.max() > -_NEGLIGIBLE)
    first, last = inside[0], inside[-1]
    if first == last:
        first, last = max(first - 1, 0), min(last + 1, len(grid) - 1)
    return np.linspace(grid[first], grid[last], len(grid))


def _log_likelihood(
    sample: Sample, log_prior: Callable[[FloatArray], FloatArray]
) -> scipy.interpolate.BPoly:
    """The logarithm of the likelihood of all rows as a function of log T, where the posterior is
    not negligible.

    The likelihood has one maximum, because the log-loss is convex in 1/T. So a knot is of no use if
    it lies beyond another knot at which the posterior is negligible. Knots are added in four
    passes, each of which halves the distance between them: many rows need 11 knots instead of 33.
    """
    known: dict[int, FloatArray] = {}
    first, last = 0, len(KNOTS) - 1
    for step in (8, 4, 2, 1):
        new = [k for k in range(first, last + 1, step) if k not in known]
        known.update(zip(new, _derivatives_at(sample, KNOTS[new]), strict=True))
        knots = np.array(sorted(k for k in known if first <= k <= last))
        log_mass = np.array([known[k][0] for k in knots]) + log_prior(KNOTS[knots])
        # The difference is compared, because 1e20 - 40 is 1e20.
        kept = np.flatnonzero(log_mass - log_mass.max() > -_NEGLIGIBLE)
        # The maximum is between the neighbors of the best knot, so both stay.
        first = int(knots[max(kept[0] - 1, 0)])
        last = int(knots[min(kept[-1] + 1, len(knots) - 1)])
    knots = np.array(sorted(k for k in known if first <= k <= last))
    return scipy.interpolate.BPoly.from_derivatives(KNOTS[knots], [known[k] for k in knots])


def _derivatives_at(sample: Sample, log_temperatures: FloatArray) -> FloatArray:
    """The log-likelihood and its first two derivatives in log T, (m, 3): one pass."""
    betas = np.exp(-log_temperatures)
    sums = sample.sum(partial(loss_sums_at, betas), elements=READ_BLOCK)
    value, slope, square = sums.T
    first = betas * slope
    return np.column_stack([-value, first, -(betas**2 * square + first)])


def gauss_quadrature(
    points: FloatArray, mass: FloatArray, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """The ``n_points`` points, and weights that sum to one, with the first ``2 n_points - 1``
    moments of a discrete distribution; fewer where it has fewer points that count.

    They are the eigenvalues of the matrix of the three-term recurrence of its orthogonal
    polynomials (Golub and Welsch 1969, doi:10.1090/S0025-5718-69-99647-1).
    """
    share = mass / mass.sum()
    mean = share @ points
    spread = np.sqrt(share @ (points - mean) ** 2)
    if not spread > 0:
        return np.array([mean]), np.ones(1)
    x = (points - mean) / spread
    before, now = np.zeros_like(x), np.ones_like(x)
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(n_points):
        diagonal.append(float(share @ (x * now * now)))
        rest = (x - diagonal[-1]) * now - (beside[-1] if beside else 0.0) * before
        norm = float(np.sqrt(share @ (rest * rest)))
        if not norm > _ROUND_OFF:
            break
        beside.append(norm)
        before, now = now, rest / norm
    else:
        beside.pop()
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return mean + spread * values, vectors[0] ** 2


_ROUND_OFF = 1e-8
