"""Groups: what each has won and how far it is off; bounded, and checked when read."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring._families import ClaimFamily
from calibrant.monitoring._groups import (
    Group,
    add_groups,
    groups_of_state,
    groups_to_state,
    sum_groups,
)
from calibrant.monitoring._members import Rows
from calibrant.monitoring._sequences import GapSums

FAMILY = ClaimFamily("confidence", 0.02)


def followed(stream, groups=None, n_rows=60):
    y, proba = stream(n_rows)
    known = groups or {}
    more = sum_groups(known, FAMILY, Rows(proba, y), np.arange(n_rows) % 2)
    return add_groups(known, more), y, proba


def test_a_group_has_the_factors_and_the_gap_of_its_rows(stream):
    groups, y, proba = followed(stream)
    assert sorted(groups) == ["0", "1"]
    odd = slice(1, None, 2)
    won = FAMILY.log_factors(proba[odd], y[odd]).sum(axis=0)[0]
    np.testing.assert_allclose(groups["1"].wealth, won, atol=1e-12)
    gap = (y[odd] == proba[odd].argmax(axis=1)) - proba[odd].max(axis=1)
    assert groups["1"].gaps.mean[0] == pytest.approx(gap.mean(), abs=1e-12)


def test_a_second_update_adds_and_leaves_the_first_as_it_was(stream):
    first, _, _ = followed(stream)
    before = first["0"].wealth.copy()
    second, _, _ = followed(stream, first)
    assert second["0"].gaps.count.tolist() == [60.0]
    assert first["0"].gaps.count.tolist() == [30.0]
    np.testing.assert_array_equal(first["0"].wealth, before)


def test_there_is_a_limit_of_groups(stream):
    rows = Rows(*stream(1)[::-1])
    known = Group(np.zeros(FAMILY.n_bets), GapSums.zeros(1))
    many = {str(i): known for i in range(10_000)}
    more = sum_groups(many, FAMILY, rows, np.array([7]))
    assert len(add_groups(many, more)) == 10_000
    with pytest.raises(ValueError, match="at most 10,000 groups are followed"):
        add_groups(many, sum_groups(many, FAMILY, rows, np.array(["another"])))


def test_a_state_comes_back(stream):
    groups, _, _ = followed(stream)
    state = {"groups": groups_to_state(groups)}
    again = groups_of_state(state, FAMILY.n_bets)
    assert groups_to_state(again) == state["groups"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "at most 10,000 by name"),
        (dict.fromkeys(map(str, range(10_001))), "at most 10,000 by name"),
        ({"a": 3}, "must hold wealth and sums"),
        ({"a": {"wealth": [0.0]}}, "lacks 'sums'"),
        ({"a": {"sums": [1.0, 0.0, 0.0], "wealth": [0.0]}}, "wealth of the state"),
    ],
    ids=["list", "too many", "number", "no sums", "short"],
)
def test_a_state_that_no_groups_have_is_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        groups_of_state({"groups": groups}, FAMILY.n_bets)


def test_one_group_a_row_is_needed(stream):
    with pytest.raises(ValueError, match=r"group.*3"):
        CalibrationMonitor().update(*stream(10), group=np.arange(3))
