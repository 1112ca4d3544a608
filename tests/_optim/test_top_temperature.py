"""The temperature of the best few classes: its tail, and derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._optim.top_temperature import _losses, tail_of, tempered
from calibrant._simplex import log_softmax

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
def test_derivatives_of_the_loss_are_those_of_differences(rows, is_known, rng):
    log_proba, log_rest = rows
    tail = tail_of(log_proba, log_rest, K) if is_known else None
    inside = rng.random(len(log_rest)) < 0.7 if is_known else np.ones(len(log_rest), dtype=bool)
    true, h = log_proba[:, 1], 1e-4
    losses = [_losses(log_proba, tail, true, inside, 0.8 + step)[0] for step in (-h, 0.0, h)]
    _, slope, square = _losses(log_proba, tail, true, inside, 0.8)
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
