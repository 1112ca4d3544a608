"""Quasi-Newton ascent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.multiclass._gp.ascent import Posterior, ascend


class Valley:
    """Minus a quartic valley; ``metric`` is the estimate of the inverse Hessian that it offers."""

    def __init__(self, metric: np.ndarray, domain: float = np.inf) -> None:
        self.metric = metric
        self.domain = domain
        self.n_gradients = 0

    def at(self, mean: np.ndarray) -> Posterior:
        a, b = mean
        value = -((a - 1) ** 2 + 10 * (b - a**2) ** 2 + 0.1 * b**4)
        return Posterior(value if a < self.domain else -np.inf, mean, self.metric, self.metric)

    def gradient(self, point: Posterior) -> np.ndarray:
        self.n_gradients += 1
        a, b = point.mean
        return -np.array([2 * (a - 1) - 40 * a * (b - a**2), 20 * (b - a**2) + 0.4 * b**3])


@pytest.mark.parametrize("n_secants", [1, 10])
def test_a_poor_metric_is_corrected(n_secants):
    best = minimize(lambda m: -Valley(np.eye(2)).at(m).value, [0.0, 0.0]).x
    found = ascend(
        Valley(np.eye(2)), np.array([-1.0, 1.0]), tolerance=1e-16, n_secants=n_secants, max_iter=500
    )
    np.testing.assert_allclose(found.mean, best, atol=1e-4)  # what scipy's own stopping rule leaves


def test_secants_save_steps():
    few, many = Valley(0.01 * np.eye(2)), Valley(0.01 * np.eye(2))
    ascend(few, np.zeros(2), tolerance=1e-12, n_secants=10, max_iter=1000)
    ascend(many, np.zeros(2), tolerance=1e-12, n_secants=0, max_iter=1000)
    assert few.n_gradients < many.n_gradients / 3


def test_the_value_never_falls_and_the_domain_is_kept():
    start = np.array([-1.0, 1.0])
    found = ascend(Valley(np.eye(2), domain=0.2), start, tolerance=1e-12)
    assert found.value > Valley(np.eye(2)).at(start).value
    assert found.mean[0] < 0.2


def test_a_maximum_is_recognised_at_once():
    function = Valley(np.eye(2))
    found = ascend(function, np.array([1.0, 1.0]), tolerance=10.0)
    assert function.n_gradients == 1
    np.testing.assert_array_equal(found.mean, [1.0, 1.0])
