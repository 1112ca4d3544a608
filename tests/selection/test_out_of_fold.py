"""Out-of-fold likelihoods of base calibrators."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant._crossfit.members import fit_on
from calibrant._data.fold_plan import RowFolds
from calibrant._data.folds import as_folds
from calibrant._data.sample import ArraySample
from calibrant.multiclass import Identity
from calibrant.selection._out_of_fold import Effort, fit_members, predict_held_out


@pytest.fixture
def rows(rng):
    proba = rng.dirichlet(np.ones(3), size=60)
    labels = proba.argmax(axis=1)
    labels[::4] = rng.integers(0, 3, 15)
    return proba, labels


@pytest.fixture
def folds(rows):
    return as_folds(3, *rows, np.ones(60), None)


@pytest.fixture
def plan(rows, folds):
    return RowFolds(ArraySample(*rows, np.ones(60)), folds)


MEMBERS = {"identity": Identity(), "temperature": TemperatureScaling()}


def test_a_row_is_predicted_by_the_fit_of_the_other_folds(rows, folds, plan):
    proba, labels = rows
    result = predict_held_out(fit_members(MEMBERS, plan, "proba"), [True, False], plan, "proba", 3)
    held_out = folds[1].held_out
    fitted = fit_on(TemperatureScaling(), plan.train(1), "proba")
    expected = fitted.predict_proba(proba[held_out])[np.arange(len(held_out)), labels[held_out]]
    np.testing.assert_allclose(result.likelihood[result.group == 1, 1], expected)


def test_the_uniform_forecast_is_the_last_column_and_not_trusted(plan):
    result = predict_held_out(fit_members(MEMBERS, plan, "proba"), [True, False], plan, "proba", 3)
    np.testing.assert_allclose(result.likelihood[:, -1], 1 / 3)
    assert result.is_trusted.tolist() == [True, False, False]


def test_a_subset_keeps_likelihoods_weights_and_groups_together(plan):
    result = predict_held_out(fit_members(MEMBERS, plan, "proba"), [True, False], plan, "proba", 3)
    some = result.subset(result.group == 2)
    assert len(some.likelihood) == len(some.weight) == len(some.group) == 20
    assert (some.group == 2).all()


def test_members_can_be_selected_and_added(plan):
    result = predict_held_out(fit_members(MEMBERS, plan, "proba"), [True, False], plan, "proba", 3)
    some = result.select(np.array([True, False, True]))
    np.testing.assert_array_equal(some.likelihood, result.likelihood[:, [0, 2]])
    more = some.add_member(result.likelihood[:, 1])
    np.testing.assert_array_equal(more.likelihood, result.likelihood[:, [0, 2, 1]])
    assert more.is_trusted.tolist() == [True, False, False]


def test_without_time_only_the_first_base_calibrator_is_fitted(plan):
    assert list(fit_members(MEMBERS, plan, "proba", Effort(time_budget=0.0))) == ["identity"]
