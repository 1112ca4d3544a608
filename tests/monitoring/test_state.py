"""Sums of groups and shards add up, are bounded, and are checked when read."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor, MonitorChunk
from calibrant.monitoring._alternatives import ClaimFamily, Rows
from calibrant.monitoring._evidence import GapSums
from calibrant.monitoring._experts import ExpertSums
from calibrant.monitoring._state import (
    Group,
    add_groups,
    groups_from_state,
    groups_to_state,
    sum_groups,
)

FAMILY = ClaimFamily("confidence", 0.02)


def follow(stream, groups=None, n_rows=60):
    y, proba = stream(n_rows)
    known = groups or {}
    more = sum_groups(known, FAMILY, Rows(proba, y), np.arange(n_rows) % 2)
    return add_groups(known, more), y, proba


def test_a_group_has_the_factors_and_the_gap_of_its_rows(stream):
    groups, y, proba = follow(stream)
    assert sorted(groups) == ["0", "1"]
    odd = slice(1, None, 2)
    log_e = np.log(FAMILY.factors(proba[odd], y[odd])).sum(axis=0)[0]
    np.testing.assert_allclose(groups["1"].log_e, log_e, atol=1e-12)
    gap = (y[odd] == proba[odd].argmax(axis=1)) - proba[odd].max(axis=1)
    assert groups["1"].gaps.mean[0] == pytest.approx(gap.mean(), abs=1e-12)


def test_a_second_update_adds_and_leaves_the_first_as_it_was(stream):
    first, _, _ = follow(stream)
    before = first["0"].log_e.copy()
    second, _, _ = follow(stream, first)
    assert second["0"].gaps.count.tolist() == [60.0]
    assert first["0"].gaps.count.tolist() == [30.0]
    np.testing.assert_array_equal(first["0"].log_e, before)


def test_there_is_a_limit_of_groups(stream):
    rows = Rows(*stream(1)[::-1])
    known = Group(np.zeros(FAMILY.n_alternatives), GapSums.zeros(1))
    many = {str(i): known for i in range(10_000)}
    more = sum_groups(many, FAMILY, rows, np.array([7]))
    assert len(add_groups(many, more)) == 10_000
    with pytest.raises(ValueError, match="10,001 groups, but a monitor keeps at most 10,000"):
        add_groups(many, sum_groups(many, FAMILY, rows, np.array(["another"])))


def test_a_state_comes_back(stream):
    groups, _, _ = follow(stream)
    state = {"groups": groups_to_state(groups)}
    again = groups_from_state(state, FAMILY.n_alternatives)
    assert groups_to_state(again) == state["groups"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "an object with at most 10,000 groups"),
        (dict.fromkeys(map(str, range(10_001))), "an object with at most 10,000 groups"),
        ({"a": 3}, "must be an object with the keys 'log_e' and 'sums'"),
        ({"a": {"log_e": [0.0]}}, "the key 'sums' is missing"),
        ({"a": {"sums": [1.0, 0.0, 0.0], "log_e": [0.0]}}, "'log_e' in the state"),
    ],
    ids=["list", "too many", "number", "no sums", "short"],
)
def test_a_state_that_no_groups_have_is_rejected(groups, message):
    with pytest.raises(ValueError, match=message):
        groups_from_state({"groups": groups}, FAMILY.n_alternatives)


def test_one_group_per_row_is_needed(stream):
    with pytest.raises(ValueError, match=r"group.*3"):
        CalibrationMonitor().update(*stream(10), group=np.arange(3))


def chunk(size, start=("rule", 0)):
    """A chunk whose sums are all ``size``."""
    full = np.full(2, float(size))
    expert_sums = ExpertSums(size, full, np.diag(full))
    return MonitorChunk(size, full, GapSums(full, full, full), (expert_sums,), start)


def test_every_sum_of_two_chunks_is_added():
    both = chunk(3) + chunk(4)
    seven = np.full(2, 7.0)
    assert both.n_rows == both.expert_sums[0].n_rows == 7
    assert both.start == ("rule", 0)
    for sums in (both.log_factors, both.gaps.count, both.gaps.residual, both.gaps.variance):
        np.testing.assert_array_equal(sums, seven)
    np.testing.assert_array_equal(both.expert_sums[0].gradient, seven)
    np.testing.assert_array_equal(both.expert_sums[0].information, np.diag(seven))


@pytest.mark.parametrize("start", [("rule", 9), ("another", 0)])
def test_chunks_of_another_monitor_or_another_state_do_not_add_up(start):
    with pytest.raises(ValueError, match="come from different monitors or from different states"):
        chunk(1) + chunk(1, start)
