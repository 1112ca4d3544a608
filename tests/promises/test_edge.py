"""Checks of scores, labels and weights."""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.naive_bayes import GaussianNB

from calibrant import (
    CalibratedClassifier,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MulticlassToBinary,
    PlattScaling,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    compare,
    evaluate,
    flatten_predictions,
    map_scores,
    method,
    metrics,
)
from calibrant.exceptions import DataWarning
from calibrant.inference import calibration_gain
from calibrant.testing import check_calibrator

LEVELS = ["low", "mid", "high"]
SURE = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])


@pytest.fixture
def forecasts(rng):
    """Logits of three classes, twice too sure, and the truth."""
    z = rng.normal(scale=1.5, size=(400, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return 2.0 * z, y


def frames(table, names):
    """The table as a frame of every kind that is installed."""
    pandas = pytest.importorskip("pandas")
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(table, columns=names)
    return [
        frame,
        polars.DataFrame(table, schema=names, orient="row"),
        pyarrow.Table.from_pandas(frame),
        pyarrow.RecordBatch.from_pandas(frame),
    ]


def test_columns_named_after_classes_are_matched_by_name():
    for frame in frames(SURE, LEVELS):
        assert evaluate(LEVELS, frame).accuracy == 1.0
        assert evaluate(LEVELS, frame, classes=["high", "low", "mid"]).accuracy == 1.0
        assert metrics.accuracy(LEVELS, frame) == 1.0
    for frame in frames(SURE[:, [2, 0, 1]], ["p_high", "p_low", "p_mid"]):
        assert evaluate(LEVELS, frame, classes=LEVELS).accuracy == 1.0
        assert evaluate(LEVELS, frame).accuracy == 1.0


def test_numeric_column_names_are_matched_with_integer_labels():
    for frame in frames(SURE[:, [2, 0, 1]], ["2", "0", "1"]):
        assert evaluate([0, 1, 2], frame).accuracy == 1.0
    for frame in frames(SURE, ["1", "2", "3"]):
        assert evaluate([1, 2, 2], frame).accuracy == pytest.approx(2 / 3)


def test_the_categories_of_labels_define_the_order_of_the_columns():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    labels = pandas.Categorical(LEVELS, categories=LEVELS, ordered=True)
    assert evaluate(labels, SURE).accuracy == 1.0
    assert evaluate(pandas.Series(labels), pandas.DataFrame(SURE, columns=LEVELS)).accuracy == 1.0
    shuffled = pandas.DataFrame(SURE[:, [2, 0, 1]], columns=["high", "low", "mid"])
    assert evaluate(labels, shuffled).accuracy == 1.0
    assert evaluate(polars.Series(LEVELS, dtype=polars.Enum(LEVELS)), SURE).accuracy == 1.0


def test_column_names_that_contradict_the_classes_raise_an_error():
    for frame in frames(SURE, LEVELS):
        with pytest.raises(
            ValueError,
            match="The column name 'high' is not one of the classes low, mid, top, although",
        ):
            evaluate(LEVELS, frame, classes=["low", "mid", "top"])
        with pytest.raises(
            ValueError,
            match=r"No column has the name of label 'top'.* The columns are low, mid, high",
        ):
            evaluate(["low", "mid", "top"], frame)


def test_columns_with_unrelated_names_are_matched_by_position():
    for frame in frames(SURE, ["x", "y", "z"]):
        assert evaluate(LEVELS, frame, classes=LEVELS).accuracy == 1.0
        assert evaluate([0, 1, 2], frame).accuracy == 1.0


@pytest.mark.parametrize("method", [TemperatureScaling(), MulticlassToBinary(PlattScaling())])
def test_shuffled_columns_are_reordered_as_in_the_fit(forecasts, method):
    pytest.importorskip("pandas")
    z, y = forecasts
    names, labels = ["cat", "dog", "owl"], np.array(["cat", "dog", "owl"])[y]
    frame, *others = frames(softmax(z, axis=1), names)
    expected = method.fit(frame, labels).predict_proba(frame)
    assert method.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(method.predict_proba(frame[["owl", "cat", "dog"]]), expected)
    for other in others:
        np.testing.assert_array_equal(method.predict_proba(other), expected)
    with pytest.warns(DataWarning, match="'cat', 'dog', 'owl', in sorted order"):
        by_position = method.fit(frame.to_numpy(), labels)
    np.testing.assert_array_equal(by_position.predict_proba(frame[["owl", "cat", "dog"]]), expected)
    with pytest.raises(ValueError, match="The column name 'emu' is not one of the classes"):
        by_position.predict_proba(frame.rename(columns={"owl": "emu"}))


def test_output_data_frames_have_the_correct_column_names(forecasts):
    pytest.importorskip("pandas")
    z, y = forecasts
    frame = frames(softmax(z, axis=1), ["cat", "dog", "owl"])[0]
    labels = np.array(["cat", "dog", "owl"])[y]
    model = Identity().set_output(transform="pandas").fit(frame[["owl", "cat", "dog"]], labels)
    out = model.predict_proba(frame)
    for name in ("cat", "dog", "owl"):
        np.testing.assert_array_equal(out[name], frame[name])


def multiple_choice(seed, n_rows):
    """Eight options, logits three times too sure, of which a service returns the best five."""
    generator = np.random.default_rng(seed)
    z = generator.normal(scale=1.5, size=(n_rows, 8))
    y = (z + generator.gumbel(size=z.shape)).argmax(axis=1)
    cut = np.where(z < np.sort(z, axis=1)[:, [-5]], -np.inf, z)
    return 3 * z, 3 * cut, y


def judged(model, train, test, y_train, y_test):
    return evaluate(y_test, model.fit(train, y_train).predict_proba(test))


def test_truncated_scores_do_not_make_the_temperature_diverge():
    """The newcomer's table: the temperature was 302, and worse than doing nothing."""
    (z, cut, y), (_, cut_new, y_new) = multiple_choice(1, 200), multiple_choice(2, 4000)
    with pytest.warns(DataWarning, match=r"true class has the score -inf in .* of 4,000 rows"):
        raw = evaluate(y_new, cut_new, inputs="logits")
    model = TemperatureScaling(inputs="logits")
    with pytest.warns(DataWarning, match="true class of 8 of 200 rows has the score -inf"):
        after = judged(model, cut, cut_new, y, y_new)
    assert model.temperature_ < 7
    assert after.log_loss < raw.log_loss - 1
    assert after.conf_ece < raw.conf_ece / 2
    assert after.brier_score < raw.brier_score - 0.05
    with pytest.warns(DataWarning, match="true class of 8 of 200 rows has the score zero"):
        zeros = TemperatureScaling().fit(softmax(cut, axis=1), y)
    assert model.temperature_ == pytest.approx(zeros.temperature_, rel=1e-9)
    full = TemperatureScaling(inputs="logits").fit(z, y).temperature_
    assert full == pytest.approx(3, abs=0.5)


def test_the_recommended_treatment_of_truncated_scores_is_nearly_as_good_as_complete_scores():
    (z, cut, y), (z_new, cut_new, y_new) = multiple_choice(1, 200), multiple_choice(2, 4000)

    def completed(scores):
        known = np.where(np.isneginf(scores), np.inf, scores).min(axis=1, keepdims=True)
        return np.maximum(scores, known)

    model = TemperatureScaling(inputs="logits")
    best = judged(model, z, z_new, y, y_new)
    recipe = judged(model, completed(cut), completed(cut_new), y, y_new)
    assert model.temperature_ == pytest.approx(3, abs=0.5)
    assert recipe.conf_ece < best.conf_ece + 0.02
    assert recipe.log_loss < best.log_loss + 0.05


@pytest.mark.parametrize(
    "method", [VectorScaling, DirichletCalibration, StructuredScaling, EnsembleTemperatureScaling]
)
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
def test_scaling_methods_reduce_the_log_loss_of_truncated_scores(method):
    (_, cut, y), (_, cut_new, y_new) = multiple_choice(1, 400), multiple_choice(2, 4000)
    raw = evaluate(y_new, cut_new, inputs="logits")
    after = judged(method(inputs="logits"), cut, cut_new, y, y_new)
    assert after.log_loss < raw.log_loss - 1
    assert after.conf_ece < raw.conf_ece


def test_the_log_loss_of_a_forecast_does_not_depend_on_the_type_of_its_scores():
    z = np.array([[0.0, -1, -np.inf], [0, -2, -3]])
    q = softmax(z, axis=1)
    with pytest.warns(DataWarning, match="true class has the score -inf in 1 of 2 rows"):
        losses = [
            evaluate([2, 0], z, inputs="logits").log_loss,
            evaluate([2, 0], q).log_loss,
            evaluate([2, 0], log_softmax(z, axis=1), inputs="log_proba").log_loss,
            metrics.log_loss([2, 0], q),
        ]
    np.testing.assert_allclose(losses, 13.900433567742416, rtol=1e-12)


@pytest.mark.parametrize("method", [Identity, TemperatureScaling, IsotonicCalibration])
def test_calibrators_accept_log_probabilities(forecasts, method):
    z, y = forecasts[0][:, :2], forecasts[1] % 2
    log_p, p = log_softmax(z, axis=1), softmax(z, axis=1)
    expected = method().fit(p, y).predict_proba(p)
    logs = method(inputs="log_proba").fit(log_p, y)
    np.testing.assert_allclose(logs.predict_proba(log_p), expected, atol=1e-9)
    np.testing.assert_allclose(logs.predict_proba(log_p[:, 1]), expected, atol=1e-9)


def test_comparisons_and_calibration_gains_accept_log_probabilities(forecasts):
    z, y = forecasts
    log_p = log_softmax(z, axis=1)
    methods = {"temperature": TemperatureScaling()}
    logs = compare(y, log_p, inputs="log_proba", methods=methods, random_state=0)
    logits = compare(y, z, inputs="logits", methods=methods, random_state=0)
    # Folds are dealt by the scores; of the uncalibrated forecasts means over rows are the same.
    np.testing.assert_allclose(logs.mean[0, 0, :3], logits.mean[0, 0, :3], atol=1e-9)
    gains = [
        calibration_gain(y, scores, inputs=kind, rng=0).gain
        for scores, kind in ((z, "logits"), (log_p, "log_proba"))
    ]
    assert all(gain > 0 for gain in gains)


def test_one_score_per_row_with_text_labels_requires_classes():
    with pytest.raises(ValueError, match=r"The positive class is ambiguous, .* Pass classes"):
        evaluate(["approve", "reject"], [0.9, 0.1])
    assert evaluate(["approve", "reject"], [0.9, 0.1], classes=["reject", "approve"]).accuracy == 1
    assert evaluate([1, 0], [0.9, 0.1]).accuracy == 1


def test_text_labels_are_sorted_with_a_warning_if_columns_have_no_names():
    yes_no, log_odds = np.array(["yes", "no", "yes"]), np.array([2.0, -2.0, 1.0])
    table = np.column_stack([log_odds, -log_odds])  # yes, no
    with pytest.warns(DataWarning, match=r"assumed to be the classes 'no', 'yes', in sorted order"):
        assert evaluate(yes_no, table, inputs="logits").accuracy == 0.0
    with pytest.warns(DataWarning, match=r"'high', 'low', 'mid', in sorted order. To avoid this"):
        evaluate(LEVELS, SURE)
    # obeying says nothing more, and is right
    assert evaluate(yes_no, table, inputs="logits", classes=["yes", "no"]).accuracy == 1.0
    assert evaluate(LEVELS, SURE, classes=LEVELS).accuracy == 1.0


def test_pixels_and_tokens_are_flattened_with_a_declared_class_axis(rng):
    logits, labels = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, size=(2, 4, 5))
    last = np.moveaxis(logits, 1, -1).reshape(-1, 3)
    flat = flatten_predictions(labels, logits, class_axis=1)
    np.testing.assert_array_equal(flat.y_prob, last)
    np.testing.assert_array_equal(flat.y_true, labels.ravel())
    tokens = flatten_predictions(labels[:, 0], logits[:, :, 0], ignore_label=2)
    kept = labels[:, 0].ravel() != 2
    np.testing.assert_array_equal(tokens.y_true, labels[:, 0].ravel()[kept])
    np.testing.assert_array_equal(
        tokens.y_prob, np.moveaxis(logits[:, :, 0], 1, -1)[labels[:, 0] != 2]
    )
    model = TemperatureScaling(inputs="logits").fit(flat.y_prob, flat.y_true)
    made = map_scores(model.predict_proba, logits, class_axis=1)
    np.testing.assert_array_equal(made[1, :, 2, 3], model.predict_proba(logits[1:, :, 2, 3])[0])


def test_scores_with_more_than_two_axes_raise_an_error_with_the_code_to_use(rng):
    logits, labels = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, size=(2, 4, 5))
    said = r"Write flat = calibrant.flatten_predictions\(labels, scores, class_axis=1\) and pass"
    for call in (
        lambda: evaluate(labels, logits, inputs="logits"),
        lambda: metrics.log_loss(labels, logits, inputs="logits"),
        lambda: TemperatureScaling(inputs="logits").fit(logits, labels),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    with pytest.raises(
        ValueError, match=r"class_axis=1 or class_axis=2 or class_axis=3\) and pass"
    ):
        evaluate(labels[:, :3, :3], logits[:, :, :3, :3])
    model = Identity(inputs="logits").fit(logits[:, :, 0, 0], [0, 1])
    with pytest.raises(ValueError, match=r"calibrant.map_scores\(model.predict_proba, scores"):
        model.predict_proba(logits)
    with pytest.raises(
        ValueError, match=r"\(2, 3, 4\) for class_axis=-1, .* Did you mean class_axis=1\?"
    ):
        flatten_predictions(labels, logits, class_axis=-1)


def test_one_row_is_distinguished_from_one_score_per_row():
    row = np.full(10, 0.1)
    model = Identity().fit(np.full((10, 10), 0.1), np.arange(10))
    with pytest.raises(
        ValueError, match=r"fitted with 10 classes. Pass X\[None\] for a single row"
    ):
        model.predict_proba(row)
    assert model.predict_proba(row[None]).shape == (1, 10)
    for label in (3, [3]):
        with pytest.raises(ValueError, match=r"For one row of 10 classes, pass scores\[None\]"):
            evaluate(label, row)
    assert evaluate([3], row[None]).n_samples == 1
    two = Identity().fit([[0.3, 0.7], [0.6, 0.4]], [1, 0])
    with pytest.warns(DataWarning, match=r"class 1 of two rows. For one row"):
        assert two.predict_proba([0.3, 0.7]).shape == (2, 2)


def test_classes_with_fewer_rows_than_folds_cause_a_warning(rng):
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1, 2], [19, 18, 3])
    model = CalibratedClassifier(GaussianNB(), Identity())
    with pytest.warns(DataWarning, match="The smallest class has 3 rows, fewer than the 5 folds"):
        model.fit(X, y)
    with pytest.warns(
        DataWarning, match="cv=5 was reduced to 3, because no class has more than 3 rows"
    ):
        model.set_params(ensemble=False).fit(X[[0, 1, 2, 19, 20]], y[[0, 1, 2, 19, 20]])


def test_the_error_for_a_missing_label_states_its_row():
    pandas = pytest.importorskip("pandas")
    for labels in (
        ["a", "b", np.nan],
        ["a", "b", None],
        [0, 1, None],
        [0.0, 1.0, np.nan],
        np.array(["2026-01-01", "2026-01-02", "NaT"], dtype="datetime64[D]"),
        pandas.Series(["a", "b", np.nan]),
        pandas.Series([0, 1, pandas.NA], dtype="Int64"),
        pandas.Categorical(["a", "b", None]),
    ):
        with pytest.raises(ValueError, match="The label of row 2 is missing"):
            evaluate(labels, np.eye(3))


def test_labels_that_start_at_one_cause_a_warning(forecasts):
    z, y = forecasts
    p, seen = softmax(z, axis=1), y < 2
    with pytest.warns(DataWarning, match=r"0 never occurs, although .* classes=range\(1, 4\)"):
        evaluate(y[seen] + 1, p[seen])
    obeyed = evaluate(y[seen] + 1, p[seen], classes=range(1, 4))
    assert obeyed == evaluate(y[seen], p[seen])


def test_float_labels_cause_a_warning(forecasts):
    z, y = forecasts
    with pytest.warns(DataWarning, match="floats and are assumed to be column indices"):
        found = evaluate(y.astype(float), z, inputs="logits")
    assert found == evaluate(y, z, inputs="logits")


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6])
def test_rounded_probabilities_are_accepted_with_a_warning(forecasts, decimals):
    z, y = forecasts
    rounded = softmax(z, axis=1).round(decimals)
    assert np.abs(rounded.sum(axis=1) - 1).max() > 0.5 * 10.0**-decimals
    with pytest.warns(DataWarning, match=r"because of rounding .* divided by their sum"):
        found = evaluate(y, rounded)
    assert found == evaluate(y, rounded / rounded.sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match=r"Pass p / p.sum.* for counts or shares"):
        evaluate(y, rounded * 1.06)


def test_probabilities_slightly_below_zero_or_above_one_are_accepted_with_a_warning():
    with pytest.warns(DataWarning, match="divided by their sum"):
        proba = Identity().fit(np.eye(2), [0, 1]).predict_proba(np.float32([[1.00001, 0.0]]))
    np.testing.assert_array_equal(proba, [[1.0, 0.0]])
    with pytest.warns(DataWarning, match="set to 0 and 1"):
        assert evaluate([0, 1], [[1.0, -1e-17], [0.0, 1.0]]).accuracy == 1.0
    with pytest.warns(DataWarning, match="set to 0 and 1"):
        assert evaluate([0, 1], [-1e-17, 1.0 + 1e-9]).accuracy == 1.0


def test_bfloat16_probabilities_are_accepted_with_a_warning(forecasts):
    z, y = forecasts
    p = softmax(z, axis=1)
    bits = (p.astype(np.float32).view(np.uint32) + 0x8000) & 0xFFFF0000
    with pytest.warns(DataWarning, match="the tolerance is 0.01"):
        found = evaluate(y, bits.view(np.float32))
    assert found.log_loss == pytest.approx(evaluate(y, p).log_loss, abs=2e-3)


def test_rows_are_renormalized_on_request(forecasts):
    z, y = forecasts
    p = softmax(z, axis=1)
    found = evaluate(y, 0.7 * p, renormalize=True)
    assert found.log_loss == pytest.approx(evaluate(y, p).log_loss, abs=1e-12)


def test_weights_that_sum_to_one_are_equivalent_to_weights_of_one(forecasts):
    z, y = forecasts
    p, w = softmax(z, axis=1), np.full(400, 1 / 400)
    for call in (
        lambda weight: evaluate(y, p, sample_weight=weight).sharpness,
        lambda weight: metrics.sharpness(y, p, sample_weight=weight),
        lambda weight: metrics.expected_calibration_error(
            y, p, norm=2, debias=True, sample_weight=weight
        ),
        lambda weight: calibration_gain(y, p, sample_weight=weight, rng=0).gain,
    ):
        assert call(w) == pytest.approx(call(np.ones(400)))
    with pytest.raises(ValueError, match=r"weights of 400 rows sum to 1. Pass w \* n / w.sum"):
        metrics.kernel_calibration_error(y, p, sample_weight=w)


@pytest.mark.parametrize("name", ["structured-matrix", "auto"])
@pytest.mark.parametrize("scale", [1 / 400, 2.5])
def test_fits_scale_weights_to_the_effective_number_of_rows(forecasts, name, scale):
    z, y = forecasts
    p, weight = softmax(z, axis=1), np.full(400, scale)
    plain = method(name).fit(p, y).predict_proba(p)
    with pytest.warns(DataWarning, match="scaled to the effective number of rows, 400"):
        scaled = method(name).fit(p, y, sample_weight=weight)
    np.testing.assert_allclose(scaled.predict_proba(p), plain, atol=1e-9)


def test_histogram_binning_has_at_most_as_many_bins_as_rows(forecasts):
    z, y = forecasts
    p = softmax(z, axis=1)[:, 0]
    model = HistogramBinning().fit(p, y == 0, sample_weight=np.full(400, 10**7))
    assert len(model.edges_) <= 400


def test_metrics_that_do_not_count_rows_ignore_the_scale_of_weights(forecasts):
    z, y = forecasts
    p, w = softmax(z, axis=1), np.linspace(0.5, 1.5, 400)
    for metric in (
        metrics.log_loss,
        metrics.brier_score,
        metrics.accuracy,
        metrics.expected_calibration_error,
        metrics.ks_error,
    ):
        small = metric(y, p, sample_weight=w / w.sum())
        assert small == pytest.approx(metric(y, p, sample_weight=w), rel=1e-9)


def test_a_classifier_whose_probabilities_do_not_sum_to_one_can_be_calibrated():
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB

    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    model = CalibratedClassifier(GaussianNB(), TemperatureScaling())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        proba = model.fit(X[::2], y[::2]).predict_proba(X[1::2])
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)


def bad_inputs():
    """The script of the page about bad inputs, as a module."""
    path = Path(__file__).resolve().parents[2] / "tools" / "make_bad_inputs.py"
    spec = importlib.util.spec_from_file_location("make_bad_inputs", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_bad_inputs"] = module  # named tuples look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("pandas")
    return bad_inputs()


@pytest.fixture
def namespace(script):
    return script.names()


@pytest.mark.parametrize("case", bad_inputs().CASES, ids=lambda case: case.call)
def test_following_the_advice_of_a_message_gives_the_correct_result(script, namespace, case):
    assert script.message_of(case, namespace)
    if case.obeyed is not None:
        obeyed, right = (script.value(call, namespace) for call in (case.obeyed, case.right))
        assert obeyed == pytest.approx(right, abs=case.within)


def test_the_page_of_bad_inputs_is_up_to_date_and_has_at_least_forty_cases(script):
    assert len(script.CASES) >= 40
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


def test_columns_without_names_are_matched_by_position():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SURE)
    assert evaluate([1, 2, 3], frame, classes=[1, 2, 3]).accuracy == 1.0
    model = Identity(classes=[1, 2, 3]).fit(frame, [1, 2, 3])
    assert model.predict(frame).tolist() == [1, 2, 3]


def test_labels_can_be_series_of_text_or_numbers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SURE, columns=LEVELS)
    for dtype in ("object", "str", "category"):
        assert evaluate(pandas.Series(LEVELS, dtype=dtype), frame).accuracy == 1.0
    numbered = frame.set_axis(["p_3", "p_1", "p_2"], axis=1)
    assert evaluate(pandas.Series([3, 1]), numbered[:2]).accuracy == 1.0
    assert evaluate(np.array([3.0, 1.0]), numbered[:2]).accuracy == 1.0


def test_columns_of_log_probabilities_are_recognized_by_their_prefix(forecasts, tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("typer")
    from calibrant.cli import run

    z, y = forecasts
    frame = pandas.DataFrame(log_softmax(z, axis=1), columns=["lp_low", "lp_mid", "lp_high"])
    frame["label"] = np.array(LEVELS)[y]
    frame.to_csv(tmp_path / "f.csv", index=False)
    assert run(["evaluate", str(tmp_path / "f.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["log_loss"] == pytest.approx(evaluate(y, z, inputs="logits").log_loss)


@pytest.mark.parametrize(
    "method", [TemperatureScaling, IsotonicCalibration, EnsembleTemperatureScaling]
)
def test_calibrators_of_log_probabilities_pass_the_estimator_checks(method):
    check_calibrator(method(inputs="log_proba"))
