"""`SelectiveClassifier`: what it answers, what it proves, and which rows may prove."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant import CalibratedClassifier, TemperatureScaling, VectorScaling
from calibrant.datasets import digits_predictions
from calibrant.decisions import PredictionSets, SelectiveClassifier
from calibrant.exceptions import DataWarning, NotFittedError


def _draw(rng, n, n_classes=4):
    """Probabilities with labels drawn from them, so confidence is the chance of being right."""
    proba = rng.dirichlet(np.full(n_classes, 0.15), size=n)
    labels = (rng.random((n, 1)) > np.cumsum(proba, axis=1)).sum(axis=1)
    return proba, np.minimum(labels, n_classes - 1)


@pytest.fixture(scope="module")
def data():
    return _draw(np.random.default_rng(7), 3000)


@pytest.fixture(scope="module")
def features():
    return make_classification(
        1200, n_features=6, n_informative=5, n_redundant=0, n_classes=3, random_state=0
    )


def test_answers_are_the_rows_above_the_threshold(data):
    proba, labels = data
    model = SelectiveClassifier(risk=0.05).fit(proba[:1500], labels[:1500])
    answered = model.answers(proba[1500:])
    np.testing.assert_array_equal(answered, proba[1500:].max(axis=1) > model.threshold_)
    assert 0.2 < model.coverage_ < 0.9
    np.testing.assert_array_equal(model.thresholds_, np.full(4, model.threshold_))
    assert model.n_proved_ == 1500
    assert len(model.unproved_classes_) == 0


def test_an_answer_is_the_most_probable_label_and_silence_is_minus_one(data):
    proba, labels = data
    model = SelectiveClassifier(risk=0.05).fit(proba[:1500], labels[:1500])
    predicted, answered = model.predict(proba[1500:]), model.answers(proba[1500:])
    np.testing.assert_array_equal(predicted[answered], proba[1500:].argmax(axis=1)[answered])
    assert (predicted[~answered] == -1).all()
    np.testing.assert_array_equal(model.predict_proba(proba[1500:]), proba[1500:])


def test_the_risk_holds_for_new_rows_in_most_samples(rng):
    n_above = 0
    for _ in range(60):
        proba, labels = _draw(rng, 400)
        model = SelectiveClassifier(risk=0.1, random_state=rng).fit(proba, labels)
        # The expected error rate of the answers to the same distribution, known exactly.
        new, _ = _draw(rng, 20_000)
        answered = model.answers(new)
        n_above += (1 - new.max(axis=1)[answered]).mean() > 0.1 if answered.any() else 0
    assert n_above <= 12  # delta = 0.1 of 60, and 2.6 standard errors


@pytest.mark.parametrize("score", ["margin", "log-margin", lambda proba: proba.max(axis=1) ** 2])
def test_other_scores_order_the_rows(data, score):
    proba, labels = data
    model = SelectiveClassifier(risk=0.05, score=score).fit(proba, labels)
    assert 0.2 < model.coverage_ < 0.9
    assert model.score(proba, labels) > 0.93


def test_text_labels_have_an_empty_abstention(data):
    proba, labels = data
    names = np.array(["ant", "bee", "cat", "dog"])
    model = SelectiveClassifier(risk=0.05, classes=names).fit(proba, names[labels])
    assert set(model.predict(proba)) == {"", *names}
    model.set_params(abstain="unknown").fit(proba, names[labels])
    assert "unknown" in model.predict(proba)


def test_an_abstention_must_not_be_a_class(data):
    proba, labels = data
    with pytest.raises(ValueError, match=r"is also one of the classes .* abstain=-999"):
        SelectiveClassifier(abstain=2).fit(proba, labels)
    with pytest.raises(ValueError, match="is also one of the classes"):
        SelectiveClassifier(classes=[-1, 0, 1, 2]).fit(proba, labels - 1)


@pytest.mark.parametrize("kind", [SelectiveClassifier, PredictionSets])
def test_the_score_needs_labels_that_can_be_compared(data, kind):
    proba, labels = data
    model = kind().fit(proba, labels)
    with pytest.raises(ValueError, match="y contains text, but classes_ contains int64 values"):
        model.score(proba, labels.astype(str))
    with pytest.raises(ValueError, match="X has 3,000 rows and y has 2,999 rows"):
        model.score(proba, labels[1:])
    with pytest.raises(ValueError, match=r"got shape \(3000, 1\). Pass np.ravel\(y\)"):
        model.score(proba, labels[:, None])
    with pytest.raises(ValueError, match="The label of row 0 is missing"):
        model.score(proba, np.where(np.arange(3000) == 0, np.nan, labels))


def test_the_score_does_not_depend_on_the_type_of_the_abstention(data):
    proba, labels = data
    expected = SelectiveClassifier().fit(proba, labels).score(proba, labels)
    model = SelectiveClassifier(abstain="unknown").fit(proba, labels)
    assert model.score(proba, labels) == expected
    predicted, answered = model.predict(proba), model.answers(proba)
    assert predicted[answered].tolist() == proba.argmax(axis=1)[answered].tolist()


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, "0.1", np.nan, True])
def test_risk_and_delta_must_be_between_0_and_1(data, bad):
    with pytest.raises(ValueError, match=r"risk must be a number between 0 and 1"):
        SelectiveClassifier(risk=bad).fit(*data)
    with pytest.raises(ValueError, match=r"delta must be a number between 0 and 1"):
        SelectiveClassifier(delta=bad).fit(*data)


def test_too_few_rows_answer_nothing_with_a_warning(data):
    proba, labels = data
    with pytest.warns(DataWarning, match="has 40 rows and needs at least 45 rows without an error"):
        model = SelectiveClassifier(risk=0.05).fit(proba[:40], labels[:40])
    assert not model.answers(proba).any()
    assert model.threshold_ == np.inf
    assert np.isnan(model.score(proba, labels))
    assert "Nothing could be proved" in str(model.guarantee())


def test_errors_of_the_surest_rows_answer_nothing_with_a_warning(data):
    proba, labels = data
    with pytest.warns(DataWarning, match="contain too many errors"):
        SelectiveClassifier(risk=0.05).fit(proba, (labels + 1) % 4)


def test_without_a_proof_of_any_class_a_warning_states_the_rows_per_class(data):
    proba, labels = data[0][:120], data[0][:120].argmax(axis=1)  # no errors, about 30 rows each
    model = SelectiveClassifier(risk=0.05, per_class=True)
    with pytest.warns(DataWarning, match="proof of a class needs at least 45 rows without an err"):
        model.fit(proba, labels)
    assert "of a class without an error, but no class has enough rows" in str(model.guarantee())


def test_a_changed_parameter_does_not_change_the_guarantee(data):
    model = SelectiveClassifier(risk=0.1).fit(*data)
    expected = str(model.guarantee())
    assert str(model.set_params(risk=0.01, delta=0.5).guarantee()) == expected


def test_a_fit_forgets_the_threshold_of_an_earlier_fit(data):
    model = SelectiveClassifier(risk=0.1).fit(*data)
    assert not hasattr(model.set_params(per_class=True).fit(*data), "threshold_")


def test_the_guarantee_states_risk_confidence_and_answers(data):
    model = SelectiveClassifier(risk=0.05, delta=0.1).fit(*data)
    guarantee = model.guarantee()
    assert str(guarantee).startswith(
        f"With 90% confidence, at most 5% of the answers are wrong. {100 * model.coverage_:.3g}%"
    )
    error_rate = (data[0].argmax(axis=1) != data[1]).mean()
    assert guarantee.error_rate == pytest.approx(error_rate)
    assert guarantee.least_abstained == pytest.approx((error_rate - 0.05) / 0.95)
    assert guarantee.certificate.n_rows == 3000
    assert guarantee.to_dict()["certificate"]["valid"]


# Rows of the proof


def test_a_fitted_calibrator_proves_on_all_rows(data):
    proba, labels = data
    calibrator = TemperatureScaling().fit(proba[:1000], labels[:1000])
    model = SelectiveClassifier(calibrator, risk=0.05).fit(proba[1000:], labels[1000:])
    assert model.n_proved_ == 2000
    assert model.estimator_ is calibrator


@pytest.mark.parametrize("rows", [slice(0, 1000), slice(0, 600), slice(400, 1600)])
def test_the_rows_of_the_calibrator_cannot_prove(data, rows):
    proba, labels = data
    calibrator = VectorScaling().fit(proba[:1000], labels[:1000])
    for estimator in (calibrator, FrozenEstimator(calibrator)):
        with pytest.raises(ValueError, match="VectorScaling was fitted on rows that are also in X"):
            SelectiveClassifier(estimator).fit(proba[rows], labels[rows])


def test_rows_of_few_values_are_rejected_only_if_they_are_the_same(rng):
    votes = rng.multinomial(5, [0.7, 0.2, 0.1], size=1200) / 5
    labels = np.where(rng.random(1200) < 0.9, votes.argmax(axis=1), rng.integers(3, size=1200))
    votes = 0.97 * votes + 0.01
    calibrator = TemperatureScaling().fit(votes[:600], labels[:600])
    SelectiveClassifier(calibrator, risk=0.2).fit(votes[600:], labels[600:])
    order = rng.permutation(600)
    with pytest.raises(ValueError, match="rows that are also in X"):
        SelectiveClassifier(calibrator, risk=0.1).fit(votes[:600][order], labels[:600][order])


def test_an_unfitted_calibrator_is_fitted_on_other_rows(data):
    proba, labels = data
    model = SelectiveClassifier(TemperatureScaling(), risk=0.05, cv=0.4).fit(proba, labels)
    assert model.n_proved_ == 1200
    assert model.estimator_.training_.n_samples == 1800


def test_an_unfitted_classifier_is_fitted_on_other_rows(features):
    X, y = features
    model = SelectiveClassifier(LogisticRegression(), risk=0.2).fit(X, y)
    assert model.n_proved_ == 600
    again = SelectiveClassifier(LogisticRegression(), risk=0.2).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    frozen = FrozenEstimator(LogisticRegression().fit(X[:600], y[:600]))
    assert SelectiveClassifier(frozen, risk=0.2).fit(X[600:], y[600:]).n_proved_ == 600


def test_it_wraps_a_calibrated_classifier(features):
    X, y = features
    model = SelectiveClassifier(CalibratedClassifier(LogisticRegression(), "temperature"), risk=0.2)
    assert model.fit(X, y).n_proved_ == 600
    assert model.score(X, y) > 0.75


def test_a_classifier_without_probabilities_orders_rows_by_its_decision_function(features):
    from sklearn.svm import LinearSVC

    X, y = features
    model = SelectiveClassifier(LinearSVC(), risk=0.25).fit(X, y)
    assert 0 < model.coverage_ <= 1


def test_a_class_that_the_estimator_did_not_see_is_an_error(rng):
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    y[0] = 2
    held = SelectiveClassifier(LogisticRegression(), risk=0.2)
    for seed in range(4):  # in some splits the only row of class 2 is held out
        model = held.set_params(random_state=seed).fit(X, y)
        assert set(model.predict(X)) <= {-1, 0, 1, 2}
        assert model.predict_proba(X).shape == (400, len(model.classes_))


@pytest.mark.parametrize("cv", [5, 0.0, 1.0, "0.5", None, True])
def test_cv_must_be_a_share_of_rows(data, cv):
    with pytest.raises(
        ValueError, match=r"cv must be the fraction of rows .* For example, pass cv=0.5"
    ):
        SelectiveClassifier(TemperatureScaling(), cv=cv).fit(*data)


def test_weights_cannot_prove(data):
    proba, labels = data
    SelectiveClassifier().fit(proba, labels, sample_weight=np.ones(3000))
    with pytest.raises(ValueError, match="sample_weight must be 1 for all rows"):
        SelectiveClassifier().fit(proba, labels, sample_weight=np.full(3000, 2.0))


@pytest.mark.parametrize("kind", [SelectiveClassifier, PredictionSets])
def test_unknown_arguments_of_fit_are_rejected(data, kind):
    with pytest.raises(TypeError, match="unexpected argument 'group', but no estimator is fitted"):
        kind().fit(*data, group=np.zeros(3000))


def test_weights_go_to_the_estimator(features):
    X, y = features
    weight = np.where(y == 0, 5.0, 1.0)
    plain = SelectiveClassifier(LogisticRegression(), risk=0.5).fit(X, y)
    weighted = SelectiveClassifier(LogisticRegression(), risk=0.5).fit(X, y, sample_weight=weight)
    assert weighted.predict_proba(X)[:, 0].mean() > plain.predict_proba(X)[:, 0].mean() + 0.05
    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = SelectiveClassifier(inner, risk=0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(routed.predict_proba(X), weighted.predict_proba(X))


def test_one_row_of_each_group_proves(data):
    proba, labels = data
    groups = np.arange(3000) // 3
    assert SelectiveClassifier(risk=0.1).fit(proba, labels, groups=groups).n_proved_ == 1000
    model = SelectiveClassifier(TemperatureScaling(), risk=0.1).fit(proba, labels, groups=groups)
    assert model.n_proved_ == 500


def test_duplicated_rows_give_a_warning(data):
    proba, labels = data
    rows = np.r_[np.arange(1000), np.arange(50)]
    with pytest.warns(DataWarning, match=r"4\.8% of the rows of the proof repeat an earlier row"):
        SelectiveClassifier(risk=0.1).fit(proba[rows], labels[rows])


def test_votes_of_a_forest_are_not_mistaken_for_duplicates(rng):
    votes = rng.multinomial(100, [0.7, 0.2, 0.1], size=500) / 100
    SelectiveClassifier(risk=0.1).fit(votes, votes.argmax(axis=1))


# Losses and classes


def test_a_cost_matrix_of_ones_is_the_error(data):
    error = SelectiveClassifier(risk=0.05).fit(*data)
    costs = SelectiveClassifier(risk=0.05, loss=1 - np.eye(4)).fit(*data)
    assert costs.threshold_ == error.threshold_
    scaled = SelectiveClassifier(risk=0.5, loss=10 * (1 - np.eye(4))).fit(*data)
    assert scaled.threshold_ == error.threshold_
    assert "the mean cost of the answers is at most 0.5" in str(scaled.guarantee())


def test_cheap_errors_allow_more_answers(data):
    loss = np.where(np.arange(4)[:, None] // 2 == np.arange(4) // 2, 0.2, 1.0)
    np.fill_diagonal(loss, 0.0)
    cheap = SelectiveClassifier(risk=0.05, loss=loss).fit(*data)
    assert cheap.coverage_ > SelectiveClassifier(risk=0.05).fit(*data).coverage_


@pytest.mark.parametrize(
    ("loss", "risk", "message"),
    [
        ("cost", 0.1, "loss must be 'error' or a cost matrix"),
        (np.eye(3), 0.1, r"loss must have shape \(4, A\), got \(3, 3\)"),
        (np.zeros((4, 4)), 0.1, "costs of at least 0"),
        (-np.eye(4), 0.1, "costs of at least 0"),
        (np.ones((4, 2)), 0.1, "one column per class"),
        (np.full((4, 4), np.nan), 0.1, r"loss\[0, 0\] is nan"),
        (np.eye(4), 1.0, "risk must be between 0 and the largest cost 1"),
    ],
)
def test_bad_losses_are_rejected(data, loss, risk, message):
    with pytest.raises(ValueError, match=message):
        SelectiveClassifier(risk=risk, loss=loss).fit(*data)


def test_every_class_has_its_own_threshold(data):
    proba, labels = data
    model = SelectiveClassifier(risk=0.1, per_class=True).fit(proba, labels)
    assert len(set(model.thresholds_)) == 4
    assert not hasattr(model, "threshold_")
    predicted, answered = proba.argmax(axis=1), model.answers(proba)
    np.testing.assert_array_equal(answered, proba.max(axis=1) > model.thresholds_[predicted])
    assert "of the answers of each class" in str(model.guarantee())


def test_rare_classes_are_listed_and_never_answered(data):
    proba, labels = data
    rows = np.flatnonzero((proba.argmax(axis=1) != 3) | (np.arange(3000) < 60))
    model = SelectiveClassifier(risk=0.1, per_class=True).fit(proba[rows], labels[rows])
    np.testing.assert_array_equal(model.unproved_classes_, [3])
    assert not model.answers(proba)[proba.argmax(axis=1) == 3].any()
    assert "Nothing was proved for the classes 3" in str(model.guarantee())


# scikit-learn


def test_the_parameter_score_and_the_method_score_live_together(features):
    X, y = features
    model = SelectiveClassifier(LogisticRegression(), risk=0.3, score="margin")
    assert model.get_params()["score"] == "margin"
    assert clone(model).get_params(deep=False)["score"] == "margin"
    assert "score='margin'" in repr(model)
    assert (cross_val_score(model, X, y, cv=3) > 0.6).all()
    assert model.set_params(score="confidence").get_params()["score"] == "confidence"


_HALF_THE_ROWS = {
    "check_fit2d_1feature": "half of its ten rows have one class, which the classifier rejects"
}


def _expected_failures(estimator):
    if isinstance(estimator, SelectiveClassifier):
        name = "check_classifiers_one_label_sample_weights"
        return {**_HALF_THE_ROWS, name: "ten rows cannot prove, so it abstains"}
    reason = "the check reads tags of classifiers, because there is a method predict_proba"
    names = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
    return {**_HALF_THE_ROWS, **dict.fromkeys(names, reason)}


@pytest.mark.filterwarnings("ignore:No row is answered:calibrant.exceptions.DataWarning")
@pytest.mark.filterwarnings("ignore:.*repeat an earlier row:calibrant.exceptions.DataWarning")
@parametrize_with_checks(
    [
        SelectiveClassifier(LogisticRegression(), risk=0.4, abstain=-999),
        PredictionSets(LogisticRegression(), coverage=0.6),
    ],
    expected_failed_checks=_expected_failures,
)
def test_they_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_model_must_be_fitted(data):
    with pytest.raises(NotFittedError):
        SelectiveClassifier().predict(data[0])


def test_logits_are_accepted():
    data = digits_predictions()
    proba = np.clip(data.val_proba, 1e-300, 1)
    by_logits = SelectiveClassifier(risk=0.1, inputs="logits").fit(np.log(proba), data.val_labels)
    by_proba = SelectiveClassifier(risk=0.1).fit(proba, data.val_labels)
    assert by_logits.coverage_ == pytest.approx(by_proba.coverage_, abs=0.01)


def test_frames_are_accepted(data):
    pandas = pytest.importorskip("pandas")
    proba, labels = data
    names = ["ant", "bee", "cat", "dog"]
    frame = pandas.DataFrame(proba, columns=names)
    y = pandas.Series(np.array(names)[labels])
    model = SelectiveClassifier(risk=0.05).fit(frame, y)
    shuffled = frame[["dog", "cat", "bee", "ant"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(frame))
