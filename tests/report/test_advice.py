"""What to do, by what tests and intervals show."""

from __future__ import annotations

import pytest

from calibrant.inference import Gain
from calibrant.report._advice import LEAST_ROWS, advise
from calibrant.report._content import CheckRow


def gain(low, high):
    return Gain("log_loss", (low + high) / 2, low, high, 0.95, 1.0, 1.0 - (low + high) / 2)


def p_values(*values, after=0.5):
    return [CheckRow("t", "T", "", "exact", 0, 0, 0, 0, value, after) for value in values]


def advice(n_samples, interval, values, method="auto", *, possible=0.05, has_rest=False):
    tests = p_values(*values)
    return advise(n_samples, gain(*interval), tests, method, possible=possible, has_rest=has_rest)


NOTHING = "No miscalibration detected; no change recommended."


@pytest.mark.parametrize(
    ("n_samples", "interval", "values", "start", "sure"),
    [
        (5000, (0.1, 0.2), (0.001,), "Use the calibrated probabilities.", "good"),
        (5000, (-0.001, 0.002), (0.3, 0.6), NOTHING, "good"),
        (99, (0.1, 0.2), (0.001,), "99 rows are too few for a recommendation. Collect", "mixed"),
        (5000, (-0.2, -0.1), (0.3,), "Keep the original probabilities. The method auto", "bad"),
        (
            5000,
            (-0.01, 0.02),
            (0.001, 0.5),
            "Miscalibration was detected, but it is uncertain",
            "mixed",
        ),
        (
            500,
            (-0.05, 0.06),
            (0.4,),
            "No miscalibration was detected, but calibration may",
            "mixed",
        ),
        (500, (-0.05, 0.06), (), "No miscalibration was detected, but calibration may", "mixed"),
    ],
)
def test_the_advice_follows_from_rows_gain_and_tests(n_samples, interval, values, start, sure):
    action, conclusion = advice(n_samples, interval, values)
    assert action.startswith(start)
    assert conclusion == sure


def test_an_error_that_remains_after_a_gain_is_no_green_light():
    action, conclusion = advice(5000, (0.1, 0.2), (0.001,), has_rest=True)
    assert action.startswith("Use the calibrated probabilities.")
    assert "remaining miscalibration was detected" in action
    assert conclusion == "mixed"


def test_the_verdict_is_not_positive_if_a_large_error_is_possible():
    assert advice(300, (-0.001, 0.002), (0.5,), possible=0.11) == (NOTHING, "mixed")


def test_p_values_after_calibration_do_not_change_the_advice():
    tests = p_values(0.001, after=0.0)
    action, _ = advise(5000, gain(0.1, 0.2), tests, "auto", possible=0.1, has_rest=False)
    assert action == "Use the calibrated probabilities."


def test_a_method_that_harms_names_the_one_that_chooses():
    action, _ = advice(LEAST_ROWS, (-0.2, -0.1), (), "histogram")
    assert "The method histogram increases log-loss. Try the method auto" in action


def test_several_tests_share_the_level():
    assert advice(5000, (-0.001, 0.001), (0.03, 0.5))[0] == NOTHING
    assert "Miscalibration was detected" in advice(5000, (-0.001, 0.001), (0.02, 0.5))[0]
