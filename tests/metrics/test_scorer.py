from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from calibrant.metrics import Metric, expected_calibration_error, log_loss, scorer


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["rose", "lily", "iris"])[y]


def test_errors_are_negated_and_classes_come_from_the_estimator(iris):
    X, y = iris
    model = LogisticRegression(max_iter=500).fit(X, y)
    proba = model.predict_proba(X)
    assert scorer("log_loss")(model, X, y) == -log_loss(y, proba, classes=model.classes_)
    options = {"notion": "class-wise", "n_bins": 5, "classes": model.classes_}
    expected = expected_calibration_error(y, proba, **options)
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
    with pytest.raises(ValueError, match=r"Unknown metric 'ks_eror'. Did you mean 'ks_error'\?"):
        scorer("ks_eror")


def test_every_name_and_any_function_can_be_scored(iris):
    X, y = iris
    model = LogisticRegression(max_iter=500).fit(X, y)
    assert scorer("ks")(model, X, y) == scorer("ks_error")(model, X, y)
    assert scorer("conf_ece")(model, X, y) == scorer("expected_calibration_error")(model, X, y)

    def share_of_the_first(codes, proba):
        return float((codes == 0).mean())

    assert scorer(share_of_the_first)(model, X, y) == -1 / 3
    upwards = Metric("first", share_of_the_first, greater_is_better=True)
    assert scorer(upwards)(model, X, y) == 1 / 3


def test_it_is_cloned_and_pickled_as_it_is(iris):
    X, y = iris
    model = LogisticRegression(max_iter=500).fit(X, y)
    score = scorer("expected_calibration_error", n_bins=5)
    for other in (clone(score), pickle.loads(pickle.dumps(score))):
        assert other(model, X, y) == score(model, X, y)


def test_metadata_routing_brings_the_weights_of_the_rows_that_are_scored(iris):
    X, y = iris
    weight = np.where(y == "rose", 1.0, 0.0) + 1e-3
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression(max_iter=500).set_fit_request(sample_weight=False)
        weighted = scorer("accuracy").set_score_request(sample_weight=True)
        params = {"sample_weight": weight}
        got = cross_validate(
            model, X, y, scoring=weighted, cv=3, params=params, return_indices=True
        )
        for scores, test, seen in zip(
            got["test_score"], got["indices"]["test"], got["indices"]["train"], strict=True
        ):
            fitted = clone(model).fit(X[seen], y[seen])
            assert scores == weighted(fitted, X[test], y[test], sample_weight=weight[test])
        plain = scorer("accuracy").set_score_request(sample_weight=False)
        with pytest.raises(TypeError, match="not routed to any object"):
            cross_validate(model, X, y, scoring=plain, cv=3, params=params)
