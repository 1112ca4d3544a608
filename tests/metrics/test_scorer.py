from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from calibrant.metrics import expected_calibration_error, log_loss, scorer


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["rose", "lily", "iris"])[y]


def test_errors_are_negated_and_classes_come_from_the_estimator(iris):
    X, y = iris
    model = LogisticRegression(max_iter=500).fit(X, y)
    proba = model.predict_proba(X)
    assert scorer("log_loss")(model, X, y) == -log_loss(y, proba)
    expected = expected_calibration_error(y, proba, notion="class-wise", n_bins=5)
    assert (
        scorer("expected_calibration_error", notion="class-wise", n_bins=5)(model, X, y)
        == -expected
    )
    assert scorer("accuracy")(model, X, y) > 0.9


def test_a_fold_without_some_class_is_scored(iris):
    X, y = iris
    model = LogisticRegression(max_iter=500).fit(X, y)
    one = y == "rose"
    assert scorer("ks_error")(model, X[one], y[one], sample_weight=np.ones(one.sum())) < 0


def test_scikit_learns_searches_take_it(iris):
    X, y = iris
    search = GridSearchCV(
        LogisticRegression(max_iter=500), {"C": [0.01, 1.0]}, scoring=scorer("brier_score"), cv=3
    ).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert cross_val_score(search, X, y, scoring=scorer("accuracy"), cv=3).mean() > 0.9


def test_an_unknown_metric_lists_the_valid_ones():
    with pytest.raises(
        ValueError, match="unknown metric 'ece'; valid are expected_calibration_error, ks_error"
    ):
        scorer("ece")
