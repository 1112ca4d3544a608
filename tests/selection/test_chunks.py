"""A stacked ensemble of chunked rows equals that of rows in memory with the same folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant import (
    AutoCalibration,
    CrossFitted,
    EnsembleTemperatureScaling,
    IsotonicCalibration,
    StructuredScaling,
    TemperatureScaling,
)
from calibrant.selection import _auto
from parts import Slices

MEMBERS = {"temperature": TemperatureScaling(), "vector": StructuredScaling("vector")}


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(900, 3))
    y = (0.6 * logits * [1, 1.5, 1] + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


def folds(n_rows, n_folds):
    rows = np.arange(n_rows)
    return [(rows[rows % n_folds != k], rows[rows % n_folds == k]) for k in range(n_folds)]


@pytest.mark.parametrize("n_folds", [2, 3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_stack_of_parts_is_that_of_all_rows(data, n_folds, is_weighted, rng):
    logits, y = data
    weight = rng.integers(3, size=len(y)).astype(float) if is_weighted else None
    result = {"candidates": MEMBERS, "inputs": "logits"}
    whole = AutoCalibration(cv=folds(len(y), n_folds), **result).fit(logits, y, weight)
    parts = AutoCalibration(cv=n_folds, **result).fit(Slices(logits, y, weight, size=470), None)
    assert parts.names_ == whole.names_
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-8)
    np.testing.assert_allclose(parts.losses_, whole.losses_, atol=1e-9)
    for name in ("gain", "low", "high", "before", "after", "p_value", "standard_error"):
        own, other = getattr(whole.gain_, name), getattr(parts.gain_, name)
        assert other == pytest.approx(own, abs=1e-8)
    assert (parts.top_ is None) == (whole.top_ is None)
    np.testing.assert_allclose(parts.predict_proba(logits), whole.predict_proba(logits), atol=1e-8)


def test_one_fold_evaluates_many_rows(data, monkeypatch):
    logits, y = 3 * data[0], data[1]
    monkeypatch.setattr(_auto, "_MANY_SCORES", 1000)
    result = {"candidates": MEMBERS, "inputs": "logits"}
    whole = AutoCalibration(cv=folds(len(y), 5)[:1], **result).fit(logits, y)
    parts = AutoCalibration(**result).fit(Slices(logits, y, size=470), None)
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-8)
    # The groups on which weights are evaluated differ.
    difference = parts.gain_.gain - whole.gain_.gain
    assert abs(difference) < 0.2 * whole.gain_.standard_error


def test_default_members_are_those_of_rows_in_memory(data):
    logits, y = data
    parts = AutoCalibration(cv=2, inputs="logits").fit(Slices(*data, size=500), None)
    whole = AutoCalibration(cv=folds(len(y), 2), inputs="logits").fit(logits, y)
    assert parts.names_ == whole.names_
    assert "isotonic" in parts.names_
    # Isotonic regression of chunks works on cells of scores.
    np.testing.assert_allclose(parts.predict_proba(logits), whole.predict_proba(logits), atol=0.02)


def test_few_rows_of_many_classes_have_the_same_weights(rng):
    logits = 3 * rng.normal(size=(20, 100))
    y = (logits / 1.2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    members = ["bayesian-temperature", "structured-vector"]
    result = {"candidates": members, "inputs": "logits"}
    whole = AutoCalibration(cv=folds(20, 5), **result).fit(logits, y)
    parts = AutoCalibration(cv=5, **result).fit(Slices(logits, y, size=7), None)
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-7)


def test_time_budget_holds_for_chunks_too(data):
    model = AutoCalibration(time_budget=0.0, n_jobs=2, progress=True, inputs="logits")
    parts = model.fit(Slices(*data), None)
    whole = AutoCalibration(time_budget=0.0, inputs="logits").fit(*data)
    assert parts.left_out_ == whole.left_out_ != ()


@pytest.mark.parametrize("calibrator", [TemperatureScaling(), "vector"])
def test_cross_fitted_maps_of_parts_are_those_of_the_same_folds(data, calibrator):
    logits, y = data
    whole = CrossFitted(calibrator, cv=folds(len(y), 3), inputs="logits").fit(logits, y)
    parts = CrossFitted(calibrator, cv=3, inputs="logits").fit(Slices(logits, y, size=470), None)
    assert len(parts.calibrators_) == 3
    np.testing.assert_allclose(parts.predict_proba(logits), whole.predict_proba(logits), atol=1e-8)


@pytest.mark.parametrize(
    "outer", [CrossFitted, lambda member, **options: AutoCalibration([member], **options)]
)
def test_folds_of_the_same_rows_within_each_other_are_rejected(data, outer):
    with pytest.raises(TypeError, match="pass the calibrators inside it instead"):
        outer(AutoCalibration(), cv=3, inputs="logits").fit(Slices(*data), None)


def test_what_cannot_be_fitted_to_parts_is_rejected(data):
    source = Slices(*data)
    with pytest.raises(TypeError, match="needs all rows in memory"):
        AutoCalibration([LogisticRegression()], inputs="logits").fit(source, None)
    with pytest.raises(TypeError, match="number of folds"):
        AutoCalibration(cv=folds(900, 3), inputs="logits").fit(source, None)


def test_members_that_order_scores_are_summarised_where_they_are_asked_for(data):
    model = AutoCalibration([IsotonicCalibration()], cv=2, inputs="logits")
    parts = model.fit(Slices(*data, size=500), None)
    assert parts.predict_proba(data[0]).sum(axis=1) == pytest.approx(1)


def test_the_ensemble_of_parts_is_that_of_all_rows(data):
    logits, y = data
    whole = EnsembleTemperatureScaling(inputs="logits").fit(logits, y)
    parts = EnsembleTemperatureScaling(inputs="logits").fit(Slices(logits, y), None)
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-7)
    np.testing.assert_allclose(parts.predict_proba(logits), whole.predict_proba(logits), atol=1e-8)
