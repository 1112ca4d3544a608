from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from calibrant.inference import CalibrationTestResult, Interval
from calibrant.inference._results import check_level, holm, monte_carlo_p_value


def test_the_p_value_counts_the_data_among_the_draws():
    assert monte_carlo_p_value(2.0, np.array([1.0, 2.0, 3.0])) == 3 / 4
    assert monte_carlo_p_value(9.0, np.zeros(99)) == 1 / 100


def test_round_off_does_not_break_ties():
    assert monte_carlo_p_value(0.3, np.array([0.3 - 1e-15, 0.1])) == 2 / 3
    assert monte_carlo_p_value(0.3, np.array([0.3 - 1e-9, 0.1])) == 1 / 3


def test_a_test_result_is_described_in_words_and_in_json():
    result = CalibrationTestResult(
        "some test", 0.0123456, 0.004, "all is well", "exact", 1000, 999, 0.01
    )
    text = str(result)
    for part in (
        "some test: 1,000 rows, 999 resamples",
        "0.0123 (expected under calibration: 0.0100)",
        "0.004",
        "all is well",
        "exact",
    ):
        assert part in text
    assert json.loads(json.dumps(result.to_dict()))["p_value"] == 0.004
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.p_value = 1.0


def test_the_text_of_an_interval_has_its_level_and_guarantee():
    result = Interval("log_loss", 0.5, 0.4, 0.6, 0.9, 0.05, "asymptotic", 100)
    assert str(result) == "log_loss: 0.500 (90% CI 0.400 to 0.600, asymptotic)"
    assert result.to_dict()["low"] == 0.4


@pytest.mark.parametrize("level", [0.0, 1.0, 95, float("nan")])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        check_level(level)


def test_adjusted_p_values_grow_with_their_number_and_keep_their_order():
    assert holm([0.02, 0.5, 0.01, 0.9]) == pytest.approx([0.06, 1.0, 0.04, 1.0])
    assert holm([]) == []
