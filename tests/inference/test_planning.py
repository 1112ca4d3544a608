"""Rows needed to detect an error, compared with the power of simulated tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from calibrant.datasets import draw_labels
from calibrant.inference import consistency_test, detectable_error, rows_needed


def tempered(proba, temperature):
    power = proba ** (1 / temperature)
    return power / power.sum(axis=1, keepdims=True)


@pytest.fixture
def proba(rng):
    return rng.dirichlet(np.full(5, 0.3), 2000)


def score_z(y, proba):
    """Log-loss minus its expected value, in standard errors."""
    u = np.log(np.maximum(proba, 1e-300))
    mean = (proba * u).sum(axis=1)
    variance = (proba * u**2).sum(axis=1) - mean**2
    return (mean - u[np.arange(len(y)), y]).sum() / np.sqrt(variance.sum())


@pytest.mark.parametrize("temperature", [1.4, 0.75])
def test_the_score_test_has_the_power_that_was_planned(rng, proba, temperature):
    plan = rows_needed(proba, temperature=temperature, power=0.8)
    n_drawn, n_rejected = 1000, 0
    for _ in range(n_drawn):
        rows = proba[rng.integers(0, len(proba), plan.n_rows)]
        y = draw_labels(tempered(rows, temperature), rng=rng)
        n_rejected += abs(score_z(y, rows)) > ndtri(0.975)
    assert n_rejected / n_drawn == pytest.approx(0.8, abs=0.05)


def test_the_exact_test_of_the_log_loss_detects_overconfidence_as_often(rng, proba):
    plan = rows_needed(proba, temperature=1.6)
    n_rejected = 0
    for seed in range(20):
        rows = proba[rng.integers(0, len(proba), plan.n_rows)]
        y = draw_labels(tempered(rows, 1.6), rng=rng)
        n_rejected += consistency_test(y, rows, "log_loss", 99, rng=seed).p_value <= 0.05
    assert n_rejected >= 13  # two standard errors below 0.8


def test_the_error_is_described_by_gap_and_log_loss(proba):
    plan = rows_needed(proba, temperature=1.5)
    true = tempered(proba, 1.5)
    top = proba.argmax(axis=1)
    rows = np.arange(len(top))
    assert plan.gap == pytest.approx((proba.max(axis=1) - true[rows, top]).mean(), abs=1e-12)
    divergence = (true * np.log(true / proba)).sum(axis=1).mean()
    assert plan.log_loss == pytest.approx(divergence, abs=1e-12)
    # The likelihood ratio of a small error has about this noncentrality.
    small = rows_needed(proba, temperature=1.02)
    expected = (ndtri(0.975) + ndtri(0.8)) ** 2 / (2 * small.log_loss)
    assert small.n_rows == pytest.approx(expected, rel=0.03)


def test_smaller_errors_more_power_and_lower_levels_need_more_rows(proba):
    n_rows = rows_needed(proba).n_rows
    assert n_rows == rows_needed(proba, temperature=1.25).n_rows
    assert rows_needed(proba, temperature=1.1).n_rows > 4 * n_rows
    assert rows_needed(proba, power=0.9).n_rows > n_rows
    assert rows_needed(proba, alpha=0.01).n_rows > n_rows


@pytest.mark.parametrize("temperature", [1.1, 1.5, 0.8])
def test_a_gap_is_another_way_to_state_a_temperature(proba, temperature):
    by_temperature = rows_needed(proba, temperature=temperature)
    by_gap = rows_needed(proba, gap=by_temperature.gap)
    assert by_gap.temperature == pytest.approx(temperature, abs=1e-4)
    assert abs(by_gap.n_rows - by_temperature.n_rows) <= 1


@pytest.mark.parametrize("n_rows", [10, 100, 10_000])
def test_the_detectable_error_is_the_inverse_of_the_rows_needed(proba, n_rows):
    error = detectable_error(proba, n_rows=n_rows)
    assert error.temperature > 1
    again = rows_needed(proba, temperature=error.temperature).n_rows
    assert again == pytest.approx(n_rows, rel=1e-3, abs=1)


def test_the_rows_at_hand_are_counted_with_their_weights(proba):
    assert detectable_error(proba).n_rows == 2000
    weight = np.where(np.arange(2000) < 1000, 2.0, 0.0)
    weighted = detectable_error(proba, sample_weight=weight)
    expected = detectable_error(proba[:1000])
    assert weighted.n_rows == expected.n_rows
    assert weighted.temperature == pytest.approx(expected.temperature, rel=1e-9)
    assert weighted.gap == pytest.approx(expected.gap, rel=1e-9)


def test_too_few_rows_reveal_nothing():
    proba = np.full((50, 2), [0.55, 0.45])
    error = detectable_error(proba, n_rows=2)
    assert error.temperature == np.inf
    assert error.gap == pytest.approx(0.05)
    assert "no test at level 5% detects any overconfidence" in str(error)


def test_impossible_classes_stay_impossible(rng):
    proba = rng.dirichlet(np.full(3, 0.5), 500)
    padded = np.column_stack([proba, np.zeros((500, 2))])
    for found, expected in (
        (rows_needed(padded), rows_needed(proba)),
        (detectable_error(padded, n_rows=3), detectable_error(proba, n_rows=3)),
    ):
        assert found.temperature == pytest.approx(expected.temperature, rel=1e-9)
        assert found.gap == pytest.approx(expected.gap, rel=1e-9)
        assert found.n_rows == expected.n_rows


def test_some_rows_of_many_are_enough(rng):
    proba = rng.dirichlet(np.full(50, 0.1), 30_000)
    part = rows_needed(proba[::7])
    assert rows_needed(proba).n_rows == pytest.approx(part.n_rows, rel=0.05)


def test_logits_and_one_column_are_accepted(rng, proba):
    assert rows_needed(np.log(proba), inputs="logits").n_rows == rows_needed(proba).n_rows
    score = rng.random(300)
    both = np.column_stack([1 - score, score])
    assert rows_needed(score) == rows_needed(both)


def test_it_is_a_sentence_and_plain_values(proba):
    plan = rows_needed(proba, temperature=0.5)
    assert str(plan).startswith(f"With {plan.n_rows:,} rows, a test at level 5% detects an under")
    assert plan.to_dict()["guarantee"] == "asymptotic"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"temperature": 1.0},
            ValueError,
            "temperature must be positive, finite and different from 1",
        ),
        ({"temperature": -2.0}, ValueError, "temperature must be positive"),
        ({"gap": "5%"}, ValueError, "gap must be a finite number, got '5%'"),
        ({"temperature": "hot"}, ValueError, "temperature must be a finite number"),
        ({"gap": 0.0}, ValueError, "gap must be nonzero and between"),
        ({"gap": 0.99}, ValueError, "gap must be nonzero and between .* got 0.99"),
        ({"gap": 0.01, "temperature": 2.0}, TypeError, "both define the error"),
        ({"power": 1.0}, ValueError, "power must be a number between 0 and 1"),
        ({"alpha": 0.0}, ValueError, "alpha must be a number between 0 and 1"),
    ],
)
def test_bad_options_are_errors_that_show_the_fix(proba, options, error, message):
    with pytest.raises(error, match=message):
        rows_needed(proba, **options)


def test_probabilities_that_no_temperature_changes_are_an_error():
    with pytest.raises(ValueError, match="uniform, or contain only 0 and 1"):
        rows_needed(np.eye(3))
    assert detectable_error(np.eye(3)).temperature == np.inf
