"""Scores of a classifier with a column for every class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from calibrant._kernels.simplex import softmax
from calibrant.classifier._responses import Response, response_method


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_logits_are_preferred_to_probabilities(iris):
    linear = Response(LogisticRegression(max_iter=500).fit(*iris), np.arange(3), 150)
    bayes = Response(GaussianNB().fit(*iris), np.arange(3), 150)
    assert (linear.method, linear.inputs) == ("decision_function", "logits")
    assert (bayes.method, bayes.inputs) == ("predict_proba", "proba")


def test_one_column_of_log_odds_becomes_two(iris):
    X, y = iris[0][:100], iris[1][:100]
    model = LogisticRegression().fit(X, y)
    scores = Response(model, np.arange(2), 100).scores(X)
    assert (scores[:, 0] == 0).all()
    np.testing.assert_allclose(softmax(scores), model.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_probability_per_row_becomes_two(iris, shape):
    class OneProbability(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, 1].reshape(shape)

    X, y = iris[0][50:], iris[1][50:] - 1
    model = OneProbability().fit(X, y)
    expected = GaussianNB().fit(X, y).predict_proba(X)
    scores = Response(model, np.arange(2), 100).scores(X)
    np.testing.assert_allclose(scores, expected, atol=1e-12)


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression()])
def test_a_class_that_was_never_seen_gets_the_share_of_the_rule_of_succession(iris, estimator):
    X, y = iris
    seen = y != 1
    response = Response(estimator.fit(X[seen], y[seen]), np.arange(3), 100)
    scores = response.scores(X)
    proba = softmax(scores) if response.inputs == "logits" else scores
    np.testing.assert_allclose(proba[:, 1], 1 / 103, rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    ratio = proba[:, [0, 2]] / proba[:, [0, 2]].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ratio, estimator.predict_proba(X), atol=1e-9)


def test_scores_do_not_depend_on_the_rows_beside_them(iris):
    X, y = iris
    response = Response(LogisticRegression(max_iter=500).fit(X, y), np.arange(3), 150)
    alone = np.vstack([response.scores(row[None]) for row in X])
    np.testing.assert_array_equal(alone, response.scores(X))


def test_float32_stays_float32(iris):
    class Single(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X).astype(np.float32)

    assert Response(Single().fit(*iris), np.arange(3), 150).scores(iris[0]).dtype == np.float32


def test_votes_by_pairs_are_no_scores_of_classes(iris):
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        response_method(SVC(decision_function_shape="ovo").fit(*iris))


def test_something_without_scores_is_rejected():
    with pytest.raises(TypeError, match="object has neither decision_function nor predict_proba"):
        response_method(object())
