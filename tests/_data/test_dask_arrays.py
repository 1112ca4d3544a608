"""dask arrays: chunks are added up where they are, and give what arrays in memory give."""

from __future__ import annotations

import os
import signal
from functools import partial

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from calibrant import (
    EnsembleTemperatureScaling,
    GaussianProcessCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MetricAccumulator,
    MulticlassToBinary,
    PlattScaling,
    SplineCalibration,
    TemperatureScaling,
    VectorScaling,
    evaluate,
    metrics,
)
from calibrant._data import dask_arrays
from calibrant._data.dask_arrays import DaskScores, _apply_to_chunk
from calibrant._data.read import as_chunked
from calibrant.io import ScoreChunks
from calibrant.multiclass import temperature
from calibrant.notions._cells import ScoreCells

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
cloudpickle = pytest.importorskip("cloudpickle")


EXCHANGED = {
    "temperature": TemperatureScaling(),
    "ensemble": EnsembleTemperatureScaling(),
    "vector": VectorScaling(),
    "width": MulticlassToBinary(HistogramBinning(n_bins=5, strategy="uniform"), "class-wise"),
    "mass": MulticlassToBinary(HistogramBinning(n_bins=5)),
    "isotonic": MulticlassToBinary(IsotonicCalibration(), "class-wise"),
    "metrics": None,
}


@pytest.mark.parametrize("name", EXCHANGED)
def test_workers_receive_and_return_no_more_of_more_rows(name, rng, monkeypatch):
    """Pickled functions and results of all passes, for one chunk of rows and for ten."""
    monkeypatch.setattr(temperature, "_MAX_GATHERED_ROWS", 100)
    exchanged = []
    for n_rows in (5_000, 50_000):
        sizes = []
        monkeypatch.setattr(dask_arrays, "_apply_to_chunk", partial(_record_sizes, sizes))
        logits = rng.normal(size=(n_rows, 3))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        X, y = da.from_array(logits, chunks=(5_000, 3)), da.from_array(labels)
        with dask.config.set(scheduler="synchronous"):
            if name == "metrics":
                evaluate(y, X, inputs="logits")
            else:
                clone(EXCHANGED[name]).set_params(inputs="logits").fit(X, y)
        exchanged.append(max(sizes))
    assert exchanged[1] < 1.2 * exchanged[0]


def _record_sizes(sizes, function, *chunk):
    result = _apply_to_chunk(function, *chunk)
    sizes.append(len(cloudpickle.dumps(function)) + len(cloudpickle.dumps(result)))
    return result


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
        assert parts.pop("ks") == pytest.approx(whole["ks"], abs=0.002)  # the share of a cell
        assert parts == pytest.approx({k: v for k, v in whole.items() if k != "ks"}, abs=1e-8)


@pytest.mark.parametrize("name", ["log_loss", "brier_score", "accuracy", "confidence_on_errors"])
def test_metrics_of_chunks_are_those_of_the_array(name, data):
    logits, y, chunks, labels = data
    metric, weight = getattr(metrics, name), np.arange(1000) % 3
    whole = metric(y, logits, inputs="logits", sample_weight=weight)
    weights = da.from_array(weight, chunks=(200,))
    parts = metric(labels, chunks, inputs="logits", sample_weight=weights)
    assert parts == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("notion", ["confidence", "class-wise", "top-label", "rank-2"])
def test_binned_errors_of_chunks_are_those_of_the_array(notion, data):
    logits, y, chunks, labels = data
    options = {"notion": notion, "inputs": "logits"}
    for more in ({}, {"norm": 2, "debias": True}, {"norm": np.inf}):
        error = metrics.expected_calibration_error
        whole = error(y, logits, **options, **more)
        assert error(labels, chunks, **options, **more) == pytest.approx(whole, abs=1e-9)
    equal_mass = [
        metrics.calibration_curve(*both, **options, strategy="quantile", n_bins=5).weight
        for both in ((y, logits), (labels, chunks))
    ]
    np.testing.assert_allclose(*equal_mass, atol=6)  # rows of a cell of scores


@pytest.mark.parametrize("notion", ["confidence", "class-wise", "top-label"])
@pytest.mark.parametrize(
    ("made", "bound"),
    [
        (HistogramBinning(n_bins=10, strategy="uniform"), 1e-12),
        (HistogramBinning(n_bins=5), 0.06),
        (PlattScaling(), 1e-4),
        (SplineCalibration(), 0.01),
    ],
    ids=repr,
)
def test_claims_of_chunks_are_calibrated_like_those_of_the_array(made, bound, notion, data):
    logits, y, chunks, labels = data
    whole = MulticlassToBinary(made, notion=notion, inputs="logits").fit(logits, y)
    parts = MulticlassToBinary(made, notion=notion, inputs="logits").fit(chunks, labels)
    assert parts.n_passes_ == 2
    lazy = parts.predict_claims(chunks)
    assert isinstance(lazy, da.Array)
    difference = np.abs(lazy.compute() - whole.predict_claims(logits))
    # A row beside an edge may lie on its other side.
    assert np.quantile(difference, 0.99) <= bound
    names, top = parts.predict_top(chunks)
    again, claims = whole.predict_top(logits)
    assert np.array_equal(names.compute(), again)
    assert np.quantile(np.abs(top.compute() - claims), 0.99) <= bound


def test_an_isotonic_map_of_chunks_cumulates_like_that_of_the_array(data):
    # Convex minorants are as close to each other as the cumulated outcomes, which differ within a
    # cell of scores only.
    logits, y, chunks, labels = data
    made = MulticlassToBinary(IsotonicCalibration(), notion="confidence", inputs="logits")
    whole, parts = clone(made).fit(logits, y), clone(made).fit(chunks, labels)
    top = softmax(logits.astype(float), axis=1).max(axis=1)
    order = np.argsort(top)
    fitted = [model.predict_claims(logits)[order, 0].cumsum() / 1000 for model in (whole, parts)]
    largest = np.bincount(ScoreCells(2**13).place(top)).max() / 1000
    assert np.abs(fitted[0] - fitted[1]).max() <= largest + 1e-12


def test_a_binary_calibrator_is_fitted_to_one_score_per_row(data, rng):
    score = rng.random(1000)
    y = rng.random(1000) < score
    chunks, labels = da.from_array(score, chunks=170), da.from_array(y, chunks=400)
    made = HistogramBinning(n_bins=10, strategy="uniform")
    whole, parts = made.fit(score, y), clone(made).fit(chunks, labels)
    np.testing.assert_allclose(parts.values_, whole.values_, atol=1e-12)
    np.testing.assert_allclose(parts.predict_proba(chunks).compute(), whole.predict_proba(score))
    assert parts.guarantee().widest.gap == pytest.approx(whole.guarantee().widest.gap)


def test_labels_are_predicted_lazily(data):
    logits, y, chunks, _ = data
    model = VectorScaling(inputs="logits").fit(logits, y)
    lazy = model.predict(chunks)
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), model.predict(logits))


def test_what_needs_all_rows_does_not_gather_them(data):
    _, _, chunks, labels = data
    with pytest.raises(TypeError, match="needs all rows in memory, but it got a dask array"):
        metrics.kernel_calibration_error(labels, chunks, inputs="logits")


@pytest.mark.slow  # dask's data frames take seconds to import
def test_columns_of_a_data_frame_are_chunks(data):
    pytest.importorskip("dask.dataframe")
    import dask.dataframe as dd
    import pandas as pd

    logits, y, _, _ = data
    frame = pd.DataFrame(logits, columns=list("abcd")).assign(y=y, weight=np.arange(1000) % 3)
    parted = dd.from_pandas(frame, npartitions=4)
    scores, label, weight = parted[list("abcd")], parted["y"], parted["weight"]
    whole = TemperatureScaling(inputs="logits").fit(logits, y, frame["weight"])
    parts = TemperatureScaling(inputs="logits").fit(scores, label, weight)
    assert parts.temperature_ == pytest.approx(whole.temperature_, abs=1e-8)
    assert metrics.accuracy(label, scores, inputs="logits") == metrics.accuracy(
        y, logits, inputs="logits"
    )


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
    with pytest.raises(ValueError, match="Row 777 of the logits"):
        evaluate(labels, chunks, inputs="logits")
    with pytest.raises(ValueError, match="Row 777 of the logits"):
        TemperatureScaling(inputs="logits").fit(chunks, labels)


def test_what_is_no_sum_is_rejected(data):
    _, _, chunks, labels = data
    with pytest.raises(TypeError, match="GaussianProcessCalibration needs all rows in memory"):
        GaussianProcessCalibration(inputs="logits").fit(chunks, labels)
    with pytest.raises(
        ValueError, match="one entry per row of scores, but there are 3 entries and 1,000 rows"
    ):
        evaluate(np.zeros(3, dtype=int), chunks, inputs="logits")


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as processes,
        distributed.Client(processes) as client,
    ):
        yield processes, client


@pytest.mark.slow
def test_a_cluster_gives_what_the_array_gives_though_a_worker_is_killed(data, cluster):
    logits, y, chunks, labels = data
    made, rows = VectorScaling(inputs="logits"), logits.astype(np.float64)
    whole = clone(made).fit(logits, y).predict_proba(rows)
    parts = clone(made).fit(chunks, labels)
    assert np.abs(parts.predict_proba(rows) - whole).max() <= 1e-8
    victim = next(iter(cluster[1].run(os.getpid).values()))
    source = KillsOnce(as_chunked(chunks).source(labels), victim)
    parts = clone(made).fit(source, None)
    assert source.n_passes > 3
    assert np.abs(parts.predict_proba(rows) - whole).max() <= 1e-8
    expected = evaluate(y, logits, inputs="logits").log_loss
    assert evaluate(labels, chunks, inputs="logits").log_loss == pytest.approx(expected, abs=1e-8)


class KillsOnce(ScoreChunks):
    """Chunks whose third pass begins with the death of a worker."""

    n_columns = 0

    def __init__(self, source, victim):
        self.inner, self.victim, self.n_passes = source, victim, 0
        self.n_columns, self.classes = source.n_columns, source.classes
        self.distinct_labels = source.distinct_labels

    def map_chunks(self, function):
        return self.inner.map_chunks(function)

    def add_up(self, function, *add):
        self.n_passes += 1
        if self.n_passes == 3:
            os.kill(self.victim, signal.SIGKILL)
        return self.inner.add_up(function, *add)


@pytest.mark.slow
def test_an_error_says_that_no_worker_is_left(data, cluster, monkeypatch):
    _, _, chunks, labels = data
    monkeypatch.setattr("calibrant._data.dask_arrays._PATIENCE", 2)
    assert metrics.accuracy(labels, chunks, inputs="logits") > 0
    cluster[0].scale(0)
    with pytest.raises(RuntimeError, match="All workers of the dask cluster are gone"):
        metrics.accuracy(labels, chunks, inputs="logits")


def test_labels_with_several_columns_are_rejected():
    scores = da.from_array(np.full((6, 2), 0.5), chunks=(3, 2))
    y = da.from_array(np.ones((6, 2), dtype=int), chunks=(3, 2))
    with pytest.raises(ValueError, match=r"must have one value per row, got shape \(6, 2\)"):
        DaskScores(scores).source(y)


def test_columns_of_another_length_are_rejected_before_anything_is_computed():
    scores = DaskScores(da.from_array(np.full((6, 2), 0.5), chunks=(3, 2)))
    with pytest.raises(ValueError, match="X has 6 rows and by has 5 rows"):
        scores.map(lambda block, by: block, (2,), None, (np.arange(5),))
