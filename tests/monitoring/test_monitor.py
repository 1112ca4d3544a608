"""The monitor: alarms, merging, late labels, states, sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from streams import draw, sharpened


def test_a_drift_is_found_and_its_onset_named(stream):
    monitor = CalibrationMonitor(horizon=20_000)
    assert not monitor.update(*stream(2000), when="May").alarm
    step = monitor.update(*stream(2000, beta=0.5), when="June")
    assert step.alarm
    assert abs(monitor.onset - 2000) <= 256
    assert "June" in str(monitor)
    assert step.evidence >= np.exp(step.threshold)


def test_the_alarm_stays_until_it_is_reset(stream):
    monitor = CalibrationMonitor(horizon=10_000)
    monitor.update(*stream(2000, beta=0.4))
    assert monitor.update(*stream(50)).alarm
    monitor.reset()
    assert not monitor.update(*stream(500)).alarm
    assert len(monitor.history) == 3


def test_without_an_alarm_the_gap_that_could_hide_is_named(stream):
    monitor = CalibrationMonitor()
    monitor.update(*stream(500))
    assert "could still hide" in str(monitor)


def test_without_a_tolerance_the_evidence_is_the_log_loss_that_was_saved(stream):
    y, proba = stream(1500, beta=0.5)
    monitor = CalibrationMonitor(tolerance=0.0, mode="test", notions=["confidence"])
    step = monitor.update(y, proba)
    better = sharpened(proba, 2**-1.0)[np.arange(1500), y]
    saved = np.log(better / proba[np.arange(1500), y]).sum()
    # Half of the stake is on temperatures, a fourteenth of that on the largest change.
    assert step.nats >= saved - np.log(28)
    assert "would have saved" in str(monitor)


def test_updates_of_any_size_give_the_evidence_of_one(stream):
    y, proba = stream(700, beta=0.8)
    whole, parts = (CalibrationMonitor(tolerance=0.02) for _ in range(2))
    step = whole.update(y, proba)
    for rows in (slice(0, 1), slice(1, 300), slice(300, 700)):
        last = parts.update(y[rows], proba[rows])
    assert last.nats == pytest.approx(step.nats, abs=1e-9)


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_b7_four_shards_merged_are_one_pass(stream, tolerance):
    monitor = CalibrationMonitor(tolerance=tolerance, classes=range(4))
    monitor.update(*stream(300))
    y, proba = stream(1000, beta=0.7)
    whole = monitor.chunk(y, proba)
    a, b, c, d = (monitor.chunk(y[i::4], proba[i::4]) for i in range(4))
    other = CalibrationMonitor.from_json(monitor.to_json())
    one = monitor.absorb(whole, when="week")
    two = other.absorb((d + b) + (a + c), when="week")
    assert two.nats == pytest.approx(one.nats, rel=1e-12)
    for mine, theirs in zip(monitor.gaps(), other.gaps(), strict=True):
        assert theirs.mean == pytest.approx(mine.mean, abs=1e-12)
        assert theirs.high == pytest.approx(mine.high, abs=1e-12)
    assert monitor.update(y, proba).nats == pytest.approx(other.update(y, proba).nats, rel=1e-9)


def test_chunks_of_different_periods_do_not_add_up(stream):
    monitor = CalibrationMonitor(classes=range(4))
    early = monitor.chunk(*stream(20))
    monitor.update(*stream(20))
    with pytest.raises(ValueError, match="same state"):
        early + monitor.chunk(*stream(20))
    with pytest.raises(ValueError, match="before the last update"):
        monitor.absorb(early)


def test_a_state_goes_on_where_it_was(stream):
    for options in ({}, {"tolerance": 0.0}, {"lag": 3, "mode": "test"}, {"arl": 500.0}):
        monitor = CalibrationMonitor(**options)
        y, proba = stream(300)
        monitor.update(y, proba, group=y % 2, when="<b>")
        again = CalibrationMonitor.from_json(monitor.to_json())
        assert again.to_json() == monitor.to_json()
        assert again.update(y, proba).to_dict() == monitor.update(y, proba).to_dict()


def test_class_names_survive():
    monitor = CalibrationMonitor(classes=["cat", "dog"])
    monitor.update(["cat", "dog"], [[0.5, 0.5], [0.2, 0.8]])
    assert CalibrationMonitor.from_json(monitor.to_json()).classes.tolist() == ["cat", "dog"]


def test_b11_the_state_of_a_thousand_classes_is_below_two_megabytes(rng):
    proba = rng.dirichlet(np.ones(1000), 20)
    for tolerance in (0.0, 0.02):
        monitor = CalibrationMonitor(tolerance=tolerance)
        monitor.update(draw(proba, rng), proba)
        assert len(monitor.to_json()) < 2_000_000


@pytest.fixture
def state(stream):
    monitor = CalibrationMonitor()
    monitor.update(*stream(30))
    return json.loads(monitor.to_json())


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "calibrant.monitor/99"},
        {"wealth": [1.0]},
        {"wealth": "AAAA"},
        {"member": [True] * 60},
        {"count": [-1.0] * 5},
        {"classes": ["a", "a", "b", "c"]},
        {"classes": [[1], [2], [3], [4]]},
        {"history": [["x"]]},
        {"history": {"a": 1}},
        {"rule": {"false_alarm": 2}},
        {"rule": {"unknown": 2}},
        {"rule": []},
        {"n_rows": 1e99},
        {"alarm_at": "soon"},
        {"groups": {"a": 3}},
        {"groups": []},
    ],
    ids=str,
)
def test_b11_a_hostile_state_is_a_value_error(state, change):
    with pytest.raises(ValueError, match=r"state|JSON|false_alarm"):
        CalibrationMonitor.from_json(json.dumps(state | change))


def test_b11_a_state_cannot_ask_for_memory_that_it_does_not_fill(state):
    state["rule"]["lag"] = 10**12
    with pytest.raises(ValueError, match="lag"):
        CalibrationMonitor.from_json(json.dumps(state))


def test_b11_learned_members_of_a_hostile_state_are_checked(stream):
    monitor = CalibrationMonitor(tolerance=0.0)
    monitor.update(*stream(30))
    state = json.loads(monitor.to_json())
    state["information"] = [0.0] * len(state["information"])
    with pytest.raises(ValueError, match="positive"):
        CalibrationMonitor.from_json(json.dumps(state))


def test_b11_a_state_that_lacks_anything_is_a_value_error(state):
    for key in state:
        with pytest.raises(ValueError, match=r"state|JSON"):
            CalibrationMonitor.from_json(json.dumps({k: state[k] for k in state if k != key}))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"schema": NaN}'])
def test_b11_what_is_no_state_is_a_value_error(text):
    with pytest.raises(ValueError, match="not the JSON"):
        CalibrationMonitor.from_json(text)


def test_before_anything_is_seen():
    monitor = CalibrationMonitor()
    assert not monitor.alarm
    assert str(monitor) == "Nothing has been seen yet."
    with pytest.raises(ValueError, match="call update"):
        monitor.gaps()
    assert CalibrationMonitor.from_json(monitor.to_json()).n_rows == 0


def alarms(rng, n_runs, n_rows, beta, **options):
    """Share of streams that alarm."""
    found = 0
    for _ in range(n_runs):
        proba = rng.dirichlet(np.full(4, 0.4), n_rows)
        monitor = CalibrationMonitor(classes=range(4), **options)
        found += monitor.update(draw(sharpened(proba, beta), rng), proba).alarm
    return found / n_runs


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["test", "detector"])
def test_b1_b2_honest_streams_alarm_at_most_as_promised(rng, mode):
    share = alarms(rng, 120, 3000, 1.0, tolerance=0.0, mode=mode, horizon=3000)
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)


@pytest.mark.slow
def test_b2_the_average_run_length_is_at_least_as_promised(rng):
    lengths = []
    for _ in range(100):
        monitor = CalibrationMonitor(tolerance=0.0, arl=200.0, classes=range(4))
        while not monitor.alarm:
            proba = rng.dirichlet(np.full(4, 0.4), 256)
            monitor.update(draw(proba, rng), proba)
        lengths.append(monitor.to_dict()["alarm_at"])
    assert np.mean(lengths) >= 200


@pytest.mark.slow
def test_b4_a_gap_of_the_tolerance_is_quiet_and_of_twice_that_is_found(rng):
    def alarm_row(gap):
        score = rng.uniform(0.6, 0.95, 2500)
        y = (rng.random(2500) >= score - gap).astype(int)
        monitor = CalibrationMonitor(
            tolerance=0.02, mode="test", notions=["confidence"], classes=[0, 1]
        )
        monitor.update(y, np.column_stack([score, 1 - score]))
        return monitor.to_dict()["alarm_at"]

    quiet = [alarm_row(0.02) is not None for _ in range(100)]
    assert np.mean(quiet) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
    assert np.mean([alarm_row(0.10) is not None for _ in range(20)]) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("lag", [1, 10, 100])
def test_b8_overlapping_horizons_do_not_raise_false_alarms(rng, lag):
    def stream_of(n_rows):
        # Outcomes of rows of one window are the same: honest one by one, not independent.
        score = rng.uniform(0.55, 0.95, n_rows)
        shared = np.repeat(rng.random(n_rows // lag + 1), lag)[:n_rows]
        return (shared >= score).astype(int), np.column_stack([score, 1 - score])

    found = 0
    for _ in range(60):
        monitor = CalibrationMonitor(
            tolerance=0.0, mode="test", notions=["confidence"], classes=[0, 1], lag=lag
        )
        found += monitor.update(*stream_of(2000)).alarm
    assert found / 60 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
