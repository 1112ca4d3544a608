"""Programs of decisions: the probabilities of a calibrator, and the decision as named outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant._kernels.simplex import EPS
from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import check_fitted
from calibrant.base import Calibrator
from calibrant.decisions import (
    DecisionClassifier,
    DecisionRule,
    PredictionSets,
    SelectiveClassifier,
)
from calibrant.decisions._losses import abstention_label
from calibrant.export._program import Builder, NamedOutput, Program, plain_labels
from calibrant.export._values import Value

_NEVER = 1e300
"""Replacement of an infinite threshold, which a program cannot contain. All scores are smaller."""

_LAST_BITS = 1e-13
"""Number that is added to the thresholds of sets. Thresholds are scores of calibration rows, and
runtimes differ in the last bit, so without it such a label could be excluded from its set."""

Emit = Callable[[Any, Value], Value]
"""The function that writes the probabilities of a calibrator."""

DECISIONS = (DecisionClassifier, DecisionRule, PredictionSets, SelectiveClassifier)


def decision_program(decision: Any, emit: Emit) -> Program:
    """The program of a decision and its calibrator. ``emit`` writes the calibrator."""
    if isinstance(decision, DecisionRule):
        return _program(decision, "proba", lambda scores: scores, _rule_outputs(decision))
    calibrator = _calibrator_of(decision)
    write = {
        DecisionClassifier: _classifier_outputs,
        PredictionSets: _set_outputs,
        SelectiveClassifier: _answer_outputs,
    }[type(decision)]
    return _program(
        decision, calibrator.inputs, lambda scores: emit(calibrator, scores), write(decision)
    )


def _calibrator_of(decision: Any) -> Calibrator:
    check_fitted(decision)
    calibrator = getattr(decision.estimator_, "estimator", decision.estimator_)
    if not isinstance(calibrator, Calibrator):
        raise TypeError(
            f"{type(decision).__name__} predicts with a {type(calibrator).__name__}, which cannot "
            "be exported. Export the classifier with its own tool, and pass a calibrator of the "
            f"scores to {type(decision).__name__}."
        )
    return calibrator


Outputs = list[tuple[str, Value, AnyArray | Sequence[Any]]]
"""Name, value and labels (or None) of each output."""


def _program(
    decision: Any,
    inputs: str,
    probabilities: Callable[[Value], Value],
    outputs_of: Callable[[Value], Outputs],
) -> Program:
    scores = Value(Builder(len(decision.classes_)), 0)
    proba = probabilities(scores)
    outputs = [
        NamedOutput(name, value.number, plain_labels(labels))
        for name, value, labels in outputs_of(proba)
    ]
    proba.build.last(proba.number)
    classes = plain_labels(decision.classes_)
    return proba.build.program(inputs, classes, type(decision).__name__, outputs)


def _rule_outputs(rule: DecisionRule) -> Callable[[Value], Outputs]:
    """The action with the lowest expected cost, and its expected cost."""
    costs, actions = rule.costs_, rule.actions_

    def outputs(proba: Value) -> Outputs:
        offset = np.zeros(costs.shape[1])
        gains = proba.apply("affine", coef=np.ascontiguousarray(-costs.T), offset=offset)
        place = gains.top(1)
        return [("decision", place, actions), ("expected_cost", gains.take(place) * -1.0, ())]

    return outputs


def _classifier_outputs(model: DecisionClassifier) -> Callable[[Value], Outputs]:
    write, columns = _rule_outputs(model.rule_), model._columns
    return lambda proba: write(proba.columns(columns.tolist()))


def _answer_outputs(model: SelectiveClassifier) -> Callable[[Value], Outputs]:
    """The label or the abstention, and whether a row is answered."""
    labels = [*model.classes_.tolist(), abstention_label(model.abstain, model.classes_)]
    score = model.get_params(deep=False)["score"]

    def outputs(proba: Value) -> Outputs:
        label = proba.top(1)
        answered = _sureness(score, proba) > _thresholds(model.thresholds_, proba).take(label)
        place = label * answered + (1.0 - answered) * float(len(model.classes_))
        return [("decision", place, labels), ("answered", answered, ())]

    return outputs


def _sureness(score: Any, proba: Value) -> Value:
    if not isinstance(score, str):
        raise ValueError(
            "score is a function, which cannot be exported. Fit with the name of a score, for "
            'example score="margin".'
        )
    if score == "confidence":
        return proba.max()
    top = proba.take(proba.top(2))
    if score == "log-margin":
        top = top.clip(EPS, 1.0).apply("log")
    return top.column(0) - top.columns([1])


def _thresholds(thresholds: FloatArray, proba: Value) -> Value:
    return proba.fill(*np.clip(thresholds, -_NEVER, _NEVER).tolist())


def _set_outputs(model: PredictionSets) -> Callable[[Value], Outputs]:
    """Whether each label is in the set."""
    if model.randomize:
        raise ValueError(
            "Randomized sets cannot be exported, because they need random numbers. Fit with "
            "randomize=False."
        )
    members = _lac_members if model.get_params(deep=False)["score"] == "lac" else _aps_members

    def outputs(proba: Value) -> Outputs:
        limits = _thresholds(model.thresholds_ + _LAST_BITS, proba)
        return [("in_set", members(proba, limits), ())]

    return outputs


def _lac_members(proba: Value, limits: Value) -> Value:
    return 1.0 - ((1.0 - proba) > limits)


def _aps_members(proba: Value, limits: Value) -> Value:
    # Sums of the probabilities before each rank, by a matrix of ones below the diagonal.
    order = proba.top(proba.width)
    below = np.tri(proba.width, k=-1)
    before = proba.take(order).apply("affine", coef=below, offset=np.zeros(proba.width))
    return proba.put(order, 1.0 - (before > limits.take(order)))
