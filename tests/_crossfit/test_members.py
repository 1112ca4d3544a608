"""Cross-fitting: clones fitted on training rows of folds, and predictions of held-out rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant import datasets
from calibrant._crossfit import members
from calibrant._crossfit.members import fit_folds, fit_on, proba_of, set_up
from calibrant._data.fold_plan import RowFolds
from calibrant._data.folds import as_folds
from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import softmax

N_ROWS, N_CLASSES = 200_000, 20


@pytest.fixture
def rows(rng):
    data = datasets.noisy_simplex(120, 3, 0.3, rng=rng)
    return data.proba, data.labels


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2.0, size=(N_ROWS, N_CLASSES))
    return softmax(logits), rng.integers(0, N_CLASSES, N_ROWS)


def peak_of(function):
    """Peak memory while a function runs, and its result."""
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, result


def test_a_calibrator_is_told_what_the_scores_are_and_stays_as_it_was():
    given = calibrant.TemperatureScaling()
    result = set_up(given, "logits", 3, np.array(["a", "b", "c"]))
    assert result.inputs == "logits"
    assert result.classes.tolist() == ["a", "b", "c"]
    assert (given.inputs, given.classes) == ("proba", None)


def test_a_binary_calibrator_is_lifted_for_more_than_two_classes():
    assert isinstance(set_up(calibrant.PlattScaling(), "proba", 2), calibrant.PlattScaling)
    lifted = set_up(calibrant.PlattScaling(), "logits", 3)
    assert (lifted.notion, lifted.normalize, lifted.inputs) == ("class-wise", True, "logits")
    assert lifted.calibrator.inputs == "proba"


def test_a_method_that_counts_rows_is_given_whole_weights_as_copies(rows, rng):
    proba, y = rows
    weight = rng.integers(1, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    binning = calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=4))
    weighted = fit_on(binning, ArraySample(proba, y, weight.astype(float)), "proba").predict_proba(
        proba
    )
    repeated = fit_on(
        binning, ArraySample(proba[copies], y[copies], np.ones(len(copies))), "proba"
    ).predict_proba(proba)
    np.testing.assert_array_equal(weighted, repeated)


def test_every_row_is_predicted_by_the_map_that_has_not_seen_it(rows):
    proba, y = rows
    folds = as_folds(4, proba, y, np.ones(len(y)), 0)
    maps = fit_folds(
        calibrant.TemperatureScaling(),
        RowFolds(ArraySample(proba, y, np.ones(len(y))), folds),
        "proba",
    )
    for fold, fitted in zip(folds, maps, strict=True):
        own = calibrant.TemperatureScaling().fit(proba[fold.fit], y[fold.fit])
        held_out = proba_of(fitted, proba, "proba", fold.held_out)
        np.testing.assert_allclose(held_out, own.predict_proba(proba[fold.held_out]))


def test_another_classifier_is_given_probabilities_and_its_missing_class_gets_none(rows):
    proba, y = rows
    fitted = fit_on(
        LogisticRegression(),
        ArraySample(np.log(proba), np.minimum(y, 1), np.ones(len(y))),
        "logits",
    )
    result = proba_of(fitted, np.log(proba), "logits")
    assert result.shape == proba.shape
    assert (result[:, 2] == 0).all()
    np.testing.assert_allclose(result[:, :2], fitted.predict_proba(proba), atol=1e-9)


@pytest.mark.parametrize(
    "calibrator",
    [
        calibrant.StructuredScaling(),
        calibrant.MulticlassToBinary(calibrant.IsotonicCalibration(), "class-wise", True),
        calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=2),
        GaussianNB(),
    ],
    ids=["whole", "lifted", "averaged", "scikit-learn"],
)
def test_blocks_of_any_size_give_the_same_rows(calibrator, rows, monkeypatch):
    proba, y = rows
    fitted = fit_on(calibrator, ArraySample(proba, y, np.ones(len(y))), "proba")
    some = np.arange(len(y))[::-3]
    whole = proba_of(fitted, proba, "proba")
    monkeypatch.setattr(members, "_block_elements", lambda fitted, size: 21)
    np.testing.assert_allclose(proba_of(fitted, proba, "proba"), whole, atol=1e-14)
    np.testing.assert_allclose(proba_of(fitted, proba, "proba", some), whole[some], atol=1e-14)


@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.slow), np.float32])
@pytest.mark.parametrize(
    "calibrator",
    [
        calibrant.TemperatureScaling(),
        calibrant.MulticlassToBinary(calibrant.PlattScaling(), "class-wise", True),
        GaussianNB(),
    ],
    ids=["whole", "lifted", "scikit-learn"],
)
def test_predictions_take_the_memory_of_the_output(calibrator, dtype, many):
    proba, y = many[0].astype(dtype), many[1]
    fitted = fit_on(calibrator, ArraySample(proba[:2000], y[:2000], np.ones(2000)), "proba")
    peak, result = peak_of(lambda: proba_of(fitted, proba, "proba"))
    assert peak < 1.3 * result.nbytes
