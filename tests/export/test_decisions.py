"""Exported decisions: every target decides like the library."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant import Identity, TemperatureScaling, VectorScaling, export
from calibrant.decisions import DecisionRule, PredictionSets, SelectiveClassifier
from exported import DECIDERS

NAMES = ["ant", "bee", "cat", "dog"]


def _rows():
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.full(4, 0.3), size=700)
    labels = (rng.random((700, 1)) > np.cumsum(proba, axis=1)).sum(axis=1).clip(max=3)
    return proba, np.array(NAMES)[labels]


PROBA, LABELS = _rows()
LOGITS = np.log(PROBA + 1e-6)


def _temperature():
    return TemperatureScaling(inputs="logits", classes=NAMES).fit(LOGITS[:200], LABELS[:200])


def _selective(**options):
    model = SelectiveClassifier(_temperature(), **{"risk": 0.2, **options})
    return model.fit(LOGITS[200:], LABELS[200:]), LOGITS


def _sets(**options):
    model = PredictionSets(classes=NAMES, coverage=0.85, **options)
    return model.fit(PROBA[200:], LABELS[200:]), PROBA


def _wrapped():
    fitted = VectorScaling(classes=NAMES).fit(PROBA[:200], LABELS[:200])
    cost = np.array([[0, 3, 1], [2, 0, 1], [4, 4, 0], [1, 2, 3]])
    order = [2, 0, 3, 1]
    rule = DecisionRule(
        cost[order], 0.8, classes=np.array(NAMES)[order], actions=["keep", "drop", "send"]
    )
    return rule.wrap(fitted), PROBA


CASES = {
    "selective": lambda: _selective(),
    "margin of each class": lambda: _selective(score="margin", per_class=True, risk=0.3),
    "log-margin": lambda: _selective(score="log-margin"),
    "lac": lambda: _sets(),
    "lac of each class": lambda: _sets(class_conditional=True),
    "aps": lambda: _sets(score="aps"),
    "aps of each class": lambda: _sets(score="aps", class_conditional=True),
    "rule": lambda: (DecisionRule(1 - np.eye(4), 0.4, classes=NAMES), PROBA),
    "rule with a calibrator": _wrapped,
}


def _expected(model, scores):
    if isinstance(model, SelectiveClassifier):
        return {"decision": model.predict(scores), "answered": model.answers(scores)}
    if isinstance(model, PredictionSets):
        return {"in_set": model.predict_set(scores)}
    if isinstance(model, DecisionRule):
        return {"decision": model.decide(scores), "expected_cost": model.expected_cost(scores)}
    return {"decision": model.predict(scores)}


@pytest.mark.parametrize("name", CASES)
def test_the_program_decides_like_the_library(name):
    model, scores = CASES[name]()
    program = export.program(model)
    decided = program.decide(scores)
    for key, expected in _expected(model, scores).items():
        np.testing.assert_array_equal(decided[key].shape, expected.shape)
        if key == "expected_cost":
            np.testing.assert_allclose(decided[key], expected, atol=1e-14)
        else:
            np.testing.assert_array_equal(decided[key], expected)
    again = export.Program.from_json(program.to_json())
    np.testing.assert_array_equal(again.decide(scores)[key], decided[key])


@pytest.mark.parametrize("decide", DECIDERS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("name", CASES)
def test_every_target_decides_like_the_library(name, decide, tmp_path):
    model, scores = CASES[name]()
    found = decide(export.program(model), scores, tmp_path)
    for key, expected in _expected(model, scores).items():
        if key == "expected_cost":
            np.testing.assert_allclose(found[key], expected, atol=1e-12)
        else:
            np.testing.assert_array_equal(found[key], expected)


def test_nothing_and_everything_are_exported():
    proba, labels = np.array([[0.9, 0.1], [0.2, 0.8]] * 50), np.array([0, 1] * 50)
    everything = SelectiveClassifier(risk=0.1).fit(proba, labels)
    assert everything.threshold_ == -np.inf
    assert export.program(everything).decide(proba)["answered"].all()
    with pytest.warns(UserWarning, match="No row is answered"):
        nothing = SelectiveClassifier(risk=0.1).fit(proba, 1 - labels)
    assert not export.program(nothing).decide(proba)["answered"].any()


def test_what_cannot_be_exported_says_why():
    with pytest.raises(ValueError, match="Randomized sets cannot be exported"):
        export.program(_sets(score="aps", randomize=True)[0])
    with pytest.raises(ValueError, match="score is a function, which cannot be exported"):
        export.program(_selective(score=lambda proba: proba.max(axis=1))[0])
    model = SelectiveClassifier(LogisticRegression(), risk=0.5).fit(PROBA, LABELS)
    with pytest.raises(TypeError, match="predicts with a LogisticRegression"):
        export.program(model)


@pytest.mark.parametrize(
    "outputs",
    [
        [export.NamedOutput("label", 0)],
        [export.NamedOutput("a", 0), export.NamedOutput("a", 0)],
        [export.NamedOutput("not a name", 0)],
        [export.NamedOutput("a", 9)],
        [export.NamedOutput("a", 0, ("x", "y"))],
    ],
)
def test_bad_outputs_are_rejected(outputs):
    program = export.program(Identity().fit(PROBA[:5], [0, 1, 2, 3, 0]))
    with pytest.raises(ValueError, match="output"):
        export.Program(program.inputs, program.classes, program.nodes, "", tuple(outputs))
