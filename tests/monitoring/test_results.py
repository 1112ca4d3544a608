"""Results: plain values that explain themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, isfinite

import pytest

from monitored import GAP, STEP


def test_the_largest_gap_that_is_not_ruled_out_may_be_on_either_side():
    assert GAP.largest == 0.05
    assert replace(GAP, low=-0.2).largest == 0.2


def test_the_evidence_is_a_number_however_strong_it_is():
    assert STEP.evidence == pytest.approx(exp(3.0), rel=1e-15)
    assert isfinite(replace(STEP, nats=1e6).evidence)


def test_listed_claims_are_named():
    assert STEP.listed == ("group b",)


def test_a_step_is_plain_values():
    plain = json.loads(json.dumps(STEP.to_dict()))
    assert plain["listed"] == ["group b"]
    assert plain["evidence"] == STEP.evidence
    assert plain["gaps"] == [gap.to_dict() for gap in STEP.gaps]
