"""What a monitor says: the verdict, the evidence, the gaps, and what could still hide."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring._history import Entry
from calibrant.monitoring._sentences import (
    _chance,
    describe,
    evidence_sentence,
    gap_sentence,
    hidden_sentence,
    onset_name,
    short_gap,
    verdict,
)
from monitored import GAP


def seen(*updates):
    """A history of names and rows seen."""
    return [Entry(name, 0, n_seen, 0.0, 0.0, 0.0, 0.0, False) for name, n_seen in updates]


@pytest.mark.parametrize(
    ("onset", "expected"), [(0, "May"), (99, "May"), (100, "June"), (250, None)]
)
def test_the_onset_is_called_as_the_update_that_holds_the_next_row(onset, expected):
    assert onset_name(seen(("May", 100), ("June", 200)), onset) == expected


def test_updates_before_a_reset_do_not_count():
    history = seen(("May", 100), ("June", 200), ("after", 50), ("later", 90))
    assert onset_name(history, 60) == "later"
    assert onset_name([], 0) is None


def test_an_alarm_and_its_onset_are_said(stream):
    monitor = CalibrationMonitor(horizon=1000)
    monitor.update(*stream(200), when="May")
    assert verdict(monitor) == "No alarm after 200 rows."
    monitor.update(*stream(1500, beta=0.3), when="June")
    assert verdict(monitor) == (
        "Alarm: the probabilities are no longer what they say; it seems to have begun with June."
    )
    assert "\nTogether with the rows before it, top score (confidence): it came" in str(monitor)


@pytest.mark.parametrize(
    ("options", "beta", "message"),
    [
        ({}, 1.0, r"evidence against it stands at .* right within 0.02 .* no small one\.$"),
        ({"tolerance": 0.0}, 1.0, r"stands at .* nats; at .* it is an alarm\. For an honest model"),
        (
            {"tolerance": 0.0},
            0.2,
            r"Recalibrating would have saved .* nats since update 1\. For an",
        ),
        ({"mode": "test"}, 0.4, r"of ever seeing that much is below one in a billion\.$"),
        ({}, 0.2, r"of such evidence within 600 rows is below one in a billion\.$"),
    ],
    ids=str,
)
def test_the_evidence_is_said_with_its_chance(stream, options, beta, message):
    monitor = CalibrationMonitor(**options)
    monitor.update(*stream(600, beta))
    assert re.search(message, evidence_sentence(monitor))


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.7, "no small one"),
        (0.021, "below 2.1 %"),
        (5e-5, "below 50 in a million"),
        (1e-12, "below one in a billion"),
    ],
)
def test_a_chance_is_said_in_the_unit_that_fits(chance, expected):
    assert _chance(chance) == expected


def test_a_gap_is_said_in_words_and_in_short():
    assert gap_sentence(GAP) == (
        "Over all rows, confidence: it came true 0.0200 more often than was said "
        "(the true gap is between -0.0100 and +0.0500)."
    )
    assert "0.0200 less often" in gap_sentence(replace(GAP, mean=-0.02))
    assert short_gap(GAP) == "confidence +0.020 (-0.010 to +0.050)"


def test_what_could_still_hide_is_the_first_claim_and_the_worst():
    worse = replace(GAP, claim="class 3", high=0.3)
    assert hidden_sentence([GAP]) == (
        "No alarm is no proof: a mean gap of 0.050 of confidence could still hide."
    )
    assert hidden_sentence([GAP, worse]).endswith("could still hide, and one of 0.300 of class 3.")


def test_listed_groups_are_named_after_the_verdict(stream):
    monitor = CalibrationMonitor(tolerance=0.0, notions=["confidence"])
    y, proba = stream(1500, beta=0.3)
    monitor.update(y, proba, group=["north"] * 1500)
    lines = describe(monitor).split("\n")
    assert lines[0].startswith("Alarm")
    assert lines[3].startswith("Look first at: group north -")
