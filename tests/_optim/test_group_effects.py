"""Effects of groups: the optimum, and equal results on chunks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import log_softmax
from calibrant._optim import group_effects
from calibrant._optim.group_effects import Cells, fit_effects


@pytest.fixture
def problem(rng):
    """Rows of six cells, which are all combinations of two and three groups, and their logits."""
    cell = np.sort(rng.integers(0, 6, 400))
    u = rng.normal(size=(400, 3))
    y = (u + 0.5 * rng.normal(size=(6, 3))[cell] + rng.gumbel(size=u.shape)).argmax(axis=1)
    sample = ArraySample(u, y, rng.integers(0, 3, 400).astype(float))
    sample.columns = (cell,)
    groups = np.zeros((6, 5))
    groups[np.arange(6), np.arange(6) // 3] = 1
    groups[np.arange(6), 2 + np.arange(6) % 3] = 1
    return sample, Cells(sparse.csr_matrix(groups))


def objective(theta, sample, cells, strength):
    effects = theta.reshape(cells.shape[1], -1)
    of_rows = cells.sums(effects)[sample.columns[0]]
    log_proba = log_softmax(sample.u * (1 + of_rows[:, :1]) + of_rows[:, 1:])
    loss = -sample.weight @ log_proba[np.arange(len(sample.y)), sample.y]
    return loss + 0.5 * (strength @ (effects**2).sum(axis=1))


def test_effects_of_overlapping_groups_minimize_the_penalized_log_loss(problem):
    sample, cells = problem
    strength = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    effects = fit_effects(sample, cells, strength)
    reference = optimize.minimize(
        objective, np.zeros(20), (sample, cells, strength), method="BFGS", options={"gtol": 1e-6}
    )
    np.testing.assert_allclose(effects.ravel(), reference.x, atol=1e-5)
    assert objective(effects.ravel(), sample, cells, strength) <= reference.fun + 1e-9


def test_a_strong_penalty_leaves_no_effects_and_a_start_does_not_matter(problem, rng):
    sample, cells = problem
    assert np.abs(fit_effects(sample, cells, np.full(5, 1e12))).max() < 1e-9
    start = rng.normal(size=(5, 4))
    np.testing.assert_allclose(
        fit_effects(sample, cells, np.ones(5), start),
        fit_effects(sample, cells, np.ones(5)),
        atol=1e-6,
    )


def test_too_many_cells_have_slopes_but_no_offsets(problem, monkeypatch):
    sample, cells = problem
    monkeypatch.setattr(group_effects, "MOST_CURVATURE", 10)
    effects = fit_effects(sample, cells, np.ones(5))
    assert effects.shape == (5, 1)
    padded = np.column_stack([effects, np.zeros((5, 3))]).ravel()
    value = objective(padded, sample, cells, np.ones(5))
    for moved in (padded + 0.01, padded - 0.01):
        moved.reshape(5, 4)[:, 1:] = 0
        assert objective(moved, sample, cells, np.ones(5)) > value
