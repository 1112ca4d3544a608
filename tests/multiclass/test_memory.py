"""A fit needs memory for its input, a block and arrays of the size of its parameters: never n K^2,
nor a second copy."""

from __future__ import annotations

import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest

from calibrant import (
    DirichletCalibration,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    metrics,
)

N_SAMPLES, N_CLASSES = 120_000, 40


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(N_SAMPLES, N_CLASSES)).astype(np.float32)
    return logits, (2 * logits + rng.gumbel(size=logits.shape).astype(np.float32)).argmax(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "calibrator",
    [
        TemperatureScaling(inputs="logits"),
        VectorScaling(inputs="logits"),
        DirichletCalibration(lam=0.1, inputs="logits"),
        StructuredScaling(inputs="logits"),
    ],
    ids=lambda c: type(c).__name__,
)
def test_the_peak_of_a_fit_is_far_below_a_copy_of_its_input(calibrator, data):
    logits, y = data
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrator.fit(logits, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    copy_in_float64 = 8 * N_SAMPLES * N_CLASSES
    # Vectors of length n (weights, labels) are part of the input; a block, K^3 numbers and a few
    # vectors are not much.
    assert peak < 0.35 * copy_in_float64


MANY_CLASSES = 100_000


@pytest.fixture(scope="module")
def wide():
    """So many classes that a row is a block."""
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.standard_normal((128, MANY_CLASSES), dtype=np.float32)
    return logits, np.array([(row + rng.gumbel(size=MANY_CLASSES)).argmax() for row in logits])


def _peak(function):
    function()  # the first call imports modules, whose memory would be counted
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("calibrator", "rows_in_float64"),
    [
        # A row at a time and what it is made into.
        (TemperatureScaling(inputs="logits"), 12),
        # Blocks of two rows, by threads, and arrays of the size of the parameters.
        (StructuredScaling("vector", inputs="logits"), 140),
    ],
    ids=["temperature", "structured vector"],
)
def test_the_peak_of_a_fit_of_many_classes_is_that_of_some_rows(calibrator, rows_in_float64, wide):
    logits, y = wide
    for n_rows in (64, 128):
        peak = _peak(lambda n_rows=n_rows: calibrator.fit(logits[:n_rows], y[:n_rows]))
        assert peak < rows_in_float64 * 8 * MANY_CLASSES


@pytest.mark.slow
@pytest.mark.parametrize(
    "calibrator",
    [TemperatureScaling(inputs="logits"), StructuredScaling("vector", inputs="logits")],
    ids=["temperature", "structured vector"],
)
def test_predictions_of_many_classes_need_their_output_and_a_block(calibrator, wide):
    logits, y = wide
    calibrator.fit(logits[:64], y[:64])
    assert _peak(lambda: calibrator.predict_proba(logits)) < logits.nbytes + 8 * 8 * MANY_CLASSES
    assert _peak(lambda: calibrator.predict(logits)) < 12 * 8 * MANY_CLASSES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "rows_in_float64"),
    [
        (metrics.accuracy, 4),
        (metrics.log_loss, 4),
        (metrics.ks_error, 4),
        (metrics.expected_calibration_error, 4),
        # A table of the claims is 45 rows, and threads are some of them ahead.
        (partial(metrics.expected_calibration_error, notion="top-label"), 10 * 45),
    ],
    ids=["accuracy", "log-loss", "KS", "confidence", "top-label"],
)
def test_metrics_of_many_classes_need_a_block_and_a_table(metric, rows_in_float64, wide):
    logits, y = wide
    proba = TemperatureScaling(inputs="logits").fit(logits[:4], y[:4]).predict_proba(logits)
    assert _peak(lambda: metric(y, proba)) < rows_in_float64 * 8 * MANY_CLASSES
