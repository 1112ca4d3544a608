"""What to do, by what chance allows to say."""

from __future__ import annotations

import pytest

from calibrant.inference import Gain
from calibrant.report._advice import LEAST_ROWS, advise
from calibrant.report._content import CheckRow


def gain(low, high):
    return Gain("log_loss", (low + high) / 2, low, high, 0.95, 1.0, 1.0 - (low + high) / 2)


def p_values(*values, after=0.5):
    return [CheckRow("t", "T", "", "exact", 0, 0, 0, 0, value, after) for value in values]


@pytest.mark.parametrize(
    ("n_samples", "interval", "values", "method", "start", "sure"),
    [
        (5000, (0.1, 0.2), (0.001,), "auto", "Use the calibrated probabilities.", "good"),
        (5000, (-0.001, 0.002), (0.3, 0.6), "auto", "Already calibrated, nothing to do.", "good"),
        (99, (0.1, 0.2), (0.001,), "auto", "Too few rows: 99.", "mixed"),
        (5000, (-0.2, -0.1), (0.3,), "auto", "Keep the probabilities as they are: auto", "bad"),
        (5000, (-0.01, 0.02), (0.001, 0.5), "auto", "Not calibrated, but auto does not", "mixed"),
        (500, (-0.05, 0.06), (0.4,), "auto", "Not decided", "mixed"),
        (500, (-0.05, 0.06), (), "auto", "Not decided", "mixed"),
    ],
)
def test_the_advice_follows_from_rows_gain_and_tests(
    n_samples, interval, values, method, start, sure
):
    said = advise(n_samples, gain(*interval), p_values(*values), method)
    assert said[0].startswith(start)
    assert said[1] == sure


def test_an_error_that_is_left_after_a_gain_is_no_green_light():
    said = advise(5000, gain(0.1, 0.2), p_values(0.001, after=0.001), "auto")
    assert said == (
        "Use the calibrated probabilities: they are better, though not yet right.",
        "mixed",
    )


def test_a_method_that_harms_names_the_one_that_chooses():
    said = advise(LEAST_ROWS, gain(-0.2, -0.1), [], "histogram")[0]
    assert "histogram makes them worse. Try the method auto" in said


def test_several_tests_share_the_level():
    assert "nothing to do" in advise(5000, gain(-0.001, 0.001), p_values(0.03, 0.5), "auto")[0]
    assert "Not calibrated" in advise(5000, gain(-0.001, 0.001), p_values(0.02, 0.5), "auto")[0]
