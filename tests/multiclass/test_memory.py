"""A fit needs memory for its input, a block and arrays of the size of its parameters: never n K^2,
nor a second copy."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

from calibrant import DirichletCalibration, StructuredScaling, TemperatureScaling, VectorScaling

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
