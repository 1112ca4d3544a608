from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import datasets
from calibrant.inference import _consistency, _draws, consistency_test
from calibrant.metrics import expected_calibration_error, ks_error


@pytest.fixture
def calibrated():
    return datasets.noisy_simplex(300, 3, 0.0, rng=5)


def temperature_two(n, n_classes, rng):
    """Predictions of an overconfident model: its logits are twice the true ones."""
    logits = rng.normal(size=(n, n_classes)) * 1.5
    return softmax(2 * logits, axis=1), datasets.draw_labels(softmax(logits, axis=1), rng=rng)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("conf_ece", {"notion": "confidence"}),
        ("cw_ece", {"notion": "class-wise"}),
        ("tl_ece", {"notion": "top-label"}),
        ("mce", {"norm": np.inf}),
        ("expected_calibration_error", {}),
    ],
)
def test_the_statistic_is_the_error_of_that_name(metric, options, calibrated):
    result = consistency_test(calibrated.labels, calibrated.proba, metric, 19, rng=0, n_bins=10)
    assert result.statistic == expected_calibration_error(
        calibrated.labels, calibrated.proba, n_bins=10, **options
    )
    assert result.guarantee == "exact"
    assert result.n_samples == 300


@pytest.mark.parametrize(
    "options",
    [
        {"notion": "confidence"},
        pytest.param({"notion": "class-wise"}, marks=pytest.mark.slow),
        pytest.param({"notion": "top-label", "n_bins": 5}, marks=pytest.mark.slow),
        {"notion": "top-2-label", "strategy": "quantile", "n_bins": 4},
        pytest.param({"notion": "within-top-2"}, marks=pytest.mark.slow),
        {"notion": "class-wise", "strategy": "quantile", "norm": 2, "debias": True},
        pytest.param(
            {"notion": "confidence", "strategy": "unique", "norm": np.inf}, marks=pytest.mark.slow
        ),
        {"notion": "top-label", "aggregate": "bin", "norm": np.inf},
    ],
)
def test_the_fast_way_of_binned_errors_gives_the_null_distribution_of_drawn_labels(
    options, calibrated
):
    metric = partial(expected_calibration_error, **options)
    fast = consistency_test(calibrated.labels, calibrated.proba, metric, 3000, rng=0)
    # The same error behind a lambda is not recognized, so it is computed for each draw of labels.
    slow = consistency_test(
        calibrated.labels, calibrated.proba, lambda y, p: metric(y, p), 600, rng=1
    )
    assert fast.statistic == pytest.approx(slow.statistic, abs=1e-14)
    spread = np.std(
        [
            metric(datasets.draw_labels(calibrated.proba, rng=s), calibrated.proba)
            for s in range(100)
        ]
    )
    assert abs(fast.expected - slow.expected) < 4 * spread * np.sqrt(1 / 600 + 1 / 3000)
    assert abs(fast.p_value - slow.p_value) < 4 * np.sqrt(0.25 / 600 + 0.25 / 3000)


def test_any_metric_may_be_the_statistic(calibrated):
    named = consistency_test(calibrated.labels, calibrated.proba, "ks_error", 50, rng=0)
    short = consistency_test(calibrated.labels, calibrated.proba, "ks", 50, rng=0)
    given = consistency_test(calibrated.labels, calibrated.proba, ks_error, 50, rng=0)
    assert named.statistic == given.statistic == ks_error(calibrated.labels, calibrated.proba)
    assert named.p_value == given.p_value == short.p_value
    assert given.test == "consistency test, ks_error"


def test_a_seed_gives_the_same_result_and_another_one_does_not(calibrated):
    for metric in ("conf_ece", "cw_ece", "ks_error"):
        first, again, other = (
            consistency_test(calibrated.labels, calibrated.proba, metric, 60, rng=s)
            for s in (1, 1, 2)
        )
        assert first == again
        assert first.expected != other.expected


def test_the_default_is_ten_thousand_resamples(calibrated):
    result = consistency_test(calibrated.labels, calibrated.proba, rng=0)
    assert result.n_resamples == 10_000
    assert result.p_value * 10_001 == pytest.approx(round(result.p_value * 10_001), abs=1e-9)


def test_a_model_that_is_sure_and_right_has_p_value_one_and_one_that_is_wrong_the_least():
    proba = np.eye(3)[[0, 1, 2, 0]]
    assert consistency_test([0, 1, 2, 0], proba, "cw_ece", 99, rng=0).p_value == 1.0
    assert consistency_test([1, 2, 0, 1], proba, "cw_ece", 99, rng=0).p_value == 0.01
    assert consistency_test([1, 2, 0, 1], proba, "conf_ece", 99, rng=0).p_value == 0.01


def test_one_row():
    result = consistency_test([1], [[0.3, 0.7]], "cw_ece", 999, rng=0)
    # The other label has a larger error, 0.7 instead of 0.3, so all resamples are at least as
    # large.
    assert result.p_value == 1.0
    assert consistency_test([0], [[0.3, 0.7]], "cw_ece", 999, rng=0).p_value == pytest.approx(
        0.3, abs=0.06
    )


def test_the_null_hypothesis_is_that_of_the_claims(calibrated):
    assert (
        "occurs with its predicted probability"
        in consistency_test(calibrated.labels, calibrated.proba, "tl_ece", 9, rng=0).null
    )
    assert (
        "canonical"
        in consistency_test(calibrated.labels, calibrated.proba, "cw_ece", 9, rng=0).null
    )
    assert (
        "canonical"
        in consistency_test(calibrated.labels, calibrated.proba, "ks_error", 9, rng=0).null
    )


def test_string_labels_and_float32(calibrated):
    names = np.array(["a", "b", "c"])
    result = consistency_test(
        names[calibrated.labels],
        calibrated.proba.astype(np.float32),
        "cw_ece",
        50,
        rng=0,
        classes=names,
    )
    plain = consistency_test(calibrated.labels, calibrated.proba, "cw_ece", 50, rng=0)
    assert result.statistic == pytest.approx(plain.statistic, abs=1e-6)


@pytest.mark.parametrize("metric", ["conf_ece", "cw_ece"])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_an_overconfident_model_is_rejected_at_a_thousand_rows(metric, n_classes, rng):
    proba, y = temperature_two(1000, n_classes, rng)
    assert consistency_test(y, proba, metric, 999, rng=0).p_value == 0.001


def test_nonsense_is_rejected(calibrated):
    with pytest.raises(ValueError, match=r"Unknown metric 'eec'. .* or a function"):
        consistency_test(calibrated.labels, calibrated.proba, "eec")
    with pytest.raises(ValueError, match="n_resamples must be an integer"):
        consistency_test(calibrated.labels, calibrated.proba, n_resamples=0)
    weighted = partial(expected_calibration_error, sample_weight=np.ones(300))
    with pytest.raises(ValueError, match="sample_weight cannot be options of the metric"):
        consistency_test(calibrated.labels, calibrated.proba, weighted)


def test_temperature_scaled_densenet_is_confidence_calibrated_at_a_thousandth_and_not_class_wise(
    real_data,
):
    data = real_data("cifar10_densenet40_kull_sample")
    proba = softmax(data["test_logits"].astype(float) / 2.8826, axis=1)
    confidence = consistency_test(data["test_labels"], proba, "conf_ece", rng=0)
    assert confidence.statistic == pytest.approx(0.00946, abs=5e-6)
    # A million resamples give 0.00203; ten thousand are within 0.0013 of it.
    assert confidence.p_value == pytest.approx(0.00203, abs=0.0013)
    assert not confidence.p_value <= 0.001
    class_wise = consistency_test(data["test_labels"], proba, "cw_ece", 2000, rng=0)
    assert class_wise.p_value == 1 / 2001


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["conf_ece", "cw_ece", "tl_ece"])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_level_is_met_under_the_null_hypothesis(n_classes, metric):
    n_runs = 1000
    p_values = np.empty(n_runs)
    for seed in range(n_runs):
        data = datasets.noisy_simplex(100, n_classes, 0.0, rng=seed)
        p_values[seed] = consistency_test(data.labels, data.proba, metric, 99, rng=seed).p_value
    for level in (0.05, 0.01):
        error = np.sqrt(level * (1 - level) / n_runs)
        assert abs(np.mean(p_values <= level) - level) <= 3 * error


@pytest.mark.parametrize(("n_classes", "n_blocks"), [(10, 1), (100, 2)])
def test_resamples_share_the_bins_and_the_tables(n_classes, n_blocks, rng, calls):
    proba = rng.dirichlet(np.ones(n_classes), 10_000)
    y = datasets.draw_labels(proba, rng=rng)
    calls.watch(_consistency, "bin_table")
    calls.watch(_draws, "byte_tables")
    consistency_test(y, proba, "cw_ece", 200, rng=0)
    assert (calls["bin_table"], calls["byte_tables"]) == (1, n_blocks)


@pytest.mark.slow
def test_a_hundred_classes_need_less_than_200_mb_beside_the_input(rng):
    proba = rng.dirichlet(np.ones(100), 10_000)
    y = datasets.draw_labels(proba, rng=rng)
    tracemalloc.start()
    consistency_test(y, proba, "cw_ece", 1000, rng=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
