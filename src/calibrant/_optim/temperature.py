r"""The best inverse temperature: Newton's method in one dimension, safeguarded by a bracket.

With :math:`\beta = e^t`, the mean log-loss of :math:`\mathrm{softmax}(\beta u)` is convex in
:math:`\beta`, and one pass over the data gives its value and both derivatives in :math:`t`:

.. math::

   f' = \beta\, \overline{(E_i[u] - u_{i y_i})}, \qquad f'' = \beta^2\, \overline{\mathrm{Var}_i[u]}
   + f',

:math:`E_i` and :math:`\mathrm{Var}_i` over the classes with probabilities
:math:`\mathrm{softmax}(\beta u_i)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import exp
from typing import NamedTuple

import numpy as np

from calibrant._blocks import READ_ELEMENTS
from calibrant._data.sample import ArraySample, RowBlock, Sample
from calibrant._kernels import kernel
from calibrant._kernels._numpy import long_row_moments, row_moments, single_row_moments
from calibrant._optim.solution import Outcome, Solution, Start
from calibrant._simplex import MODERATE, row_max, true_class, weighted_sum
from calibrant._typing import FloatArray

LIMIT = 16.0
"""Inverse temperatures stay within exp(-LIMIT) and exp(LIMIT)."""

MAX_ITER = 100
"""Steps; two to five are usual, and bisection alone would take 22 (LIMIT over the last step)."""

SEPARABLE_LOSS = 1e-12
"""Below this loss the labels are separated, and a higher beta changes nothing any more. Smaller
than that of `newton`: here one number grows, each step of it is cheap, and losses between the two
are those of well separated data with a finite temperature."""

_WARM_ROWS = 16
_WARM_FROM = 5_000

FEW_SCORES = 2**14
"""Up to so many scores calls of NumPy take as long as what they do: few passes, each with a third
derivative and in double precision, are fewer of them than three or four of which some are rough."""


class Stop(NamedTuple):
    """The longest step that ends a search.

    Newton's error after a step is about its square. With what is known of the third derivative
    (``bent``) it is a tenth of that, and where that is known at the point (``third``) of its cube;
    with the last point, which gives a cubic of the slope, about a tenth of the square of the
    ``product`` with the step before; where both points know their third derivatives, about a
    thirtieth of the cube of that ``long_product``.
    """

    step: float
    bent: float
    third: float
    product: float
    long_product: float


FINE = Stop(1e-5, 3e-5, 5e-4, 2.5e-5, 1.5e-3)
ROUGH = Stop(1e-3, 3e-2, 0.1, 5e-2, 0.3)
"""After it one pass in double precision is enough, of a step of `FINE`."""


class Pass(NamedTuple):
    """How the rows of a block are added up: ``moments`` of scores times beta of at most ``limit``,
    where variances are more than a share ``cancelled`` of the mean square: below it they have lost
    too many digits.
    """

    moments: Callable[[FloatArray, float], tuple[FloatArray, FloatArray, FloatArray]]
    limit: float
    cancelled: float


_EXACT = Pass(row_moments, MODERATE, 1e-6)
_SINGLE = Pass(single_row_moments, 80.0, 1e-3)

# Eight norms of at most exp(_FOLDED) times the number of classes are multiplied.
_FOLDED = 60.0
_FOLDED_ROWS = 4096

# Where parts differ this much in log beta, their mean says no more than that.
_PART_LIMIT = 3.0


class Point(NamedTuple):
    """Objective and its derivatives in t = log beta; the third where it is known."""

    value: float
    slope: float
    curvature: float
    third: float | None = None


_Path = list[tuple[float, Point]]
"""Points of a search, in its order."""


class Near(NamedTuple):
    """Where a search begins: ``bend`` is what is known of the third derivative over the curvature
    there, 0 for nothing, ``before`` the last point of a search that led there.
    """

    t: float = 0.0
    bend: float = 0.0
    before: tuple[float, Point] | None = None


def log_inverse_temperature(sample: Sample, *, prior_scale: float | None = None) -> Solution:
    """``t = log beta`` that minimises the mean log-loss, plus ``t^2 / (2 n s^2)`` for a Gaussian
    prior of scale s. A constant that is added to a row of scores changes nothing.

    Large data start from the optimum of every 16th row; where the data have parts, from the mean of
    what each part finds for itself, which is one pass. The way there is in single precision, where
    an exponential costs a quarter, unless loops are compiled; the last steps are in double
    precision, and decide.
    """
    if isinstance(sample, ArraySample):
        if sample.shape[0] * sample.shape[1] <= FEW_SCORES:
            few = _FewRows(sample)
            return solve_sums(few.sums, sample.total, prior_scale).begun(few.start)
        sums, near = _passes(sample), _warm_start(sample, prior_scale)
        near = _approach(sums, sample, prior_scale, near)
    else:
        found = sample.sum_chunks(partial(_part_start, prior_scale))
        near = Near(*(found[:2] / found[2]).tolist()) if found[2] > 0 else Near()
        sums = partial(loss_sums, sample)
    return solve_sums(sums, sample.total, prior_scale, near)


def _warm_start(sample: ArraySample, prior_scale: float | None) -> Near:
    """A point close to the optimum of every 16th row of large data; 0 of others."""
    if sample.shape[0] < _WARM_FROM:
        return Near()
    part = sample.every(_WARM_ROWS)
    if not part.weight.any():
        return Near()
    return _approach(_passes(part), part, prior_scale, Near())._replace(before=None)


def _part_start(prior_scale: float | None, part: ArraySample) -> FloatArray:
    """A point close to the optimum of a part, or of evenly spaced rows of it, and the bend there,
    each times the weight, and that.
    """
    some = part.every(min(_WARM_ROWS, 1 + part.shape[0] // _WARM_FROM))
    if not some.weight.any():
        return np.zeros(3)
    found = _approach(_passes(some), some, prior_scale, Near())
    # A part of a single class, as of sorted rows, has no optimum of its own.
    t = float(np.clip(found.t, -_PART_LIMIT, _PART_LIMIT))
    return np.array([t, found.bend, 1.0]) * part.total


def _approach(
    sums: Callable[..., _Sums], sample: ArraySample, prior_scale: float | None, near: Near
) -> Near:
    """A point that is close to the optimum."""
    path: _Path = []
    how = _pass_over(sample)
    rough = partial(sums, how=_SINGLE if how is _EXACT else how)  # compiled doubles are faster
    solution = solve_sums(rough, sample.total, prior_scale, near, path=path, stop=ROUGH)
    t = float(solution.parameters[0])
    bend = near.bend if len(path) < 2 else _bend(path)
    return Near(t, bend, path[-1] if path[-1][0] != t else None)


def _passes(sample: ArraySample) -> Callable[..., _Sums]:
    """`loss_sums` of a sample that is passed several times; rows that are one block are asked for
    once.
    """
    seen: _Seen = {}
    n_rows, n_classes = sample.shape
    if n_rows * n_classes > READ_ELEMENTS:
        return partial(loss_sums, sample, seen=seen)
    return partial(
        block_sums, block=sample.block(slice(0, n_rows)), seen=seen, how=_pass_over(sample)
    )


def _pass_over(sample: Sample) -> Pass:
    moments = kernel("row_moments", sample.shape[0] * sample.shape[1])
    return _EXACT if moments is row_moments else _EXACT._replace(moments=moments)


def loss_sums(
    sample: Sample, beta: float, seen: _Seen | None = None, how: Pass | None = None
) -> _Sums:
    """Sums over rows of the loss, of its slope and of the variance in beta; ``seen`` keeps what is
    the same at every beta.
    """
    block = partial(block_sums, beta, seen=seen, how=how or _pass_over(sample))
    total: _Sums = sample.sum(block, elements=READ_ELEMENTS)
    return total


def solve_sums(
    sums: Callable[[float], _Sums],
    total: float,
    prior_scale: float | None = None,
    near: Near | None = None,
    *,
    path: _Path | None = None,
    stop: Stop = FINE,
) -> Solution:
    """The best ``t`` of data of which the sums at any beta are asked for: one pass each."""
    precision = 0.0 if prior_scale is None else 1.0 / (total * prior_scale**2)

    def evaluate(t: float) -> Point:
        beta = exp(t)
        value, slope, square, *cube = sums(beta)
        first, second = beta * slope / total, beta * beta * square / total
        point = Point(
            value / total + 0.5 * precision * t * t,
            first + precision * t,
            second + first + precision,
            first + 3.0 * second + beta**3 * cube[0] / total if cube else None,
        )
        if path is not None:
            path.append((t, point))
        return point

    return with_cause(newton_1d(evaluate, near or Near(), LIMIT, stop=stop))


def _bend(path: _Path) -> float:
    """Third derivative over the curvature where a search ended, from its last two points."""
    if len(path) < 2 or path[-1][0] == path[-2][0] or not path[-1][1].curvature > 0:
        return 0.0
    (t, point), before = path[-1], path[-2]
    return 2.0 * _slope_terms(t, point, before, 0.0)[0] / point.curvature


def with_cause(solution: Solution) -> Solution:
    """Where the search ended at an end of its interval, what that says about the data."""
    t = float(solution.parameters[0])
    if t >= LIMIT or solution.objective <= SEPARABLE_LOSS:
        return replace(solution, outcome=Outcome.SEPARABLE)
    return replace(solution, outcome=Outcome.UNINFORMATIVE) if t <= -LIMIT else solution


_Seen = dict[int, tuple[float, float]]
"""By the first row of a block: the largest size of its scores, and their weighted sum over the true
classes, which are the same in every pass."""

_Sums = tuple[float, float, float] | tuple[float, float, float, float]
"""Of the loss, its slope and the variance in beta; and perhaps of the third central moment."""


def block_sums(
    beta: float,
    block: RowBlock,
    seen: _Seen | None = None,
    how: Pass = _EXACT,
) -> _Sums:
    """Sums of the loss, of its slope and of the variance in beta over a block.

    Scores of moderate size are taken as they are: one exponential, and no largest entry.
    """
    x, y, w, start = block
    known = None if seen is None else seen.get(start)
    if known is None:
        size = max(-float(x.min()), float(x.max()))
        known = size, weighted_sum(w, true_class(x, y))
        if seen is not None:
            seen[start] = known
    size = known[0] * max(beta, 1.0)
    if size <= how.limit:
        sums = _moderate_sums(how, x, w, beta, known[1], size)
        if sums is not None:
            return sums
    x = x - row_max(x)[:, None]
    norm, mean, square = row_moments(x, beta)
    true = true_class(x, y)
    square -= mean * mean
    parts = np.log(norm) - beta * true, mean - true, square
    return weighted_sum(w, parts[0]), weighted_sum(w, parts[1]), weighted_sum(w, parts[2])


class _FewRows:
    """The passes over a sample of few scores, with a third moment; ``start`` is what the one at
    beta = 1 has met.
    """

    def __init__(self, sample: ArraySample) -> None:
        self._block = sample.block(slice(0, sample.shape[0]))
        x, y, _, _ = self._block
        self._true = true_class(x, y)
        self._size = max(-float(x.min()), float(x.max()))
        self._total = sample.total
        self.start: Start | None = None

    def sums(self, beta: float) -> _Sums:
        """As `loss_sums`, and that of the third central moment where no digits are lost."""
        if self._size * max(beta, 1.0) > MODERATE:
            return block_sums(beta, self._block)
        norm, first, second, third = long_row_moments(self._block.u, beta)
        log_norm, inverse, w = np.log(norm), 1.0 / norm, self._block.weight
        mean = first * inverse
        own, share, scale = mean, inverse, float(w[0])
        if w.strides != (0,):
            own, share, scale = w * mean, w * inverse, 1.0
        whole, square = scale * float(second @ share), scale * float(own @ mean)
        if whole - square < _EXACT.cancelled * whole:
            return block_sums(beta, self._block)
        # Row by row: of rows that are nearly all certain, sums differ in their last digits only.
        lost = log_norm - (self._true if beta == 1.0 else beta * self._true)
        loss = weighted_sum(w, lost)
        cube = third @ share - 3.0 * (own @ (second * inverse)) + 2.0 * (own @ (mean * mean))
        if beta == 1.0:
            self.start = Start(loss / self._total, float(lost.max()))
        slope = weighted_sum(w, mean - self._true)
        # In single precision: what rounding leaves of it must not lead copies of rows and their
        # weights to different steps.
        return loss, slope, whole - square, float(np.float32(scale * cube))


def _moderate_sums(
    how: Pass, x: FloatArray, w: FloatArray, beta: float, true: float, size: float
) -> _Sums | None:
    """The sums of a block from those over the true classes, None where digits would be lost;
    ``size`` bounds that of the exponents.
    """
    norm, mean, square = how.moments(x, beta)
    whole = weighted_sum(w, square)
    variance = whole - _weighted_square(w, mean)
    if variance < how.cancelled * whole:
        return None
    return _log_sum(w, norm, size) - beta * true, weighted_sum(w, mean) - true, variance


def _weighted_square(w: FloatArray, x: FloatArray) -> float:
    """``sum_i w_i x_i^2``."""
    return float(w[0] * (x @ x)) if w.strides == (0,) else float(w @ (x * x))


def _log_sum(w: FloatArray, norm: FloatArray, size: float) -> float:
    """``sum_i w_i log(norm_i)``; of equal weights by products of eight, where none can overflow."""
    if w.strides != (0,) or size > _FOLDED or len(norm) < _FOLDED_ROWS:
        return weighted_sum(w, np.log(norm))
    whole = len(norm) // 8 * 8
    product = np.multiply.reduce(norm[:whole].reshape(8, -1), axis=0)
    return float(w[0] * (np.log(product).sum() + np.log(norm[whole:]).sum()))


def newton_1d(
    evaluate: Callable[[float], Point], near: Near, limit: float, *, stop: Stop = FINE
) -> Solution:
    """Minimum over [-limit, limit] of a function whose slope changes sign once; an end of the
    interval if it does not.
    """
    low, high = -limit, limit
    t, bend, before = near
    for n_iter in range(1, MAX_ITER + 1):
        point = evaluate(t)
        if point.slope == 0.0 or point.value <= SEPARABLE_LOSS:
            return Solution(np.array([t]), point.value, n_iter, Outcome.CONVERGED)
        low, high = (t, high) if point.slope < 0 else (low, t)
        terms = _slope_terms(t, point, before, bend)
        root = _root(point, terms)
        step = _step(t, point, low, high, limit, root)
        longest = _longest(t, point, before, terms, stop)
        if abs(step) <= (longest if step == root else stop.step):
            value = point.value + _rise(step, point, terms)
            return Solution(np.array([t + step]), value, n_iter, Outcome.CONVERGED)
        before = t, point
        t += step
    return Solution(np.array([t]), point.value, MAX_ITER, Outcome.ITERATION_LIMIT)


_Terms = tuple[float, ...]
"""Coefficients of the square, the cube and so on of a step in what is known of the slope."""


def _longest(
    t: float, point: Point, before: tuple[float, Point] | None, terms: _Terms, stop: Stop
) -> float:
    """The longest step to a root of what is known of the slope that is the last one."""
    if before is None or before[0] == t:
        known = stop.bent if point.third is None else stop.third
        return known if terms[0] != 0.0 else stop.step
    product = stop.product if len(terms) == 2 else stop.long_product
    return max(stop.step, product / abs(t - before[0]))


def _root(point: Point, terms: _Terms) -> float | None:
    """The step to the root of the polynomial of the slope; None where it is not close to Newton's
    step.
    """
    if not point.curvature > 0:
        return None
    newton = step = -point.slope / point.curvature
    for _ in range(4):
        value = slope = 0.0
        for term in reversed((point.slope, point.curvature, *terms)):
            slope = slope * step + value
            value = value * step + term
        step -= value / slope if slope != 0.0 else 0.0
    return step if abs(step - newton) <= 0.5 * abs(newton) else None


def _rise(step: float, point: Point, terms: _Terms) -> float:
    """What a step adds to the objective: the integral of the slope."""
    rise = 0.0
    for power, term in enumerate(reversed((point.slope, point.curvature, *terms))):
        rise = rise * step + term / (len(terms) + 2 - power)
    return rise * step


def _slope_terms(t: float, point: Point, before: tuple[float, Point] | None, bend: float) -> _Terms:
    """What is known of the slope beyond its linear part: by a third derivative or the ``bend``, or
    by the polynomial that two points share.
    """
    if before is None or before[0] == t:
        return (0.5 * (bend * point.curvature if point.third is None else point.third),)
    h, other = before[0] - t, before[1]
    rise = (other.slope - point.slope) / h - point.curvature
    turn = other.curvature - point.curvature
    if point.third is None or other.third is None:
        return (3.0 * rise - turn) / h, (turn - 2.0 * rise) / h**2
    half = 0.5 * point.third
    rise, turn = (rise / h - half) / h, (turn / h - point.third) / h
    bent = (other.third - point.third) / h
    return (
        half,
        10.0 * rise - 4.0 * turn + 0.5 * bent,
        (7.0 * turn - 15.0 * rise - bent) / h,
        (6.0 * rise - 3.0 * turn + 0.5 * bent) / h**2,
    )


def _step(
    t: float, point: Point, low: float, high: float, limit: float, root: float | None = None
) -> float:
    """The step to the ``root``, or Newton's step, where it stays inside the bracket; else to an end
    of the interval, or to the middle of the bracket.
    """
    newton = (
        -point.slope / point.curvature if point.curvature > 0 else -np.sign(point.slope) * limit
    )
    # At most 2 in log beta: far from the optimum the slope says the direction and little else.
    step = min(2.0, max(-2.0, float(newton if root is None else root)))
    if low < t + step < high:
        return step
    if abs(t + step) >= limit:
        return (high if step > 0 else low) - t
    return 0.5 * (low + high) - t
