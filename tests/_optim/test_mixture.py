from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant._optim import mixture
from calibrant._optim.mixture import mixture_weights
from calibrant._optim.solution import Outcome, Solution


def slow(p, c):
    """The same problem by a general solver."""
    free = minimize(
        lambda w: -c @ np.log(p @ w) / c.sum(),
        np.full(p.shape[1], 1 / p.shape[1]),
        jac=lambda w: -(p / (p @ w)[:, None]).T @ c / c.sum(),
        bounds=[(0, 1)] * p.shape[1],
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return free.x


@pytest.mark.parametrize("members", [1, 2, 3, 6])
def test_weights_are_those_of_a_general_solver(members, rng):
    p, c = rng.random((200, members)), rng.random(200)
    np.testing.assert_allclose(mixture_weights(p, c).parameters, slow(p, c), atol=1e-5)


def test_the_conditions_of_optimality_hold_to_a_millionth(rng):
    p, c = rng.random((500, 5)) ** 3, rng.random(500)
    w = mixture_weights(p, c).parameters
    mean = (p / (p @ w)[:, None]).T @ c / c.sum()
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert (w >= 0).all()
    assert (mean <= 1 + 1e-6).all()
    assert (w * (1 - mean) <= 1e-6).all()


@pytest.mark.parametrize("power", [1, 3])
def test_weights_by_blocks_are_those_of_all_rows_at_once(rng, monkeypatch, power):
    p, c = rng.random((400, 4)) ** power, rng.random(400)
    p[:, 3] *= 1e-3  # a member that gets nothing
    whole = mixture_weights(p, c)
    monkeypatch.setattr(mixture, "READ_BLOCK", 0)
    by_blocks = mixture_weights(p, c)
    assert by_blocks.converged
    np.testing.assert_allclose(by_blocks.parameters, whole.parameters, atol=1e-8)
    assert by_blocks.objective == pytest.approx(whole.objective, abs=1e-12)


def test_sums_of_rows_that_are_all_but_impossible_do_not_overflow(rng, monkeypatch):
    p, c = rng.random((300, 3)), np.ones(300)
    p[:5, :2] = p[5:, 2] = 1e-200
    whole = mixture_weights(p, c).parameters
    monkeypatch.setattr(mixture, "READ_BLOCK", 0)
    np.testing.assert_allclose(mixture_weights(p, c).parameters, whole, atol=1e-8)


def test_a_member_that_is_always_better_takes_all(rng):
    p = rng.random((100, 1)) * [[1.0, 0.5, 0.25]]
    np.testing.assert_allclose(mixture_weights(p, np.ones(100)).parameters, [1, 0, 0], atol=1e-9)


def test_equal_members_and_impossible_rows_are_no_trouble(rng):
    p = np.repeat(rng.random((50, 1)), 3, axis=1)
    p[0] = 0.0
    w = mixture_weights(p, np.ones(50)).parameters
    assert np.isfinite(w).all()
    assert w.sum() == pytest.approx(1)


def impossible_rows(seed):
    """Rows that some members thought all but impossible."""
    rng = np.random.default_rng(seed)
    p = rng.random((500, 4)) ** 2
    impossible = rng.random(p.shape) < rng.choice([0.002, 0.02, 0.2])
    p[impossible] = 10.0 ** -rng.uniform(9, rng.choice([13, 60, 300]), impossible.sum())
    p[:, -1] = 0.05
    return p


@pytest.mark.parametrize("seed", range(40))
def test_rows_that_members_thought_impossible_are_weighed_to_the_optimum(seed):
    p = impossible_rows(seed)
    found = mixture_weights(p, np.ones(500))
    mean = (p / (p @ found.parameters)[:, None]).mean(axis=0)
    assert found.outcome is Outcome.CONVERGED
    assert mean.max() <= 1 + 1e-8
    assert (found.parameters * (1 - mean)).max() <= 1e-8


def test_blocks_that_do_not_converge_leave_it_to_all_rows(monkeypatch):
    p, c = impossible_rows(12), np.ones(500)
    expected = mixture_weights(p, c)
    # Which rows the search over blocks fails on depends on the last bits of linear algebra.
    stalled = Solution(np.full(p.shape[1], 1.0 / p.shape[1]), np.inf, 1, Outcome.STALLED)
    monkeypatch.setattr(mixture, "READ_BLOCK", 0)
    monkeypatch.setattr(mixture, "_search_blocks", lambda *_: stalled)
    result = mixture_weights(p, c)
    assert result.converged
    np.testing.assert_array_equal(result.parameters, expected.parameters)


def test_a_weight_is_a_number_of_copies(rng):
    p, copies = rng.random((80, 3)), rng.integers(1, 4, size=80)
    repeated = mixture_weights(np.repeat(p, copies, axis=0), np.ones(copies.sum())).parameters
    np.testing.assert_allclose(
        mixture_weights(p, copies.astype(float)).parameters, repeated, atol=1e-8
    )


def test_a_limit_is_reported_as_a_limit(rng):
    p, c = rng.random((200, 4)), rng.random(200)
    cut, whole = mixture_weights(p, c, max_iter=1), mixture_weights(p, c)
    assert cut.outcome is Outcome.ITERATION_LIMIT
    assert cut.n_iter == 1
    assert cut.parameters.sum() == pytest.approx(1)
    assert whole.outcome is Outcome.CONVERGED
    assert whole.objective < cut.objective


def test_a_loss_that_no_step_lowers_is_convergence_only_near_the_optimum(rng, monkeypatch):
    p, c = rng.random((200, 4)), rng.random(200)
    monkeypatch.setattr("calibrant._optim.mixture._next_weights", lambda *_: None)
    assert mixture_weights(p, c).outcome is Outcome.STALLED
    same = np.repeat(rng.random((50, 1)), 3, axis=1)
    assert mixture_weights(same, np.ones(50)).outcome is Outcome.CONVERGED
