"""Fitted attributes as they are declared: their shapes and their ranges."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.base import FittedValue


def test_letters_are_one_number_throughout():
    sizes = {"K": 3}
    assert FittedValue(("K", "B")).check(np.zeros((3, 5)), sizes) is None
    assert (
        FittedValue(("B",)).check(np.zeros(4), sizes) == "has shape (4,), but must have shape (5)"
    )


@pytest.mark.parametrize("value", [True, "1", None, [1.0], {}])
def test_a_number_is_a_number(value):
    assert FittedValue().check(value, {}) == "must be a number"


def test_ranges_hold_for_every_entry():
    share = FittedValue((2,), 0.0, 1.0)
    assert share.check(np.array([0.0, 1.0]), {}) is None
    assert share.check(np.array([0.0, 1.5]), {}) == "must be between 0 and 1"
    assert share.check(np.array([0.0, np.inf]), {}) == "must be finite"


def test_letters_add_up():
    sizes = {"K": 3, "M": 2}
    assert FittedValue(("S", "M+K")).check(np.zeros((7, 5)), sizes) is None
    wrong = FittedValue(("S", "M+K")).check(np.zeros((7, 4)), sizes)
    assert wrong == "has shape (7, 4), but must have shape (7, M+K)"


def test_a_sum_of_letters_that_were_not_met_is_rejected():
    assert FittedValue(("M+K",)).check(np.zeros(5), {"K": 3}) is not None
