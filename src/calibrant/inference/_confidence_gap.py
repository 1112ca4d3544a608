"""Mean confidence minus accuracy, with its confidence interval."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from calibrant._kernels.simplex import effective_weights
from calibrant._typing import FloatArray, IntArray
from calibrant.inference._results import Interval, check_level


def confidence_gap(
    y: IntArray, proba: FloatArray, weight: FloatArray | None = None, *, level: float = 0.95
) -> Interval:
    r"""Estimate mean confidence minus accuracy with its interval.

    The gap is positive for overconfident models. Let :math:`\bar d` and s be the mean and standard
    deviation of :math:`d_i = \max_k p_{ik} - 1[y_i = \arg\max_k p_{ik}]`, and f the confidences.
    The interval is :math:`\bar d \pm t_{n-1} \sqrt{\max(s^2, \overline{f(1 - f)}) / n}`. The
    variance is at least the variance of a calibrated model, because a few rows that are all correct
    underestimate the variance. Weights are scaled to the effective number of rows, and n is their
    sum. The arguments must have been checked before.
    """
    check_level(level)
    top = proba.max(axis=1)
    difference = top - (proba.argmax(axis=1) == y)
    weights = np.ones(len(y)) if weight is None else effective_weights(np.asarray(weight))
    rows, gap = float(weights.sum()), float(np.average(difference, weights=weights))
    # A single row has no variance, so use the largest possible variance of differences in [-1,
    # 1].
    spread = float(weights @ (difference - gap) ** 2 / (rows - 1)) if rows > 1 else 1.0
    expected = float(np.average(top * (1 - top), weights=weights))
    return gap_interval(rows, gap, spread, expected, level)


def gap_interval(rows: float, gap: float, spread: float, expected: float, level: float) -> Interval:
    """Return the interval from the mean and variance of the differences.

    ``expected`` is the variance of a calibrated model with these confidences.
    """
    error = float(np.sqrt(max(spread, expected) / rows))
    reach = float(stdtrit(max(rows - 1, 1), (1 + level) / 2)) * error
    return Interval(
        quantity="mean confidence minus accuracy",
        estimate=gap,
        low=gap - reach,
        high=gap + reach,
        level=level,
        standard_error=error,
        guarantee="asymptotic",
        n_samples=rows,
    )
