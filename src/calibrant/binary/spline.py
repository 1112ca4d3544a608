"""Spline calibration: the derivative of a cubic spline through the cumulative outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike
from calibrant._validation import check_count, check_option
from calibrant.base import BaseBinaryCalibrator, Citation, store_outcome
from calibrant.base.fitted import RATES, SCORES, FittedValue
from calibrant.base.references import GUPTA_2021
from calibrant.binning import distinct_sums, interpolated
from calibrant.notions import Claim

# Minimum number of knots for each end condition.
_FEWEST_KNOTS = {"natural": 2, "quadratic": 3, "cubic": 4}

# The two end conditions by their names in SciPy. "not-a-knot" means one cubic over the last two
# intervals.
_SCIPY_ENDS = {"natural": "natural", "cubic": "not-a-knot"}

# For narrower steps, the round-off of the difference quotient exceeds the curvature error of the
# slope in the middle.
_NARROW = 1e-6

# The quadratic program ends when no slope exceeds its bound by more than this value.
_TOLERANCE = 1e-9
# Each round adds at least one constraint, and only a few constraints become active.
_MAX_ROUNDS = 200


class SplineCalibration(BaseBinaryCalibrator):
    r"""Calibrate by a cubic spline of the cumulative outcomes, without bins.

    Use this method for binary problems or for the confidence of a classifier, with several hundred
    rows or more.

    Parameters
    ----------
    n_knots : int, default 6
        Number of knots. The minimum is 2 for natural, 3 for quadratic and 4 for cubic ``runout``.
    residual : bool, default True
        Whether to fit the difference between outcome and score, as the code of Gupta et al. does.
        If False, the outcome itself is fitted, as in the paper of Gupta et al. A few knots
        approximate the difference better than the steep outcome curve of a confident classifier.
    runout : {"natural", "quadratic", "cubic"}, default "natural"
        Condition at both ends: the second derivative is zero, constant over the last interval, or
        linear over the last two intervals.
    constrained : bool, default False
        Whether to keep the values within [0, 1] by a quadratic program. If False, the values are
        clipped after the fit.
    monotone : bool, default False
        Whether to make the function nondecreasing by isotonic regression of its values.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.

    Attributes
    ----------
    knots_ : array of shape (n_knots,)
        Fractiles of the knots.
    knot_values_ : array of shape (n_knots,)
        Values of the spline at the knots.
    scores_, values_ : arrays of shape (n_distinct,)
        Distinct calibration scores and their calibrated probabilities. The function is linear
        between these scores and constant beyond the first and the last score.
    objective_ : float
        The minimum of the integral in Notes, up to a constant that depends only on the data.
    converged_, n_iter_ : bool, int
        Whether the quadratic program converged, and its number of rounds (0 if it was not needed).

    See Also
    --------
    IsotonicCalibration : An increasing step function, for many rows.
    metrics.ks_error : The binning-free calibration error of Gupta et al.

    Notes
    -----
    Let t be the fractile of a score s(t), which is the share of calibration rows up to this score.
    Let H(t) be the cumulative outcome of these rows as a share of all rows. The slope of H at t is
    the frequency of outcome 1 among rows with score s(t). A cubic spline h with evenly spaced knots
    minimizes

    .. math:: \min_h \int_0^1 (h(t) - H(t))^2\, dt ,

    and the calibrated probability is :math:`q(s(t)) = h'(t)`, or :math:`q(s(t)) = s(t) + h'(t)`
    with ``residual=True``.

    H is linear over rows with equal scores, and these rows get the mean slope of h. The result
    therefore does not depend on the order of rows, and a weight of 2 is equivalent to duplicating
    the row. The paper sums squares at the points i/n. This sum differs from the integral by O(1/n).

    The fit costs O(n log n + n K) for K knots. The estimate is consistent if the true function is
    smooth and the number of knots grows with n. The method has no finite-sample guarantee.

    References
    ----------
    Gupta et al. (2021), Calibration of neural networks using splines, sections 3, 4 and appendix C,
    ICLR, arXiv:2006.12800.

    Examples
    --------
    >>> scores, outcomes = [0.2] * 5 + [0.6] * 5, [0, 0, 0, 0, 1, 0, 0, 1, 1, 1]
    >>> spline = SplineCalibration(n_knots=4).fit(scores, outcomes)
    >>> spline.predict_proba([0.2, 0.6])[:, 1].round(6)
    array([0.2, 0.6])
    """

    remedies: ClassVar[Mapping[Outcome, str]] = {
        Outcome.ITERATION_LIMIT: (
            "The spline left [0, 1] and was clipped. Reduce n_knots, or use constrained=False."
        ),
    }

    def __init__(
        self,
        n_knots: int = 6,
        residual: bool = True,
        runout: str = "natural",
        constrained: bool = False,
        monotone: bool = False,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.n_knots = n_knots
        self.residual = residual
        self.runout = runout
        self.constrained = constrained
        self.monotone = monotone
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("spline calibration", (GUPTA_2021,))

    def _check_parameters(self, n_classes: int) -> None:
        super()._check_parameters(n_classes)
        check_option(self.runout, "runout", tuple(_FEWEST_KNOTS))
        check_count(self.n_knots, "n_knots", minimum=_FEWEST_KNOTS[self.runout])

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {"scores_": SCORES, "values_": RATES}

    def _fit(self, claim: Claim) -> None:
        values, total, hits = distinct_sums(claim.score, claim.hits, claim.weight)
        offset = values if self.residual else np.zeros_like(values)
        fractile = np.hstack([0.0, np.cumsum(total)[:-1] / total.sum(), 1.0])
        self.knots_ = np.linspace(0.0, 1.0, self.n_knots)
        basis = _spline_basis(self.knots_, self.runout)
        slopes = _mean_slopes(basis, fractile)
        gram, moment = _normal_equations(basis, fractile, hits / total - offset)
        solution = self._fit_knots(gram, moment, slopes, offset)
        self.knot_values_ = solution.parameters
        store_outcome(self, solution)
        probability = offset + slopes @ self.knot_values_
        if self.monotone:
            probability = scipy.optimize.isotonic_regression(probability, weights=total).x
        self.scores_, self.values_ = values, np.clip(probability, 0.0, 1.0)

    def _fit_knots(
        self, gram: FloatArray, moment: FloatArray, slopes: FloatArray, offset: FloatArray
    ) -> Solution:
        """Return the knot values that minimize the squared error, within constraints if set."""
        optimum = cho_solve(cho_factor(gram), moment)
        lowest = -float(optimum @ moment)
        if not self.constrained:
            return Solution(optimum, lowest, 0, Outcome.CONVERGED)
        nearest = _with_slopes_between(optimum, gram, slopes, -offset, 1.0 - offset)
        return replace(nearest, objective=lowest + nearest.objective)

    def _predict(self, score: FloatArray) -> FloatArray:
        return interpolated(score, self.scores_, self.values_)


def _spline_basis(knots: FloatArray, runout: str) -> scipy.interpolate.PPoly:
    """Cubic splines, one for each knot, that are 1 at that knot and 0 at all other knots."""
    values = np.eye(len(knots))
    if runout in _SCIPY_ENDS:
        return scipy.interpolate.CubicSpline(knots, values, bc_type=_SCIPY_ENDS[runout])
    step = knots[1] - knots[0]
    bend = _quadratic_bends(len(knots)) / step**2
    left, right = bend[:-1], bend[1:]
    slope = np.diff(values, axis=0) / step - step * (2.0 * left + right) / 6.0
    return scipy.interpolate.PPoly(
        np.stack([(right - left) / (6.0 * step), left / 2.0, slope, values[:-1]]), knots
    )


def _quadratic_bends(n_knots: int) -> FloatArray:
    """The matrix from values at the knots to second derivatives M at the knots times step^2.

    M is constant over the first and the last interval (quadratic runout).

    Continuity of the slope at an inner knot is M_{j-1} + 4 M_j + M_{j+1} = 6 (y_{j-1} - 2 y_j +
    y_{j+1}) / step^2.
    """
    system = np.zeros((n_knots, n_knots))
    right = np.zeros((n_knots, n_knots))
    for j in range(1, n_knots - 1):
        system[j, j - 1 : j + 2] = 1.0, 4.0, 1.0
        right[j, j - 1 : j + 2] = 6.0, -12.0, 6.0
    system[0, :2] = 1.0, -1.0
    system[-1, -2:] = -1.0, 1.0
    return np.linalg.solve(system, right)


def _mean_slopes(basis: scipy.interpolate.PPoly, fractile: FloatArray) -> FloatArray:
    """Mean slope of each basis spline between neighboring fractiles, (n, n_knots)."""
    width = np.diff(fractile)
    is_narrow = width < _NARROW
    slopes = np.diff(basis(fractile), axis=0) / np.where(is_narrow, 1.0, width)[:, None]
    slopes[is_narrow] = basis.derivative()((fractile[:-1] + width / 2.0)[is_narrow])
    return slopes


def _normal_equations(
    basis: scipy.interpolate.PPoly, fractile: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Integrals over [0, 1] of products of basis splines, and of basis splines times H.

    H is the piecewise linear function with the given slopes.

    Let A be the integral of a basis spline a. Integration by parts shows that the integral of
    ``a H`` is ``A(1) H(1)`` minus the integral of ``A`` times the slope of H.
    """
    # Four nodes are exact up to degree 7, and products of cubics have degree 6.
    nodes, shares = np.polynomial.legendre.leggauss(4)
    step = basis.x[1] - basis.x[0]
    points = basis.x[:-1, None] + step * (nodes + 1.0) / 2.0
    at = basis(points.ravel())
    gram = (at.T * np.tile(shares * step / 2.0, len(points))) @ at
    integral, second_integral = basis.antiderivative(), basis.antiderivative(2)
    height = slope @ np.diff(fractile)
    return gram, integral(1.0) * height - slope @ np.diff(second_integral(fractile), axis=0)


def _with_slopes_between(
    optimum: FloatArray, gram: FloatArray, slopes: FloatArray, low: FloatArray, high: FloatArray
) -> Solution:
    """Return the knot values v closest to ``optimum`` with ``low <= slopes @ v <= high``.

    The distance is in the norm of the fit, and the objective is the squared distance. There are
    many constraints and few variables, so each round uses only the constraints that earlier rounds
    violated. The worst constraint of each run of violated constraints is added until no constraint
    is violated. The feasible set is never empty, because it contains v = 0 or a straight line v.
    """
    normal = np.vstack([slopes, -slopes])
    bound = np.concatenate([low, -high])
    factor = np.linalg.cholesky(gram)
    active_set = np.empty(0, dtype=np.intp)
    values, outcome = optimum, Outcome.CONVERGED
    for n_rounds in range(_MAX_ROUNDS):  # noqa: B007  # returned below
        violation = bound - normal @ values
        if violation.max() <= _TOLERANCE:
            break
        active_set = np.union1d(active_set, _worst_of_each_run(violation))
        scaled_normal = solve_triangular(factor, normal[active_set].T, lower=True).T
        values = optimum + solve_triangular(
            factor.T,
            _least_distance(scaled_normal, bound[active_set] - normal[active_set] @ optimum),
        )
    else:
        n_rounds, outcome = _MAX_ROUNDS, Outcome.ITERATION_LIMIT
    distance = float((values - optimum) @ gram @ (values - optimum))
    return Solution(values, distance, n_rounds, outcome)


def _worst_of_each_run(violation: FloatArray) -> IntArray:
    """Index of the largest entry of each run of consecutive entries above the tolerance."""
    above = np.flatnonzero(violation > _TOLERANCE)
    runs = np.split(above, np.flatnonzero(np.diff(above) > 1) + 1)
    return np.array([run[violation[run].argmax()] for run in runs])


def _least_distance(normal: FloatArray, bound: FloatArray) -> FloatArray:
    """Return the shortest x with ``normal @ x >= bound``.

    The solution uses non-negative least squares (Lawson & Hanson 1974, chapter 23).
    """
    matrix = np.vstack([normal.T, bound])
    target = np.append(np.zeros(normal.shape[1]), 1.0)
    residual = matrix @ scipy.optimize.nnls(matrix, target)[0] - target
    return -residual[:-1] / residual[-1]
