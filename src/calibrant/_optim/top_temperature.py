r"""Find the best inverse temperature if only the scores of the top m of K classes are known.

The top m classes have log-probabilities :math:`l_1 \ge \dots \ge l_m`, and the tail mass is r. At
another inverse temperature :math:`\beta`, the tail mass depends on the distribution of r over the
other classes. The model assumes that the probabilities of the other classes fall as a power of the
rank,

.. math:: l_j = l_m - a \log(j / m), \quad j > m, \qquad
   R(\beta) = e^{\beta l_m} \int_{m + 1/2}^{K + 1/2} (x / m)^{-a \beta}\, dx ,

where the exponent :math:`a \ge 0` of each row is chosen such that :math:`R(1) = r`.

If the true class is not among the top m, its rank is unknown. The model assumes that the true
class is class j with probability proportional to :math:`e^{\gamma l_j}`. The power :math:`\gamma`
is estimated from the rows whose true class has a rank between m/3 and m. The logarithm of
:math:`\gamma` has a normal prior of scale 1. The power :math:`\gamma` differs from :math:`\beta`,
which the top m classes determine. The log-loss of a row whose true class is not among the top m is
the expectation over j, :math:`\log Z(\beta) - \beta\, E_\gamma[l]`. The cost is O(n m) for any K.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np

from calibrant._optim.plain_temperature import name_cause, penalized_derivatives, prior_precision
from calibrant._optim.slope_search import Point, minimize_scalar
from calibrant._optim.solution import Solution
from calibrant._optim.temperature import ERROR
from calibrant._typing import BoolArray, FloatArray, IntArray

_LARGEST_EXPONENT = 1e4
"""Upper end of the bisection for the exponent of the tail."""

_HALVINGS = 60
"""Number of steps of the bisection for the exponent. The error is 1e4 / 2^60, about 1e-14."""

_LOWER = 3
"""The power of the tail is estimated from true classes beyond the first third of the top m."""

_SERIES = 1e-2
"""Below this argument, the functions of a truncated exponential distribution are computed by their
series, because the closed forms lose digits by cancellation."""


@dataclass(frozen=True, eq=False)
class Tail:
    """The distribution of the tail mass of each row.

    ``log_top`` and ``exponent`` are the first log-probability and the exponent of each row, (n,).
    ``log_m`` is the logarithm of m. ``start`` and ``stop`` are log((m + 1/2) / m) and
    log((K + 1/2) / m), the limits of the tail ranks relative to m.
    """

    log_top: FloatArray
    exponent: FloatArray
    log_m: float
    start: float
    stop: float

    def at(self, beta: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logarithm of the tail mass at ``beta``, and its first two derivatives in beta."""
        length = self.stop - self.start
        w = (1.0 - self.exponent * beta) * length
        mean = self.start + length * _mean(w)
        integral = _log_integral(w, length, self.exponent * beta, self.start)
        log_mass = beta * self.log_top + self.log_m + integral
        slope = self.log_top - self.exponent * mean
        return log_mass, slope, self.exponent**2 * length**2 * _variance(w)


def tail_of(log_proba: FloatArray, log_rest: FloatArray, n_classes: int) -> Tail:
    """Fit the tail of rows of top scores, (n, m), with the tail mass ``exp(log_rest)``."""
    m = log_proba.shape[1]
    start, stop = float(np.log((m + 0.5) / m)), float(np.log((n_classes + 0.5) / m))
    log_m = float(np.log(m))
    target = log_rest - log_proba[:, -1] - log_m
    low, high = np.zeros(len(log_proba)), np.full(len(log_proba), _LARGEST_EXPONENT)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        w = (1.0 - middle) * (stop - start)
        is_more = _log_integral(w, stop - start, middle, start) > target
        low, high = np.where(is_more, middle, low), np.where(is_more, high, middle)
    # Correct the height for the remaining error of the exponent, so the mass is exact.
    w = (1.0 - high) * (stop - start)
    log_top = log_rest - _log_integral(w, stop - start, high, start) - log_m
    return Tail(log_top, high, log_m, start, stop)


def find_top_log_beta(
    log_proba: FloatArray,
    tail: Tail | None,
    place: IntArray,
    is_inside: BoolArray,
    weight: FloatArray,
    *,
    prior_scale: float | None = None,
) -> Solution:
    """Find the ``t = log beta`` that minimizes the mean log-loss of the top m classes and the tail.

    Without a tail, the likelihood is conditional on the true class being among the top m. The true
    class of every row must then be among the top m.
    """
    true = log_proba[np.arange(len(place)), place]
    if tail is not None and not is_inside.all():
        power = lower_power(log_proba, place, is_inside, weight)
        true = np.where(is_inside, true, tail.at(power)[1])

    total = float(weight.sum())
    precision = prior_precision(total, prior_scale)

    def evaluate(t: float) -> Point:
        sums = [float(weight @ loss) / total for loss in _losses(log_proba, tail, true, exp(t))]
        value, *slopes = penalized_derivatives(t, precision, *sums)
        return Point(t, value, tuple(slopes))

    return name_cause(minimize_scalar(evaluate, 0.0, ERROR).solution)


def lower_power(
    log_proba: FloatArray, place: IntArray, is_inside: BoolArray, weight: FloatArray
) -> float:
    """Estimate the power of probabilities for true classes among the lower top ranks.

    Return one if no row has its true class among these ranks.
    """
    first = max(1, log_proba.shape[1] // _LOWER)
    rows = np.flatnonzero(is_inside & (place >= first) & (weight > 0))
    if not len(rows):
        return 1.0
    lower_log_proba, true_place = log_proba[rows, first:], place[rows] - first
    all_inside = np.ones(len(rows), dtype=bool)
    solution = find_top_log_beta(
        lower_log_proba, None, true_place, all_inside, weight[rows], prior_scale=1.0
    )
    return float(np.exp(solution.parameters[0]))


def _losses(
    log_proba: FloatArray, tail: Tail | None, true: FloatArray, beta: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-loss of each row and its first two derivatives in beta.

    ``true`` is the log-probability of the true class.
    """
    x = log_proba
    log_mass, spread = beta * x, np.zeros(x.shape)
    slopes = x
    if tail is not None:
        log_tail, slope, variance = tail.at(beta)
        log_mass = np.column_stack([log_mass, log_tail])
        slopes = np.column_stack([x, slope])
        spread = np.column_stack([spread, variance])
    log_norm = np.logaddexp.reduce(log_mass, axis=1)
    share = np.exp(log_mass - log_norm[:, None])
    mean = (share * slopes).sum(axis=1)
    square = (share * (slopes**2 + spread)).sum(axis=1) - mean**2
    return log_norm - beta * true, mean - true, square


def tempered(
    log_proba: FloatArray, tail: Tail | None, beta: float
) -> tuple[FloatArray, FloatArray | None]:
    """Temper log-probabilities of the top m classes and the tail by the factor ``beta``."""
    if tail is None:
        return beta * log_proba, None
    log_mass = np.column_stack([beta * log_proba, tail.at(beta)[0]])
    log_mass -= np.logaddexp.reduce(log_mass, axis=1)[:, None]
    return log_mass[:, :-1], log_mass[:, -1]


def _log_integral(w: FloatArray, length: float, power: FloatArray, start: float) -> FloatArray:
    """Return the log integral of ``exp((1 - power) v)`` from ``start`` to ``start + length``.

    ``w`` is ``(1 - power) length``.
    """
    is_small = np.abs(w) < _SERIES
    safe_w = np.where(is_small, 1.0, np.abs(w))
    # log((e^w - 1) / w) = max(w, 0) + log((1 - e^-|w|) / |w|)
    closed_form = np.maximum(w, 0.0) + np.log(-np.expm1(-safe_w) / safe_w)
    series = w / 2 + w**2 / 24
    return (1.0 - power) * start + np.log(length) + np.where(is_small, series, closed_form)


def _mean(w: FloatArray) -> FloatArray:
    """Mean of the density proportional to ``e^(w v)`` on [0, 1]."""
    is_small = np.abs(w) < _SERIES
    safe_w = np.where(is_small, 1.0, w)
    with np.errstate(over="ignore"):
        closed_form = -1.0 / np.expm1(-safe_w) - 1.0 / safe_w
    return np.where(is_small, 0.5 + w / 12, closed_form)


def _variance(w: FloatArray) -> FloatArray:
    """Variance of the density proportional to ``e^(w v)`` on [0, 1]."""
    is_small = np.abs(w) < _SERIES
    # sinh(300) is about 1e130. For larger arguments, the second term is negligible and would
    # overflow.
    safe_w = np.where(is_small, 1.0, np.minimum(np.abs(w), 600.0))
    return np.where(is_small, 1 / 12 - w**2 / 240, 1 / safe_w**2 - 0.25 / np.sinh(safe_w / 2) ** 2)
