from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant._crossfit.members import fit_on
from calibrant._data.fold_plan import RowFolds
from calibrant._data.folds import as_folds
from calibrant._data.sample import ArraySample
from calibrant._optim.mixture import mixture_weights
from calibrant.multiclass import Identity
from calibrant.selection._pool import (
    Pool,
    caution,
    cautious_weights,
    fit_members,
    is_thin,
    pool_gain,
    pool_members,
    stacked_rows,
)


@pytest.fixture
def pool(rng):
    likelihood = 0.4 + 0.2 * rng.random((80, 4))
    likelihood[:, -1] = 0.25
    return Pool(likelihood, np.ones(80), np.arange(80) % 5, np.arange(80) < 2)


def test_caution_is_one_row_for_the_identity_and_one_from_the_uniform_forecast(pool):
    prior = np.array([[1.0, 1e-6, 1e-6, 1e-6]])
    plain = mixture_weights(np.vstack([pool.likelihood, prior]), np.ones(81)).parameters
    given = min(plain[-1], 1 / 80)
    np.testing.assert_allclose(
        cautious_weights(pool), plain + np.array([given, 0, 0, -given]), atol=1e-9
    )


def test_an_identity_that_is_never_better_keeps_the_row_that_caution_gives_it():
    """The maximum of 99 log(0.9 - 0.1 w) + log(w) is at 0.09."""
    likelihood = np.column_stack([np.full(99, 0.8), np.full(99, 0.9), np.full(99, 0.1)])
    few = Pool(likelihood, np.ones(99), np.arange(99) % 5, np.zeros(99, dtype=bool))
    weights = cautious_weights(few)
    assert weights[0] == pytest.approx(0.09, abs=1e-5)  # the others gave its row 1e-6
    assert weights[1] == pytest.approx(0.91, abs=1e-5)


def judged(gain, n_wrong, n_rows=100):
    """A pool whose second member gains so much on every row, with a little noise; 0.1 on each of
    100 rows is short of a million to one."""
    noise = 0.01 * (-1.0) ** np.arange(n_rows)
    likelihood = np.column_stack([np.full(n_rows, 0.4), 0.4 * np.exp(gain + noise)])
    return Pool(likelihood, np.ones(n_rows), np.arange(n_rows) % 5, np.arange(n_rows) < n_wrong)


@pytest.mark.parametrize("n_wrong", [0, 1, 4])
def test_caution_is_whole_where_the_scores_were_hardly_ever_wrong(n_wrong):
    assert caution(judged(0.1, n_wrong)) == 1.0


@pytest.mark.parametrize("n_wrong", [0, 4, 8, 60])
def test_caution_ends_where_a_million_to_one_speaks_against_the_identity(n_wrong):
    assert caution(judged(0.15, n_wrong)) == 0.0
    assert caution(judged(0.13, n_wrong)) > 0.0


@pytest.mark.parametrize("gain", [-0.3, 0.0, 0.001, 0.01, 0.3])
def test_a_gain_by_far_is_told_without_folds_and_leads_to_the_same_caution(gain, monkeypatch):
    pool = judged(gain, 50, n_rows=2000)
    short = caution(pool)
    monkeypatch.setattr("calibrant.selection._pool._FAR", np.inf)
    assert short == caution(pool)


def test_caution_is_whole_where_the_stack_gains_nothing_on_other_folds():
    assert caution(judged(0.0, 50)) == pytest.approx(1.0, abs=0.05)


def test_caution_falls_with_the_rows_that_were_wrong_where_the_stack_gains():
    assert caution(judged(0.1, 8)) == pytest.approx(0.25)
    assert caution(judged(0.1, 40)) == pytest.approx(0.01)


def test_a_row_of_weight_two_is_two_rows_to_caution():
    once = judged(0.002, 10)
    twice = once.of_rows(np.repeat(np.arange(100), 2))
    double = once._replace(weight=np.full(100, 2.0))
    assert caution(double) == pytest.approx(caution(twice), rel=1e-12)
    assert 0.0 < caution(double) < 1.0


def test_a_forecast_that_may_not_spread_has_no_weight(pool):
    surprised = pool.likelihood.copy()
    surprised[:20, :-1] = 1e-6
    free = cautious_weights(pool._replace(likelihood=surprised))
    held = cautious_weights(pool._replace(likelihood=surprised, is_spread=False))
    assert held[-1] == 0.0 < free[-1]
    assert held.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "is_few"),
    [(199, 50, True), (200, 50, False), (10, 49, False), (3999, 1000, True)],
)
def test_many_classes_of_fewer_than_four_rows_are_thin(n_rows, n_classes, is_few):
    assert is_thin(n_rows, n_classes) is is_few


def plan_of(proba, labels, n_folds):
    weight = np.ones(len(labels))
    folds = as_folds(n_folds, proba, labels, weight, None)
    return RowFolds(ArraySample(proba, labels, weight), folds), folds


def test_a_pool_that_is_settled_has_one_member(pool):
    np.testing.assert_array_equal(cautious_weights(pool._replace(is_settled=True)), [0, 1, 0, 0])


@pytest.mark.parametrize(("n_rows", "expected"), [(20, 1), (400, 2)])
def test_a_later_member_of_a_settled_pool_must_be_better_beyond_doubt(n_rows, expected, rng):
    """It gains 0.3 in log-likelihood a row, of which one row tells 1.5 more or less."""
    second = np.full(n_rows, 0.2)
    third = second * np.exp(np.resize([1.8, -1.2], n_rows))
    likelihood = np.column_stack([np.full(n_rows, 0.1), second, third, np.full(n_rows, 0.25)])
    one = np.ones(n_rows)
    pool = Pool(likelihood, one, np.arange(n_rows) % 5, one > 0, is_settled=True)
    np.testing.assert_array_equal(cautious_weights(pool), np.eye(4)[expected])


def test_members_are_judged_by_maps_that_have_not_seen_the_row(rng):
    proba = rng.dirichlet(np.ones(3), size=60)
    labels = proba.argmax(axis=1)
    labels[::4] = rng.integers(0, 3, 15)
    plan, folds = plan_of(proba, labels, 3)
    members = {"identity": Identity(), "temperature": TemperatureScaling()}
    maps = fit_members(members, plan, "proba")
    made = pool_members(maps, plan, "proba")
    fold = folds[1]
    fitted = fit_on(TemperatureScaling(), plan.train(1), "proba")
    expected = fitted.predict_proba(proba[fold.judge])[
        np.arange(len(fold.judge)), labels[fold.judge]
    ]
    np.testing.assert_allclose(made.likelihood[made.fold == 1, 1], expected)
    np.testing.assert_allclose(made.likelihood[:, -1], 1 / 3)


def test_the_stack_out_of_fold_is_the_mixture_of_what_the_members_gave(rng):
    proba = rng.dirichlet(np.ones(3), size=60)
    labels = rng.integers(0, 3, 60)
    plan, _ = plan_of(proba, labels, 3)
    members = {"identity": Identity(), "temperature": TemperatureScaling()}
    maps = fit_members(members, plan, "proba")
    pool = pool_members(maps, plan, "proba")
    weights = np.array([0.3, 0.5, 0.2])
    stack = stacked_rows(maps, weights, plan, "proba")
    np.testing.assert_allclose(stack.true, pool.likelihood @ weights)
    assert (stack.score >= stack.true).all()


def test_the_weights_of_the_gain_have_not_seen_the_fold_either(pool, rng):
    plan, _ = plan_of(rng.dirichlet(np.ones(3), size=80), np.arange(80) % 3, 5)
    losses = []
    for number in range(5):
        held = pool.fold == number
        weights = cautious_weights(pool.of_rows(~held))
        losses.append(-np.log(pool.likelihood[held] @ weights))
    gain = pool_gain(pool, plan.ratios)
    assert gain.after == pytest.approx(np.mean(losses))
    assert gain.after > -np.log(pool.likelihood @ cautious_weights(pool)).mean()
