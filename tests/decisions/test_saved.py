"""Decisions in files: equal after loading, with their certificate; damaged files are rejected."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant import TemperatureScaling
from calibrant.decisions import DecisionRule, PredictionSets, SelectiveClassifier

NAMES = ["ant", "bee", "cat"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.full(3, 0.2), size=900)
    labels = (rng.random((900, 1)) > np.cumsum(proba, axis=1)).sum(axis=1).clip(max=2)
    return proba, np.array(NAMES)[labels]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rule.json"


def _selective(rows, **options):
    proba, labels = rows
    calibrator = TemperatureScaling(classes=NAMES).fit(proba[:400], labels[:400])
    return SelectiveClassifier(calibrator, risk=0.1, **options).fit(proba[400:], labels[400:])


@pytest.mark.parametrize(
    "options",
    [{}, {"per_class": True, "score": "margin"}, {"loss": [[0, 1, 1], [1, 0, 0.5], [1, 1, 0]]}],
)
def test_a_selective_classifier_is_the_same_after_loading(rows, path, options):
    model = _selective(rows, **options)
    calibrant.save(model, path)
    loaded = calibrant.load(path)
    np.testing.assert_array_equal(loaded.predict(rows[0]), model.predict(rows[0]))
    assert loaded.certificate_ == model.certificate_
    assert str(loaded.guarantee()) == str(model.guarantee())
    assert loaded.estimator is loaded.estimator_


@pytest.mark.parametrize("kind", [SelectiveClassifier, PredictionSets])
def test_a_decision_with_a_composite_calibrator_is_the_same_after_loading(rows, path, kind):
    proba, labels = rows
    calibrator = calibrant.AutoCalibration(classes=NAMES).fit(proba[:400], labels[:400])
    model = kind(calibrator).fit(proba[400:], labels[400:])
    calibrant.save(model, path)
    np.testing.assert_array_equal(calibrant.load(path).thresholds_, model.thresholds_)


def test_a_decision_classifier_is_saved_with_its_calibrator(rows, path):
    proba, labels = rows
    calibrator = calibrant.AutoCalibration(classes=NAMES).fit(proba, labels)
    rule = DecisionRule([[0, 5], [1, 0], [0, 2]], 0.3, classes=NAMES[::-1], actions=["go", "stay"])
    model = rule.wrap(calibrator)
    calibrant.save(model, path)
    loaded = calibrant.load(path)
    np.testing.assert_array_equal(loaded.predict(proba), model.predict(proba))
    assert loaded.classes_.tolist() == NAMES
    classifier = rule.wrap(LogisticRegression().fit(proba, labels))
    with pytest.raises(
        TypeError, match=r"LogisticRegression.*calibrant.save\(decision.rule_, path"
    ):
        calibrant.save(classifier, path)


def test_a_damaged_decision_classifier_is_rejected(rows, path):
    calibrator = TemperatureScaling(classes=NAMES).fit(*rows)
    model = DecisionRule(1 - np.eye(3), classes=NAMES).wrap(calibrator)
    for change in (
        lambda d: d["models"][-1]["parameters"].update(estimator=None),
        lambda d: d["models"][-1]["parameters"].update(abstain="x"),
        lambda d: d["models"][-1]["fitted"]["classes_"].update(data=["x", "y", "z"]),
    ):
        calibrant.save(model, path)
        with pytest.raises(ValueError, match="is not a saved calibrator"):
            calibrant.load(_damaged(path, change))


def test_a_frame_of_losses_is_matched_to_the_classes_and_saved(rows, path):
    pandas = pytest.importorskip("pandas")
    loss = [[0, 1, 1], [1, 0, 0.5], [1, 1, 0]]
    frame = pandas.DataFrame(loss, NAMES, NAMES).loc[NAMES[::-1], NAMES[::-1]]
    model = _selective(rows, loss=frame)
    np.testing.assert_array_equal(model.thresholds_, _selective(rows, loss=loss).thresholds_)
    calibrant.save(model, path)
    np.testing.assert_array_equal(calibrant.load(path).loss, loss)


def test_the_file_holds_the_certificate(rows, path):
    calibrant.save(_selective(rows), path)
    text = path.read_text()
    for name in ("n_rows", "risk", "delta", "date", "digest"):
        assert f'"{name}"' in text


@pytest.mark.parametrize("options", [{}, {"score": "aps", "randomize": True}])
def test_prediction_sets_are_the_same_after_loading(rows, path, options):
    proba, labels = rows
    model = PredictionSets(classes=NAMES, class_conditional=True, **options).fit(proba, labels)
    calibrant.save(model, path)
    loaded = calibrant.load(path)
    np.testing.assert_array_equal(loaded.predict_set(proba), model.predict_set(proba))
    assert loaded.guarantee() == model.guarantee()


def test_a_decision_rule_is_the_same_after_loading(rows, path):
    rule = DecisionRule([[0, 1], [5, 0], [1, 1]], 0.5, classes=NAMES, actions=["x", "y"])
    calibrant.save(rule, path)
    np.testing.assert_array_equal(calibrant.load(path).decide(rows[0]), rule.decide(rows[0]))


def test_probabilities_without_an_estimator_are_saved_with_the_identity(rows, path):
    model = SelectiveClassifier(risk=0.1, classes=NAMES, random_state=np.random.default_rng(0)).fit(
        *rows
    )
    calibrant.save(model, path)
    np.testing.assert_array_equal(calibrant.load(path).predict(rows[0]), model.predict(rows[0]))


def test_classifiers_and_functions_cannot_be_saved(rows, path):
    proba, labels = rows
    model = SelectiveClassifier(LogisticRegression(), risk=0.4).fit(proba, labels)
    with pytest.raises(
        TypeError, match="predicts with a LogisticRegression, which cannot be saved"
    ):
        calibrant.save(model, path)
    model = SelectiveClassifier(risk=0.2, classes=NAMES, score=lambda p: p.max(axis=1)).fit(
        proba, labels
    )
    with pytest.raises(TypeError, match="score is a function, which cannot be saved"):
        calibrant.save(model, path)


def _damaged(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["models"][-1]["fitted"].pop("certificate_"),
        lambda d: d["models"][-1]["fitted"].pop("estimator_"),
        lambda d: d["models"][-1]["fitted"].pop("thresholds_"),
        lambda d: d["models"][-1]["fitted"].update(coverage_=1.5),
        lambda d: d["models"][-1]["fitted"]["certificate_"]["fields"].update(date="today"),
        lambda d: d["models"][-1]["fitted"]["certificate_"]["fields"].update(n_rows="many"),
        lambda d: d["models"][-1]["parameters"].update(risk=2.0),
        lambda d: d["models"][-1]["parameters"].update(score="none"),
        lambda d: d["models"][-1]["parameters"].update(abstain="ant"),
        lambda d: (
            d["models"][0]["fitted"].pop("log_beta_", None)
            or d["models"][0]["fitted"].update(temperature_=-1.0)
        ),
    ],
)
def test_damaged_files_are_rejected(rows, path, change):
    calibrant.save(_selective(rows), path)
    with pytest.raises(ValueError, match="is not a saved calibrator"):
        calibrant.load(_damaged(path, change))
