"""Stages of group effects: cells, folds and strengths."""

from __future__ import annotations

import numpy as np

from calibrant._data.fold_plan import plan_folds
from calibrant._data.group_columns import GroupLevels
from calibrant._data.sample import ArraySample
from calibrant.datasets import draw_labels
from calibrant.selection._group_fits import (
    CellRule,
    choose_strength,
    held_out_rows,
    one_stage,
)


def make(rng, n_rows=300):
    proba = rng.dirichlet(np.ones(3), n_rows)
    sample = ArraySample(proba, draw_labels(proba, rng=rng), np.ones(n_rows))
    sample.columns = (rng.choice(["a", "b"], n_rows), rng.integers(0, 3, n_rows))
    return sample


def test_cells_are_the_combinations_that_occur(rng):
    sample = make(rng)
    rule = CellRule.of(sample, GroupLevels.of(sample))
    assert len(rule.keys) == 6
    cells = rule.cells(with_common=True)
    assert cells.shape == (6, 6)
    np.testing.assert_array_equal(cells.groups.toarray()[:, 0], 1)
    np.testing.assert_array_equal(cells.groups.toarray().sum(axis=1), 3)


def test_the_chosen_strength_has_the_lowest_held_out_loss(rng):
    sample = make(rng)
    rule, plan = CellRule.of(sample, GroupLevels.of(sample)), plan_folds(3, sample)
    stage = one_stage(plan, rule, "proba")
    weight, group = held_out_rows(stage, 3)
    assert (weight.sum(), sorted(set(group.tolist()))) == (300, [0, 1, 2])
    strengths = (np.inf, 100.0, 1.0)
    chosen = choose_strength(stage, strengths, 3, weight)
    losses = [
        -weight @ np.log(choose_strength(stage, (s,), 3, weight).likelihood) for s in strengths
    ]
    found = -weight @ np.log(chosen.likelihood)
    assert found <= min(losses[:2]) + 1e-3
    assert not stage.fit(np.inf)[1:].any()
