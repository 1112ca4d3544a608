"""Rules, and the factors of alternatives: a mean of one under the forecast."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from calibrant.monitoring._alternatives import (
    ClaimFamily,
    Members,
    Rows,
    TemperatureFamily,
    make_rule,
)
from calibrant.notions import as_notion
from monitored import RULE


def rule(**options):
    return make_rule(**(RULE | options))


@pytest.mark.parametrize(
    ("options", "evidence"),
    [
        ({}, 1000 / 0.05),
        ({"arl": 300.0}, 300.0),
        ({"lag": 7}, 1000 / 0.05),
        ({"mode": "test"}, 1 / 0.05),
        ({"mode": "test", "lag": 7}, 7 / 0.05),
    ],
    ids=str,
)
def test_the_threshold_follows_from_the_bound_on_false_alarms(options, evidence):
    assert rule(**options).threshold == pytest.approx(log(evidence), rel=1e-15)


def test_nothing_is_learned_with_a_tolerance_or_where_rows_overlap():
    assert rule(tolerance=0.0).learns
    assert not rule(tolerance=0.02).learns
    assert not rule(tolerance=0.0, lag=2).learns


def test_one_notion_may_stand_alone():
    assert rule(notions="top-label").notions == rule(notions=["top-label"]).notions
    assert rule(notions=as_notion("top-label")).notions == rule(notions="top-label").notions


def test_a_rule_comes_back_from_its_state():
    monitor_rule = rule(arl=300.0, lag=2, mode="test")
    assert make_rule(**monitor_rule.to_state()) == monitor_rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"false_alarm": 0}, "false_alarm must lie between 0 and 1, got 0"),
        ({"false_alarm": True}, "false_alarm must lie"),
        ({"horizon": 0}, "horizon"),
        ({"tolerance": 0.5}, "tolerance must be at least 0 and below 0.5"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"notions": []}, "notions must not be empty. Pass at least one notion"),
        ({"notions": ["canonical"]}, "binary claims"),
        ({"mode": "maybe"}, "mode"),
        ({"arl": 0.5}, "arl must be a number of rows above 1, or None, got 0.5"),
        ({"lag": 0}, "lag"),
        ({"inputs": "guess"}, "inputs"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        rule(**options)


FAMILIES = [
    TemperatureFamily(),
    *(ClaimFamily(n) for n in ("confidence", "class-wise", "top-label", "within-top-2")),
]


def expected_factors(family, proba, truth):
    """Mean of every factor (n, C, B) over the classes, with the probabilities ``truth``."""
    total = 0.0
    for k in range(proba.shape[1]):
        factors = family.factors(proba, np.full(len(proba), k))
        total = total + truth[:, k, None, None] * factors
    return total


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_mean_factor_of_a_calibrated_forecast_is_one(rng, family):
    proba = rng.dirichlet(np.full(5, 0.4), 30)
    mean = expected_factors(family, proba, proba)
    assert mean.shape == (30, family.n_claims(5), family.n_alternatives)
    np.testing.assert_allclose(mean, 1.0, atol=1e-9)


@pytest.mark.parametrize("gap", [-0.05, 0.0, 0.05])
def test_the_mean_factor_is_at_most_one_as_long_as_the_gap_is_within_the_tolerance(gap):
    score = np.linspace(0.05, 0.95, 19)
    proba = np.column_stack([1 - score, score])
    truth = np.column_stack([1 - score - gap, score + gap])
    mean = expected_factors(ClaimFamily("class-1", 0.05), proba, truth)
    assert mean.max() <= 1 + 1e-12
    assert mean.min() > 0


def test_factors_stay_positive_for_certain_forecasts():
    proba = np.array([[1.0, 0.0], [1.0, 0.0]])
    for family in (ClaimFamily("class-1", 0.02), ClaimFamily("class-1"), TemperatureFamily()):
        assert np.isfinite(np.log(family.factors(proba, np.array([0, 1])))).all()


def test_a_claim_about_another_label_has_a_factor_of_one(rng):
    proba = np.array([[0.7, 0.2, 0.1]])
    log_f = np.log(ClaimFamily("top-label").factors(proba, np.array([0])))
    assert log_f[0, 0].all()
    assert not log_f[0, 1:].any()


def members(n_classes=4, **options):
    return Members(make_rule(**(RULE | options)), n_classes)


def test_claims_of_all_notions_stand_one_after_the_other():
    watch = members(notions=("confidence", "class-wise", "top-label"))
    assert watch.n_claims == 1 + 4 + 4
    assert [watch.claim_slice(i) for i in range(3)] == [slice(0, 1), slice(1, 5), slice(5, 9)]


def test_with_a_tolerance_there_are_only_claims():
    watch = members(tolerance=0.02)
    assert watch.families == watch.claims
    assert watch.experts == watch.start_experts() == ()
    assert watch.layout.n_members == 12 * (1 + 4)


def test_without_a_tolerance_there_are_temperatures_and_experts():
    watch = members(tolerance=0.0)
    assert watch.layout.n_members == 6 * (1 + 4) + 6 + 4
    assert len(watch.layout.ends) == 4
    assert members(tolerance=0.0, lag=2).experts == ()


def test_a_block_has_the_factors_of_each_family_in_its_place(stream):
    watch = members(tolerance=0.0)
    y, proba = stream(30)
    sums = watch.evaluate_block(Rows(proba, y), np.zeros(5), watch.start_experts())
    for index, family in enumerate(watch.families):
        expected = family.factors(proba, y).reshape(30, -1)
        np.testing.assert_array_equal(sums.factors[:, watch.layout.family(index)], expected)
    assert isinstance(watch.families[-1], TemperatureFamily)
    residual = np.eye(4)[y] - proba
    np.testing.assert_allclose(sums.gaps.residual[1:], residual.sum(axis=0), atol=1e-12)


def test_experts_predict_with_what_they_have_learned(stream):
    watch = members(tolerance=0.0)
    (y, proba), states = stream(50, beta=0.5), watch.start_experts()
    first = watch.evaluate_block(Rows(proba, y), np.zeros(5), states)
    np.testing.assert_allclose(first.factors[:, -4:], 1.0, atol=1e-12)  # still the identity
    states = watch.learn(states, first.expert_sums)
    second = watch.evaluate_block(Rows(proba, y), np.zeros(5), states)
    rows = np.arange(50)
    for state, factor in zip(states, second.factors[:, -4:].T, strict=True):
        p_true = state.proba(np.log(proba))[rows, y]
        np.testing.assert_allclose(factor, p_true / proba[rows, y], rtol=1e-9)
    assert (second.factors[:, -4:].prod(axis=0) > 1).all()


@pytest.mark.parametrize(
    ("n_classes", "options", "expected"),
    [(2, {}, 512), (2, {"tolerance": 0.0}, 256), (5000, {}, 16)],
)
def test_blocks_are_smaller_where_members_are_many_or_learn(n_classes, options, expected):
    assert members(n_classes, **options).block_rows == expected
