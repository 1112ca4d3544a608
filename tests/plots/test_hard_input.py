"""Every display on two classes, a hundred, empty bins, a class that never occurs, and a single
row."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from calibrant import DirichletCalibration
from calibrant.datasets import draw_labels
from calibrant.plots import (
    ClassErrorDisplay,
    ConfusionChangeDisplay,
    CumulativeDisplay,
    DecisionCurveDisplay,
    ParameterDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ValidityDisplay,
)


def two_classes():
    generator = np.random.default_rng(0)
    score = generator.random(200)
    return np.column_stack([1 - score, score]), (generator.random(200) < score).astype(int)


def hundred_classes():
    generator = np.random.default_rng(0)
    proba = generator.dirichlet(np.full(100, 0.05), 500)
    return proba, draw_labels(proba, rng=generator)


DATA = {
    "two classes": two_classes(),
    "hundred classes": hundred_classes(),
    "one row": (np.array([[0.2, 0.5, 0.3]]), np.array([2])),
    "constant scores, most bins empty": (np.full((30, 3), 1 / 3), np.arange(30) % 2),
    "exact zeros and ones, a class never seen": (np.eye(3)[[0, 1, 0, 1]], np.array([0, 0, 0, 1])),
}
MAKERS = {
    "confidence": lambda y, p: ReliabilityDisplay.from_predictions(y, p),
    "confidence, quantile": lambda y, p: ReliabilityDisplay.from_predictions(
        y, p, strategy="quantile"
    ),
    "confidence, before": lambda y, p: ReliabilityDisplay.from_predictions(y, p, before=p),
    "confidence, resampled": lambda y, p: ReliabilityDisplay.from_predictions(
        y, p, band="resampling", n_resamples=20, rng=0
    ),
    "class-wise": lambda y, p: ReliabilityDisplay.from_predictions(y, p, notion="class-wise"),
    "top-label": lambda y, p: ReliabilityDisplay.from_predictions(y, p, notion="top-label"),
    "top-label, unique": lambda y, p: ReliabilityDisplay.from_predictions(
        y, p, notion="top-label", strategy="unique"
    ),
    "top-label, before": lambda y, p: ReliabilityDisplay.from_predictions(
        y, p, before=p, notion="top-label"
    ),
    "cumulative": lambda y, p: CumulativeDisplay.from_predictions(y, p),
    "risk and coverage": lambda y, p: RiskCoverageDisplay.from_predictions(y, p),
    "decision curve": lambda y, p: DecisionCurveDisplay.from_predictions(y, p),
    "validity": lambda y, p: ValidityDisplay.from_predictions(y, p),
    "validity of classes": lambda y, p: ValidityDisplay.from_predictions(y, p, claims=[0, 1]),
    "errors by class": lambda y, p: ClassErrorDisplay.from_predictions(y, p),
    "confusion": lambda y, p: ConfusionChangeDisplay.from_predictions(y, p, np.roll(p, 1, axis=1)),
    "parameters": lambda y, p: ParameterDisplay(
        np.eye(p.shape[1]), np.full(p.shape[1], 1 / p.shape[1])
    ),
}


FEW_DATA = ("hundred classes", "exact zeros and ones, a class never seen")


def every_display():
    """All pairs; the first display has all data, the others a part of them and the rest slowly."""
    for maker, data in product(MAKERS, DATA):
        is_quick = maker == "confidence" or data in FEW_DATA
        yield pytest.param(maker, data, marks=() if is_quick else pytest.mark.slow)


@pytest.mark.parametrize(("maker", "data"), list(every_display()))
def test_every_display_is_drawn(maker, data):
    proba, y = DATA[data]
    display = MAKERS[maker](y, proba).plot()
    if (
        proba.shape[1] < 100
    ):  # the layout of many axes takes its time, and nothing of it depends on the number of classes
        display.figure_.draw_without_rendering()
    assert display.figure_.axes


@pytest.mark.parametrize("maker", MAKERS)
def test_axes_with_data_are_labelled(maker):
    proba, y = DATA["two classes"]
    display = MAKERS[maker](y, proba).plot()
    labels = {
        label
        for ax in display.figure_.axes
        for label in (ax.get_xlabel(), ax.get_ylabel(), ax.get_title())
        if label
    }
    assert len(labels) >= 2


def test_drawing_twice_gives_the_same_marks():
    proba, y = DATA["two classes"]
    display = ReliabilityDisplay.from_predictions(y, proba)
    first = [p.get_height() for p in display.plot().axes_[0].patches]
    assert [p.get_height() for p in display.plot().axes_[0].patches] == first


def test_a_hundred_classes_of_a_fitted_map_are_drawn():
    proba, y = DATA["hundred classes"]
    calibrator = DirichletCalibration(lam=1.0).fit(proba, y)
    assert ParameterDisplay.from_estimator(calibrator).plot().matrix.shape == (100, 100)
