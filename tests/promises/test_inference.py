"""Tests, intervals and guarantees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calibrant import (
    CalibratedClassifier,
    CanonicalBinning,
    EnsembleTemperatureScaling,
    HistogramBinning,
    Identity,
    MulticlassToBinary,
    TemperatureScaling,
    label_shift,
    load,
    save,
)
from calibrant.datasets import draw_labels, noisy_simplex
from calibrant.inference import (
    bootstrap_interval,
    critical_difference,
    debiased_interval,
    kernel_test,
)
from calibrant.inference._confidence_gap import confidence_gap
from calibrant.inference._results import holm
from calibrant.metrics import expected_calibration_error
from calibrant.plots import CriticalDifferenceDisplay
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._describe import describe


def test_ten_confident_errors_have_a_large_calibration_error():
    result = debiased_interval(np.zeros(10, int), 0.99 - np.arange(10) * 1e-3, notion="class-1")
    assert result.estimate == pytest.approx(0.9855, abs=1e-4)
    assert result.low > 0.3
    assert result.high > 0.98


def overconfident(n_samples, n_classes):
    """A model that says 95 % and is right in 30 %."""
    rng = np.random.default_rng(0)
    top, y = rng.integers(n_classes, size=(2, n_samples))
    y = np.where(rng.random(n_samples) < 0.3, top, y)
    proba = np.full((n_samples, n_classes), 0.05 / (n_classes - 1))
    proba[np.arange(n_samples), top] = 0.95
    proba[:, 0] += 1e-3 * rng.random(n_samples)
    return y, proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("n_classes", "n_samples"), [(20, 200), (100, 1000), (10, 200)])
def test_with_few_rows_per_class_the_top_label_error_is_at_least_the_confidence_error(
    n_classes, n_samples
):
    y, proba = overconfident(n_samples, n_classes)
    split, whole = (
        debiased_interval(y, proba, notion=notion) for notion in ("top-label", "confidence")
    )
    assert split.estimate >= whole.estimate > 0.5
    assert split.low >= whole.low > 0.45


def test_with_fewer_than_ten_rows_per_class_the_level_of_top_label_intervals_is_heuristic():
    y, proba = overconfident(300, 50)
    assert debiased_interval(y, proba, notion="top-label").guarantee == "heuristic"
    assert debiased_interval(y, proba, notion="confidence").guarantee == "asymptotic"


def test_ensemble_temperature_scaling_reaches_its_optimum():
    proba = np.array([[0.7, 0.3]] * 900 + [[1.0, 0.0]] * 100)
    y = np.array([0] * 890 + [1] * 10 + [0] * 98 + [1] * 2)
    model = EnsembleTemperatureScaling().fit(proba, y)
    assert model.converged_
    assert model.objective_ < 0.11651
    assert 0.0049 < model.weights_[2] < 0.0050


def test_the_accuracy_interval_of_five_correct_predictions_extends_below_one():
    result = bootstrap_interval("accuracy", [1] * 5, [0.9] * 5)
    assert (result.estimate, result.high) == (1.0, 1.0)
    assert result.low == pytest.approx(0.025 ** (1 / 5))
    assert result.guarantee == "finite-sample"


def test_the_note_of_an_interval_states_that_one_row_dominates_the_log_loss():
    score = np.r_[np.full(99, 0.999), 0.001]
    result = bootstrap_interval("log_loss", np.ones(100, int), score, n_resamples=200, rng=0)
    assert result.guarantee == "heuristic"
    assert result.note.startswith("1 of 100 rows contribute half of the variance")


@pytest.fixture(scope="module")
def task():
    return make_classification(1200, n_features=8, n_informative=5, n_classes=2, random_state=0)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize(
    "calibrator",
    [HistogramBinning(), MulticlassToBinary(HistogramBinning(), "class-1"), CanonicalBinning()],
)
def test_binning_of_out_of_fold_scores_has_no_guarantee(calibrator, ensemble, task, tmp_path):
    model = CalibratedClassifier(LogisticRegression(), calibrator, cv=2, ensemble=ensemble)
    inner = model.fit(*task).calibrators_[0]
    for rejected in (inner, load(save_to(inner, tmp_path / "model.json"))):
        with pytest.raises(ValueError, match=r"There is no guarantee, because .*FrozenEstimator"):
            rejected.guarantee()


def save_to(calibrator, path):
    save(calibrator, path)
    return path


def test_binning_of_a_frozen_model_on_held_out_rows_has_a_guarantee(task):
    X, y = task
    frozen = FrozenEstimator(LogisticRegression().fit(X[:600], y[:600]))
    model = CalibratedClassifier(frozen, HistogramBinning()).fit(X[600:], y[600:])
    assert model.calibrator_.guarantee().n_bins == 12


def test_histogram_binning_of_one_binary_event_has_a_guarantee():
    rng = np.random.default_rng(0)
    score = rng.random(500)
    y = (rng.random(500) < score).astype(int)
    own = HistogramBinning().fit(score, y).guarantee(0.1)
    lifted = MulticlassToBinary(HistogramBinning(), notion="class-1").fit(score, y).guarantee(0.1)
    assert own.intervals == lifted.intervals
    assert own.conditional == lifted.conditional
    with pytest.raises(ValueError, match="no guarantee for weighted rows"):
        HistogramBinning().fit(score, y, sample_weight=score).guarantee()
    with pytest.raises(ValueError, match="boundary='include' has no guarantee"):
        HistogramBinning(boundary="include").fit(score, y).guarantee()


def test_the_guarantee_covers_predict_top_only_for_events_of_the_predicted_class():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), 900), rng.integers(3, size=900)
    covers = {
        notion: MulticlassToBinary(HistogramBinning(), notion).fit(proba, y).guarantee().covers
        for notion in ("confidence", "top-label", "class-wise", "class-1", "within-top-2")
    }
    both, claims = ("predict_claims", "predict_top"), ("predict_claims",)
    assert covers["confidence"] == covers["top-label"] == both
    assert covers["class-wise"] == covers["class-1"] == covers["within-top-2"] == claims


def test_a_guarantee_prints_its_assumptions_and_the_bins_that_the_proof_excludes():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(400), 2)
    said = str(HistogramBinning().fit(score, rng.random(400) < score).guarantee())
    assert "The calibration rows must be independent of each other" in said
    assert "the model must not have been trained or selected on these rows" in said
    assert "Not proved for bins with tied edges" in said


def gaussian_classes(rng, prior, n_samples, separation):
    """Exact probabilities, under ``prior``, of Gaussian classes with these frequencies."""
    y = rng.choice(len(prior), size=n_samples, p=prior)
    x = rng.normal(size=(n_samples, len(prior)))
    x[np.arange(n_samples), y] += separation
    proba = np.exp(separation * (x - x.max(axis=1, keepdims=True))) * prior
    return proba / proba.sum(axis=1, keepdims=True), y


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n"), [(200, 400), (1000, 1000), (500, 2000)])
def test_a_label_shift_is_rarely_detected_if_there_is_none(m, n):
    """Without any shift; miss at most 8 of 60, three standard errors above the nominal 3."""
    prior = np.array([0.5, 0.3, 0.2])
    missed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        source = Identity().fit(*gaussian_classes(rng, prior, m, 2.0))
        target, _ = gaussian_classes(rng, prior, n, 2.0)
        missed += label_shift.adapt(source, target, n_resamples=60, rng=seed).is_shifted.any()
    assert missed <= 8


@pytest.mark.parametrize(("n_classes", "separation"), [(10, 1.0), (3, 0.3)])
def test_label_shift_rejects_a_model_that_hardly_separates_the_classes(n_classes, separation):
    rng, prior = np.random.default_rng(0), np.full(n_classes, 1 / n_classes)
    source, _ = gaussian_classes(rng, prior, 500, separation)
    target, _ = gaussian_classes(rng, prior, 300, separation)
    with pytest.raises(ValueError, match="cannot be identified from these 300 rows"):
        label_shift.adapt(source, target)


def test_critical_difference_diagrams_of_all_pairs_use_the_nemenyi_test():
    pytest.importorskip("matplotlib")
    scores = np.random.default_rng(0).random((20, 10))
    drawn = CriticalDifferenceDisplay.from_scores(scores, list("abcdefghij"))
    assert drawn.critical_difference == critical_difference(10, 20, method="nemenyi")


@pytest.mark.parametrize(("n_samples", "n_bins"), [(300, 15), (2000, 10)])
def test_the_bias_of_the_ece_agrees_with_the_documentation(n_samples, n_bins):
    errors = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        score = rng.random(n_samples)
        y = (rng.random(n_samples) < score).astype(int)
        errors.append(expected_calibration_error(y, score, notion="class-1", n_bins=n_bins))
    middle = (np.arange(n_bins) + 0.5) / n_bins
    said = np.mean(np.sqrt(2 * middle * (1 - middle) * n_bins / (np.pi * n_samples)))
    assert np.mean(errors) == pytest.approx(said, rel=0.05)
    assert np.mean(errors) < 0.4 * np.sqrt(n_bins / n_samples)


def test_the_guarantee_of_a_report_names_the_calibrator_that_has_the_guarantee():
    data = noisy_simplex(400, 3, 0.2, rng=0)
    made = summarize(data.labels, data.proba, calibrator=TemperatureScaling(), n_resamples=19)
    head = (
        "The following guarantee is not about the calibrator of this report. The guarantee holds "
        "if you use"
    )
    assert made.guarantee.text.startswith(head)
    for form in (to_markdown(made), to_html(made)):
        assert f"{head} top-label histogram binning (50 rows per bin) instead." in form


@pytest.mark.parametrize("n_samples", [50, 300, 2000])
def test_a_calibrated_model_is_rarely_called_overconfident(n_samples):
    called = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(4, 0.3), n_samples)
        gap = confidence_gap(draw_labels(proba, rng=rng), proba)
        called += gap.low > 0 or gap.high < 0
    assert called <= 20  # 10 of 200 are nominal, 3 standard errors above


@pytest.mark.parametrize("n_samples", [100, 1000])
def test_a_temperature_within_sampling_noise_is_rarely_called_overconfidence(n_samples):
    called = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(4, 0.5), n_samples)
        scaling = TemperatureScaling().fit(proba, draw_labels(proba, rng=rng))
        called += "confident" in describe(scaling, "abcd").text
    assert called <= 8


def test_p_values_are_heuristic_after_cross_fitting_and_exact_on_held_out_rows():
    data, other = (noisy_simplex(200, 3, 0.2, rng=seed) for seed in (0, 1))
    scaling = TemperatureScaling()
    crossed = summarize(data.labels, data.proba, calibrator=scaling, n_resamples=19)
    held = summarize(
        data.labels,
        data.proba,
        calibrator=scaling,
        calibration=(other.proba, other.labels),
        n_resamples=19,
    )
    assert {test.guarantee_after for test in crossed.tests} == {"heuristic"}
    assert held.tests[0].guarantee_after == "exact"
    assert (
        "The p-value is exact before calibration and heuristic after calibration."
        in to_markdown(crossed)
    )


def test_p_values_of_a_report_are_adjusted_for_the_number_of_tests():
    data = noisy_simplex(300, 3, 0.2, rng=0)
    made = summarize(data.labels, data.proba, calibrator=TemperatureScaling(), n_resamples=99)
    raw = [test.p_before for test in made.tests]
    assert [test.p_holm_before for test in made.tests] == holm(raw)
    assert min(test.p_holm_before for test in made.tests) == pytest.approx(min(raw) * len(raw))


@pytest.mark.slow
def test_the_kernel_test_of_a_report_detects_miscalibration():
    rejected = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = 1.5 * rng.normal(size=(2500, 5))
        y = draw_labels(softmax(z / 1.5, axis=1), rng=rng)
        rejected += kernel_test(y, softmax(z, axis=1), method="block").p_value <= 0.05
    assert rejected >= 14
