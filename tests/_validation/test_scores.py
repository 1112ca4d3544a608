from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import check_scores
from calibrant._validation._scores import rounding_tolerance
from calibrant.exceptions import DataWarning


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("decimals", [2, 3, 4])
def test_the_tolerance_of_decimals_is_half_a_unit_a_column(rng, dtype, decimals):
    rows = rng.dirichlet(np.ones(4), 50).round(decimals).astype(dtype)
    assert rounding_tolerance(rows) == pytest.approx(2 * 10.0**-decimals, rel=1e-2)


def test_the_tolerance_has_a_limit():
    assert rounding_tolerance(np.full((3, 1000), 0.001)) == 0.05


def test_numbers_of_sixteen_bits_are_recognised_in_any_type(rng):
    bits = rng.dirichlet(np.ones(4), 50).astype(np.float32).view(np.uint32) & 0xFFFF0000
    short = bits.view(np.float32)
    assert rounding_tolerance(short) == rounding_tolerance(short.astype(np.float64)) == 0.01


def test_full_precision_has_no_tolerance_of_rounding(rng):
    rows = rng.dirichlet(np.ones(4), 50)
    assert rounding_tolerance(rows) == rounding_tolerance(rows.astype(np.float32)) == 0.0
    with pytest.raises(ValueError, match=r"sums to 1.00001 instead of 1"):
        check_scores(rows * 1.00001)


def test_repairs_of_rounded_rows_are_a_warning_or_a_note():
    rounded, notes = [[0.33, 0.33, 0.33]], []
    with pytest.warns(DataWarning, match="divided by their sum"):
        np.testing.assert_allclose(check_scores(rounded), 1 / 3)
    np.testing.assert_allclose(check_scores(rounded, note=notes.append), 1 / 3)
    assert "divided by their sum" in notes[0]


def test_slack_is_for_rows_that_nobody_can_divide(rng):
    rows = rng.dirichlet(np.ones(4), 50) * 0.995
    with pytest.warns(DataWarning, match="the tolerance is 0.01"):
        np.testing.assert_allclose(check_scores(rows, slack=0.01).sum(axis=1), 1)


def test_log_probabilities_are_taken_as_they_are_up_to_rounding(rng):
    rows = np.log(rng.dirichlet(np.ones(4), 50))
    assert np.shares_memory(check_scores(rows, inputs="log_proba"), rows)
    check_scores(rows.round(2), inputs="log_proba")
    check_scores(rows + 0.5, inputs="logits")
    check_scores(rows - 1, inputs="log_proba", renormalize=True)


def test_one_log_probability_a_row_is_that_of_class_one():
    made = check_scores([np.log(0.25), 0.0], inputs="log_proba")
    np.testing.assert_allclose(made, [[np.log(0.75), np.log(0.25)], [-np.inf, 0.0]])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.5, -1.0]], "is 0.5, but the logarithm of a probability is at most 0. .*'logits'"),
        ([[-3.0, -3.0]], "Row 0 .* sum to 0.0995741 instead of 1. .* inputs='logits'"),
        ([[np.nan, -1.0]], "Row 0 of the log-probabilities"),
        ([0.5], "is 0.5, but the logarithm of a probability is at most 0. .*inputs='proba'"),
        ([[0.5, 0.5]], "These look like probabilities. Pass inputs='proba'"),
    ],
)
def test_what_is_no_log_probability_is_named(scores, message):
    with pytest.raises(ValueError, match=message):
        check_scores(scores, inputs="log_proba")
