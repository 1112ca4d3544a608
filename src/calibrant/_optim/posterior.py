r"""The posterior of the logarithm of a temperature, as a few temperatures with weights.

The log-likelihood of :math:`\mathrm{softmax}(u / T)` is smooth in :math:`g = \log T`. The value and
two derivatives of the log-likelihood at some of the `KNOTS` define a piecewise quintic
interpolation. The prior is added on a fine grid, and Gauss quadrature reduces the posterior to a
few points with the same first moments.
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
from calibrant._optim.temperature import subsample_optimum
from calibrant._typing import FloatArray

KNOTS = np.linspace(-4.0, 4.0, 33)
"""Logarithms of temperatures at which the likelihood is computed. Temperatures are limited to 1/55
to 55."""

_POINTS = 2001
"""Number of points of the grid."""

_NEGLIGIBLE = 40.0
"""Posterior densities of less than exp(-40), about 4e-18, of the highest are negligible in double
precision."""


class Posterior(NamedTuple):
    """Points and weights of a distribution, and the logarithm of its normalizing constant."""

    points: FloatArray
    weights: FloatArray
    log_evidence: float


def log_temperature_posterior(
    sample: Sample, log_prior: Callable[[FloatArray], FloatArray], n_points: int
) -> Posterior:
    """Compute the Gauss quadrature of the posterior of log temperatures.

    The prior may be unnormalized.
    """
    log_likelihood = _log_likelihood(sample, log_prior)
    low, high = log_likelihood.x[[0, -1]]
    grid, log_mass = np.linspace(low, high, _POINTS), np.empty(0)
    # Shrink the grid to the region of the mass twice, because the first grid may hit a narrow
    # posterior with only a few points.
    for _ in range(2):
        log_mass = log_likelihood(grid) + log_prior(grid)
        grid = _zoom(grid, log_mass)
    log_mass = log_likelihood(grid) + log_prior(grid)
    highest = log_mass.max()
    mass = np.exp(log_mass - highest)
    mass[[0, -1]] *= 0.5  # trapezoidal rule
    log_evidence = highest + np.log(mass.sum() * (grid[1] - grid[0]))
    return Posterior(*gauss_quadrature(grid, mass, n_points), float(log_evidence))


def _zoom(grid: FloatArray, log_mass: FloatArray) -> FloatArray:
    """Return a finer grid in the region of the mass.

    For a single point, the region is between its neighbors.
    """
    indices = np.flatnonzero(log_mass - log_mass.max() > -_NEGLIGIBLE)
    first, last = indices[0], indices[-1]
    if first == last:
        first, last = max(first - 1, 0), min(last + 1, len(grid) - 1)
    return np.linspace(grid[first], grid[last], len(grid))


def _log_likelihood(
    sample: Sample, log_prior: Callable[[FloatArray], FloatArray]
) -> scipy.interpolate.BPoly:
    """Return the log-likelihood as a function of log T, in the region of the posterior mass.

    The likelihood has one maximum, because the log-loss is convex in 1/T. A knot is therefore
    useless if it lies beyond another knot at which the posterior is negligible. The search starts
    with the four knots around the optimum of a subsample. While the posterior is not negligible at
    the first or the last knot, the next pass adds as many knots on this side.
    """
    n_knots = len(KNOTS)
    middle = int(np.searchsorted(KNOTS, -subsample_optimum(sample)[0]))
    first, last = max(middle - 2, 0), min(middle + 1, n_knots - 1)
    values: dict[int, FloatArray] = {}
    while True:
        new = [k for k in range(first, last + 1) if k not in values]
        values.update(zip(new, _derivatives_at(sample, KNOTS[new]), strict=True))
        log_mass = np.array([values[k][0] for k in range(first, last + 1)])
        log_mass += log_prior(KNOTS[first : last + 1])
        # Compare the difference, because 1e20 - 40 equals 1e20 in floating-point arithmetic.
        relevant = first + np.flatnonzero(log_mass - log_mass.max() > -_NEGLIGIBLE)
        n_new = last + 1 - first
        more_first = max(first - n_new, 0) if relevant[0] == first else first
        more_last = min(last + n_new, n_knots - 1) if relevant[-1] == last else last
        if (more_first, more_last) == (first, last):
            break
        first, last = more_first, more_last
    # The maximum is between the neighbors of the best knot, so keep both neighbors.
    knots = range(max(relevant[0] - 1, first), min(relevant[-1] + 1, last) + 1)
    return scipy.interpolate.BPoly.from_derivatives(KNOTS[knots], [values[k] for k in knots])


def _derivatives_at(sample: Sample, log_temperatures: FloatArray) -> FloatArray:
    """Compute the log-likelihood and its first two derivatives in log T, (m, 3), in one pass."""
    betas = np.exp(-log_temperatures)
    sums = sample.sum(partial(loss_sums_at, betas), elements=READ_BLOCK)
    value, slope, square = sums.T
    first = betas * slope
    return np.column_stack([-value, first, -(betas**2 * square + first)])


def gauss_quadrature(
    points: FloatArray, mass: FloatArray, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Return points and weights with the first ``2 n_points - 1`` moments of a distribution.

    There are fewer points if the discrete distribution has fewer relevant points. The points are
    the eigenvalues of the matrix of the three-term recurrence of the orthogonal polynomials (Golub
    and Welsch 1969, doi:10.1090/S0025-5718-69-99647-1).
    """
    share = mass / mass.sum()
    mean = share @ points
    spread = np.sqrt(share @ (points - mean) ** 2)
    if not spread > 0:
        return np.array([mean]), np.ones(1)
    # Standardize the points, because the recurrence is stable for numbers close to one.
    x = (points - mean) / spread
    previous, current = np.zeros_like(x), np.ones_like(x)
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    for _ in range(n_points):
        diagonal.append(float(share @ (x * current * current)))
        last = off_diagonal[-1] if off_diagonal else 0.0
        successor = (x - diagonal[-1]) * current - last * previous
        norm = float(np.sqrt(share @ (successor * successor)))
        if not norm > _ROUND_OFF:
            break
        off_diagonal.append(norm)
        previous, current = current, successor / norm
    else:
        off_diagonal.pop()
    matrix = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    values, vectors = np.linalg.eigh(matrix)
    return mean + spread * values, vectors[0] ** 2


_ROUND_OFF = 1e-8
"""A polynomial with a smaller norm is zero on all relevant points, up to round-off."""
