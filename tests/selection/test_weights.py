"""Weights of a stacked ensemble: comparison with a general optimizer, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax

from calibrant.selection._out_of_fold import OutOfFold
from calibrant.selection._weights import stack_gain, stack_weights, trusted_shares


def random_rows(seed, n_rows=None, n_members=None):
    """Likelihoods of members that differ little or much; the first two members are trusted."""
    rng = np.random.default_rng(seed)
    n_rows = n_rows or int(rng.choice([20, 100, 500]))
    n_members = n_members or int(rng.integers(3, 8))
    spread = rng.choice([0.1, 0.5, 2.0])
    losses = rng.gamma(1, 1, (n_rows, 1)) * np.exp(spread * rng.normal(size=(n_rows, n_members)))
    is_trusted = np.arange(n_members) < 2
    weight = rng.integers(1, 4, n_rows).astype(float)
    likelihood = np.maximum(np.exp(-losses), 1e-12)  # as in the log-loss
    return OutOfFold(likelihood, weight, np.arange(n_rows) % 5, is_trusted, 3)


def objective(rows, weights):
    """The objective of the rule, for weights (J,) whose trusted members have the right shares."""
    c, reference = rows.weight, rows.likelihood[:, rows.is_trusted] @ trusted_shares(rows)
    logs = np.log(rows.likelihood @ weights)
    gain = logs - np.log(reference)
    deviation = gain - np.average(gain, weights=c)
    trusted = weights[rows.is_trusted].sum()
    return c @ logs + 2 * np.log(trusted) - np.sqrt(c @ deviation**2)


def best_of_scipy(rows):
    """The highest value that a general optimizer reaches from several starts."""
    shares = trusted_shares(rows)
    n_others = int((~rows.is_trusted).sum())

    def spread_out(z):
        w = softmax(np.append(0.0, z))
        weights = np.empty(len(rows.is_trusted))
        weights[rows.is_trusted], weights[~rows.is_trusted] = w[0] * shares, w[1:]
        return weights

    starts = (np.zeros(n_others), np.full(n_others, -8.0))
    result = [minimize(lambda z: -objective(rows, spread_out(z)), start) for start in starts]
    return max(-one.fun for one in result)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_weights_have_a_higher_objective(seed):
    rows = random_rows(seed)
    weights = stack_weights(rows)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    # Weights below 1e-6 are set to zero, which costs up to as much per row.
    slack = 1e-5 + 1e-6 * rows.weight.sum()
    assert objective(rows, weights) >= best_of_scipy(rows) - slack


@pytest.mark.parametrize("seed", range(5))
def test_trusted_members_share_their_weight_by_their_likelihoods(seed):
    rows = random_rows(seed)
    logs = np.log(rows.likelihood[:, :2])
    gain = logs[:, 1] - logs[:, 0]
    mean = np.average(gain, weights=rows.weight)
    error = np.sqrt(rows.weight @ (gain - mean) ** 2)
    for n_classes in (3, 10 * round(rows.weight.sum())):
        n_errors = min(1.0, 2 * rows.weight.sum() / n_classes)
        shares = trusted_shares(rows._replace(n_classes=n_classes))
        assert shares[1] == pytest.approx(expit(rows.weight @ gain - n_errors * error))
        assert shares.sum() == pytest.approx(1.0)


def test_the_identity_keeps_its_weight_if_it_is_the_only_trusted_member():
    likelihood = np.tile([0.5, 0.5], (5, 1))
    rows = OutOfFold(likelihood, np.ones(5), np.arange(5), np.array([True, False]), 1000)
    assert stack_weights(rows)[0] > 0


def test_the_order_of_rows_does_not_matter(rng):
    rows = random_rows(3, n_rows=200)
    order = rng.permutation(200)
    np.testing.assert_allclose(stack_weights(rows.subset(order)), stack_weights(rows), atol=1e-8)


def test_a_weight_of_two_is_a_row_that_is_there_twice():
    rows = random_rows(4, n_rows=100)
    copies = rows.subset(np.repeat(np.arange(100), rows.weight.astype(int)))
    copies = copies._replace(weight=np.ones(len(copies.weight)))
    np.testing.assert_allclose(stack_weights(copies), stack_weights(rows), atol=1e-8)


def test_a_member_that_is_always_better_gets_all_but_the_pseudo_rows():
    """The maximum of 98 log(0.9 - 0.1 w) + 2 log(w) is at 18 / 100."""
    likelihood = np.column_stack([np.full(98, 0.8), np.full(98, 0.9)])
    rows = OutOfFold(likelihood, np.ones(98), np.arange(98) % 5, np.array([True, False]), 3)
    assert stack_weights(rows)[0] == pytest.approx(0.18, abs=1e-4)


def test_a_gain_within_its_standard_error_is_not_used():
    ratio = 1.01 + 0.2 * (-1.0) ** np.arange(200)  # slope of the gain 2, of its error 2.8
    likelihood = np.column_stack([np.full(200, 0.4), 0.4 * ratio])
    rows = OutOfFold(likelihood, np.ones(200), np.arange(200) % 5, np.array([True, False]), 3)
    np.testing.assert_array_equal(stack_weights(rows), [1.0, 0.0])


@pytest.mark.parametrize("scale", [1e-3, 0.1])
def test_small_row_weights_give_weights_on_the_simplex(scale):
    """Row weights below one can make the objective convex somewhere."""
    rows = random_rows(7, n_rows=100)
    weights = stack_weights(rows._replace(weight=scale * rows.weight))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_gain_is_evaluated_with_weights_of_other_groups():
    rows = random_rows(5, n_rows=100)
    losses = np.empty(100)
    for number in range(5):
        held_out = rows.group == number
        weights = stack_weights(rows.subset(~held_out))
        losses[held_out] = -np.log(rows.likelihood[held_out] @ weights)
    gain = stack_gain(rows, np.full(5, 0.25))
    assert gain.after == pytest.approx(np.average(losses, weights=rows.weight))
    assert gain.after > -np.average(
        np.log(rows.likelihood @ stack_weights(rows)), weights=rows.weight
    )
