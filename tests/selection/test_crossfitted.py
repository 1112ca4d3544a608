"""`CrossFitted`: the average of one calibrator per fold."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import calibrant
from calibrant import CrossFitted, StructuredScaling, TemperatureScaling, metrics
from calibrant._kernels.simplex import softmax
from calibrant.datasets import digits_predictions
from calibrant.testing import check_calibrator


@pytest.fixture(scope="module")
def data():
    return digits_predictions()


@pytest.mark.parametrize(
    "calibrator",
    [
        CrossFitted(TemperatureScaling(prior_scale=0.25)),
        CrossFitted(calibrant.HistogramBinning(n_bins=3)),
        CrossFitted(StructuredScaling("vector", inputs="logits"), cv=3, inputs="logits"),
    ],
)
def test_it_keeps_what_every_calibrator_keeps(calibrator):
    """Row order and weights are included, because folds depend on the content of rows."""
    check_calibrator(calibrator)


def test_cross_fitting_averages_maps_that_each_left_a_fold_out(data):
    model = CrossFitted(TemperatureScaling(), cv=4).fit(data.val_proba, data.val_labels)
    maps = [fitted.predict_proba(data.test_proba) for fitted in model.calibrators_]
    assert len({fitted.temperature_ for fitted in model.calibrators_}) == 4
    np.testing.assert_allclose(
        model.predict_proba(data.test_proba), np.mean(maps, axis=0), atol=1e-12
    )


def test_cross_fitting_lifts_binary_calibrators(data):
    model = CrossFitted(calibrant.PlattScaling()).fit(data.val_proba, data.val_labels)
    assert isinstance(model.calibrators_[0], calibrant.MulticlassToBinary)


def test_cross_fitted_temperature_is_that_of_kull(real_data):
    """The average of five fits: 0.22509 is published for temperature scaling of DenseNet-40."""
    file = real_data("cifar10_densenet40_kull_sample")
    model = CrossFitted(TemperatureScaling(), inputs="logits").fit(
        file["val_logits"], file["val_labels"]
    )
    loss = metrics.log_loss(file["test_labels"], model.predict_proba(file["test_logits"]))
    assert loss == pytest.approx(0.22509, abs=5e-5)  # both use random folds


def test_a_single_row_has_one_map():
    model = CrossFitted(TemperatureScaling(0.25)).fit([[0.6, 0.4]], [0])
    assert len(model.calibrators_) == 1


def test_the_maps_know_the_names_of_the_classes(data):
    names = np.array([f"digit {k}" for k in range(10)])
    model = CrossFitted(TemperatureScaling(), cv=2, classes=names)
    model.fit(data.val_proba, names[data.val_labels])
    assert model.calibrators_[0].predict(data.test_proba[:1]) in names


@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.slow), np.float32])
@pytest.mark.parametrize(
    "model", [CrossFitted(TemperatureScaling()), calibrant.AutoCalibration([TemperatureScaling()])]
)
def test_predictions_take_the_memory_of_the_output(model, dtype, rng):
    proba = softmax(rng.normal(size=(200_000, 20))).astype(dtype)
    model.fit(proba[:1000], rng.integers(0, 20, 1000))
    tracemalloc.start()
    result = model.predict_proba(proba)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.dtype == dtype
    assert peak < 1.3 * result.nbytes
