"""Isotonic curves of reliability diagrams; `tests/inference` checks how they are fitted."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.plots import ReliabilityDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(300, 4, 0.4, rng=3)


def test_a_curve_is_drawn_instead_of_bins(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, curve="isotonic", n_resamples=20, rng=0
    ).plot()
    curve, _ = display.axes_[0].lines  # the diagonal is the second line
    np.testing.assert_array_equal(curve.get_ydata(), display.curve.frequency)
    assert [handle.get_label() for handle in display._handles] == [
        "observed",
        "90% band if calibrated",
    ]


def test_before_and_after_have_a_curve_each_and_one_band(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, before=data.proba, curve="isotonic", n_resamples=20, rng=0
    ).plot()
    assert [handle.get_label() for handle in display._handles[:2]] == ["before", "after"]
    assert len(display._handles) == 3
    assert len(display.axes_[0].collections) == 1


def test_a_named_curve_is_a_line(data):
    display = ReliabilityDisplay.from_predictions(
        data.labels, data.proba, curve="isotonic", n_resamples=20, name="forest"
    ).plot(line_kw={"linewidth": 3})
    line = next(line for line in display.axes_[0].lines if line.get_label().startswith("forest"))
    assert line.get_linewidth() == 3
