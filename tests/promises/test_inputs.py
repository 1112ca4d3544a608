"""Unusual containers, data types, and row and column orders."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.naive_bayes import GaussianNB

from calibrant import (
    CalibratedClassifier,
    Identity,
    MetricAccumulator,
    TemperatureScaling,
    evaluate,
    label_shift,
    metrics,
)
from calibrant.exceptions import DataWarning
from calibrant.inference import bootstrap_interval, debiased_interval

pandas = pytest.importorskip("pandas")

N_ROWS = 200
LEVELS = np.array(["low", "mid", "high"])
DAYS = np.array(["2026-01-01", "2026-02-01", "2026-03-01"], dtype="datetime64[D]")
MOVED = [2, 0, 1]
"""Columns in an order that is neither that of the classes nor that of the alphabet."""


@pytest.fixture(scope="module")
def data():
    """Probabilities of three classes, the truth, and what is right of them."""
    rng = np.random.default_rng(7)
    z = rng.normal(scale=2.0, size=(N_ROWS, 3))
    y = (0.6 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = softmax(z, axis=1)
    return p, y, evaluate(y, p).log_loss


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(8)
    score = rng.random(N_ROWS)
    y = (rng.random(N_ROWS) < score).astype(int)
    return score, y, evaluate(y, score).log_loss


def moved(p, names):
    """The columns in another order, under their own names."""
    return pandas.DataFrame(p[:, MOVED], columns=[names[k] for k in MOVED])


# What is missing is not taken


def test_masked_entries_of_all_inputs_are_rejected_as_missing(data):
    p, y, right = data
    mask = np.arange(N_ROWS) == 7
    table = np.ma.masked_array(p, mask=np.repeat(mask[:, None], 3, axis=1))
    for call in (
        lambda: evaluate(y, table),
        lambda: TemperatureScaling().fit(table, y),
        lambda: Identity().fit(p, y).predict_proba(table),
        lambda: evaluate(np.ma.masked_array(y, mask=mask), p),
        lambda: evaluate(y, p, sample_weight=np.ma.masked_array(np.ones(N_ROWS), mask=mask)),
        lambda: evaluate(y, p, by=np.ma.masked_array(y, mask=mask)),
    ):
        with pytest.raises(
            ValueError, match=r"Entry \[7.* is masked, but missing values are not allowed"
        ):
            call()
    assert evaluate(np.ma.masked_array(y), np.ma.masked_array(p)).log_loss == right


def test_a_missing_label_that_numpy_converted_to_text_is_rejected():
    text = np.array(["a", "b", np.nan])
    assert text[2] == "nan"
    for labels in (text, np.array(["a", "b", "<NA>"]), np.array(["a", "b", "NaT"])):
        with pytest.raises(
            ValueError, match=r"row 2 is the text .* which usually stands for a missing label"
        ):
            evaluate(labels, np.eye(3))
    assert evaluate(text, np.eye(3), classes=["a", "b", "nan"]).accuracy == 1.0


def test_a_calibrated_classifier_rejects_missing_labels(rng):
    X, y = rng.normal(size=(60, 2)), np.array(["a", "b"])[np.arange(60) % 2]
    model = CalibratedClassifier(GaussianNB(), "temperature", cv=2)
    for missing in ([np.nan, *y[1:]], np.array([None, *y[1:]], dtype=object)):
        with pytest.raises(ValueError, match="The label of row 0 is missing"):
            model.fit(X, missing)
    with pytest.warns(DataWarning, match=r"row 0 is the text 'nan', .* It is treated as a class"):
        model.fit(X, np.where(np.arange(60) % 3 == 0, "nan", y))


def test_the_error_for_a_missing_group_states_its_row(data):
    p, y, _ = data
    groups = np.arange(N_ROWS) // 10
    for missing in (np.where(groups == 3, np.nan, groups), [None] * 30 + ["a", "b"] * 85):
        with pytest.raises(ValueError, match=r"The group of row (0|30) and .* more is missing"):
            bootstrap_interval("brier_score", y, p, groups=missing, n_resamples=5, rng=0)
        with pytest.raises(ValueError, match=r"The group of row (0|30) and .* more is missing"):
            Identity().fit(p, y, groups=missing)


# Names of columns, in every spelling


@pytest.mark.parametrize(
    "spelling",
    ["{}", "p_{}", "P({})", "{}_prob", "prob.{}", "p({})/1", "class {}", "('p', '{}')"],
)
def test_class_names_are_recognized_in_many_spellings_of_column_names(data, spelling):
    p, y, right = data
    names = [spelling.format(name) for name in LEVELS]
    assert evaluate(LEVELS[y], moved(p, names)).log_loss == pytest.approx(right, rel=1e-12)
    model = Identity(classes=LEVELS).fit(p, LEVELS[y])
    np.testing.assert_array_equal(model.predict_proba(moved(p, names)), p)


@pytest.mark.parametrize("spelling", ["{}", "p{}", "class{}", "c_{}", "P({})", "{}.0", "0{}"])
def test_column_numbers_are_recognized_after_many_prefixes(data, spelling):
    p, y, right = data
    names = [spelling.format(k) for k in range(3)]
    assert evaluate(y, moved(p, names)).log_loss == pytest.approx(right, rel=1e-12)
    assert evaluate(y.astype(np.uint8), moved(p, names)).log_loss == pytest.approx(right)


def test_columns_that_start_at_one_do_not_imply_that_labels_start_at_one(data):
    p, y, _ = data
    frame, seen = pandas.DataFrame(p, columns=["p1", "p2", "p3"]), y > 0
    assert evaluate(y, frame) == evaluate(y, p)
    with pytest.warns(DataWarning, match="0 never occurs, although the scores of column 0 sum to"):
        assert evaluate(y[seen], frame[seen]).accuracy == (p.argmax(axis=1) == y)[seen].mean()
    assert evaluate(y + 1, frame) == evaluate(y, p)


def test_data_frames_with_two_levels_of_column_names_are_accepted(data):
    p, y, right = data
    names = pandas.MultiIndex.from_product([["p"], LEVELS])
    assert evaluate(LEVELS[y], pandas.DataFrame(p, columns=names)).log_loss == right


@pytest.mark.parametrize(
    "names", [[True, False], ["True", "False"], ["TRUE", "FALSE"], ["1", "0"], ["p1", "p0"]]
)
@pytest.mark.parametrize("kind", [bool, int])
def test_boolean_labels_are_matched_by_name(binary, names, kind):
    score, y, right = binary
    frame = pandas.DataFrame(np.column_stack([score, 1 - score]), columns=names)
    assert evaluate(y.astype(kind), frame).log_loss == pytest.approx(right, rel=1e-9)


def test_labels_of_bytes_or_numbers_or_dates_are_matched_by_name(data):
    p, y, right = data
    for labels, names in (
        (LEVELS[y].astype("S"), LEVELS),
        (LEVELS[y].astype("S").astype(object), LEVELS),
        (y + 0.5, [0.5, 1.5, 2.5]),
        (DAYS[y], DAYS.astype(str)),
        (DAYS[y].astype("datetime64[ns]"), DAYS.astype(str)),
        (pandas.Series(DAYS[y]), pandas.DatetimeIndex(DAYS)),
    ):
        found = evaluate(labels, moved(p, names))
        assert found.log_loss == pytest.approx(right, rel=1e-12)


def test_there_can_be_more_columns_than_the_integer_type_of_the_labels_can_represent(rng):
    p = rng.dirichlet(np.ones(300), 20)
    frame = pandas.DataFrame(p, columns=[f"p_{k}" for k in range(300)])
    labels = np.arange(20, dtype=np.uint8)
    assert evaluate(labels, frame).log_loss == evaluate(labels.astype(int), p).log_loss


def test_one_score_per_row_with_date_labels_requires_classes(binary):
    score, y, right = binary
    with pytest.raises(ValueError, match="The positive class is ambiguous"):
        evaluate(DAYS[y], score)
    assert evaluate(DAYS[y], score, classes=DAYS[:2]).log_loss == right


def test_columns_with_duplicate_names_are_matched_by_position(data):
    p, y, _ = data
    frame = pandas.DataFrame(np.log(p), columns=["x", "x", "w"])
    model = Identity(inputs="logits").fit(frame, y)
    np.testing.assert_allclose(model.predict_proba(frame), p, atol=1e-12)


def test_an_array_is_rejected_if_the_model_was_fitted_on_reordered_columns(data):
    p, y, _ = data
    for model, frame, labels in (
        (Identity(), moved(p, ["0", "1", "2"]), y),
        (Identity(classes=LEVELS), moved(p, LEVELS), LEVELS[y]),
    ):
        model.fit(frame, labels)
        with pytest.raises(ValueError, match="were not in the order of classes_"):
            model.predict_proba(frame.to_numpy())
        again = pandas.DataFrame(frame.to_numpy(), columns=frame.columns)
        np.testing.assert_array_equal(model.predict_proba(again), p)
        by_class = pandas.DataFrame(p, columns=model.classes_.astype(str))
        np.testing.assert_array_equal(model.predict_proba(by_class), p)
        np.testing.assert_array_equal(model.fit(p, labels).predict_proba(p), p)


def test_an_accumulator_matches_columns_by_name_and_keeps_its_classes(data):
    p, y, _ = data
    frame = pandas.DataFrame(p, columns=LEVELS)
    whole, half = evaluate(LEVELS[y], frame), N_ROWS // 2
    parts = MetricAccumulator().update(LEVELS[y[:half]], frame[:half])
    again = MetricAccumulator.from_json(parts.to_json())
    for stream in (parts, again):
        stream.update(LEVELS[y[half:]], moved(p, LEVELS)[half:])
        assert stream.compute().cw_ece == pytest.approx(whole.cw_ece, rel=1e-12)
        with pytest.raises(ValueError, match="Label 'top' in row 0 is not among the classes"):
            stream.update(["top"], p[:1])
    other = MetricAccumulator().update(LEVELS[y], moved(p, LEVELS))
    with pytest.raises(ValueError, match="Only accumulators with the same classes can be merged"):
        parts.merge(other)


def test_a_sum_of_accumulators_keeps_their_options(data):
    p, y, right = data
    both = MetricAccumulator(renormalize=True) + MetricAccumulator(renormalize=True)
    for stream in (both, MetricAccumulator.from_json(both.to_json())):
        assert stream.update(y, 0.7 * p).compute().log_loss == pytest.approx(right)


def test_label_shift_matches_columns_of_data_frames_by_name():
    rng = np.random.default_rng(0)
    is_one = rng.random(4000) < np.repeat([0.5, 0.2], 2000)
    p = np.where(is_one ^ (rng.random(4000) < 0.1), 0.9, 0.1)
    frame = pandas.DataFrame({"no": 1 - p, "yes": p})
    right = label_shift.adapt(frame[:2000].to_numpy(), frame[2000:].to_numpy(), rng=0)
    found = label_shift.adapt(frame[:2000], frame[2000:][["yes", "no"]], rng=0)
    np.testing.assert_array_equal(found.target_prior, right.target_prior)
    np.testing.assert_array_equal(found.apply(frame[["yes", "no"]]), right.apply(frame.to_numpy()))


# Orders of rows


def test_pandas_objects_with_rows_in_different_orders_cause_a_warning(data):
    p, y, right = data
    order = np.random.default_rng(0).permutation(N_ROWS)
    frame, labels = pandas.DataFrame(p, columns=LEVELS), pandas.Series(LEVELS[y])
    said = r"same rows in different orders. Rows were matched by position"
    with pytest.warns(DataWarning, match=said):
        evaluate(labels, frame.iloc[order])
    with pytest.warns(DataWarning, match=said):
        evaluate(labels, frame, sample_weight=pandas.Series(np.ones(N_ROWS), index=order))
    assert evaluate(labels, frame.iloc[order].loc[labels.index]).log_loss == right
    assert evaluate(labels.to_numpy(), frame.set_index(order)).log_loss == right
    assert evaluate(labels.set_axis(order), frame.set_axis(np.arange(N_ROWS) + 7)).log_loss == right


# Types


def test_results_do_not_depend_on_the_data_type_of_scores_and_labels(data):
    p, y, right = data
    for scores in (
        *(p.astype(kind) for kind in (">f8", object, str, "S25", np.longdouble)),
        np.asfortranarray(p),
        np.repeat(p, 2, axis=0)[::2],
        p.tolist(),
        [tuple(row) for row in p],
        pandas.DataFrame(p).astype("Float64"),
    ):
        assert evaluate(y, scores).log_loss == pytest.approx(right, rel=1e-12)
    for labels in (
        *(y.astype(kind) for kind in (">i2", np.int8, np.uint64, object)),
        y.tolist(),
        pandas.Series(y, dtype="Int64"),
    ):
        assert evaluate(labels, p).log_loss == right


def test_float32_scores_of_both_byte_orders_have_the_same_tolerance(data):
    p, y, right = data
    off = (p * 1.0001).astype(">f4")
    assert evaluate(y, off).log_loss == pytest.approx(right, abs=1e-3)
    assert Identity().fit(off, y).predict_proba(off).dtype == np.float32


def test_integers_in_object_arrays_are_column_indices(data, binary):
    p, y, _ = data
    with pytest.raises(ValueError, match=r"Label 3 in row . is out of range"):
        evaluate((y + 1).astype(object), p)
    score, two, right = binary
    assert evaluate(two.astype(object), score).log_loss == right
    assert evaluate((two == 1).astype(object), score).log_loss == right


def test_scores_that_are_not_dense_arrays_of_real_numbers_are_rejected(data):
    p, y, _ = data
    for scores, said in (
        (sparse.csr_array(p), r"Sparse input \(csr_array\) is not supported. Pass X.toarray\(\)"),
        (p.astype(complex), "Scores must be real numbers, got an array of dtype complex128"),
        ((1e6 * p).astype("datetime64[s]"), "Scores must be real numbers"),
    ):
        for inputs in ("proba", "logits"):
            with pytest.raises(TypeError, match=said):
                evaluate(y, scores, inputs=inputs)
    with pytest.raises(TypeError, match=r"Sparse input \(csr_array\) is not supported"):
        evaluate(sparse.csr_array(y[None]), p)


def test_predicted_labels_in_place_of_probabilities_are_rejected(data):
    p, y, _ = data
    with pytest.raises(
        ValueError,
        match=r"3 different values. Pass one column per class, for example model.predict_proba",
    ):
        evaluate(y, p.argmax(axis=1))


def test_probabilities_passed_as_logits_cause_a_warning(data):
    p, y, right = data
    said = r"every row sums to one. If these scores are probabilities, pass inputs='proba'"
    with pytest.warns(DataWarning, match=said):
        evaluate(y, p, inputs="logits")
    with pytest.warns(DataWarning, match=said):
        TemperatureScaling(inputs="logits").fit(p, y)
    assert evaluate(y, np.log(p), inputs="logits").log_loss == pytest.approx(right)


def test_log_probabilities_slightly_above_zero_are_accepted():
    found = evaluate([1, 0], [5e-7, -3.0], inputs="log_proba")
    assert found.accuracy == 1.0
    exact = evaluate(
        [1, 0],
        log_softmax([[-40.0, 0.0], [np.log(np.expm1(3.0)), 0.0]], axis=1),
        inputs="log_proba",
    )
    assert found.log_loss == pytest.approx(exact.log_loss, abs=1e-6)


# Few rows, few classes


def test_one_row_can_be_evaluated_but_its_debiased_error_is_not_identifiable():
    found = evaluate([0], [[0.9, 0.1]])
    assert (found.accuracy, found.sharpness) == (1.0, 0.0)
    assert found.conf_ece == pytest.approx(0.1)
    interval = debiased_interval([0], [[0.9, 0.1]])
    assert np.isnan(interval.estimate)
    assert (interval.low, interval.note[:16]) == (0.0, "not identifiable")


def test_weights_that_sum_to_one_do_not_change_debiased_intervals(data):
    p, y, _ = data
    weighted = debiased_interval(y, p, sample_weight=np.full(N_ROWS, 1 / N_ROWS))
    assert weighted.high == pytest.approx(debiased_interval(y, p).high)


def test_a_class_that_is_absent_from_a_fold_has_a_column(rng):
    X = rng.normal(size=(60, 2))
    y = np.r_[1, np.zeros(59, dtype=int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare classes, fits that do not converge
        model = CalibratedClassifier(GaussianNB(), "temperature", cv=3).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (60, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)


def test_metrics_accept_the_same_inputs_as_evaluate(data):
    p, y, right = data
    assert metrics.log_loss(LEVELS[y], moved(p, LEVELS)) == pytest.approx(right, rel=1e-12)
    with pytest.raises(ValueError, match="is masked"):
        metrics.brier_score(y, np.ma.masked_array(p, mask=p < 0.01))
