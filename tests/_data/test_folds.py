from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from calibrant._data.folds import as_folds, assign_folds, stratified_rows
from calibrant.exceptions import DataWarning


@pytest.fixture
def rows(rng):
    scores = rng.dirichlet(np.ones(3), size=60).round(1)
    return scores / scores.sum(axis=1, keepdims=True), rng.integers(0, 3, 60)


def _content(scores, y, folds):
    """What each fold is fitted on, whatever the order: sorted rows with their weights."""
    out = []
    for fold in folds:
        table = np.column_stack([scores[fold.fit], y[fold.fit]])
        kinds, place = np.unique(table, axis=0, return_inverse=True)
        out.append((kinds, np.bincount(place.reshape(-1), fold.fit_weight)))
    return out


def _assert_same(left, right):
    for (rows_a, weight_a), (rows_b, weight_b) in zip(left, right, strict=True):
        np.testing.assert_array_equal(rows_a, rows_b)
        np.testing.assert_allclose(weight_a, weight_b)


def test_every_row_is_evaluated_once_and_fitted_on_by_the_others(rows):
    scores, y = rows
    folds = as_folds(5, scores, y, np.ones(60), None)
    judged = np.concatenate([fold.held_out for fold in folds])
    assert sorted(judged.tolist()) == list(range(60))
    for fold in folds:
        assert not set(fold.fit) & set(fold.held_out)
        assert len(fold.fit) + len(fold.held_out) == 60


def test_folds_do_not_depend_on_the_order_of_rows(rows, rng):
    scores, y = rows
    order = rng.permutation(60)
    one = as_folds(5, scores, y, np.ones(60), None)
    other = as_folds(5, scores[order], y[order], np.ones(60), None)
    _assert_same(_content(scores, y, one), _content(scores[order], y[order], other))


def test_a_row_of_weight_two_is_dealt_as_two_rows(rows, rng):
    scores, y = rows
    weight = rng.integers(0, 4, 60).astype(float)
    copies = np.repeat(np.arange(60), weight.astype(int))
    weighted = as_folds(5, scores, y, weight, None)
    repeated = as_folds(5, scores[copies], y[copies], np.ones(len(copies)), None)
    _assert_same(_content(scores, y, weighted), _content(scores[copies], y[copies], repeated))


def test_fractional_weights_stay_whole(rows, rng):
    scores, y = rows
    weight = rng.random(60)
    folds = as_folds(4, scores, y, weight, 1)
    total = np.zeros(60)
    for fold in folds:
        np.testing.assert_array_equal(fold.held_out_weight, weight[fold.held_out])
        total[fold.held_out] += fold.held_out_weight
    np.testing.assert_allclose(total, weight)


def test_the_seed_decides(rows):
    scores, y = rows
    judged = [
        as_folds(5, scores, y, np.ones(60), seed)[0].held_out.tolist() for seed in (None, 0, 1)
    ]
    assert judged[0] == judged[1] != judged[2]


def test_splitters_and_pairs_of_rows_are_taken_as_they_are(rows):
    scores, y = rows
    given = as_folds(KFold(3), scores, y, np.ones(60), None)
    assert [fold.held_out.tolist() for fold in given] == [
        list(range(0, 20)),
        list(range(20, 40)),
        list(range(40, 60)),
    ]
    pairs = as_folds([(np.arange(10), np.arange(10, 60))], scores, y, np.ones(60), None)
    assert (len(pairs), len(pairs[0].fit)) == (1, 10)


def test_one_row_has_no_folds():
    assert as_folds(5, np.array([[0.5, 0.5]]), np.array([0]), np.ones(1), None) == []


def test_one_fold_is_rejected(rows):
    with pytest.raises(ValueError, match="cv must be an integer of at least 2"):
        as_folds(1, *rows, np.ones(60), None)


def test_dealing_gives_the_rows_of_each_class_to_folds_in_their_order():
    assert assign_folds(np.array([1, 0, 1, 1, 0, 1]), 3).tolist() == [0, 0, 1, 2, 1, 0]


def test_a_generator_is_not_advanced_and_its_folds_are_the_same_again(rows):
    generator = np.random.default_rng(4)
    first, again = (as_folds(3, *rows, np.ones(60), generator) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.held_out, other.held_out)


def test_stratified_folds_hold_every_class_and_are_no_more_than_rows_of_the_largest():
    codes = np.array([0] * 6 + [1] * 3 + [2])
    with pytest.warns(DataWarning, match="The smallest class has 1 row, fewer than the 3 folds"):
        folds = list(stratified_rows(3, codes))
    assert all({0, 1} <= set(codes[judged]) for _, judged in folds)
    assert sorted(np.concatenate([judged for _, judged in folds]).tolist()) == list(range(10))
    with pytest.warns(DataWarning, match="cv=10 was reduced to 6"):
        assert len(list(stratified_rows(10, codes))) == 6


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_stratified_folds_are_those_of_scikit_learn(n_folds, rng):
    codes = rng.permutation(np.repeat([3, 0, 1], [20, 13, 7]))
    theirs = StratifiedKFold(n_folds).split(np.zeros(40), codes)
    for own, other in zip(stratified_rows(n_folds, codes), theirs, strict=True):
        for rows, expected in zip(own, other, strict=True):
            np.testing.assert_array_equal(rows, expected)


def test_stratified_folds_of_groups_keep_them_whole_and_warn_of_nothing_else(rng):
    codes, groups = np.repeat([0, 1, 2, 3], [12, 10, 2, 1]), rng.permutation(25) // 2
    with pytest.warns(DataWarning, match="The smallest class has 1 row") as said:
        folds = list(stratified_rows(3, codes, groups))
    assert len(said) == 1
    for fit, judged in folds:
        assert not set(groups[fit]) & set(groups[judged])


def test_more_folds_than_rows_are_rejected():
    with pytest.raises(ValueError, match="cv=11 folds need at least 11 rows, got n_samples=10"):
        list(stratified_rows(11, np.arange(10) % 2))


def test_stratified_folds_need_two_rows_of_a_class():
    with pytest.raises(ValueError, match="a class with at least two rows, got n_samples=3"):
        list(stratified_rows(5, np.arange(3)))
    with pytest.raises(ValueError, match="cv must be an integer of at least 2"):
        list(stratified_rows(1, np.zeros(3, dtype=int)))


@pytest.mark.parametrize(("n_rows", "n_folds"), [(30, 20), (99, 20), (100, 5), (400, 5)])
def test_few_rows_are_evaluated_in_more_folds(rng, n_rows, n_folds):
    scores, labels = rng.normal(size=(n_rows, 3)), np.zeros(n_rows, dtype=np.intp)
    assert len(as_folds(None, scores, labels, np.ones(n_rows), None)) == n_folds
    assert len(as_folds(None, scores, labels, np.full(n_rows, 4.0), None)) == (
        20 if 4 * n_rows < 100 else 5
    )


@pytest.mark.parametrize("cv", [[], [(range(10), [])]])
def test_a_splitter_without_usable_splits_is_rejected(rows, cv):
    scores, y = rows
    with pytest.raises(ValueError, match="has no split with training rows and test rows"):
        as_folds(cv, scores, y, np.ones(60), 0)
