"""Correction of probabilities for known class frequencies."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant import metrics
from calibrant.inference import calibration_line
from calibrant.label_shift import adapt, correct

pd = pytest.importorskip("pandas")

SOURCE, TARGET = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


@pytest.fixture
def proba(rng):
    return rng.dirichlet(SOURCE, 200)


def test_rows_are_products_with_the_ratio_of_frequencies(proba):
    products = proba * TARGET / SOURCE
    expected = products / products.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(correct(proba, source=SOURCE, target=TARGET), expected, rtol=1e-14)


def test_it_is_adapt_with_its_frequencies(rng):
    base = rng.dirichlet(3 * SOURCE, 3000)
    shift = adapt(base, rng.dirichlet(3 * TARGET, 3000), n_resamples=2, rng=0)
    new = rng.dirichlet(np.ones(3), 50)
    corrected = correct(new, source=shift.source_prior, target=shift.target_prior)
    np.testing.assert_allclose(corrected, shift.apply(new), rtol=1e-13)


def test_there_and_back_and_no_shift_change_nothing(proba):
    there = correct(proba, source=SOURCE, target=TARGET)
    np.testing.assert_allclose(correct(there, source=TARGET, target=SOURCE), proba, atol=1e-14)
    np.testing.assert_allclose(correct(proba, source=SOURCE, target=SOURCE), proba, atol=1e-15)
    np.testing.assert_allclose(correct(proba, sampling=[2.0, 2.0, 2.0]), proba, atol=1e-15)


def test_sampling_is_the_ratio_of_frequencies_before_and_after(proba):
    kept = TARGET * [0.1, 1.0, 0.5]  # target frequencies, of which these shares were kept
    by_source = correct(proba, source=kept / kept.sum(), target=TARGET)
    np.testing.assert_allclose(correct(proba, sampling=[0.1, 1.0, 0.5]), by_source, rtol=1e-13)
    np.testing.assert_allclose(correct(proba, sampling={0: 0.1, 2: 0.5}), by_source, rtol=1e-13)


def test_a_series_is_matched_to_the_columns_by_its_index(proba):
    expected = correct(proba, source=SOURCE, target=TARGET)
    target = pd.Series(TARGET).sort_values(ascending=False)  # the order of value_counts
    np.testing.assert_array_equal(correct(proba, source=SOURCE, target=target), expected)
    named = pd.Series(TARGET, index=["a", "b", "c"])[["c", "a", "b"]]
    result = correct(proba, source=SOURCE, target=named, classes=["a", "b", "c"])
    np.testing.assert_array_equal(result, expected)
    plain = pd.Series(TARGET)
    result = correct(proba, source=SOURCE, target=plain, classes=["a", "b", "c"])
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(ValueError, match="target has the unknown labels 'c', 'a'"):
        correct(proba, source=SOURCE, target=named)


def test_factors_must_be_numbers(proba):
    with pytest.raises(ValueError, match="sampling must be one positive number per class"):
        correct(proba, sampling={0: "a"})


def two_gaussians(rng, n_rows, rate):
    y = (rng.random(n_rows) < rate).astype(int)
    return rng.normal(size=(n_rows, 2)) + y[:, None], y


@pytest.mark.parametrize("way", ["under-sampled", "class weights"])
def test_a_model_of_sampled_rows_is_calibrated_after_the_correction(rng, way):
    X, y = two_gaussians(rng, 40_000, 0.05)
    if way == "under-sampled":
        kept = (y == 1) | (rng.random(len(y)) < 0.1)
        model = LogisticRegression().fit(X[kept], y[kept])
        options = {"sampling": {0: 0.1}}
    else:
        model = LogisticRegression(class_weight="balanced").fit(X, y)
        options = {"source": [0.5, 0.5], "target": [1 - y.mean(), y.mean()]}
    X, y = two_gaussians(rng, 20_000, 0.05)
    raw = model.predict_proba(X)
    fixed = correct(raw, **options)
    assert raw[:, 1].mean() > 3 * y.mean()
    line = calibration_line(y, fixed, notion="class-1", level=0.999)
    assert line.intercept.low < 0 < line.intercept.high
    assert line.slope.low < 1 < line.slope.high
    assert metrics.log_loss(y, fixed) < metrics.log_loss(y, raw) - 0.1


def test_labels_of_dicts_are_those_of_the_classes(proba):
    expected = correct(proba, source=SOURCE, target=TARGET)
    names = ["cat", "dog", "owl"]
    source, target = dict(zip(names, SOURCE, strict=True)), dict(zip(names, TARGET, strict=True))
    found = correct(proba, source=source, target=target, classes=names)
    np.testing.assert_array_equal(found, expected)


def test_columns_of_frames_are_matched_by_name(proba):
    names = ["cat", "dog", "owl"]
    expected = correct(proba, sampling=[0.2, 1, 1])
    frame = pd.DataFrame(proba, columns=names)
    np.testing.assert_array_equal(correct(frame, sampling={"cat": 0.2}), expected)
    swapped = frame[["owl", "cat", "dog"]]
    found = correct(swapped, sampling={"cat": 0.2}, classes=names)
    np.testing.assert_array_equal(found, expected)


def test_one_column_is_class_one_of_a_binary_problem():
    expected = [[0.9, 0.1]]
    np.testing.assert_allclose(correct([0.5], source=[0.5, 0.5], target=[0.9, 0.1]), expected)


def test_a_class_of_target_frequency_zero_becomes_impossible():
    corrected = correct([[0.2, 0.3, 0.5]], source=SOURCE, target=[0.5, 0.5, 0.0])
    assert corrected[0, 2] == 0
    assert corrected.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="Row 1 has positive probabilities only in classes"):
        correct([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]], source=SOURCE, target=[0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "got none of them"),
        ({"source": SOURCE}, "either source and target, or sampling alone, got source"),
        ({"source": SOURCE, "sampling": [1, 1, 1]}, "got source and sampling"),
        ({"target": TARGET, "sampling": [1, 1, 1]}, "got target and sampling"),
    ],
)
def test_other_combinations_of_arguments_are_errors(proba, options, message):
    with pytest.raises(TypeError, match=message):
        correct(proba, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": [0.5, 0.5], "target": TARGET}, r"source must have one frequency per class"),
        ({"source": SOURCE, "target": [50, 30, 20]}, "target must be frequencies that sum to 1"),
        ({"source": [0.5, 0.5, 0], "target": TARGET}, "Class 2 has frequency zero in the source"),
        ({"sampling": [0.1, 1, 0]}, "sampling must be one positive number per class"),
        ({"sampling": [0.1, 1]}, r"sampling must be one positive number per class, shape \(3,\)"),
        ({"sampling": {"cat": 0.1}}, r"sampling has the unknown labels 'cat'"),
        ({"source": {0: 1.0}, "target": TARGET}, "source lacks the labels 1, 2"),
    ],
)
def test_bad_frequencies_are_errors_that_show_the_fix(proba, options, message):
    with pytest.raises(ValueError, match=message):
        correct(proba, **options)
