"""Experts: their sums are derivatives, add up, and move the map towards the truth."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._experts import (
    FULL_INFORMATION,
    Expert,
    ExpertState,
    ExpertSums,
    as_u,
    judge,
    learn,
    sum_rows,
)


def rows(rng, n_classes=3, n_rows=40):
    return np.log(rng.dirichlet(np.ones(n_classes), n_rows)), rng.integers(0, n_classes, n_rows)


def loss(theta, u, y):
    return -np.log(judge(Expert(), ExpertState(theta, np.eye(len(theta))), u, y)[0]).sum()


def test_the_first_map_is_the_identity(rng):
    u, _ = rows(rng)
    np.testing.assert_allclose(ExpertState.start(3).proba(u), np.exp(u), atol=1e-15)


@pytest.mark.parametrize("intercepts", [True, False])
def test_an_expert_is_judged_by_what_it_gave_to_what_happened(rng, intercepts):
    u, y = rows(rng)
    expert, state = Expert(intercepts=intercepts), ExpertState(np.array([0.7, 0, 0, 0]), np.eye(4))
    said, sums = judge(expert, state, u, y)
    q = state.proba(u)
    np.testing.assert_allclose(said, q[np.arange(len(y)), y], rtol=1e-12)
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


def test_the_temperature_of_the_stream_is_learnt(stream):
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
def test_a_map_that_a_class_joins_stays_as_it_was_for_the_others(rng, before, after):
    u, y = rows(rng, before)
    state = learn(Expert(), ExpertState.start(before), sum_rows(Expert(), np.exp(u), u, y))
    joined, fresh = state.joined(after), ExpertState.start(after)
    np.testing.assert_array_equal(joined.theta[: 1 + before], state.theta)
    assert not joined.theta[1 + before :].any()
    assert joined.information.shape == fresh.information.shape
    held = [
        one if one.ndim == 1 else one.diagonal() for one in (joined.information, state.information)
    ]
    np.testing.assert_array_equal(held[0][: 1 + before], held[1])


def test_logarithms_are_centred_at_the_largest_and_floored():
    np.testing.assert_allclose(as_u(np.array([[0.5, 0.25, 0.0]])), [[0, -np.log(2), np.log(2e-12)]])
