"""What users of other calibration software complained about, as tests of this package."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import calibrant
from calibrant import metrics
from calibrant._optim.objective import Objective
from calibrant.datasets import digits_predictions


@pytest.fixture
def overconfident(rng):
    """Labels, and probabilities that are too sure of themselves."""
    logits = rng.normal(scale=1.5, size=(600, 5))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(2.5 * logits)
    return labels, proba / proba.sum(axis=1, keepdims=True)


def test_platt_scaling_works_on_logits_and_lowers_the_loss(overconfident):
    labels, proba = overconfident
    lifted = calibrant.MulticlassToBinary(
        calibrant.PlattScaling(), "class-wise", normalize=True
    ).fit(proba, labels)
    assert (
        metrics.log_loss(labels, lifted.predict_proba(proba))
        < metrics.log_loss(labels, proba) - 0.1
    )


def test_top_label_output_fills_every_column_whatever_the_batch(overconfident):
    labels, proba = overconfident
    model = calibrant.MulticlassToBinary(calibrant.PlattScaling(), "top-label").fit(proba, labels)
    batch = proba[proba.argmax(axis=1) == 3]
    out = model.predict_proba(batch)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1.0)
    np.testing.assert_allclose(out[:, 3], model.predict_claims(batch)[:, 0])


@pytest.mark.parametrize(
    "method",
    [calibrant.TemperatureScaling(), calibrant.StructuredScaling(), calibrant.AutoCalibration()],
)
def test_a_class_absent_from_the_calibration_set_keeps_its_column(overconfident, method):
    labels, proba = overconfident
    kept = labels != 2
    out = clone(method).fit(proba[kept], labels[kept]).predict_proba(proba)
    assert out.shape == (600, 5)
    assert np.isfinite(metrics.log_loss(labels, out))


def test_smoothed_isotonic_never_gives_zero(overconfident):
    labels, proba = overconfident
    isotonic = calibrant.IsotonicCalibration("linear", smoothing=1.0)
    model = calibrant.MulticlassToBinary(isotonic, "class-wise", normalize=True).fit(
        proba[:300], labels[:300]
    )
    assert model.predict_proba(proba[300:]).min() > 0


def test_normalised_rows_sum_to_one_and_claims_say_that_they_do_not(overconfident):
    labels, proba = overconfident
    model = calibrant.MulticlassToBinary(
        calibrant.PlattScaling(), "class-wise", normalize=True
    ).fit(proba, labels)
    np.testing.assert_allclose(model.predict_proba(proba).sum(axis=1), 1.0)
    assert np.abs(model.predict_claims(proba).sum(axis=1) - 1).max() > 0.01


def test_a_confidence_of_exactly_one_or_zero_is_in_a_bin():
    proba = [[1.0, 0.0], [1.0, 0.0], [0.05, 0.95], [0.0, 1.0]]
    # All four are in the last of 15 bins: mean confidence 0.9875, three of four right.
    assert metrics.expected_calibration_error([0, 1, 1, 1], proba) == pytest.approx(0.9875 - 0.75)


def test_an_error_is_named_by_the_claims_that_it_checks(overconfident):
    labels, proba = overconfident
    by_notion = {
        n: metrics.expected_calibration_error(labels, proba, notion=n)
        for n in ("confidence", "top-label", "class-wise")
    }
    assert len(set(by_notion.values())) == 3
    assert by_notion["confidence"] <= by_notion["top-label"]


def test_logits_are_declared_never_guessed():
    small = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    as_logits = calibrant.Identity(inputs="logits").fit(small, [1, 0, 0, 1]).predict_proba(small)
    np.testing.assert_allclose(as_logits, np.exp(small) / np.exp(small).sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match="or inputs='logits' for raw scores"):
        calibrant.TemperatureScaling().fit(5 * small, [1, 0, 0, 1])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_temperature_is_the_optimum_at_any_scale(overconfident, scale):
    labels, proba = overconfident
    logits = scale * np.log(proba)
    model = calibrant.TemperatureScaling(inputs="logits").fit(logits, labels)
    assert model.converged_
    assert model.temperature_ / scale == pytest.approx(
        calibrant.TemperatureScaling().fit(proba, labels).temperature_, rel=1e-5
    )


def test_and_11_it_works_with_numpy_scipy_and_scikit_learn_alone():
    code = """if True:
        import sys
        class Absent:
            def find_spec(self, name, path=None, target=None):
                absent = "torch pandas polars matplotlib numba dask pyarrow rich"
                if name in absent.split():
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Absent())
        import calibrant, numpy as np
        p = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
        calibrant.AutoCalibration().fit(p, [0, 1, 1, 1]).predict_proba(p)
        calibrant.metrics.expected_calibration_error([0, 1, 1, 1], p)
    """
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_calibration_metrics_are_scorers_and_gains_have_intervals(overconfident):
    labels, proba = overconfident
    score = metrics.scorer("expected_calibration_error", notion="class-wise")
    assert score(calibrant.Identity().fit(proba, labels), proba, labels) < 0
    gain = calibrant.compare(labels, proba, methods=["temperature"]).gains[
        "data", "temperature", "log_loss"
    ]
    assert 0 < gain.low < gain.high


@pytest.mark.filterwarnings(
    "ignore::calibrant.exceptions.ConvergenceWarning"
)  # one class of iris is separable
def test_any_calibrator_can_be_plugged_in():
    X, y = load_iris(return_X_y=True)
    for calibrator in (
        calibrant.BetaCalibration(),
        calibrant.StructuredScaling("vector"),
        KNeighborsClassifier(15),
    ):
        proba = calibrant.CalibratedClassifier(GaussianNB(), calibrator).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_histogram_binning_gives_no_nan_where_all_mass_is_gone():
    proba = np.array([[0.9, 0.05, 0.05]] * 30 + [[0.05, 0.9, 0.05]] * 30)
    labels = np.array([1] * 30 + [0] * 30)
    binning = calibrant.HistogramBinning(n_bins=2, strategy="uniform", boundary="include")
    out = (
        calibrant.MulticlassToBinary(binning, "class-wise", normalize=True)
        .fit(proba, labels)
        .predict_proba(np.eye(3))
    )
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_separable_constant_and_reversed_scores_are_calibrated():
    separable = np.linspace(0, 1, 40)
    for scores, labels in (
        (separable, separable > 0.5),
        (np.full(40, 0.3), np.arange(40) % 2 == 0),
        (separable, separable < 0.5),
    ):
        for method in (
            calibrant.BetaCalibration(),
            calibrant.PlattScaling(),
            calibrant.IsotonicCalibration(),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", calibrant.exceptions.ConvergenceWarning)
                warnings.simplefilter("ignore", calibrant.exceptions.DataWarning)
                out = method.fit(scores, labels.astype(int)).predict_proba(scores)
            assert np.isfinite(out).all()


def test_ties_never_split_and_bins_say_how_many_they_are():
    scores = np.repeat([0.2, 0.8], 50)
    model = calibrant.HistogramBinning(n_bins=10, boundary="include").fit(
        scores, np.arange(100) % 2
    )
    assert len(set(model.predict_proba([0.2, 0.8])[:, 1])) == 2
    assert metrics.expected_calibration_error(
        np.arange(100) % 2, scores, strategy="quantile", n_bins=10
    ) == pytest.approx(0.3)


def test_a_batch_with_two_of_many_labels_and_labels_of_text_are_judged(overconfident):
    labels, proba = overconfident
    few = labels < 2
    assert np.isfinite(
        metrics.expected_calibration_error(labels[few], proba[few], notion="class-wise")
    )
    names = np.array(["a", "b", "c", "d", "e"])
    assert metrics.log_loss(names[labels], proba, classes=names) == metrics.log_loss(labels, proba)


def test_fits_take_a_few_passes_over_the_data(rng, calls):
    """Vector scaling of 20,000 rows and 100 classes, which did not end in five minutes elsewhere;
    one pass takes about a tenth of a second, and 20 were needed when this was written."""
    logits = rng.normal(size=(20_000, 100)).astype(np.float32)
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    calls.watch(Objective, "value_and_gradient")
    calls.watch(Objective, "hessian_product")
    model = calibrant.VectorScaling(inputs="logits").fit(2 * logits, labels)
    assert model.converged_
    assert 0 < calls["value_and_gradient"] + calls["hessian_product"] <= 40


def test_refitting_cloning_and_pickling_change_nothing(overconfident):
    labels, proba = overconfident
    filters = list(warnings.filters)
    for method in (calibrant.DirichletCalibration(lam=0.01), calibrant.BetaCalibration()):
        scores, truth = (
            (proba, labels)
            if isinstance(method, calibrant.DirichletCalibration)
            else (proba[:, 0], labels == 0)
        )
        first = method.fit(scores, truth).predict_proba(scores)
        np.testing.assert_array_equal(method.fit(scores, truth).predict_proba(scores), first)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(clone(method).fit(scores, truth))).predict_proba(scores),
            first,
        )
    assert warnings.filters == filters


def test_venn_abers_needs_no_classifier_and_shows_its_intervals(overconfident):
    labels, proba = overconfident
    model = calibrant.VennAbers().fit(proba[:, 0], labels == 0)
    low, high = model.predict_pair(proba[:, 0])
    assert (low <= high).all()


def test_class_wise_errors_and_the_numbers_of_every_bin_are_there(overconfident):
    labels, proba = overconfident
    per_class = [
        metrics.expected_calibration_error(labels, proba, notion=f"class-{k}") for k in range(5)
    ]
    assert np.mean(per_class) == pytest.approx(
        metrics.expected_calibration_error(labels, proba, notion="class-wise")
    )
    assert metrics.calibration_curve(
        labels, proba, strategy="quantile"
    ).weight.sum() == pytest.approx(600)


def test_metrics_of_a_stream_need_the_memory_of_their_bins(overconfident):
    labels, proba = overconfident
    whole, stream = metrics.MetricAccumulator(), metrics.MetricAccumulator()
    whole.update(labels, proba)
    for rows in np.array_split(np.arange(600), 7):
        stream.update(labels[rows], proba[rows])
    assert stream.compute().conf_ece == pytest.approx(whole.compute().conf_ece)
    assert len(json.dumps(stream.to_json())) == pytest.approx(
        len(json.dumps(whole.to_json())), rel=0.2
    )


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_small_data_and_large_scores_are_calibrated(scale):
    data = digits_predictions()
    model = calibrant.AutoCalibration(inputs="logits").fit(
        scale * np.log(data.val_proba[:20] + 1e-9), data.val_labels[:20]
    )
    assert np.isfinite(model.predict_proba(scale * np.log(data.test_proba + 1e-9))).all()


def test_a_calibrated_linear_model_beats_the_plain_one_on_held_out_rows():
    """The promise behind all others."""
    X, y = load_iris(return_X_y=True)
    plain = LogisticRegression(C=0.01).fit(X[::2], y[::2])
    model = calibrant.CalibratedClassifier(LogisticRegression(C=0.01)).fit(X[::2], y[::2])
    losses = [metrics.log_loss(y[1::2], m.predict_proba(X[1::2])) for m in (plain, model)]
    assert losses[1] < losses[0]
