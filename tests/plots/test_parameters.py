from __future__ import annotations

import numpy as np
import pytest

from calibrant import DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling
from calibrant.datasets import noisy_simplex
from calibrant.plots import ConfusionChangeDisplay, ParameterDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(600, 3, 0.4, rng=3)


def numbers(ax):
    return np.array([float(t.get_text()) for t in ax.texts])


def test_the_canonical_form_of_dirichlet_calibration_is_drawn(data):
    calibrator = DirichletCalibration(lam=1e-3).fit(data.proba, data.labels)
    display = ParameterDisplay.from_estimator(calibrator).plot()
    matrix, column = calibrator.canonical()
    np.testing.assert_array_equal(display.axes_[0].images[0].get_array(), matrix)
    np.testing.assert_allclose(numbers(display.axes_[0]), matrix.ravel(), atol=0.005)
    np.testing.assert_allclose(numbers(display.axes_[1]), column, atol=0.005)


@pytest.mark.parametrize("maker", [VectorScaling, MatrixScaling])
def test_weights_and_intercepts_of_other_linear_maps_are_drawn(maker, data):
    calibrator = maker().fit(data.proba, data.labels)
    display = ParameterDisplay.from_estimator(calibrator).plot()
    coef = np.asarray(calibrator.coef_)
    np.testing.assert_array_equal(display.matrix, np.diag(coef) if coef.ndim == 1 else coef)
    np.testing.assert_array_equal(display.column, calibrator.intercept_)
    assert display.symbols == ("W", "b")


def test_a_map_without_a_matrix_is_rejected(data):
    with pytest.raises(TypeError, match="TemperatureScaling has no coef_"):
        ParameterDisplay.from_estimator(TemperatureScaling().fit(data.proba, data.labels))


def test_many_classes_have_colours_but_no_numbers():
    display = ParameterDisplay(np.eye(100), np.full(100, 0.01)).plot()
    assert not display.axes_[0].texts
    assert len(display.axes_[0].get_xticks()) == 10


def test_changes_of_the_confusion_matrix_are_counted(data, rng):
    after = rng.dirichlet(np.ones(3), 600)
    display = ConfusionChangeDisplay.from_predictions(data.labels, data.proba, after).plot()
    for matrix, proba in ((display.before, data.proba), (display.after, after)):
        expected = np.zeros((3, 3))
        np.add.at(expected, (data.labels, proba.argmax(axis=1)), 1)
        np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_allclose(numbers(display.ax_), display.change.ravel())
    np.testing.assert_allclose(display.change.sum(axis=1), 0)


def test_the_title_counts_rows_that_became_right():
    before, after = [[0.4, 0.6], [0.4, 0.6]], [[0.6, 0.4], [0.4, 0.6]]
    display = ConfusionChangeDisplay.from_predictions(
        [0, 1], before, after, sample_weight=[3, 1]
    ).plot()
    assert display.ax_.get_title(loc="left") == "Change of the confusion matrix (+3 correct)"


def test_shapes_that_differ_are_rejected():
    with pytest.raises(
        ValueError, match=r"before and after must have the same shape, got \(1, 2\) and \(1, 3\)"
    ):
        ConfusionChangeDisplay.from_predictions([0], [[0.5, 0.5]], [[0.5, 0.25, 0.25]])
