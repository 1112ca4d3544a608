"""What tests, intervals and guarantees promise, each named after the finding that it answers."""

from __future__ import annotations

import numpy as np

from calibrant import EnsembleTemperatureScaling


def test_b_d1_a_mixture_of_temperatures_is_at_its_optimum():
    proba = np.array([[0.7, 0.3]] * 900 + [[1.0, 0.0]] * 100)
    y = np.array([0] * 890 + [1] * 10 + [0] * 98 + [1] * 2)
    model = EnsembleTemperatureScaling().fit(proba, y)
    assert model.converged_
    assert model.objective_ < 0.11651
    assert 0.0049 < model.weights_[2] < 0.0050
