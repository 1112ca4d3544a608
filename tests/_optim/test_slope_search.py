from __future__ import annotations

import numpy as np
import pytest

from calibrant._optim import slope_search
from calibrant._optim.slope_search import Point, interpolate_slope, minimize_scalar
from calibrant._optim.solution import Outcome


def quartic(t):
    return Point(t, (t - 3.0) ** 4, (4 * (t - 3.0) ** 3, 12 * (t - 3.0) ** 2))


def test_a_search_stops_at_the_iteration_limit(monkeypatch):
    found = minimize_scalar(quartic, 0.0, 1e-10)
    assert found.solution.outcome is Outcome.CONVERGED
    assert found.solution.parameters[0] == pytest.approx(3.0, abs=1e-3)
    monkeypatch.setattr(slope_search, "MAX_ITER", 2)
    cut = minimize_scalar(quartic, 0.0, 1e-10).solution
    assert (cut.outcome, cut.n_iter) == (Outcome.ITERATION_LIMIT, 2)


@pytest.mark.parametrize("start", [-12.0, 0.0, 12.0])
@pytest.mark.parametrize("n_slopes", [2, 3])
def test_every_start_leads_to_the_minimum(start, n_slopes):
    def evaluate(t):
        slopes = np.tanh(t - 1.0), 1 / np.cosh(t - 1.0) ** 2
        third = -2 * slopes[0] * slopes[1]
        value = np.log(np.cosh(t - 1.0)) + 1.0
        return Point(t, float(value), tuple(map(float, (*slopes, third)[:n_slopes])))

    solution = minimize_scalar(evaluate, start, 1e-12).solution
    assert solution.parameters[0] == pytest.approx(1.0, abs=1e-10)
    assert solution.objective == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_function_that_falls_forever_ends_at_the_limit(sign):
    def evaluate(t):
        return Point(t, 1.0 + np.exp(-sign * t), (-sign * float(np.exp(-sign * t)), 0.0))

    assert minimize_scalar(evaluate, 0.0, 1e-10).solution.parameters == sign * 16.0


def test_a_function_that_reaches_zero_ends_the_search():
    def evaluate(t):
        return Point(t, float(np.exp(-10 * t)), (-10 * float(np.exp(-10 * t)), 0.0))

    found = minimize_scalar(evaluate, 0.0, 1e-10)
    assert 0 < found.solution.objective <= slope_search.SEPARABLE_LOSS
    assert found.solution.parameters[0] == found.point.t < 16.0


@pytest.mark.parametrize(("n_slopes", "degree"), [(2, 3), (3, 5)])
def test_two_points_determine_a_polynomial_slope(n_slopes, degree):
    slope = np.polynomial.Polynomial([0.3, 1.0, 0.2, -0.1, 0.05, 0.02][: degree + 1])

    def evaluate(t):
        slopes = [float(slope.deriv(k)(t)) if k else float(slope(t)) for k in range(n_slopes)]
        return Point(t, float(slope.integ()(t)) + 1.0, tuple(slopes))

    point, before = evaluate(-0.25), evaluate(0.1)
    terms = interpolate_slope(point, before)
    np.testing.assert_allclose(terms, slope(np.polynomial.Polynomial([-0.25, 1.0])).coef)
    # One evaluation more is enough, because the prediction from two points is exact.
    found = minimize_scalar(evaluate, -0.25, 1e-4, before=before)
    root = float(found.solution.parameters[0])
    assert found.solution.n_iter == 1
    assert slope(root) == pytest.approx(0.0, abs=1e-13)
    assert found.solution.objective == pytest.approx(slope.integ()(root) + 1.0, rel=1e-13)
