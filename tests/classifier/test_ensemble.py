"""The default ensemble, and the averages on which it is calibrated."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier, TemperatureScaling
from calibrant.classifier._ensemble import combine_folds, holds_out_repeatedly


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


def splits_of(splitter, n_rows=60, **options):
    return list(splitter.split(np.zeros((n_rows, 1)), np.arange(n_rows) % 3, **options))


def test_five_folds_are_left_out_in_all_ten_pairs():
    folds = splits_of(KFold(5))
    combined = combine_folds(folds, 60)
    expected = {tuple(np.sort(np.concatenate([a[1], b[1]]))) for a, b in combinations(folds, 2)}
    assert {tuple(test) for _, test in combined} == expected
    assert len(combined) == 10


@pytest.mark.parametrize("n_folds", [5, 6, 7, 10])
def test_every_row_is_held_out_four_times_and_never_seen_by_its_clones(n_folds):
    combined = combine_folds(splits_of(StratifiedKFold(n_folds)), 60)
    tested = np.concatenate([test for _, test in combined])
    assert np.bincount(tested).tolist() == [4] * 60
    for train, test in combined:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 60
    assert holds_out_repeatedly(combined)


@pytest.mark.parametrize("splitter", [KFold(4), TimeSeriesSplit(5), RepeatedStratifiedKFold()])
def test_other_splits_stay_as_they_are(splitter):
    splits = splits_of(splitter)
    for (train, test), expected in zip(combine_folds(splits, 60), splits, strict=True):
        np.testing.assert_array_equal(train, expected[0])
        np.testing.assert_array_equal(test, expected[1])


def test_rows_that_are_held_out_once_cannot_be_scored_by_averages():
    assert not holds_out_repeatedly(splits_of(TimeSeriesSplit(5)))
    assert holds_out_repeatedly(splits_of(RepeatedStratifiedKFold(n_splits=3, n_repeats=2)))


class _Rows:
    """Labels by which rows are assigned to folds."""

    groups = None

    def __init__(self, y):
        self.codes = y


def held_out_proba(estimator, X, y, splits):
    """Average of the probabilities that clones predict for rows they were not fitted on."""
    total, count = np.zeros((len(y), 10)), np.zeros(len(y))
    for train, test in splits:
        total[test] += clone(estimator).fit(X[train], y[train]).predict_proba(X[test])
        count[test] += 1
    return total / count[:, None]


def test_the_calibrator_is_fitted_on_averages_of_clones_that_did_not_see_the_row(digits):
    X, _, y, _ = digits
    bayes = GaussianNB(var_smoothing=0.1)
    model = CalibratedClassifier(bayes, TemperatureScaling()).fit(X, y)
    folds = list(model._split(_Rows(y), {}))
    small = held_out_proba(bayes, X, y, combine_folds(folds, len(y)))
    large = held_out_proba(bayes, X, y, folds)
    share = 1.0 - model.estimator_weights_[:10].sum()
    assert 0.0 < share < 1.0
    expected = TemperatureScaling().fit((1 - share) * small + share * large, y)
    assert model.calibrator_.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)


def test_the_weighted_average_of_small_and_large_fits_predicts(digits):
    X, new, y, _ = digits
    bayes = GaussianNB(var_smoothing=0.1)
    model = CalibratedClassifier(bayes, TemperatureScaling()).fit(X, y)
    weights = model.estimator_weights_
    assert len(model.estimators_) == len(weights) == 16
    share = 1.0 - weights[:10].sum()
    np.testing.assert_allclose(weights[:10], (1 - share) / 10)
    np.testing.assert_allclose(weights[10:15], share * (1 - share) / 5)
    np.testing.assert_allclose(weights[15], share**2)
    whole = bayes.fit(X, y).predict_proba(new)
    np.testing.assert_array_equal(model.estimators_[-1].predict_proba(new), whole)
    fits = [fitted.predict_proba(new) for fitted in model.estimators_]
    average = np.tensordot(weights, fits, axes=1)
    calibrated = model.calibrator_.predict_proba(average) ** (1 / model.temperature_)
    expected = calibrated / calibrated.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-9)


class NeedsRows(ClassifierMixin, BaseEstimator):
    """A classifier that finds the informative feature if it is fitted on enough rows."""

    def fit(self, X, y):
        self.classes_, self.n_rows_ = np.unique(y), len(y)
        return self

    def predict_proba(self, X):
        labels = np.asarray(X)[:, 0 if self.n_rows_ > 400 else 1].astype(int)
        return np.where(np.eye(3)[labels], 0.8, 0.1)


def test_one_fit_predicts_if_the_classifier_needs_every_row():
    y, noise = np.arange(600) % 3, np.random.default_rng(0).integers(0, 3, 600)
    X = np.column_stack([np.where(np.arange(600) % 10, y, noise), noise])
    model = CalibratedClassifier(NeedsRows(), TemperatureScaling()).fit(X, y)
    assert model.estimator_weights_.tolist() == [1.0]
    assert model.estimators_[0].n_rows_ == 600
    assert model.temperature_ == 1.0
    assert "One NeedsRows predicts" in model.explain()


def test_rows_without_errors_do_not_make_the_average_certain():
    y = np.arange(90) % 3
    X = np.column_stack([y, np.random.default_rng(0).normal(size=(90, 5))])
    forest = RandomForestClassifier(20, random_state=0)
    model = CalibratedClassifier(forest).fit(X, y)
    assert model.temperature_ > 0.5


def test_clones_of_a_repeated_splitter_and_the_fit_on_all_rows_have_equal_weights(digits):
    X, _, y, _ = digits
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)
    model = CalibratedClassifier(GaussianNB(), TemperatureScaling(), cv=cv).fit(X, y)
    assert model.estimator_weights_.tolist() == [0.1] * 10


@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeClassifier(random_state=0), RandomForestClassifier(30, random_state=0)],
    ids=["tree", "forest"],
)
def test_the_default_is_not_underconfident(digits, estimator):
    X, new, y, truth = digits
    model = CalibratedClassifier(estimator).fit(X, y)
    proba = model.predict_proba(new)
    pairs = CalibratedClassifier(estimator, ensemble=True).fit(X, y).predict_proba(new)
    assert abs(gap_of(proba, truth)) < 0.05
    assert abs(gap_of(proba, truth)) < abs(gap_of(pairs, truth))


def gap_of(proba, truth):
    """Mean confidence minus accuracy."""
    return proba.max(axis=1).mean() - (proba.argmax(axis=1) == truth).mean()


def test_classes_that_no_classifier_finds_possible_get_a_small_probability(digits):
    X, new, y, _ = digits
    model = CalibratedClassifier(DecisionTreeClassifier(random_state=0), "identity").fit(X, y)
    votes = np.mean([fitted.predict_proba(new) for fitted in model.estimators_], axis=0)
    assert (votes == 0).any()
    least = model.predict_proba(new)[votes == 0]
    assert least.min() > 0
    assert least.max() < 2 / (len(y) + 10)


class ScaledLogistic(LogisticRegression):
    """A classifier without probabilities whose decision values are multiplied by 1,000."""

    predict_proba = None

    def decision_function(self, X):
        return 1000 * super().decision_function(X)


def test_the_scale_of_decision_values_does_not_matter(digits):
    X, new, y, _ = digits
    scaled, plain = (
        CalibratedClassifier(kind(max_iter=2000), TemperatureScaling()).fit(X, y)
        for kind in (ScaledLogistic, LogisticRegression)
    )
    assert scaled.score_method_ == "decision_function"
    np.testing.assert_allclose(scaled.predict_proba(new), plain.predict_proba(new), atol=1e-6)


class Rule(ClassifierMixin, BaseEstimator):
    """A classifier that ignores its training rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.where(np.asarray(X)[:, [3]] > 1, [0.2, 0.5, 0.3], [0.6, 0.3, 0.1])


def test_equal_clones_need_no_correction_for_their_number():
    rng = np.random.default_rng(0)
    X, y = rng.normal(1, 1, (300, 4)), rng.integers(0, 3, 300)
    model = CalibratedClassifier(Rule(), TemperatureScaling()).fit(X, y)
    assert model.temperature_ == pytest.approx(1.0, abs=1e-9)


def test_the_temperature_is_extrapolated_from_averages_of_two_and_of_four_clones(digits):
    X, _, y, _ = digits
    tree = DecisionTreeClassifier(random_state=0)
    model = CalibratedClassifier(tree, TemperatureScaling()).fit(X, y)
    folds = list(model._split(_Rows(y), {}))
    by_row = [[] for _ in y]
    for train, test in combine_folds(folds, len(y)):
        proba = clone(tree).fit(X[train], y[train]).predict_proba(X[test])
        for row, of_row in zip(test, proba, strict=True):
            by_row[row].append(of_row)
    clones = np.swapaxes(by_row, 0, 1)
    pairs = np.concatenate((clones[:-1] + clones[1:]) / 2)
    averages = clones.mean(axis=0)
    least = min(1 / (len(y) + 10), averages[averages > 0].min())

    def log_temperature(proba, y):
        filled = np.where(
            proba <= 0, least, proba * (1 - least * (proba <= 0).sum(1, keepdims=True))
        )
        calibrated = model.calibrator_.predict_proba(filled)
        return np.log(TemperatureScaling(0.5).fit(calibrated, y).temperature_)

    difference = log_temperature(pairs, np.tile(y, 3)) - log_temperature(averages, y)
    slope = difference / (np.sqrt(1 / 2) - np.sqrt(1 / 4))
    weights = model.estimator_weights_
    share = 1 - weights[:10].sum()
    size, held_out_size = 1 / (weights @ weights), 1 / ((1 - share) ** 2 / 4 + share**2)
    ratio = np.sqrt(held_out_size / size)
    expected = np.exp(slope * np.sqrt(1 / 4) * (ratio - 1))
    assert model.temperature_ == pytest.approx(expected, rel=1e-6)
    assert expected < 0.9


def test_clones_that_differ_are_sharpened_for_the_larger_average(digits):
    X, _, y, _ = digits
    model = CalibratedClassifier(DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert 0.5 < model.temperature_ < 1.0


def test_groups_stay_together_in_every_clone(digits):
    X, _, y, _ = digits
    groups = np.arange(len(y)) // 20
    seen = []

    class Spy(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(set(X[:, 0].astype(int)))
            return super().fit(X, y)

    numbered = np.column_stack([groups, X])
    CalibratedClassifier(Spy(), TemperatureScaling()).fit(numbered, y, groups=groups)
    CalibratedClassifier(Spy(), TemperatureScaling(), cv=GroupKFold(5)).fit(
        numbered, y, groups=groups
    )
    rows = [len(groups_of_fit) for groups_of_fit in seen]
    assert len(seen) == 32
    assert rows.count(len(set(groups))) == 2  # the fits on all rows


def test_explain_describes_the_average(digits):
    X, _, y, _ = digits
    text = CalibratedClassifier(GaussianNB(), TemperatureScaling()).fit(X, y).explain()
    assert "The predictions are the weighted average of 16 fits of GaussianNB." in text
    assert "The calibrator was fitted on average predictions for held-out rows" in text
