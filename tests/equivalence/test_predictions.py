"""Predictions of fitted models for each kind of data.

| method            | array, memory map | dask array          | row iterator, chunks, file         |
|-------------------|-------------------|---------------------|------------------------------------|
| predict_proba     | array             | dask array, lazily  | chunked scores, lazily, to be      |
| predict_log_proba | array             | dask array, lazily  | evaluated and fitted on            |
| predict           | array             | dask array, lazily  | rejected                           |
| predict_claims    | array             | dask array, lazily  | rejected                           |
| predict_top       | two arrays        | dask arrays, lazily | rejected                           |

All of them are equal to the predictions for rows in memory.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from calibrant import (
    AutoCalibration,
    CanonicalBinning,
    CrossFitted,
    DirichletCalibration,
    GaussianProcessCalibration,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MulticlassToBinary,
    PlattScaling,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    evaluate,
)
from data_kinds import (
    CHUNKED,
    Iterator,
    Rows,
    assert_close,
    cells,
    in_memory,
    make_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

MODELS = {
    "identity": Identity(),
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "structured": StructuredScaling(),
    "Dirichlet": DirichletCalibration(lam=0.01),
    "Gaussian process": GaussianProcessCalibration(),
    "canonical": CanonicalBinning(n_bins=5),
    "isotonic, class-wise": MulticlassToBinary(IsotonicCalibration(), "class-wise", True),
    "histogram, top-label": MulticlassToBinary(HistogramBinning(n_bins=5)),
    "Platt, top-2": MulticlassToBinary(PlattScaling(), notion="top-2-confidence"),
    "cross-fitted": CrossFitted("temperature", cv=2),
    "stack": AutoCalibration(["temperature", "isotonic"], cv=2),
}
CLAIMS = [name for name, model in MODELS.items() if isinstance(model, MulticlassToBinary)]
READ = tuple(kind for kind in CHUNKED if kind != "dask array")
"""Kinds that are read block by block."""

NOT_CHUNKED = "scores that are read in blocks cannot be predicted"


@pytest.fixture(scope="module")
def fitted():
    """``fitted(name, rows)``: a model that was fitted in memory, once for each kind of rows."""
    models = {}

    def fit(name, rows):
        key = name, rows.inputs, rows.scores.dtype
        if key not in models:
            made = clone(MODELS[name]).set_params(inputs=rows.inputs)
            models[key] = made.fit(*in_memory(rows))
        return models[key]

    return fit


ROWS = make_rows(inputs="logits")


@pytest.mark.parametrize("name", MODELS)
def test_predictions_for_a_memory_map_are_those_for_the_array(name, fitted, make):
    model, scores = fitted(name, ROWS), make("memory map", ROWS).scores
    for method in ("predict_proba", "predict_log_proba", "predict"):
        found = getattr(model, method)(scores)
        np.testing.assert_array_equal(found, getattr(model, method)(ROWS.scores))
    if name in CLAIMS:
        expected = model.predict_claims(ROWS.scores), model.predict_top(ROWS.scores)
        assert_close([model.predict_claims(scores), model.predict_top(scores)], expected, 0)


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "predict"])
@pytest.mark.parametrize("name", MODELS)
def test_predictions_for_a_dask_array_are_lazy_and_those_for_the_array(name, method, fitted, make):
    model, scores = fitted(name, ROWS), make("dask array", ROWS).scores
    found, expected = getattr(model, method)(scores), getattr(model, method)(ROWS.scores)
    assert type(found) is type(scores)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert_close(found.compute(), expected, 1e-12)


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_of_a_dask_array_are_lazy_and_those_of_the_array(name, fitted, make):
    model, scores = fitted(name, ROWS), make("dask array", ROWS).scores
    claims = model.predict_claims(scores)
    assert type(claims) is type(scores)
    assert_close(claims.compute(), model.predict_claims(ROWS.scores), 1e-12)
    found, expected = model.predict_top(scores), model.predict_top(ROWS.scores)
    for own, other in zip(found, expected, strict=True):
        assert type(own) is type(scores)
        assert_close(own.compute(), other, 1e-12)


def test_single_precision_of_a_dask_array_is_kept(fitted, make):
    rows = replace(ROWS, scores=ROWS.scores.astype(np.float32))
    model = fitted("vector", rows)
    found = model.predict_proba(make("dask array", rows).scores)
    assert found.dtype == found.compute().dtype == np.float32
    np.testing.assert_array_equal(found.compute(), model.predict_proba(rows.scores))


@pytest.mark.parametrize("kind", ["memory map", "dask array"])
def test_one_score_per_row_is_predicted_as_in_memory(kind, make):
    base = make_rows(n_classes=2)
    rows = Rows(base.scores[:, 1], base.y)
    model = PlattScaling().fit(*in_memory(rows))
    found = model.predict_proba(make(kind, rows).scores)
    assert_close(np.asarray(found), model.predict_proba(rows.scores), 1e-12)


def without_ks(evaluation):
    return {name: value for name, value in evaluation.to_dict().items() if name != "ks"}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_for_a_dask_array_can_be_evaluated(name, fitted, make):
    model, data = fitted(name, ROWS), make("dask array", ROWS)
    found = evaluate(data.labels, model.predict_proba(data.scores))
    expected = evaluate(ROWS.labels, model.predict_proba(ROWS.scores))
    assert_close(without_ks(found), without_ks(expected), 1e-10)


@pytest.mark.parametrize(
    ("name", "kind"),
    cells(["temperature", "histogram, top-label", "stack"], READ),
)
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_predictions_for_blocks_can_be_evaluated(method, name, kind, fitted, make):
    rows = replace(ROWS, weight=make_rows(weight="integer").weight)
    model, data = fitted(name, ROWS), make(kind, rows)
    inputs = "proba" if method == "predict_proba" else "log_proba"
    scores = getattr(model, method)(data.scores)
    found = evaluate(data.labels, scores, inputs=inputs, sample_weight=data.weight)
    of_array = getattr(model, method)(rows.scores)
    expected = evaluate(rows.labels, of_array, inputs=inputs, sample_weight=rows.weight)
    assert_close(without_ks(found), without_ks(expected), 1e-10)


@pytest.mark.parametrize("kind", cells(CHUNKED))
def test_a_second_calibrator_is_fitted_on_predictions_for_chunks_as_in_memory(kind, fitted, make):
    first, data = fitted("vector", ROWS), make(kind, ROWS)
    found = TemperatureScaling().fit(first.predict_proba(data.scores), data.labels)
    expected = TemperatureScaling().fit(first.predict_proba(ROWS.scores), ROWS.labels)
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)


@pytest.mark.parametrize("kind", cells(["row iterator"]))
def test_blocks_are_not_read_before_their_predictions_are_used(kind, fitted):
    blocks = Iterator(ROWS)
    model, n_started = fitted("temperature", ROWS), blocks.n_started
    predicted = model.predict_proba(blocks.scores)
    assert blocks.n_started <= n_started + 1  # the first block may tell the number of columns
    assert evaluate(blocks.labels, predicted).n_samples == len(ROWS.y)


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("method", ["predict", "predict_claims", "predict_top"])
def test_labels_and_claims_of_blocks_are_predicted_block_by_block(method, kind, fitted, make):
    model, data = fitted("histogram, top-label", ROWS), make(kind, ROWS)
    expected, found = (getattr(model, method)(d.scores) for d in (in_memory(ROWS), data))
    if method != "predict_top":
        expected, found = (expected,), (found,)
    for whole, blocks in zip(expected, found, strict=True):
        np.testing.assert_array_equal(np.concatenate(list(blocks)), whole)
