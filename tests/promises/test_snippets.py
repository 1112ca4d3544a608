"""Calls that once returned a wrong result without a warning."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut

import calibrant
from calibrant import (
    CalibratedClassifier,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    MulticlassToBinary,
    PlattScaling,
    TemperatureScaling,
    evaluate,
)
from calibrant.datasets import digits_predictions, draw_labels
from calibrant.exceptions import DataWarning
from calibrant.inference import bootstrap_interval, debiased_interval
from calibrant.report import summarize, to_markdown

LEVELS = ["low", "mid", "high"]


def overconfident(n_samples, n_classes):
    """A model that says 95 % and is right in 30 %."""
    rng = np.random.default_rng(0)
    top, y = rng.integers(n_classes, size=(2, n_samples))
    y = np.where(rng.random(n_samples) < 0.3, top, y)
    proba = np.full((n_samples, n_classes), 0.05 / (n_classes - 1))
    proba[np.arange(n_samples), top] = 0.95
    return y, proba


@pytest.mark.parametrize(
    ("n_classes", "n_samples"), [(20, 200), (100, 1000), (100, 2000), (10, 200), (50, 5000)]
)
def test_the_debiased_error_of_a_strongly_overconfident_model_is_correct(n_classes, n_samples):
    y, proba = overconfident(n_samples, n_classes)
    gap = 0.95 - (proba.argmax(axis=1) == y).mean()
    for notion in ("top-label", "confidence"):
        found = debiased_interval(y, proba, notion=notion)
        assert found.estimate == pytest.approx(gap, abs=0.03)
        assert 0.5 < found.low < gap < found.high < 0.8


def test_the_report_of_a_strongly_overconfident_model_shows_a_large_top_label_error():
    y, proba = overconfident(200, 20)
    text = to_markdown(summarize(y, proba, calibrator=TemperatureScaling(), n_resamples=19))
    row = next(line for line in text.splitlines() if line.startswith("| Top-label error (L2)"))
    before = [float(number) for number in re.findall(r"\d\.\d{3}", row)[:3]]
    assert before[0] == pytest.approx(0.64, abs=0.02)
    assert 0.5 < before[1] < before[0] < before[2] < 0.8


def test_the_interval_of_one_row_extends_to_the_largest_possible_error():
    found = debiased_interval([0], [0.99], notion="class-1")
    assert np.isnan(found.estimate)
    assert (found.low, found.high) == (0.0, 0.99)
    assert "not identifiable" in str(found)


@pytest.fixture
def low_mid_high():
    """Twenty times what is 90 % sure of each level, right in all but two."""
    pandas = pytest.importorskip("pandas")
    sure = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    labels = np.tile(LEVELS, 20)
    labels[:2] = labels[[1, 0]]
    return pandas.DataFrame(np.tile(sure, (20, 1)), columns=LEVELS), labels


def test_fits_and_reports_match_columns_of_data_frames_by_name(low_mid_high):
    frame, labels = low_mid_high
    by_hand = TemperatureScaling(classes=LEVELS).fit(frame.to_numpy(), labels)
    fitted = TemperatureScaling().fit(frame, labels)
    assert fitted.temperature_ == by_hand.temperature_ < 1
    assert fitted.score(frame, labels) == pytest.approx(58 / 60)
    made = summarize(labels, frame, calibrator=TemperatureScaling(), n_resamples=19)
    assert "accuracy 96.7%" in made.verdict


def test_predictions_for_a_frame_with_shuffled_columns_have_correct_column_names(low_mid_high):
    F, y = low_mid_high
    m = TemperatureScaling().set_output(transform="pandas").fit(F, y)
    out = m.predict_proba(F[["high", "low", "mid"]])
    assert list(out.columns) == list(m.classes_) == LEVELS
    np.testing.assert_array_equal(out, m.predict_proba(F))
    assert m.feature_names_in_.tolist() == LEVELS


def test_the_log_loss_of_truncated_scores_does_not_depend_on_their_type():
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(200, 8))
    y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    cut = np.where(z < np.sort(z, axis=1)[:, [-5]], -np.inf, z)
    with pytest.warns(DataWarning, match="true class has the score -inf"):
        as_logits = evaluate(y, cut, inputs="logits")
    as_proba = evaluate(y, softmax(cut, axis=1))
    assert as_logits.log_loss == pytest.approx(as_proba.log_loss, rel=1e-9)
    assert np.isneginf(cut[np.arange(200), y]).any()


@pytest.mark.parametrize("labels", [["approve", "reject"], ["fraud", "legit"], ["yes", "no"]])
def test_an_ambiguous_positive_class_raises_an_error(labels):
    with pytest.raises(ValueError, match=r"Pass classes=\[negative, positive\]"):
        evaluate(labels, [0.9, 0.1])
    assert evaluate(labels, [0.9, 0.1], classes=labels[::-1]).accuracy == 1.0
    assert evaluate(labels, [0.1, 0.9], classes=labels).accuracy == 1.0


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrators_of_out_of_fold_scores_have_no_guarantee(ensemble):
    X, y = make_classification(300, n_features=40, n_informative=5, random_state=0)
    lifted = MulticlassToBinary(HistogramBinning(n_bins=3), notion="class-1")
    est = LogisticRegression(C=100, max_iter=2000)
    m = CalibratedClassifier(est, lifted, ensemble=ensemble, cv=2).fit(X, y)
    for calibrator in m.calibrators_:
        with pytest.raises(
            ValueError,
            match="There is no guarantee, because this calibrator was fitted on out-of-fold scores",
        ):
            calibrator.guarantee()


def test_a_guarantee_states_that_training_rows_are_not_allowed():
    X, y = make_classification(300, n_features=8, random_state=0)
    frozen = FrozenEstimator(RandomForestClassifier(20, random_state=0).fit(X, y))
    lifted = MulticlassToBinary(HistogramBinning(n_bins=3), notion="class-1")
    said = str(CalibratedClassifier(frozen, lifted).fit(X, y).calibrator_.guarantee())
    assert "The calibration rows must be independent of each other, and the model must not" in said


def test_the_report_of_five_correct_predictions_shows_an_interval_that_extends_below_one():
    found = bootstrap_interval("accuracy", [1] * 5, [0.9] * 5)
    made = summarize([1] * 5, [0.9] * 5, calibrator=calibrant.Identity(), n_resamples=19)
    row = next(row for row in made.metrics if row.name == "accuracy")
    assert (row.before.low, row.before.high) == pytest.approx((found.low, 1.0))
    assert found.low == pytest.approx(0.478, abs=1e-3)


def test_compare_uses_the_calibrator_that_method_returns():
    data = digits_predictions()
    y, p = data.val_labels[:300], data.val_proba[:300]
    named = calibrant.compare(y, p, methods=["isotonic"], cv=3, rng=0)
    for iso in (calibrant.method("isotonic"), calibrant.method("isotonic", notion="class-wise")):
        made = calibrant.compare(y, p, methods={"iso": iso}, cv=3, rng=0)
        np.testing.assert_array_equal(made.mean, named.mean)


def test_a_report_names_its_calibrator_and_states_the_effect_of_calibration():
    data = digits_predictions()
    y, p = data.test_labels[:300], data.test_proba[:300]
    made = summarize(y, p, calibrator=TemperatureScaling(), n_resamples=19)
    assert "Calibration by TemperatureScaling reduces log-loss from" in made.verdict
    assert made.how[0].startswith("The method TemperatureScaling was cross-fitted")
    assert "softened, because the model is overconfident" in made.map.text
    honest = draw_labels(softmax(np.log(p + 1e-3), axis=1), rng=0)
    soft = softmax(np.log(p + 1e-3), axis=1)
    calm = summarize(honest, soft, calibrator=TemperatureScaling(), n_resamples=19)
    assert "confident" not in calm.map.text


def test_the_verdict_of_a_report_states_the_remaining_miscalibration():
    """Sure rows are right half as often as the model says, unsure ones more often: no temperature
    mends both.
    """
    rng = np.random.default_rng(0)
    score = np.where(np.arange(2000) < 1000, 0.98, 0.6) + 0.01 * rng.random(2000)
    y = (rng.random(2000) < np.where(score > 0.9, 0.7, 0.9)).astype(int)
    made = summarize(y, score, calibrator=TemperatureScaling(), n_resamples=99)
    assert "Calibration by TemperatureScaling reduces log-loss from" in made.verdict
    rest = "The calibrated probabilities are still underconfident, by 17.5% on average."
    assert made.verdict.endswith(rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_rows"),
    [
        ("20news_cleanlab", 500),
        ("20news_cleanlab", 2500),
        ("hpc_cv_yardstick", 1733),
        ("kitti_mondrianforest_pycalib", 2500),
    ],
)
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")  # forests say zero
def test_ensemble_temperature_scaling_of_real_predictions_reaches_its_optimum(
    name, n_rows, real_data
):
    data = real_data(name)
    rows = np.random.default_rng(0).permutation(len(data["labels"]))[:n_rows]
    y, p = data["labels"][rows].astype(int), data["probs"][rows].astype(np.float64)
    model = EnsembleTemperatureScaling().fit(p / p.sum(axis=1, keepdims=True), y)
    u = np.log(np.clip(p / p.sum(axis=1, keepdims=True), 1e-12, 1 - 1e-12))
    members = [softmax(u / model.temperature_, axis=1), softmax(u, axis=1)]
    truth = [member[np.arange(n_rows), y] for member in members]
    table = np.column_stack([*truth, np.full(n_rows, 1 / p.shape[1])])
    slope = (table / (table @ model.weights_)[:, None]).mean(axis=0)
    assert model.converged_
    assert slope.max() <= 1 + 1e-8  # Karush-Kuhn-Tucker
    assert np.abs(slope[model.weights_ > 0] - 1).max() <= 1e-8


@pytest.mark.parametrize("calibrator", [PlattScaling(), IsotonicCalibration()])
def test_leave_one_out_is_rejected_with_one_calibrator_per_fold(calibrator):
    X, y = make_classification(60, random_state=0)
    model = CalibratedClassifier(LogisticRegression(), calibrator, cv=LeaveOneOut(), ensemble=True)
    with pytest.raises(ValueError, match="A fold has only one row"):
        model.fit(X, y)


@pytest.mark.parametrize("calibrator", [PlattScaling(), IsotonicCalibration()])
def test_by_default_one_calibrator_is_fitted_on_the_rows_of_all_folds(calibrator):
    X, y = make_classification(60, random_state=0)
    model = CalibratedClassifier(LogisticRegression(), calibrator, cv=LeaveOneOut()).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.calibrator_.class_weights_.sum() == 60


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "n_samples", "temperature"),
    [(10, 100, 1.2), (10, 100, 2.0), (10, 300, 2.0), (100, 1000, 1.5), (100, 1000, 2.0)],
)
def test_intervals_of_the_top_label_error_cover_the_true_error(n_classes, n_samples, temperature):
    """Coverage was 0 to 23 % here, of a nominal 95 %."""
    held, truth = [], l2_error(n_classes, temperature)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = 3 * rng.normal(size=(n_samples, n_classes))
        y = draw_labels(softmax(z / temperature, axis=1), rng=rng)
        found = debiased_interval(y, softmax(z, axis=1), notion="top-label")
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.85  # 0.95 less two standard errors of 20


def l2_error(n_classes, temperature):
    """What the top score misses of what is true, of many rows, in the mean of 100 bins."""
    z = 3 * np.random.default_rng(99).normal(size=(40_000, n_classes))
    top = z.argmax(axis=1)[:, None]
    said, true = (
        np.take_along_axis(softmax(scores, axis=1), top, axis=1).ravel()
        for scores in (z, z / temperature)
    )
    parts = np.array_split(np.argsort(said), 100)
    gaps = [(said[rows] - true[rows]).mean() for rows in parts]
    return float(np.sqrt(np.mean(np.square(gaps))))


def test_class_wise_guarantees_do_not_cover_predict_top():
    """A class that is claimed with 0.45, and is the truth in nine of ten rows where it is the
    highest: what is guaranteed is the claim, not `predict_top`.
    """
    rng = np.random.default_rng(0)
    is_top = rng.random(4000) < 0.5
    p = np.where(is_top[:, None], [0.45, 0.28, 0.27], [0.45, 0.5, 0.05])
    p = np.abs(p + 1e-3 * rng.normal(size=p.shape))
    p /= p.sum(axis=1, keepdims=True)
    y = np.where(is_top, rng.random(4000) > 0.9, rng.random(4000) > 1e-3).astype(int)
    model = MulticlassToBinary(HistogramBinning(n_bins=3), "class-wise").fit(p, y)
    labels, said = model.predict_top(p)
    top = labels == 0
    assert abs((y[top] == 0).mean() - said[top].mean()) > 0.3
    assert model.guarantee().covers == ("predict_claims",)
    assert "predict_top" not in str(model.guarantee())


def test_docstrings_state_the_correct_order_of_the_bias_of_the_ece():
    for function in (calibrant.metrics.expected_calibration_error, bootstrap_interval):
        assert "about sqrt(n_bins / n)" not in function.__doc__
    assert "0.4 sqrt(n_bins / n)" in calibrant.metrics.expected_calibration_error.__doc__
