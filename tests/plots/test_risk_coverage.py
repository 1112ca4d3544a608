from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.inference import risk_coverage
from calibrant.plots import RiskCoverageDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 3, 0.4, rng=3)


def test_a_line_of_error_rates_and_points_of_bounds_are_drawn_per_model(data):
    models = {"scores": data.proba, "uniform": np.full_like(data.proba, 1 / 3)}
    display = RiskCoverageDisplay.from_predictions(data.labels, models).plot()
    lines = display.ax_.lines
    assert len(lines) == 4
    for i, proba in enumerate(models.values()):
        curve = risk_coverage(data.labels, proba)
        line, points = lines[2 * i], lines[2 * i + 1]
        assert line.get_ydata()[-1] == pytest.approx(curve.risk[-1])
        assert line.get_xdata()[-1] == 1.0
        np.testing.assert_array_equal(points.get_xdata(), curve.coverage)
        np.testing.assert_array_equal(points.get_ydata(), curve.high)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == list(models)


def test_the_line_has_the_error_rate_at_every_coverage(data):
    display = RiskCoverageDisplay.from_predictions(data.labels, data.proba).plot()
    x, y = display.ax_.lines[0].get_data()
    wrong = (data.proba.argmax(axis=1) != data.labels)[np.argsort(-data.proba.max(axis=1))]
    at = np.round(x[1:] * 500).astype(int)
    np.testing.assert_allclose(y[1:], np.cumsum(wrong)[at - 1] / at)


def test_many_rows_have_a_line_of_few_points(rng):
    proba = rng.dirichlet(np.ones(3), 9000)
    y = rng.integers(0, 3, 9000)
    display = RiskCoverageDisplay.from_predictions(y, proba).plot()
    line = display.ax_.lines[0]
    assert len(line.get_xdata()) < 2100
    assert line.get_ydata()[-1] == pytest.approx((proba.argmax(axis=1) != y).mean())


def test_a_risk_is_drawn_with_the_coverage_that_is_proved(data):
    curve = risk_coverage(data.labels, data.proba)
    risk = float(curve.high[-1]) + 0.01
    display = RiskCoverageDisplay({"model": curve}).plot(risk=risk)
    assert [text.get_text() for text in display.ax_.texts] == ["100%"]
    none = RiskCoverageDisplay({"model": curve}).plot(risk=0.001)
    assert not none.ax_.texts


def test_the_level_is_in_the_title(data):
    display = RiskCoverageDisplay.from_predictions(data.labels, data.proba, level=0.95).plot()
    assert "95% upper bounds" in display.ax_.get_title(loc="left")
