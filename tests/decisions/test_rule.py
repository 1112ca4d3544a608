"""`DecisionRule` and `DecisionClassifier`: equal to brute force, labels and bad input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant import TemperatureScaling
from calibrant.decisions import DecisionClassifier, DecisionRule
from calibrant.label_shift import adapt


def test_decisions_equal_brute_force(rng):
    for _ in range(500):
        n_classes, n_actions = rng.integers(2, 6, size=2)
        cost, silence = rng.random((n_classes, n_actions)), rng.random(n_classes)
        p = rng.dirichlet(np.ones(n_classes))
        expected = [float(p @ column) for column in [*cost.T, silence]]
        rule = DecisionRule(cost, silence)
        assert rule.decide(p[None]).tolist() == [int(np.argmin(expected))]
        assert rule.expected_cost(p[None])[0] == pytest.approx(min(expected))


def test_errors_of_cost_1_with_abstention_give_the_rule_of_chow(rng):
    proba = rng.dirichlet(np.ones(3), size=300)
    decided = DecisionRule(1 - np.eye(3), 0.4).decide(proba)
    expected = np.where(proba.max(axis=1) >= 1 - 0.4, proba.argmax(axis=1), 3)
    np.testing.assert_array_equal(decided, expected)


def test_two_classes_have_a_threshold(rng):
    p = np.r_[rng.random(200), 0.25]
    decided = DecisionRule([[0, 0.25], [0.75, 0]]).decide(p)
    np.testing.assert_array_equal(decided, (p > 0.25).astype(int))


def test_labels_of_actions():
    cost = [[0, 1], [5, 0]]
    assert DecisionRule(cost).actions_.tolist() == [0, 1]
    assert DecisionRule(cost, 1).actions_.tolist() == [0, 1, 2]
    assert DecisionRule(cost, 1, classes=["a", "b"]).actions_.tolist() == ["a", "b", ""]
    assert DecisionRule(cost, 1, classes=[3, 4]).actions_.tolist() == [3, 4, -1]
    assert DecisionRule(cost, 1, actions=["x", "y", "ask"]).actions_.tolist() == ["x", "y", "ask"]
    assert DecisionRule([[0, 1, 2], [5, 0, 1]], classes=["a", "b"]).actions_.tolist() == [0, 1, 2]
    for classes in ([False, True], np.array([0, 1], dtype=np.uint8)):
        assert DecisionRule(cost, 1, classes=classes).actions_.tolist() == [0, 1, -1]


def test_labels_of_a_frame_of_costs_are_matched():
    pandas = pytest.importorskip("pandas")
    options = {"classes": ["no", "yes"], "actions": ["wait", "go", "ask"], "abstain": 0.5}
    expected = DecisionRule([[0, 1], [5, 0]], **options).costs_
    frame = pandas.DataFrame([[0, 5], [1, 0]], index=["yes", "no"], columns=["go", "wait"])
    np.testing.assert_array_equal(DecisionRule(frame, **options).costs_, expected)
    by_position = pandas.DataFrame([[0, 1], [5, 0]], index=["n", "y"], columns=["w", "g"])
    np.testing.assert_array_equal(DecisionRule(by_position, **options).costs_, expected)
    with pytest.raises(ValueError, match="index of cost has the labels 'no', 'maybe'"):
        DecisionRule(frame.set_axis(["no", "maybe"]), **options)


def test_columns_of_frames_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    rule = DecisionRule([[0, 1], [5, 0]], classes=["a", "b"])
    frame = pandas.DataFrame([[0.4, 0.6]], columns=["b", "a"])
    assert rule.decide(frame).tolist() == rule.decide([[0.6, 0.4]]).tolist() == ["b"]


def test_decisions_after_label_shift(rng):
    proba = rng.dirichlet(np.ones(2) * 0.5, size=2000)
    shift = adapt(proba, proba, target_prior=[0.1, 0.9], rng=0)
    rule = DecisionRule([[0, 1], [5, 0]])
    assert rule.decide(shift.apply(proba)).mean() > rule.decide(proba).mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": [1, 2]}, r"cost must have shape \(K, A\)"),
        ({"cost": [[0, np.nan], [1, 0]]}, r"cost\[0, 1\] is nan"),
        ({"cost": np.eye(2), "abstain": [1, 2, 3]}, "abstain must be a number or one number"),
        ({"cost": np.eye(2), "classes": ["a"]}, "cost has 2 rows, but there are 1 classes"),
        ({"cost": np.eye(2), "actions": ["a"]}, "actions must contain 2 labels"),
        ({"cost": np.eye(2), "actions": ["a", "a"]}, "actions must not contain duplicates"),
        ({"cost": np.eye(2), "abstain": 1, "classes": [-1, 1]}, "is also one of the classes"),
    ],
)
def test_bad_rules_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        DecisionRule(**options)


def test_probabilities_must_fit_the_costs():
    with pytest.raises(ValueError, match="have 3 columns, but cost has 2 rows"):
        DecisionRule(np.eye(2)).decide([[0.2, 0.3, 0.5]])
    with pytest.raises(ValueError, match="sum"):
        DecisionRule(np.eye(2)).decide([[0.2, 0.3]])


@pytest.fixture(scope="module")
def features():
    return make_classification(
        400, n_features=5, n_informative=4, n_classes=3, random_state=0, n_redundant=0
    )


def test_a_classifier_predicts_the_decisions(features):
    X, y = features
    names = np.array(["ant", "bee", "cat"])[y]
    model = DecisionClassifier(LogisticRegression(), 5 * (1 - np.eye(3)), abstain=1)
    predicted = model.fit(X, names).predict(X)
    np.testing.assert_array_equal(predicted, model.rule_.decide(model.predict_proba(X)))
    assert set(predicted) == {"", "ant", "bee", "cat"}
    assert clone(model).get_params()["abstain"] == 1


def test_costs_in_another_order_of_classes(features):
    X, y = features
    cost = np.array([[0, 1, 9], [2, 0, 3], [5, 4, 0]], dtype=float)
    order = [2, 0, 1]
    one = DecisionClassifier(LogisticRegression(), cost, classes=[0, 1, 2]).fit(X, y)
    other = DecisionClassifier(LogisticRegression(), cost[np.ix_(order, order)], classes=order).fit(
        X, y
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    with pytest.raises(ValueError, match="the estimator has the classes"):
        DecisionClassifier(LogisticRegression(), cost, classes=[0, 1, 7]).fit(X, y)


def test_a_fitted_estimator_is_wrapped_as_it_is(features):
    X, y = features
    fitted = LogisticRegression().fit(X, y)
    rule = DecisionRule(1 - np.eye(3), 0.3)
    wrapped = rule.wrap(fitted)
    assert wrapped.estimator_ is fitted
    assert DecisionClassifier(FrozenEstimator(fitted)).fit(X, y).estimator_.estimator is fitted
    unfitted = rule.wrap(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(wrapped.predict(X), unfitted.predict(X))
    proba = fitted.predict_proba(X)
    calibrator = TemperatureScaling().fit(proba, y)
    assert rule.wrap(calibrator).predict(proba).shape == (400,)


def test_an_estimator_without_probabilities_of_classes_is_rejected(features):
    with pytest.raises(TypeError, match="LinearRegression is a regressor"):
        DecisionClassifier(LinearRegression()).fit(*features)


@parametrize_with_checks([DecisionClassifier(LogisticRegression())])
def test_the_classifier_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
