"""Fitted attributes of a file: their shapes, their ranges, and what they refer to."""

from __future__ import annotations

import numpy as np
import pytest

import calibrators
from calibrant import TemperatureScaling
from calibrant.io._shapes import (
    _FITTED,
    Expected,
    References,
    check_fitted_values,
    mentioned_names,
)
from calibrant.testing import make_data


def test_letters_are_one_number_throughout():
    sizes = {"K": 3}
    assert Expected(("K", "B")).check(np.zeros((3, 5)), sizes) is None
    assert Expected(("B",)).check(np.zeros(4), sizes) == "has shape (4,) and must have (5)"


@pytest.mark.parametrize("value", [True, "1", None, [1.0], {}])
def test_a_number_is_a_number(value):
    assert Expected().check(value, {}) == "must be a number"


def test_ranges_hold_for_every_entry():
    share = Expected((2,), 0.0, 1.0)
    assert share.check(np.array([0.0, 1.0]), {}) is None
    assert share.check(np.array([0.0, 1.5]), {}) == "must be between 0 and 1"
    assert share.check(np.array([0.0, np.inf]), {}) == "must be finite"


@pytest.mark.parametrize(
    "calibrator", calibrators.ALL + calibrators.COMPOSED, ids=lambda c: repr(c)[:60]
)
def test_what_a_fit_leaves_behind_is_what_is_expected(calibrator):
    scores, labels = make_data(calibrator, 120)
    made = calibrator.fit(scores, labels)
    fitted = {k: v for k, v in vars(made).items() if k.endswith("_") and not k.startswith("_")}
    check_fitted_values(type(made).__name__, made, fitted)
    for part in made._parts():
        check_fitted_values(type(part).__name__, part, {})


def test_every_name_of_the_table_is_one_that_a_fit_sets():
    from calibrant.io._registry import registered

    for name, expected in _FITTED.items():
        assert set(expected) <= mentioned_names(registered()[name]), name


def test_attributes_that_no_method_knows_are_refused():
    with pytest.raises(ValueError, match="'warmth_' is no fitted attribute of TemperatureScaling"):
        check_fitted_values("TemperatureScaling", TemperatureScaling(), {"warmth_": 1.0})


def test_parts_of_parts_count_each_time():
    references = References()
    references.close()
    for _ in range(9):
        references.refer(len(references.costs) - 1)
        references.refer(len(references.costs) - 1)
        references.close()
    assert references.costs[-1] == 2**10 - 1
    references.refer(9)
    references.refer(9)
    with pytest.raises(ValueError, match="would run 2,047 of them"):
        references.close()
