"""Results: plain values, a bounded history, and sentences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import exp, isfinite

import pytest

from calibrant._output.numbers import format_number
from calibrant.monitoring import CalibrationMonitor, MonitorEntry
from calibrant.monitoring._results import (
    _chance,
    _chance_sentence,
    add_entry,
    alarm_sentence,
    describe,
    evidence_sentence,
    gap_sentence,
    hidden_gap_sentence,
    onset_name,
    read_history,
    short_gap,
    strongest_sentences,
    tolerated_gap_sentences,
)
from monitored import GAP, STEP


def test_the_largest_gap_that_is_not_ruled_out_may_be_on_either_side():
    assert GAP.largest == 0.05
    assert replace(GAP, low=-0.2).largest == 0.2


def test_the_evidence_is_a_number_however_strong_it_is():
    assert STEP.evidence == pytest.approx(exp(3.0), rel=1e-15)
    assert isfinite(replace(STEP, nats=1e6).evidence)


def test_listed_claims_are_named():
    assert STEP.listed == ("group b",)


def test_a_step_is_plain_values():
    plain = json.loads(json.dumps(STEP.to_dict()))
    assert plain["listed"] == ["group b"]
    assert plain["evidence"] == STEP.evidence
    assert plain["gaps"] == [gap.to_dict() for gap in STEP.gaps]


ENTRY = MonitorEntry("May", 10, 20, 1.5, 0.01, -0.02, 0.04, False)


def test_a_long_history_forgets_every_other_old_update():
    history = []
    for i in range(1100):
        history = add_entry(history, ENTRY._replace(when=str(i)))
        assert len(history) <= 1000
    names = [int(entry.when) for entry in history]
    assert names == sorted(names)
    assert names[:3] == [0, 2, 4]
    assert names[-200:] == list(range(900, 1100))


def test_the_history_that_was_is_left_as_it_was():
    first = [ENTRY]
    assert add_entry(first, ENTRY) == [ENTRY, ENTRY]
    assert first == [ENTRY]


def test_a_state_comes_back():
    state = json.loads(json.dumps({"history": [list(ENTRY), list(ENTRY)]}))
    assert read_history(state) == [ENTRY, ENTRY]


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({}, "a list of at most 1000 entries"),
        ([list(ENTRY)] * 1001, "a list of at most 1000 entries"),
        ([["May"]], "eight values"),
        ([3], "eight values"),
        ([list(ENTRY._replace(when=5))], "begin with its name"),
        ([list(ENTRY._replace(alarm=1))], "begin with its name"),
        ([list(ENTRY._replace(n_seen=-1))], "'n_seen' in the state"),
        ([list(ENTRY._replace(nats="much"))], "'nats' in the state"),
    ],
    ids=["no list", "too long", "short", "number", "name", "alarm", "rows", "text"],
)
def test_a_state_that_no_history_has_is_rejected(history, message):
    with pytest.raises(ValueError, match=message):
        read_history({"history": history})


def make_history(*updates):
    """A history of names and rows seen."""
    return [MonitorEntry(name, 0, n_seen, 0.0, 0.0, 0.0, 0.0, False) for name, n_seen in updates]


@pytest.mark.parametrize(
    ("onset", "expected"), [(0, "May"), (99, "May"), (100, "June"), (250, None)]
)
def test_the_onset_is_named_after_the_update_that_holds_the_next_row(onset, expected):
    assert onset_name(make_history(("May", 100), ("June", 200)), onset) == expected


def test_updates_before_a_reset_do_not_count():
    history = make_history(("May", 100), ("June", 200), ("after", 50), ("later", 90))
    assert onset_name(history, 60) == "later"
    assert onset_name([], 0) is None


def test_an_alarm_names_its_onset(stream):
    monitor = CalibrationMonitor(horizon=1000)
    monitor.update(*stream(200), when="May")
    assert alarm_sentence(monitor) == "No alarm after 200 rows."
    monitor.update(*stream(1500, beta=0.3), when="June")
    assert alarm_sentence(monitor) == (
        "Alarm: the model is no longer calibrated. Estimated onset: June."
    )
    assert (
        "\nMean gap of confidence (predicted probability minus observed frequency) over all rows, "
        "including those before the onset: +"
    ) in str(monitor)
    assert re.search(
        r"\nSince June \(1,500 rows\), predicted probabilities \(confidence\) have been too high "
        r"by about 0\.\d{3} on average\.\n",
        str(monitor),
    )


@pytest.mark.parametrize(
    ("options", "beta", "message"),
    [
        (
            {},
            1.0,
            r"^Evidence against calibration \(log e-value\): .* not be unusual if all errors were "
            r"at most 0.02\.$",
        ),
        (
            {"tolerance": 0.0},
            1.0,
            r"\(log e-value\): .*\. The monitor raises an alarm at 16.8\. .* if the model "
            r"were calibrated",
        ),
        (
            {"tolerance": 0.0},
            0.2,
            r"\(log e-value\): .* since update 1\. Recalibration would have reduced the total "
            r"log-loss by this amount\. If the model were calibrated",
        ),
        (
            {"mode": "test"},
            0.4,
            r"such strong evidence at any time would have a probability below one in a billion\.$",
        ),
        (
            {},
            0.2,
            r"such strong evidence by row 600 would have a probability below one in a billion\.$",
        ),
    ],
    ids=str,
)
def test_the_evidence_is_described_with_its_chance(stream, options, beta, message):
    monitor = CalibrationMonitor(**options)
    monitor.update(*stream(600, beta))
    assert re.search(message, evidence_sentence(monitor))


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.021, "below 2.1%"),
        (5e-5, "below 50 in a million"),
        (1e-12, "below one in a billion"),
    ],
)
def test_a_chance_is_given_in_the_unit_that_fits(chance, expected):
    assert _chance(chance) == expected


def test_a_gap_is_described_in_a_sentence_and_in_short():
    assert gap_sentence(GAP) == (
        "Mean gap of confidence (predicted probability minus observed frequency) over all rows: "
        "+0.0200 (95% CI -0.0100 to +0.0500)."
    )
    assert ": -0.0200 (" in gap_sentence(replace(GAP, mean=-0.02))
    assert short_gap(GAP) == (
        "confidence with log e-value 0.500 and mean gap +0.0200 (95% CI -0.0100 to +0.0500)"
    )


def test_a_listed_gap_within_the_tolerance_has_a_note():
    listed = replace(GAP, is_listed=True)
    assert tolerated_gap_sentences([GAP, listed], 0.02) == [
        "Significant evidence indicates calibration errors beyond the tolerance in some rows, even "
        "if the 95% CI of a mean gap includes values within the tolerance."
    ]
    assert tolerated_gap_sentences([listed], 0.0) == [
        "Significant evidence indicates calibration errors in some rows, even if the 95% CI of "
        "a mean gap includes zero."
    ]
    assert tolerated_gap_sentences([GAP, replace(listed, low=0.03)], 0.02) == []


def test_what_could_still_hide_is_the_first_claim_and_the_worst():
    worse = replace(GAP, claim="class 3", high=0.3)
    assert hidden_gap_sentence([GAP]) == (
        "The absence of an alarm does not prove calibration. The data do not exclude a mean gap "
        "of 0.0500 for confidence."
    )
    assert hidden_gap_sentence([GAP, worse]).endswith(
        "a mean gap of 0.0500 for confidence, and of 0.300 for class 3."
    )


def test_listed_groups_are_named_after_the_verdict(stream):
    monitor = CalibrationMonitor(tolerance=0.0, notions=["confidence"])
    y, proba = stream(1500, beta=0.3)
    monitor.update(y, proba, group=["north"] * 1500)
    lines = describe(monitor).split("\n")
    assert lines[0].startswith("Alarm")
    assert lines[3].startswith("Strongest evidence: confidence with log e-value ")
    assert lines[4].startswith("Next strongest: group north with log e-value ")


def test_the_hint_of_an_alarm_begins_with_the_strongest_evidence(stream):
    monitor = CalibrationMonitor(horizon=1000)
    monitor.update(*stream(1500, beta=0.3))
    strongest = max(monitor.gaps(), key=lambda gap: gap.nats)
    hint = next(line for line in str(monitor).split("\n") if line.startswith("Strongest evidence"))
    value = format_number(strongest.nats)
    assert hint.startswith(
        f"Strongest evidence: {strongest.claim} with log e-value {value} and mean gap "
    )


def test_an_alarm_names_the_strongest_evidence_even_if_nothing_is_listed(stream):
    monitor = CalibrationMonitor(horizon=1000)
    monitor.update(*stream(1500, beta=0.3))
    gaps = [replace(gap, is_listed=False) for gap in monitor.gaps()]
    assert len(strongest_sentences(monitor, gaps)) == 1
    assert strongest_sentences(CalibrationMonitor(classes=[0, 1]), gaps) == []


def test_evidence_that_is_not_unusual_has_no_probability():
    assert _chance_sentence(0.7, "at any time", "the model were calibrated") == (
        "Such evidence would not be unusual if the model were calibrated."
    )
