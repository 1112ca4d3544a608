"""dask arrays: chunks are added up where they are, and give what arrays in memory give."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import (
    GaussianProcessCalibration,
    MetricAccumulator,
    TemperatureScaling,
    VectorScaling,
    evaluate,
)

da = pytest.importorskip("dask.array")


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(1000, 4)).astype(np.float32)
    y = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y, da.from_array(logits, chunks=(130, 2)), da.from_array(y, chunks=300)


def test_an_evaluation_of_chunks_is_that_of_the_array(data):
    logits, y, chunks, labels = data
    whole = evaluate(y, logits, inputs="logits").to_dict()
    for truth in (y, labels):
        parts = evaluate(truth, chunks, inputs="logits").to_dict()
        assert parts.pop("ks") is None
        assert parts == pytest.approx({k: v for k, v in whole.items() if k != "ks"}, abs=1e-8)


def test_chunks_are_added_to_what_was_seen_with_their_weights(data):
    logits, y, chunks, labels = data
    weight = np.arange(1000) % 3
    parts = MetricAccumulator(inputs="logits", keep_top=0).update(labels, chunks, weight)
    whole = MetricAccumulator(inputs="logits", keep_top=0).update(y, logits, weight)
    for accumulator in (parts, whole):
        accumulator.update(y[:50], logits[:50])
    assert parts.compute().log_loss == pytest.approx(whole.compute().log_loss, abs=1e-8)


def test_the_temperature_of_chunks_is_that_of_the_array_in_five_passes(data):
    logits, y, chunks, labels = data
    whole = TemperatureScaling(inputs="logits").fit(logits, y)
    parts = TemperatureScaling(inputs="logits").fit(chunks, labels)
    assert parts.temperature_ == pytest.approx(whole.temperature_, abs=1e-8)
    assert parts.n_passes_ <= 5
    assert np.allclose(parts.class_weights_, whole.class_weights_)


def test_predictions_of_chunks_are_lazy_and_those_of_the_array(data):
    logits, y, chunks, _ = data
    model = VectorScaling(inputs="logits").fit(logits, y)
    lazy = model.predict_proba(chunks)
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == np.float32
    assert np.array_equal(lazy.compute(), model.predict_proba(logits))


def test_a_poisoned_row_is_reported_with_its_number(data):
    logits, _, _, labels = data
    logits[777, 1] = np.nan
    chunks = da.from_array(logits, chunks=(130, 4))
    with pytest.raises(ValueError, match="row 777 of the logits"):
        evaluate(labels, chunks, inputs="logits")
    with pytest.raises(ValueError, match="row 777 of the logits"):
        TemperatureScaling(inputs="logits").fit(chunks, labels)


def test_what_is_no_sum_is_refused(data):
    _, _, chunks, labels = data
    with pytest.raises(TypeError, match="not fitted to scores that come in parts"):
        GaussianProcessCalibration(inputs="logits").fit(chunks, labels)
    with pytest.raises(ValueError, match="rows do not match"):
        evaluate(np.zeros(3, dtype=int), chunks, inputs="logits")


@pytest.mark.slow
def test_two_processes_of_a_cluster_give_what_the_array_gives(data):
    distributed = pytest.importorskip("distributed")
    logits, y, chunks, labels = data
    whole = TemperatureScaling(inputs="logits").fit(logits, y)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        parts = TemperatureScaling(inputs="logits").fit(chunks, labels)
        assert parts.temperature_ == pytest.approx(whole.temperature_, abs=1e-8)
        expected = evaluate(y, logits, inputs="logits").log_loss
        assert evaluate(labels, chunks, inputs="logits").log_loss == pytest.approx(expected)
