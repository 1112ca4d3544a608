"""Intervals of means of skewed values by Hall's transformation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from calibrant._crossfit.scores import SCORES
from calibrant._kernels.blocks import sum_blocks
from calibrant._typing import FloatArray, IntArray


@dataclass(frozen=True)
class Spread:
    r"""Standard error and skewness of a mean of independent units (rows or groups).

    Attributes
    ----------
    error : float
        Standard error, :math:`s / \sqrt n` with s the standard deviation of n units.
    skewness : float
        Skewness of the units.
    n_units : int
        Number of units.
    """

    error: float
    skewness: float
    n_units: int

    def ends(self, level: float) -> FloatArray:
        r"""Return the lower and upper end of the interval, relative to the mean.

        A mean of skewed values and its standard error are correlated. In samples that lack large
        losses, the mean is too low and the standard error is too small. Let :math:`\gamma` be the
        skewness, :math:`x = (\bar v - \mu) / s` and :math:`g(x) = x + \frac{\gamma}{3} x^2 +
        \frac{\gamma^2}{27} x^3 + \frac{\gamma}{6n}`. The distribution of :math:`\sqrt n\, g(x)` is
        normal up to O(1/n), and the distribution of :math:`\sqrt n\, x` only up to O(1 / sqrt n). g
        is monotone, and Student's quantile replaces the normal quantile (Hall 1992, On the removal
        of skewness by transformation, J. R. Stat. Soc. B 54, 221-228). The expansion is valid for
        small :math:`\gamma / \sqrt n`. The limits do not go beyond its turning point :math:`x = -3
        / \gamma`.
        """
        n, skewness = self.n_units, self.skewness
        if n < 2:
            return np.zeros(2)
        # The standard deviation of the units uses n - 1 in the denominator.
        deviation = self.error * n / np.sqrt(n - 1)
        y = stdtrit(n - 1, (1 + level) / 2) / np.sqrt(n) * np.array([1.0, -1.0])
        if abs(skewness) < 1e-6:  # the inverse is the identity up to round-off
            return -deviation * y
        cube = np.maximum(1 + skewness * (y - skewness / (6 * n)), 0.0)
        x = 3 * (np.cbrt(cube) - 1) / skewness
        return -deviation * x


def spread_of(values: FloatArray, groups: Sequence[IntArray] | None = None) -> Spread:
    """Estimate the spread of the mean of independent rows, or of independent groups of rows."""
    residual = values - values.mean()
    if groups is not None:
        sums = np.array([residual[rows].sum() for rows in groups])
        residual = sums * (len(groups) / len(values))
    n = len(residual)
    variance = float(np.mean(residual**2))
    return Spread((variance / n) ** 0.5, _skewness(variance, float(np.mean(residual**3))), n)


def model_spread(score: str, proba: FloatArray) -> Spread:
    """Compute the spread of the mean of a proper score if labels are drawn from the predictions."""

    def moments(rows: slice) -> FloatArray:
        block = np.asarray(proba[rows], dtype=np.float64)
        loss = SCORES[score].of_classes(block)
        first = block * loss
        second = first * loss
        return np.array([first.sum(), second.sum(), np.sum(second * loss)])

    n = len(proba)
    first, second, third = (float(part) / n for part in sum_blocks(moments, *proba.shape))
    variance = max(0.0, second - first**2)
    central = third - 3 * first * second + 2 * first**3
    return Spread((variance / n) ** 0.5, _skewness(variance, central), n)


def _skewness(variance: float, third: float) -> float:
    scale = variance**1.5
    return third / scale if scale > 0 else 0.0
