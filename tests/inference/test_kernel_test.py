from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import t as student

from calibrant import datasets
from calibrant.inference import kernel_test
from calibrant.metrics import kernel_calibration_error
from calibrant.metrics._kernel import Residuals

NOTIONS = ["canonical", "confidence", "class-wise", "top-label", "within-top-2", "top-2-label"]


@pytest.fixture
def calibrated():
    return datasets.noisy_simplex(200, 3, 0.0, rng=3)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("method", ["resampling", "wild"])
def test_the_statistic_is_the_unbiased_error(notion, method, calibrated):
    result = kernel_test(
        calibrated.labels, calibrated.proba, notion=notion, method=method, n_resamples=19, rng=0
    )
    assert result.statistic == pytest.approx(
        kernel_calibration_error(calibrated.labels, calibrated.proba, notion=notion), abs=1e-14
    )
    assert result.guarantee == {"resampling": "exact", "wild": "asymptotic"}[method]


@pytest.mark.parametrize("notion", NOTIONS)
def test_resampling_draws_the_errors_of_drawn_labels(notion, calibrated):
    result = kernel_test(
        calibrated.labels, calibrated.proba, notion=notion, n_resamples=1000, rng=0
    )
    drawn = [datasets.draw_labels(calibrated.proba, rng=s) for s in range(200)]
    errors = np.array([kernel_calibration_error(y, calibrated.proba, notion=notion) for y in drawn])
    assert abs(result.expected - errors.mean()) < 4 * errors.std() * np.sqrt(1 / 200 + 1 / 1000)
    share = np.mean(errors >= result.statistic)
    assert abs(result.p_value - share) < 4 * np.sqrt(0.25 / 200 + 0.25 / 1000)


@pytest.mark.parametrize("notion", ["canonical", "confidence"])
def test_random_signs_by_hand(notion, calibrated):
    y, proba = calibrated.labels[:30], calibrated.proba[:30]
    result = kernel_test(
        y, proba, notion=notion, method="wild", n_resamples=400, rng=7, bandwidth=0.3
    )
    points = proba if notion == "canonical" else proba.max(axis=1, keepdims=True)
    residual = (
        np.eye(3)[y] - proba
        if notion == "canonical"
        else (proba.argmax(axis=1) == y)[:, None] - points
    )
    distance = np.abs(points[:, None] - points).sum(axis=2) / (2 if notion == "canonical" else 1)
    products = np.exp(-distance / 0.3) * (residual @ residual.T)
    np.fill_diagonal(products, 0)
    signs = np.random.default_rng(7).integers(0, 2, (30, 400), dtype=np.int8) * 2.0 - 1
    drawn = np.einsum("im,ij,jm->m", signs, products, signs) / (30 * 29)
    assert result.expected == pytest.approx(drawn.mean(), abs=1e-12)
    assert result.p_value == (1 + np.sum(drawn >= result.statistic - 1e-12)) / 401


def test_blocks_are_tested_by_the_mean_of_their_errors(calibrated):
    result = kernel_test(
        calibrated.labels, calibrated.proba, method="block", block_size=20, bandwidth=0.3
    )
    each = [
        kernel_calibration_error(
            calibrated.labels[i : i + 20], calibrated.proba[i : i + 20], bandwidth=0.3
        )
        for i in range(0, 200, 20)
    ]
    assert result.statistic == pytest.approx(np.mean(each), abs=1e-14)
    t = np.mean(each) / (np.std(each, ddof=1) / np.sqrt(10))
    assert result.p_value == pytest.approx(student.sf(t, 9), abs=1e-12)
    assert result.n_resamples is None
    assert result.guarantee == "asymptotic"


def test_a_seed_gives_the_same_result(calibrated):
    for method in ("resampling", "wild"):
        first, again = (
            kernel_test(calibrated.labels, calibrated.proba, method=method, n_resamples=50, rng=4)
            for _ in range(2)
        )
        assert first == again


@pytest.mark.parametrize("method", ["resampling", "wild"])
@pytest.mark.parametrize("notion", ["canonical", "class-wise", "confidence"])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_an_overconfident_model_is_rejected_at_a_thousand_rows(method, notion, n_classes, rng):
    logits = rng.normal(size=(1000, n_classes)) * 1.5
    y = datasets.draw_labels(softmax(logits, axis=1), rng=rng)
    result = kernel_test(
        y, softmax(2 * logits, axis=1), notion=notion, method=method, n_resamples=199, rng=0
    )
    assert result.p_value <= 0.01


def test_claims_that_are_always_true_are_not_rejected_by_round_off():
    proba = np.random.default_rng(0).dirichlet(np.ones(2), 200)
    for method in ("resampling", "wild", "block"):
        result = kernel_test(
            np.zeros(200, dtype=int),
            proba,
            notion="within-top-2",
            method=method,
            n_resamples=99,
            rng=0,
        )
        assert result.p_value == 1.0


def test_certain_predictions():
    proba = np.eye(3)[[0, 1, 2, 0]]
    assert kernel_test([0, 1, 2, 0], proba, n_resamples=99, rng=0).p_value == 1.0
    assert kernel_test([1, 1, 2, 1], proba, n_resamples=99, rng=0).p_value == 0.01


def test_what_cannot_be_tested_is_rejected(calibrated):
    with pytest.raises(ValueError, match="needs at least 2 rows, got 1"):
        kernel_test([0], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="method must be one of"):
        kernel_test(calibrated.labels, calibrated.proba, method="guess")
    with pytest.raises(ValueError, match="needs claims about all rows"):
        kernel_test(calibrated.labels, calibrated.proba, notion="top-label", method="block")
    with pytest.raises(ValueError, match="at least two blocks"):
        kernel_test(calibrated.labels, calibrated.proba, method="block", block_size=150)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["resampling", "wild", "block"])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_level_is_met_under_the_null_hypothesis(n_classes, method):
    n_runs = 300
    for notion in ("canonical", "class-wise", "confidence"):
        p_values = np.empty(n_runs)
        for seed in range(n_runs):
            data = datasets.noisy_simplex(100, n_classes, 0.0, rng=seed)
            result = kernel_test(
                data.labels, data.proba, notion=notion, method=method, n_resamples=99, rng=seed
            )
            p_values[seed] = result.p_value
        for level in (0.05, 0.01):
            excess = np.mean(p_values <= level) - level
            error = np.sqrt(level * (1 - level) / n_runs)
            # Blocks are few, and the t test of their skewed errors is conservative.
            assert excess <= 3 * error
            assert method == "block" or excess >= -3 * error


def test_passes_over_the_kernel_do_not_grow_with_the_number_of_classes(calls, rng):
    calls.watch(Residuals, "kernel")
    counts = []
    for n_classes in (5, 200):
        proba = rng.dirichlet(np.ones(n_classes), 300)
        before = calls["kernel"]
        labels = datasets.draw_labels(proba, rng=rng)
        kernel_test(labels, proba, method="wild", n_resamples=99, rng=0)
        counts.append(calls["kernel"] - before)
    assert counts[0] == counts[1] <= 4
