"""Formulas of the bounds and of exact confidence intervals."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from calibrant._typing import FloatArray


def marginal_bound(points_per_bin: float, alpha: float, delta: float) -> float:
    r"""Bound of the error of a new case, :math:`\sqrt{\log(2/\alpha) / (2(k-1))} + \delta` (eq. 10
    and 15).
    """
    return math.sqrt(math.log(2 / alpha) / (2 * (points_per_bin - 1))) + delta


def conditional_bound(n_bins: float, points_per_bin: float, alpha: float, delta: float) -> float:
    r"""Joint bound of the errors of all bins, :math:`\sqrt{\log(2B/\alpha) / (2(k-1))} + \delta`
    (eq. 10 and 15 with :math:`B = n/k`).
    """
    return marginal_bound(points_per_bin, alpha / n_bins, delta)


def expected_bound(points_per_bin: float, delta: float) -> float:
    r"""Bound of the expected calibration error, :math:`\sqrt{1/(2k)} + \delta`."""
    return math.sqrt(1 / (2 * points_per_bin)) + delta


def clopper_pearson(
    hits: FloatArray, counts: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Exact confidence interval of a binomial probability at level ``1 - alpha``: (low, high).

    >>> low, high = clopper_pearson(np.array([0.0, 9.0]), np.array([10.0, 10.0]), 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.555], [0.308, 0.997])
    """
    misses = counts - hits
    low, high = np.zeros(hits.shape), np.ones(hits.shape)
    some_hits, some_misses = hits > 0, misses > 0
    low[some_hits] = betaincinv(hits[some_hits], misses[some_hits] + 1, alpha / 2)
    high[some_misses] = betaincinv(hits[some_misses] + 1, misses[some_misses], 1 - alpha / 2)
    return low, high


def multinomial_radius(counts: FloatArray, n_classes: int, alpha: float) -> FloatArray:
    r"""Radius of the Bretagnolle-Huber-Carol inequality for class frequencies.

    With probability :math:`1 - \alpha` the frequencies of a bin with n = ``counts`` rows are within

    .. math:: \sqrt{2 (L \log 2 + \log(1/\alpha)) / n}

    of the true distribution, measured by the sum of absolute differences over L classes.
    """
    return np.sqrt(2 * (n_classes * math.log(2) + math.log(1 / alpha)) / counts)
