"""The report in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.inference import Gain, Interval
from calibrant.report._content import CheckRow
from calibrant.report._sentences import (
    cautions,
    decomposition_sentence,
    facts,
    ks_sentence,
    verdict,
    what_is_left,
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


def test_the_judgement_follows_from_the_interval(before, gain):
    cases = {"good": (0.1, 0.3), "bad": (-0.3, -0.1), "mixed": (-0.1, 0.1)}
    for judgement, (low, high) in cases.items():
        made = verdict(before, gap(0.0), replace(gain, low=low, high=high), "temperature")
        assert made[0] == judgement
        assert "temperature" in made[1]


def gap(value, reach=0.001):
    return Interval("gap", value, value - reach, value + reach, 0.95, reach / 2, "asymptotic", 9000)


def test_the_state_is_told_by_a_percentage_point_that_is_not_chance(before, gain):
    starts = {
        "Sure about as often as right: ": gap(-0.005),
        "Overconfident: the model is 76.5% sure on average and right in 75.0%": gap(0.015),
        "Underconfident: ": gap(-0.015),
        "Sure about as often as right, as far as 9,000 rows can tell: ": gap(0.2, reach=0.3),
    }
    for start, interval in starts.items():
        assert verdict(before, interval, gain, "auto")[1].startswith(start)


def checked(p_after):
    return [CheckRow("conf", "confidence", "", "exact", 0, 0.06, 0.01, 0.009, 0.001, p_after)]


@pytest.mark.parametrize(
    ("left", "p_after", "sentence"),
    [
        (gap(0.03), 0.5, "What is left is within chance."),
        (
            gap(0.03),
            0.001,
            "After it the probabilities are still overconfident, by 3.0% on average.",
        ),
        (
            gap(-0.02),
            0.001,
            "After it the probabilities are still underconfident, by 2.0% on average.",
        ),
        (
            gap(0.001),
            0.001,
            "What is left is more than chance: confidence 0.0600, by chance 0.0090.",
        ),
    ],
)
def test_the_verdict_says_what_is_left(before, gain, left, p_after, sentence):
    assert what_is_left(left, checked(p_after)) == sentence
    helps, harms = replace(gain, low=0.1, high=0.3), replace(gain, low=-0.3, high=-0.1)
    assert verdict(before, gap(0.1), helps, "auto", sentence)[1].endswith(sentence)
    assert sentence not in verdict(before, gap(0.1), harms, "auto", sentence)[1]


def test_without_tests_nothing_is_said_of_what_is_left():
    assert what_is_left(gap(0.1), []) == ""


def said(proba, y, seen, shift=None):
    counts = np.array([10.0, 10.0])
    return " ".join(cautions(proba, y, ["a", "b"], seen, shift or (counts, counts), ("remark",)))


def test_nothing_is_said_without_a_reason(rng):
    proba = rng.dirichlet(np.ones(2), 50)
    assert said(proba, rng.integers(2, size=50), np.array([25.0, 25.0])) == "remark"


def test_every_reason_is_named():
    proba, y = np.array([[1.0, 0.0]] * 30), np.array([0] * 29 + [1])
    shift = (np.array([100.0, 0.0]), np.array([0.0, 100.0]))
    text = said(proba, y, np.array([0.0, 5.0]), shift)
    for part in (
        "Never seen in the calibration rows: a.",
        "fewer than 20: b (5).",
        "Label shift",
        "Ties: 97% of the top probabilities",
        "1 row(s) gave their true class a probability of exactly 0; log-loss counts them as 1e-12",
    ):
        assert part in text


def test_shared_sentences_hold_the_numbers(hostile):
    assert facts(hostile) == "400 rows, 6 classes"
    assert f"{hostile.ks.before_error:.4f} before" in ks_sentence(hostile)
    assert f"{sum(hostile.decomposition.after):.4f} = " in decomposition_sentence(hostile)
