"""The report in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant._output.numbers import format_number
from calibrant.inference import Gain, Interval
from calibrant.report._checks import PossibleError
from calibrant.report._content import CheckRow
from calibrant.report._sentences import (
    audit_facts,
    cautions,
    decomposition_sentence,
    gain_sentence,
    headline_sentence,
    ks_sentence,
    possible_sentence,
    remaining,
    verdict,
)


@pytest.fixture
def before():
    return calibrant.evaluate([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])


@pytest.fixture
def gain(rng):
    proba = rng.dirichlet(np.ones(3), 90)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    result = calibrant.compare(labels, proba, methods=["temperature"], cv=2)
    one = result.gains["data", "temperature", "log_loss"]
    assert isinstance(one, Gain)
    return one


def test_the_conclusion_follows_from_the_interval(before, gain):
    cases = {"good": (0.1, 0.3), "bad": (-0.3, -0.1), "mixed": (-0.1, 0.1)}
    for conclusion, (low, high) in cases.items():
        made = verdict(before, gap(0.0), replace(gain, low=low, high=high), "temperature")
        assert made[0] == conclusion
        assert "temperature" in made[1]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (
            0.1,
            0.3,
            "Calibration by auto reduces log-loss from 0.900 to 0.700 on held-out rows, by "
            "0.200 (95% CI 0.100 to 0.300).",
        ),
        (
            -0.3,
            -0.1,
            "Calibration by auto increases log-loss from 0.700 to 0.900 on held-out rows, "
            "by 0.200 (95% CI 0.100 to 0.300).",
        ),
        (
            -0.1,
            0.1,
            "It is uncertain whether calibration by auto reduces log-loss. Log-loss changes "
            "from 0.700 to 0.700 on held-out rows (reduction 0, 95% CI -0.100 to +0.100).",
        ),
    ],
    ids=["good", "bad", "mixed"],
)
def test_the_change_of_the_log_loss_is_one_sentence(gain, low, high, expected):
    change = (low + high) / 2
    pair = (0.9, 0.7) if low > 0 else (0.7, 0.9) if high < 0 else (0.7, 0.7)
    values = {"gain": change or 1e-6, "before": pair[0], "after": pair[1], "level": 0.95}
    assert gain_sentence(replace(gain, low=low, high=high, **values), "auto") == expected


def gap(value, reach=0.001):
    return Interval("gap", value, value - reach, value + reach, 0.95, reach / 2, "asymptotic", 9000)


def test_the_state_is_named_if_it_is_a_percentage_point_and_significant(before, gain):
    none = "No average over- or underconfidence was detected: "
    starts = [
        (none, gap(-0.005)),
        ("Overconfident: mean confidence 76.5%, accuracy 75%.", gap(0.015)),
        ("Underconfident: ", gap(-0.015)),
        (none, gap(0.2, reach=0.3)),
    ]
    for start, interval in starts:
        assert verdict(before, interval, gain, "auto")[1].startswith(start)


def checked(p_after):
    return [CheckRow("conf", "confidence", "", "exact", 0, 0.06, 0.01, 0.009, 0.001, p_after)]


@pytest.mark.parametrize(
    ("left", "p_after", "has_rest", "start"),
    [
        (gap(0.001), 0.5, False, "No remaining miscalibration was detected."),
        (gap(0.03), 0.5, True, "The calibrated probabilities are still overconfident, by 3% on"),
        (
            gap(-0.02),
            0.001,
            True,
            "The calibrated probabilities are still underconfident, by 2% on",
        ),
        (
            gap(0.001),
            0.001,
            True,
            'The test "confidence" detects remaining miscalibration (statistic 0.0600, 0.00900',
        ),
    ],
)
def test_held_out_rows_show_whether_miscalibration_remains(left, p_after, has_rest, start):
    shown, sentence = remaining(left, checked(p_after), is_held_out=True)
    assert shown == has_rest
    assert sentence.startswith(start)


@pytest.mark.parametrize("p_after", [0.0, 0.5])
def test_cross_fitted_p_values_do_not_change_the_verdict(p_after):
    shown, sentence = remaining(gap(0.001), checked(p_after), is_held_out=False)
    assert not shown
    assert "cannot show whether miscalibration remains" in sentence


def test_the_largest_errors_that_could_have_been_missed_are_named():
    sentence = possible_sentence(PossibleError(0.0213, 0.31, "rare", 20.0))
    assert "up to 2.13% over all rows" in sentence
    assert "31% for predictions of class rare (20 rows)" in sentence


def said(proba, y, seen, shift=None):
    counts = np.array([10.0, 10.0])
    return " ".join(cautions(proba, y, ["a", "b"], seen, shift or (counts, counts), ("warning",)))


def test_nothing_is_said_without_a_reason(rng):
    proba = rng.dirichlet(np.ones(2), 50)
    assert said(proba, rng.integers(2, size=50), np.array([25.0, 25.0])) == "warning"


def test_every_reason_is_named():
    proba, y = np.array([[1.0, 0.0]] * 30), np.array([0] * 29 + [1])
    shift = (np.array([100.0, 0.0]), np.array([0.0, 100.0]))
    text = said(proba, y, np.array([0.0, 5.0]), shift)
    for part in (
        "Classes without calibration rows: a.",
        "(fewer than 20) for b (5).",
        "Label shift",
        "Ties: 96.7% of the confidences",
        "The true class has a predicted probability of exactly 0 in 1 row. Log-loss uses 1e-12",
    ):
        assert part in text


def test_shared_sentences_hold_the_numbers(hostile):
    facts = dict(audit_facts(hostile))
    assert (facts["Rows"], facts["Classes"]) == ("400", "6")
    assert "SHA-256 of the data" not in facts  # there is no file
    assert headline_sentence(hostile).startswith("Before calibration: mean confidence ")
    assert f"{format_number(hostile.ks.before_error)} before" in ks_sentence(hostile)
    after = format_number(sum(hostile.decomposition.after))
    assert f"After calibration, the log-loss of {after} is the sum of" in decomposition_sentence(
        hostile
    )
