"""Numbers that users read: three significant digits, and no negative zero."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._output.numbers import (
    format_fixed,
    format_gap,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.17423, "0.174"),
        (0.0080, "0.00800"),
        (0.99961, "1.00"),
        (9.996, "10.0"),
        (67.41, "67.4"),
        (999.6, "1,000"),
        (1234567.0, "1,234,567"),
        (-0.05612, "-0.0561"),
        (0.0001, "0.000100"),
        (0.0000999, "9.99e-05"),
        (np.float32(0.25), "0.250"),
        (3, "3.00"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_three_significant_digits(value, expected):
    assert format_number(value) == expected


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-17, -1e-17, -9e-7])
def test_rounding_errors_are_zero_without_a_sign(value):
    assert format_number(value) == "0"
    assert format_number(value, signed=True) == "0"
    assert format_percent(value) == "0%"


def test_no_value_is_shown_as_a_negative_zero():
    for value in -np.logspace(-12, 3, 400):
        assert float(format_number(value).replace(",", "")) != 0.0 or format_number(value) == "0"


@pytest.mark.parametrize(
    ("value", "expected"), [(0.02, "+0.0200"), (-0.02, "-0.0200"), (2500, "+2,500")]
)
def test_signs_are_written_if_asked_for(value, expected):
    assert format_number(value, signed=True) == expected


def test_an_interval_has_both_ends():
    assert format_interval(1.1, 1.979) == "1.10 to 1.98"
    assert format_interval(-0.01, 0.05, signed=True) == "-0.0100 to +0.0500"


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.95, "95%"),
        (0.9512, "95.1%"),
        (1.0, "100%"),
        (0.0005, "0.05%"),
        (-0.123, "-12.3%"),
        (0.9999, "99.99%"),
    ],
)
def test_a_percentage_has_no_space(share, expected):
    assert format_percent(share) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.5, "0.500"), (0.001, "0.00100"), (0.00099, "<0.001"), (0, "<0.001")]
)
def test_small_p_values_are_bounded(value, expected):
    assert format_p_value(value) == expected


def test_fixed_decimals_have_no_negative_zero():
    assert format_fixed(-0.0001) == "0.000"
    assert format_fixed(-0.0001, signed=True) == "+0.000"
    assert format_fixed(-0.0006, signed=True) == "-0.001"
    assert format_fixed(0.17423, 4, signed=True) == "+0.1742"
    assert format_gap(-0.0001, -0.115, 0.121) == "+0.000 (-0.115 to +0.121)"
