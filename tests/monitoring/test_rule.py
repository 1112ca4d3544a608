"""The rule: its threshold, what is learnt under it, and what is no rule."""

from __future__ import annotations

from math import log

import pytest

from calibrant.monitoring._rule import make_rule
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


def test_nothing_is_learnt_with_a_tolerance_or_where_rows_overlap():
    assert rule(tolerance=0.0).learns
    assert not rule(tolerance=0.02).learns
    assert not rule(tolerance=0.0, lag=2).learns


def test_one_notion_may_stand_alone():
    assert rule(notions="top-label").notions == rule(notions=["top-label"]).notions
    assert rule(notions=as_notion("top-label")).notions == rule(notions="top-label").notions


def test_a_rule_comes_back_from_its_state():
    made = rule(arl=300.0, lag=2, mode="test")
    assert make_rule(**made.to_state()) == made


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"false_alarm": 0}, "false_alarm must lie between 0 and 1, got 0"),
        ({"false_alarm": True}, "false_alarm must lie"),
        ({"horizon": 0}, "horizon"),
        ({"tolerance": 0.5}, "tolerance must be at least 0 and below 0.5"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"notions": []}, "notions must name at least one"),
        ({"notions": ["canonical"]}, "binary claims"),
        ({"mode": "maybe"}, "mode"),
        ({"arl": 0.5}, "arl must be a number of rows above 1, or None; got 0.5"),
        ({"lag": 0}, "lag"),
        ({"inputs": "guess"}, "inputs"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        rule(**options)
