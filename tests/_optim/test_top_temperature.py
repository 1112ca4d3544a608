"""The temperature of the best few classes: its tail, and derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._kernels.simplex import log_softmax
from calibrant._optim.top_temperature import (
    _losses,
    find_top_log_beta,
    lower_power,
    tail_of,
    tempered,
)

M, K = 5, 40


@pytest.fixture
def rows(rng):
    log_proba = -np.sort(-log_softmax(2 * rng.normal(size=(30, K))), axis=1)
    return log_proba[:, :M], np.logaddexp.reduce(log_proba[:, M:], axis=1)


def test_the_tail_has_the_mass_of_the_rest_at_temperature_one(rows):
    log_proba, log_rest = rows
    assert np.allclose(tail_of(log_proba, log_rest, K).at(1.0)[0], log_rest, atol=1e-12)


@pytest.mark.parametrize("beta", [0.4, 1.0, 2.5])
def test_derivatives_of_the_tail_are_those_of_differences(rows, beta):
    tail, h = tail_of(*rows, K), 1e-4
    low, middle, high = (tail.at(beta + step)[0] for step in (-h, 0.0, h))
    assert np.allclose(tail.at(beta)[1], (high - low) / (2 * h), rtol=1e-6)
    assert np.allclose(tail.at(beta)[2], (high - 2 * middle + low) / h**2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("is_known", [True, False])
def test_derivatives_of_the_loss_are_those_of_differences(rows, is_known):
    log_proba, log_rest = rows
    tail = tail_of(log_proba, log_rest, K) if is_known else None
    true, h = log_proba[:, 1], 1e-4
    losses = [_losses(log_proba, tail, true, 0.8 + step)[0] for step in (-h, 0.0, h)]
    _, slope, square = _losses(log_proba, tail, true, 0.8)
    assert np.allclose(slope, (losses[2] - losses[0]) / (2 * h), rtol=1e-5, atol=1e-7)
    second = (losses[2] - 2 * losses[1] + losses[0]) / h**2
    assert np.allclose(square, second, rtol=1e-4, atol=1e-6)


def test_a_rest_that_is_spread_evenly_stays_so_at_every_temperature():
    log_proba = np.log([[0.4, 0.1]])
    tail = tail_of(log_proba, np.log([0.5]), 7)  # five others of 0.1 each
    known, rest = tempered(log_proba, tail, 0.5)
    powers = np.sqrt([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert np.allclose(np.exp(known[0]), powers[:2] / powers.sum())
    assert np.exp(rest[0]) == pytest.approx(powers[2:].sum() / powers.sum())


def drawn_by(power, log_proba, rng):
    """Ranks of truths that are drawn with chances proportional to a power of the probabilities."""
    return (power * log_proba + rng.gumbel(size=log_proba.shape)).argmax(axis=1)


def test_the_power_of_the_lower_ranks_is_that_by_which_truths_were_drawn(rng):
    log_proba = -np.sort(-log_softmax(2 * rng.normal(size=(40_000, 12))), axis=1)
    place, every = drawn_by(1.6, log_proba, rng), np.ones(40_000)
    found = lower_power(log_proba, place, np.ones(40_000, dtype=bool), every)
    assert found == pytest.approx(1.6, abs=0.05)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_where_no_row_tells_truths_are_spread_as_the_scores_say(rows, m):
    log_proba, place = rows[0][:, :m], np.zeros(30, dtype=np.intp)
    assert lower_power(log_proba, place, np.ones(30, dtype=bool), np.ones(30)) == 1.0
    last = place + m - 1
    assert lower_power(log_proba, last, np.ones(30, dtype=bool), np.zeros(30)) == 1.0


def test_truths_that_were_cut_off_are_placed_by_those_of_the_lower_ranks(rng):
    """Rows of a power law whose lower truths are drawn by another power than the best: the
    temperature is that of whole rows within a thousandth, where every twentieth is cut off.
    """
    n_rows, n_classes, m = 40_000, 200, 20
    exponent = rng.uniform(1.2, 2.0, size=(n_rows, 1))
    log_proba = log_softmax(-exponent * np.log(np.arange(1.0, n_classes + 1)))
    is_low = rng.random(n_rows) < 0.25
    low = drawn_by(1.7, log_proba[:, m // 3 :], rng) + m // 3
    place = np.where(is_low, low, drawn_by(0.8, log_proba[:, : m // 3], rng))
    inside, weight = place < m, np.ones(n_rows)
    assert 0.01 < 1 - inside.mean() < 0.1
    every = np.ones(n_rows, dtype=bool)
    dense = find_top_log_beta(log_proba, None, place, every, weight)
    tail = tail_of(log_proba[:, :m], np.logaddexp.reduce(log_proba[:, m:], axis=1), n_classes)
    known = np.where(inside, place, 0)
    found = find_top_log_beta(log_proba[:, :m], tail, known, inside, weight)
    temperatures = [np.exp(-one.parameters[0]) for one in (found, dense)]
    assert temperatures[0] == pytest.approx(temperatures[1], abs=1e-3)
