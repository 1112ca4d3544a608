"""What all calibrators of one claim have in common, beside what `check_calibrator` asks of every
calibrator."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import calibrators
from calibrant.binary import (
    BayesianBinning,
    BetaCalibration,
    IsotonicCalibration,
    PlattScaling,
    SplineCalibration,
    VennAbers,
)
from calibrant.exceptions import ConvergenceWarning
from calibrant.notions import as_notion
from calibrant.testing import CHECKS, declared_exceptions

CALIBRATORS = [
    PlattScaling(),
    PlattScaling(target_smoothing=False),
    PlattScaling(inputs="logits"),
    BetaCalibration(),
    BetaCalibration("am"),
    BetaCalibration("ab"),
    BetaCalibration(constrained=False),
    BetaCalibration(inputs="logits"),
    IsotonicCalibration(),
    IsotonicCalibration("linear"),
    IsotonicCalibration(smoothing=1.0),
    BayesianBinning(),
    BayesianBinning(n_models=3, prior_strength=0.5),
    SplineCalibration(),
    SplineCalibration(residual=False),
    SplineCalibration(14, runout="cubic", constrained=True),
    SplineCalibration(monotone=True, runout="quadratic"),
    VennAbers(),
    VennAbers(inputs="logits"),
]
FROM_PROBA = [c for c in CALIBRATORS if c.inputs == "proba"]
GRID = np.linspace(0, 1, 41)

every_calibrator = pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
every_map_of_proba = pytest.mark.parametrize("calibrator", FROM_PROBA, ids=repr)


def quietly_fitted(calibrator, *data):
    """Fitted on data that may be separable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(calibrator).fit(*data)


def assert_valid(proba):
    assert np.isfinite(proba).all()
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)


# Those of the one list are checked with all others, in both forms.
CHECKED_ELSEWHERE = {repr(calibrator) for calibrator in calibrators.ONE_CLAIM}
OTHERS = [
    calibrator
    for calibrator in CALIBRATORS
    if repr(clone(calibrator).set_params(inputs="proba")) not in CHECKED_ELSEWHERE
]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("calibrator", OTHERS, ids=repr)
def test_every_common_check_holds(calibrator, check):
    assert not declared_exceptions(calibrator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(clone(calibrator))


HARD = {
    "constant": ([0.3] * 6, [0, 1, 0, 0, 1, 1]),
    "constant at zero": ([0.0] * 6, [0, 1, 0, 0, 1, 1]),
    "constant at one": ([1.0] * 6, [0, 0, 0, 0, 0, 0]),
    "two scores": ([0.2, 0.2, 0.2, 0.9, 0.9], [0, 1, 0, 1, 0]),
    "two scores the wrong way": ([0.2, 0.2, 0.2, 0.9, 0.9], [1, 1, 0, 0, 0]),
    "only misses": ([0.1, 0.5, 0.9], [0, 0, 0]),
    "only hits": ([0.1, 0.5, 0.9], [1, 1, 1]),
    "one hit": ([0.3], [1]),
    "one miss": ([0.0], [0]),
    "zeros and ones": ([0.0, 0.0, 1.0, 1.0, 0.5], [0, 1, 1, 0, 0]),
    "certain and wrong": ([0.0, 0.0, 1.0, 1.0], [1, 1, 0, 0]),
    "separable": ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
    "nearly tied": ([0.5, 0.5 + 1e-16, 0.5 + 2e-16, 0.5 + 1e-12], [0, 1, 0, 1]),
    "tiny": ([1e-300, 1e-200, 1e-100, 1e-20], [0, 1, 0, 1]),
}


@pytest.mark.parametrize("name", HARD)
@every_map_of_proba
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
def test_hard_inputs_give_valid_probabilities(calibrator, name):
    assert_valid(quietly_fitted(calibrator, *HARD[name]).predict_proba(GRID))


@every_map_of_proba
def test_weights_of_very_different_sizes_give_valid_probabilities(calibrator):
    weight = [1e-20, 1.0, 1e8, 1e-3, 1.0]
    assert_valid(
        quietly_fitted(
            calibrator, [0.1, 0.2, 0.4, 0.6, 0.9], [1, 0, 0, 1, 1], weight
        ).predict_proba(GRID)
    )


rows = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)),
        st.integers(0, 1),
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    ),
    min_size=1,
    max_size=12,
).filter(lambda data: any(weight > 0 for _, _, weight in data))


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
@every_map_of_proba
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows)
def test_any_data_give_valid_probabilities(calibrator, data):
    score, outcome, weight = (np.array(column) for column in zip(*data, strict=True))
    assert_valid(
        quietly_fitted(calibrator, score, outcome, weight).predict_proba(np.append(GRID, score))
    )


@pytest.mark.parametrize("name", ["mistral-7b-v0.1", "llama-2-13b"])
@every_calibrator
def test_heavy_ties_of_half_precision_scores(real_data, calibrator, name):
    data = real_data(f"llm_emotion_{name}-task-icl1")
    z = data["logits"].astype(float)
    proba = np.exp(z - z.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    for notion in ("confidence", "class-4"):  # option 4 is never true
        (claim,) = as_notion(notion).claims(proba, data["labels"].astype(int), np.ones(len(z)))
        score = claim.score
        if calibrator.inputs == "logits":
            score = np.log(score) - np.log1p(-score)
        fitted = quietly_fitted(calibrator, score, claim.outcome.astype(int))
        predicted = fitted.predict_proba(score)
        assert_valid(predicted)
        values, place = np.unique(score, return_inverse=True)
        np.testing.assert_array_equal(predicted[:, 1], fitted.predict_proba(values)[place, 1])


@every_calibrator
def test_more_than_two_classes_are_rejected_with_the_remedy(calibrator):
    remedy = f'MulticlassToBinary({calibrator!r}, notion="class-wise", normalize=True)'
    with pytest.raises(ValueError, match=re.escape(remedy)):
        clone(calibrator).fit(np.full((5, 3), 1 / 3), [0, 1, 2, 0, 1])


INCREASING = [
    PlattScaling(),
    BetaCalibration(),
    IsotonicCalibration(),
    IsotonicCalibration("linear"),
    IsotonicCalibration(smoothing=2.0),
    SplineCalibration(monotone=True),
    VennAbers(),
]


@pytest.mark.parametrize("calibrator", INCREASING, ids=repr)
def test_the_ranking_of_scores_is_kept(calibrator, rng):
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    assert (np.diff(clone(calibrator).fit(p, y).predict_proba(GRID)[:, 1]) >= -1e-15).all()
