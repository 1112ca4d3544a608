"""The report in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.inference._gain import Gain
from calibrant.report._sentences import (
    cautions,
    decomposition_sentence,
    facts,
    ks_sentence,
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


def test_the_judgement_follows_from_the_interval(before, gain):
    cases = {"good": (0.1, 0.3), "bad": (-0.3, -0.1), "mixed": (-0.1, 0.1)}
    for judgement, (low, high) in cases.items():
        made = verdict(before, 0.75, replace(gain, low=low, high=high), "temperature")
        assert made[0] == judgement
        assert "temperature" in made[1]


def test_the_state_is_told_by_a_percentage_point(before, gain):
    starts = {0.745: "Sure about", 0.765: "Overconfident", 0.735: "Underconfident"}
    for confidence, start in starts.items():
        assert verdict(before, confidence, gain, "auto")[1].startswith(start)


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
