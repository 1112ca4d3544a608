"""Weights of a mixture of experts; `test_online` has the bounds of its regret."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._mixture import mix_batch, mix_rows


@pytest.fixture
def log_f(rng):
    """Log-likelihoods of three experts on ten rows."""
    return np.log(rng.uniform(0.05, 0.95, (10, 3)))


def test_the_loss_without_a_share_is_that_of_the_bayesian_mixture(log_f):
    start = np.array([0.5, 0.3, 0.2])
    loss, weights = mix_rows(start, log_f, 0.0)
    joint = start * np.exp(log_f.sum(axis=0))
    assert loss == pytest.approx(-np.log(joint.sum()))
    np.testing.assert_allclose(weights, joint / joint.sum())


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_batches_of_one_row_are_rows(log_f, share):
    _, expected = mix_rows(np.full(3, 1 / 3), log_f, share)
    weights = np.full(3, 1 / 3)
    for row in log_f:
        weights = mix_batch(weights, row[None], share, largest=1, before=1)
    np.testing.assert_allclose(weights, expected)


def test_a_batch_learns_its_mean_log_likelihood(log_f):
    weights = mix_batch(np.full(3, 1 / 3), log_f, 0.0, largest=10, before=1)
    likelihood = np.exp(log_f.mean(axis=0)) * (1 / 3) ** (1 / 10)
    np.testing.assert_allclose(weights, likelihood / likelihood.sum())
