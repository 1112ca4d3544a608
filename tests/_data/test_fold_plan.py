from __future__ import annotations

import numpy as np
import pytest

from calibrant._data import fold_plan
from calibrant._data.fold_plan import N_GROUPS, plan_folds
from calibrant._data.read import as_sample
from parts import Slices


@pytest.fixture
def rows(rng):
    return rng.dirichlet(np.ones(3), 100), rng.integers(3, size=100)


def samples(rows, weight=None):
    array, _ = as_sample(*rows, weight)
    chunked, _ = as_sample(Slices(*rows, weight, size=33), None)
    return array, chunked


def gather(held_out):
    return [(held_out.fold, held_out.rows.u[:], held_out.group)]


@pytest.mark.parametrize("cv", [None, 4])
def test_every_row_is_held_out_once_and_not_fitted_on(rows, cv):
    for sample in samples(rows):
        plan = plan_folds(cv, sample)
        assert plan.n_folds == (cv or 5)
        held_out = plan.sum_held_out(gather)
        assert sum(len(u) for _, u, _ in held_out) == 100
        np.testing.assert_allclose([train.total for train in plan.trains], 100 - 100 / (cv or 5))
        np.testing.assert_allclose(plan.ratios, 1 / ((cv or 5) - 1))


def test_chunked_rows_are_assigned_by_their_number(rows):
    _, chunked = samples(rows)
    held_out = plan_folds(4, chunked).sum_held_out(gather)
    second = np.concatenate([u for fold, u, _ in held_out if fold == 1])
    np.testing.assert_array_equal(second, rows[0][1::4])


def test_a_single_fold_has_groups(rows):
    for sample in samples(rows):
        plan = plan_folds(4, sample, one_fold=True)
        assert plan.n_folds == 1
        group = np.concatenate([group for _, _, group in plan.sum_held_out(gather)])
        assert np.unique(group).tolist() == list(range(N_GROUPS))
        np.testing.assert_array_equal(np.bincount(group), 5)


def test_a_single_fold_of_many_chunked_rows_is_small(rows, monkeypatch):
    monkeypatch.setattr(fold_plan, "MOST_HELD_OUT", 10)
    _, chunked = samples(rows)
    held_out = plan_folds(4, chunked, one_fold=True).sum_held_out(gather)
    assert sum(len(u) for _, u, _ in held_out) == 10


def test_runs_of_chunked_rows_stay_together(rows):
    _, chunked = samples(rows)
    held_out = plan_folds(2, chunked, by_runs=True).sum_held_out(gather)
    first = np.concatenate([u for fold, u, _ in held_out if fold == 0])
    run = 100 // 8
    np.testing.assert_array_equal(first, rows[0][np.arange(100) // run % 2 == 0])


def test_weights_of_folds_are_counted(rows, rng):
    weight = rng.integers(0, 4, 100).astype(float)
    _, chunked = samples(rows, weight)
    held_out = np.bincount(np.arange(100) % 3, weight)
    np.testing.assert_allclose(plan_folds(3, chunked).ratios, held_out / (weight.sum() - held_out))


def test_a_splitter_needs_rows_in_memory(rows):
    _, chunked = samples(rows)
    with pytest.raises(TypeError, match="cv must be a number of folds"):
        plan_folds([([0], [1])], chunked)
