"""Experts: their sums are derivatives, add up, and improve the map; bounds of calibeating."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import expected_calibration_error
from calibrant.monitoring import OnlineCalibration
from calibrant.monitoring._experts import (
    BINS,
    FULL_INFORMATION,
    Expert,
    ExpertState,
    ExpertSums,
    TopBins,
    as_u,
    evaluate_rows,
    learn,
    sum_rows,
)


def rows(rng, n_classes=3, n_rows=40):
    return np.log(rng.dirichlet(np.ones(n_classes), n_rows)), rng.integers(0, n_classes, n_rows)


def loss(theta, u, y):
    return -np.log(evaluate_rows(Expert(), ExpertState(theta, np.eye(len(theta))), u, y)[0]).sum()


def test_the_first_map_is_the_identity(rng):
    u, _ = rows(rng)
    np.testing.assert_allclose(ExpertState.start(3).proba(u), np.exp(u), atol=1e-15)


@pytest.mark.parametrize("intercepts", [True, False])
def test_an_expert_is_evaluated_by_the_probability_of_the_true_class(rng, intercepts):
    u, y = rows(rng)
    expert, state = Expert(intercepts=intercepts), ExpertState(np.array([0.7, 0, 0, 0]), np.eye(4))
    p_true, sums = evaluate_rows(expert, state, u, y)
    q = state.proba(u)
    np.testing.assert_allclose(p_true, q[np.arange(len(y)), y], rtol=1e-12)
    expected = sum_rows(expert, q, u, y)
    np.testing.assert_allclose(sums.gradient, expected.gradient, atol=1e-9)
    np.testing.assert_allclose(sums.information, expected.information, atol=1e-9)


def test_sums_are_the_derivatives_of_the_log_loss(rng):
    u, y = rows(rng)
    theta = np.array([0.8, 0.1, -0.2, 0.3])
    q = ExpertState(theta, np.eye(4)).proba(u)
    sums, h = sum_rows(Expert(), q, u, y), 1e-4
    for i, step in enumerate(h * np.eye(4)):
        up, down = loss(theta + step, u, y), loss(theta - step, u, y)
        assert sums.gradient[i] == pytest.approx((up - down) / (2 * h), abs=1e-5)
        beside = [sum_rows(Expert(), _proba(theta + s, u), u, y).gradient for s in (step, -step)]
        np.testing.assert_allclose(
            sums.information[i], (beside[0] - beside[1]) / (2 * h), atol=1e-5
        )


def _proba(theta, u):
    return ExpertState(theta, np.eye(len(theta))).proba(u)


def test_a_temperature_alone_says_nothing_about_intercepts(rng):
    u, y = rows(rng)
    sums = sum_rows(Expert(intercepts=False), np.exp(u), u, y)
    whole = sum_rows(Expert(), np.exp(u), u, y)
    assert not sums.gradient[1:].any()
    assert not sums.information[1:].any()
    assert sums.gradient[0] == whole.gradient[0]


def test_many_classes_have_the_diagonal_of_the_information(rng):
    u, y = rows(rng, FULL_INFORMATION + 1)
    q = np.exp(u)
    information = sum_rows(Expert(), q, u, y).information
    assert information.shape == (FULL_INFORMATION + 2,)
    np.testing.assert_allclose(information[1:], (q * (1 - q)).sum(axis=0), atol=1e-12)
    assert learn(Expert(), ExpertState.start(51), sum_rows(Expert(), q, u, y)).theta.shape == (52,)


def test_sums_of_shards_add_up(rng):
    u, y = rows(rng)
    whole = sum_rows(Expert(), np.exp(u), u, y)
    parts = [sum_rows(Expert(), np.exp(u[i::2]), u[i::2], y[i::2]) for i in range(2)]
    both = parts[0].plus(parts[1])
    assert both.n_rows == whole.n_rows
    np.testing.assert_allclose(both.gradient, whole.gradient, atol=1e-12)
    np.testing.assert_allclose(both.information, whole.information, atol=1e-12)


def test_no_rows_teach_nothing():
    state = ExpertState.start(3)
    nothing = ExpertSums(0, np.zeros(4), np.zeros((4, 4)))
    after = learn(Expert(0.9), state, nothing)
    np.testing.assert_array_equal(after.theta, state.theta)
    np.testing.assert_allclose(after.information, state.information, atol=1e-15)


def test_the_temperature_of_the_stream_is_learned(stream):
    expert, state = Expert(intercepts=False), ExpertState.start(4)
    for _ in range(10):
        y, proba = stream(500, beta=0.5)
        u = np.log(np.maximum(proba, 1e-300))
        state = learn(expert, state, sum_rows(expert, state.proba(u), u, y))
    assert state.theta[0] == pytest.approx(0.5, abs=0.05)


def test_what_is_forgotten_gives_way_to_the_identity():
    off = ExpertState(np.array([1.0, 0.5, -0.5, 0.0]), 5.0 * np.eye(4))
    silent = ExpertSums(100, np.zeros(4), np.zeros((4, 4)))
    kept, forgotten = learn(Expert(1.0), off, silent), learn(Expert(0.5), off, silent)
    np.testing.assert_array_equal(kept.theta, off.theta)
    np.testing.assert_allclose(forgotten.theta, [1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_a_step_has_a_longest_length_and_the_temperature_stays_positive():
    steep = ExpertSums(1, np.array([1e9, -1e9, 0.0, 0.0]), np.zeros((4, 4)))
    theta = learn(Expert(), ExpertState.start(3), steep).theta
    assert theta.tolist() == [0.02, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (2, 3),
        (FULL_INFORMATION + 1, FULL_INFORMATION + 3),
        (FULL_INFORMATION, FULL_INFORMATION + 1),
    ],
)
def test_a_map_with_a_new_class_stays_as_it_was_for_the_others(rng, before, after):
    u, y = rows(rng, before)
    state = learn(Expert(), ExpertState.start(before), sum_rows(Expert(), np.exp(u), u, y))
    extended, fresh = state.add_classes(after), ExpertState.start(after)
    np.testing.assert_array_equal(extended.theta[: 1 + before], state.theta)
    assert not extended.theta[1 + before :].any()
    assert extended.information.shape == fresh.information.shape
    diagonals = [
        part if part.ndim == 1 else part.diagonal()
        for part in (extended.information, state.information)
    ]
    np.testing.assert_array_equal(diagonals[0][: 1 + before], diagonals[1])


def test_logarithms_are_centered_at_the_largest_and_floored():
    np.testing.assert_allclose(as_u(np.array([[0.5, 0.25, 0.0]])), [[0, -np.log(2), np.log(2e-12)]])


def watch_bin(score, outcomes):
    """The rate of a bin before each outcome."""
    bins, rates = TopBins.start(), []
    for outcome in outcomes:
        proba = np.array([[score, 1 - score]])
        rates.append(bins.recalibrate(proba)[0, 0])
        bins = bins.add_rows(proba, np.array([1 - outcome]))
    return np.array(rates)


def worst_outcomes(n_rows, score):
    """Each the one that the bin believes in less."""
    bins, out = TopBins.start(), []
    for _ in range(n_rows):
        proba = np.array([[score, 1 - score]])
        out.append(int(bins.recalibrate(proba)[0, 0] < 0.5))
        bins = bins.add_rows(proba, np.array([1 - out[-1]]))
    return np.array(out)


@pytest.mark.parametrize("score", [0.51, 0.72, 0.97])
@pytest.mark.parametrize("n_rows", [1, 2, 30, 100])
def test_a_bin_loses_a_logarithm_to_the_best_constant_on_any_sequence(rng, score, n_rows):
    coin = (rng.random(n_rows) < 0.3).astype(int)
    never, always = np.zeros(n_rows, dtype=int), np.ones(n_rows, dtype=int)
    for outcome in (never, always, coin, worst_outcomes(n_rows, score)):
        rates, best = watch_bin(score, outcome), outcome.mean()
        loss, least = (
            -np.log(np.where(outcome == 1, q, 1 - q)).sum() for q in (rates, np.full(n_rows, best))
        )
        assert loss <= least + np.log(n_rows) + np.log(2 * BINS) + 1e-9
        brier, lowest = (((q - outcome) ** 2).sum() for q in (rates, best))
        assert brier <= lowest + 1 + np.log(n_rows + 1) + 1e-9


def test_a_confidence_is_the_rate_of_its_bin_and_the_rest_is_rescaled():
    proba = np.array([[0.72, 0.21, 0.07]])
    bins = TopBins.start().add_rows(np.repeat(proba, 9, axis=0), np.array([0, 1, 2] * 3))
    rate = (3 + 0.725) / 10
    np.testing.assert_allclose(bins.recalibrate(proba)[0, 0], rate)
    np.testing.assert_allclose(bins.recalibrate(proba).sum(), 1.0)
    assert bins.count.sum() == 9
    assert bins.count[14] == 9


def test_a_confidence_of_one_belongs_to_the_last_bin():
    bins = TopBins.start().add_rows(np.array([[1.0, 0.0]]), np.array([0]))
    assert bins.hits[-1] == 1


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"count": [1.0] * BINS, "hits": [2.0] * BINS},
        {"count": [-1.0] * BINS, "hits": [0.0] * BINS},
        {"count": [1.0], "hits": [1.0]},
    ],
    ids=str,
)
def test_a_state_that_no_bins_have_is_rejected(state):
    with pytest.raises(ValueError, match="state"):
        TopBins.from_state(state)


def test_a_state_comes_back(rng):
    bins = TopBins.start().add_rows(rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50))
    again = TopBins.from_state(bins.to_state())
    np.testing.assert_array_equal(again.count, bins.count)
    np.testing.assert_array_equal(again.hits, bins.hits)


def test_calibeating_corrects_what_no_expert_can(rng):
    """Claims from 0.6 to 0.8 come true as often as a coin does: no map of the family has a dip."""

    def make(n_rows):
        top = rng.uniform(0.5, 1.0, n_rows)
        right = rng.random(n_rows) < np.where((top > 0.6) & (top < 0.8), 0.5, top)
        return np.column_stack([top, 1 - top]), np.where(right, 0, 1)

    (proba, y), (later, truth) = make(6000), make(6000)
    plain, calibeat_proba = (
        OnlineCalibration(calibeat=calibeat).fit(proba, y).predict_proba(later)
        for calibeat in (False, True)
    )
    errors = [expected_calibration_error(truth, q, n_bins=20) for q in (plain, calibeat_proba)]
    assert errors[1] < 0.5 * errors[0]
    loss = [-np.log(q[np.arange(6000), truth]).mean() for q in (plain, calibeat_proba)]
    assert loss[1] < loss[0] - 0.005
