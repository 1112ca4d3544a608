"""Is a model surer than it is right? Mean confidence minus accuracy, with its interval."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from calibrant._kernels.simplex import effective_weights
from calibrant._typing import FloatArray, IntArray
from calibrant.inference._results import Interval, check_level


def confidence_gap(
    y: IntArray, proba: FloatArray, weight: FloatArray | None = None, *, level: float = 0.95
) -> Interval:
    r"""Mean confidence minus accuracy of checked rows: positive for a model that is too sure.

    With :math:`d_i = \max_k p_{ik} - 1[y_i = \arg\max_k p_{ik}]` of mean :math:`\bar d` and
    standard deviation s, and f the confidences, the interval is
    :math:`\bar d \pm t_{n-1} \sqrt{\max(s^2, \overline{f(1 - f)}) / n}`: the variance is at least
    that of a calibrated model, because a few rows that are all right say little of it. Weights are
    scaled to the effective number of rows, n their sum.
    """
    check_level(level)
    top = proba.max(axis=1)
    difference = top - (proba.argmax(axis=1) == y)
    each = np.ones(len(y)) if weight is None else effective_weights(np.asarray(weight))
    rows, gap = float(each.sum()), float(np.average(difference, weights=each))
    spread = float(each @ (difference - gap) ** 2 / (rows - 1)) if rows > 1 else 1.0
    own = float(np.average(top * (1 - top), weights=each))
    return gap_interval(rows, gap, spread, own, level)


def gap_interval(rows: float, gap: float, spread: float, own: float, level: float) -> Interval:
    """The interval of so many rows by the mean and the variance of their differences, and the
    variance that the model itself expects.
    """
    error = float(np.sqrt(max(spread, own) / rows))
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
