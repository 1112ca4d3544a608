"""One outcome, one warning: at the line of the user, with the cause, how many of how many, and what
to do.
"""

from __future__ import annotations

import inspect
import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from calibrant import (
    AutoCalibration,
    BetaCalibration,
    CalibratedClassifier,
    CrossFitted,
    EnsembleTemperatureScaling,
    MatrixScaling,
    MulticlassToBinary,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.base import BaseCalibrator, Outcome, Solution, store_outcome
from calibrant.base.outcome import REMEDIES
from calibrant.exceptions import ConvergenceWarning


def separable(rng, n_classes=3, n=60):
    y = np.arange(n) % n_classes
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), y] += 12
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), y


def caught(act):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        act()
    return record


def the_warning(act):
    """The one warning of an action, which must point at this file."""
    (only,) = caught(act)
    assert only.category is ConvergenceWarning
    assert only.filename == __file__
    return str(only.message)


COMPOSITES = [
    (MulticlassToBinary(BetaCalibration(), "class-wise"), "3 of 3 claims", "use PlattScaling()"),
    (CrossFitted(TemperatureScaling(), cv=4), "4 of 4 folds", "prior_scale=0.25"),
    (
        CrossFitted(MulticlassToBinary(BetaCalibration(), "class-wise"), cv=4),
        "4 of 4 folds",
        "use PlattScaling()",
    ),
    (CrossFitted(BetaCalibration(), cv=2), "2 of 2 folds", "use PlattScaling()"),
]


@pytest.mark.parametrize(("calibrator", "count", "remedy"), COMPOSITES, ids=lambda v: repr(v)[:60])
def test_a_composite_warns_once_with_how_many_and_the_remedy_of_its_parts(
    rng, calibrator, count, remedy
):
    P, y = separable(rng)
    message = the_warning(lambda: calibrator.fit(P, y))
    assert message.startswith(f"{type(calibrator).__name__}: {count} did not converge. The scores ")
    assert "separate the calibration labels perfectly" in message
    assert remedy in message
    assert message.count("separate the calibration labels") == 1


@pytest.mark.parametrize(
    "calibrator", [TemperatureScaling(), VectorScaling(), MatrixScaling(), PlattScaling(False)]
)
def test_a_calibrator_that_is_not_made_of_others_warns_without_counting(rng, calibrator):
    P, y = separable(rng, n_classes=2)
    message = the_warning(lambda: calibrator.fit(P, y))
    assert message.startswith(f"{type(calibrator).__name__}: the scores separate")
    assert " of " not in message.partition(":")[0]


def test_the_warning_names_the_very_line_of_the_user(rng):
    P, y = separable(rng)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        CrossFitted(TemperatureScaling()).fit(P, y)
    assert [w.lineno for w in record] == [line]


def test_only_the_claims_that_did_not_converge_are_counted(rng):
    y = rng.integers(3, size=300)
    score = np.where(y == 0, 0.9, 0.05) + 0.01 * rng.random(300)  # class 0 is told apart
    other = (1 - score) * rng.uniform(0.3, 0.7, 300)
    P = np.column_stack([score, other, 1 - score - other])
    beta = MulticlassToBinary(BetaCalibration(), "class-wise")
    assert "MulticlassToBinary: 1 of 3 claims" in the_warning(lambda: beta.fit(P, y))
    assert [c.converged_ for c in beta.calibrators_] == [False, True, True]


def test_a_calibrated_classifier_warns_once_and_counts_its_calibrators(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 0] += 20 * y
    platt = PlattScaling(target_smoothing=False)
    model = CalibratedClassifier(LogisticRegression(), platt, cv=3, ensemble=True)
    message = the_warning(lambda: model.fit(X, y))
    assert message.startswith("CalibratedClassifier: 3 of 3 calibrators did not converge")
    assert "target_smoothing=True" in message


def test_through_scikit_learn_it_is_still_the_line_of_the_user(rng):
    P, y = separable(rng)
    record = caught(lambda: cross_val_score(TemperatureScaling(), P, y, cv=2))
    assert len(record) == 2  # two fits
    assert {w.filename for w in record} == {__file__}


def test_members_that_are_evaluated_by_their_loss_are_not_warned_of(rng):
    P, y = separable(rng)
    assert not caught(lambda: AutoCalibration([TemperatureScaling(), VectorScaling()]).fit(P, y))


def test_a_fit_that_converges_says_nothing(rng):
    P, y = rng.dirichlet(np.ones(3), 90), np.arange(90) % 3
    assert not caught(lambda: CrossFitted(VectorScaling(), cv=2).fit(P, y))


def test_fitting_anew_forgets_how_the_last_fit_ended(rng):
    calibrator = TemperatureScaling()
    the_warning(lambda: calibrator.fit(*separable(rng)))
    assert not caught(lambda: calibrator.fit(rng.dirichlet(np.ones(3), 90), np.arange(90) % 3))
    assert calibrator.converged_


class Mine(BaseCalibrator):
    """What somebody else writes: a fit that ends as it is told."""

    def __init__(self, outcome=Outcome.STALLED, *, inputs="proba", classes=None):
        self.outcome = outcome
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        store_outcome(self, Solution(np.zeros(1), 0.5, 7, self.outcome))

    def _log_proba(self, u):
        return u


class MineWithAdvice(Mine):
    remedies: ClassVar = {Outcome.STALLED: "Ask Jane."}


def test_storing_an_outcome_keeps_its_numbers_and_does_not_warn(rng):
    calibrator = Mine()
    store_outcome(calibrator, Solution(np.zeros(1), 0.5, 7, Outcome.STALLED))
    assert (calibrator.converged_, calibrator.n_iter_, calibrator.objective_) == (False, 7, 0.5)


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.CONVERGED])
def test_every_outcome_but_convergence_is_said_with_a_remedy(rng, outcome):
    P, y = rng.dirichlet(np.ones(3), 30), np.arange(30) % 3
    message = the_warning(lambda: Mine(outcome).fit(P, y))
    assert message == f"Mine: {outcome.value}. {REMEDIES[outcome]}"


def test_the_remedy_of_the_estimator_goes_before_that_for_all(rng):
    P, y = rng.dirichlet(np.ones(3), 30), np.arange(30) % 3
    assert the_warning(lambda: MineWithAdvice().fit(P, y)).endswith(". Ask Jane.")


def test_an_ensemble_says_how_its_temperature_ended(rng):
    P, y = separable(rng)
    assert "prior_scale=0.25" in the_warning(lambda: EnsembleTemperatureScaling().fit(P, y))
