"""The monitor: alarms, shards, weights, groups, overlapping rows, states."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant._output.numbers import format_number
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
    assert "The data do not exclude a mean gap of" in str(monitor)


def test_without_a_tolerance_the_evidence_is_the_log_loss_that_was_saved(stream):
    y, proba = stream(1500, beta=0.5)
    monitor = CalibrationMonitor(tolerance=0.0, mode="test", notions=["confidence"])
    step = monitor.update(y, proba)
    better = sharpened(proba, 2**-1.0)[np.arange(1500), y]
    saved = np.log(better / proba[np.arange(1500), y]).sum()
    # Temperatures have half of the weight, the largest change a fourteenth of that.
    assert step.nats >= saved - np.log(28)
    assert "Recalibration would have reduced the total log-loss by" in str(monitor)


def test_updates_of_any_size_give_the_evidence_of_one(stream):
    y, proba = stream(700, beta=0.8)
    whole, parts = (CalibrationMonitor(tolerance=0.02) for _ in range(2))
    step = whole.update(y, proba)
    for rows in (slice(0, 1), slice(1, 300), slice(300, 700)):
        last = parts.update(y[rows], proba[rows])
    assert last.nats == pytest.approx(step.nats, abs=1e-9)


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_four_shards_merged_are_one_pass(stream, tolerance):
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
    with pytest.raises(ValueError, match="from different states of a monitor"):
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


def test_the_state_of_a_thousand_classes_is_below_two_megabytes(rng):
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
        {"log_e": [1.0]},
        {"log_e": "AAAA"},
        {"log_m": [True] * 60},
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
def test_a_hostile_state_is_a_value_error(state, change):
    with pytest.raises(ValueError, match=r"state|JSON|false_alarm"):
        CalibrationMonitor.from_json(json.dumps(state | change))


def test_a_state_cannot_ask_for_memory_that_it_does_not_fill(state):
    state["rule"]["lag"] = 10**12
    with pytest.raises(ValueError, match="lag"):
        CalibrationMonitor.from_json(json.dumps(state))


def test_learned_members_of_a_hostile_state_are_checked(stream):
    monitor = CalibrationMonitor(tolerance=0.0)
    monitor.update(*stream(30))
    state = json.loads(monitor.to_json())
    state["information"] = [0.0] * len(state["information"])
    with pytest.raises(ValueError, match="positive"):
        CalibrationMonitor.from_json(json.dumps(state))


def test_a_state_that_lacks_anything_is_a_value_error(state):
    for key in state:
        with pytest.raises(ValueError, match=r"state|JSON"):
            CalibrationMonitor.from_json(json.dumps({k: state[k] for k in state if k != key}))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"schema": NaN}'])
def test_what_is_no_state_is_a_value_error(text):
    with pytest.raises(ValueError, match="not the JSON"):
        CalibrationMonitor.from_json(text)


def test_before_anything_is_seen():
    monitor = CalibrationMonitor()
    assert not monitor.alarm
    assert str(monitor) == "The monitor has no rows yet."
    with pytest.raises(ValueError, match="Call update"):
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
def test_calibrated_streams_alarm_at_most_as_promised(rng, mode):
    share = alarms(rng, 120, 3000, 1.0, tolerance=0.0, mode=mode, horizon=3000)
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)


@pytest.mark.slow
def test_the_average_run_length_is_at_least_as_promised(rng):
    lengths = []
    for _ in range(100):
        monitor = CalibrationMonitor(tolerance=0.0, arl=200.0, classes=range(4))
        while not monitor.alarm:
            proba = rng.dirichlet(np.full(4, 0.4), 256)
            monitor.update(draw(proba, rng), proba)
        lengths.append(monitor.to_dict()["alarm_at"])
    assert np.mean(lengths) >= 200


@pytest.mark.slow
def test_a_gap_of_the_tolerance_is_quiet_and_of_twice_that_is_found(rng):
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
def test_overlapping_horizons_do_not_raise_false_alarms(rng, lag):
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


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_a_weight_of_zero_is_no_row_and_of_one_a_row(stream, tolerance):
    y, proba = stream(300, beta=0.6)
    weight = (np.arange(300) % 3 > 0).astype(float)
    weighted, plain = (CalibrationMonitor(tolerance=tolerance) for _ in range(2))
    one = weighted.update(y, proba, sample_weight=weight, group=y % 2)
    kept = weight > 0
    two = plain.update(y[kept], proba[kept], group=(y % 2)[kept])
    assert one.nats == pytest.approx(two.nats, abs=1e-9)
    assert weighted.n_rows == plain.n_rows == 200
    assert [g.mean for g in weighted.gaps()] == pytest.approx([g.mean for g in plain.gaps()])


def test_a_weight_of_one_half_halves_the_log_evidence(stream):
    y, proba = stream(200, beta=0.5)
    options = {"tolerance": 0.02, "mode": "test", "notions": ["class-1"]}
    whole, half = (CalibrationMonitor(**options) for _ in range(2))
    whole.update(y, proba)
    half.update(y, proba, sample_weight=np.full(200, 0.5))
    np.testing.assert_allclose(
        half._state.evidence.log_e, whole._state.evidence.log_e / 2, atol=1e-9
    )
    assert half.gaps()[0].mean == pytest.approx(whole.gaps()[0].mean, abs=1e-12)
    assert half.gaps()[0].n_rows == 100


def test_weights_above_one_are_rejected_with_the_reason(stream):
    y, proba = stream(10)
    with pytest.raises(ValueError, match="at most 1"):
        CalibrationMonitor().update(y, proba, sample_weight=np.full(10, 2.0))
    with pytest.raises(ValueError, match="group must have one value per row"):
        CalibrationMonitor().update(y, proba, group=[1, 2])


@pytest.mark.slow
def test_weights_that_are_known_before_labels_keep_the_promise(rng):
    found = 0
    for _ in range(100):
        proba = rng.dirichlet(np.full(4, 0.4), 2000)
        monitor = CalibrationMonitor(tolerance=0.0, mode="test", classes=range(4))
        weight = proba.max(axis=1) ** 2
        found += monitor.update(draw(proba, rng), proba, sample_weight=weight).alarm
    assert found / 100 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_groups_and_weights_of_four_shards_merged_are_those_of_one_pass(stream, rng):
    monitor = CalibrationMonitor(classes=range(4))
    y, proba = stream(300)
    monitor.update(y, proba, group=y % 3)
    y, proba = stream(1000, beta=0.7)
    group, weight = rng.integers(0, 5, 1000), rng.random(1000)
    options = {"group": group, "sample_weight": weight}
    whole = monitor.chunk(y, proba, **options)
    a, b, c, d = (
        monitor.chunk(y[i::4], proba[i::4], group=group[i::4], sample_weight=weight[i::4])
        for i in range(4)
    )
    other = CalibrationMonitor.from_json(monitor.to_json())
    monitor.absorb(whole)
    other.absorb((a + b) + (c + d))
    mine = {gap.claim: gap for gap in monitor.gaps()}
    for gap in other.gaps():
        assert gap.nats == pytest.approx(mine[gap.claim].nats, abs=1e-10)
        assert gap.mean == pytest.approx(mine[gap.claim].mean, abs=1e-12)


def test_intervals_of_a_group_do_not_move_when_others_come(stream):
    monitor = CalibrationMonitor(classes=range(4))
    y, proba = stream(200)
    monitor.update(y, proba, group=["north"] * 200)
    before = monitor.gaps()[-1]
    monitor.update(*stream(200), group=[f"city {i}" for i in range(200)])
    after = next(gap for gap in monitor.gaps() if gap.claim == before.claim)
    assert (after.low, after.high) == pytest.approx((before.low, before.high), abs=1e-12)


def test_where_rows_overlap_groups_have_gaps_and_no_evidence(stream):
    monitor = CalibrationMonitor(tolerance=0.0, lag=5, classes=range(4))
    y, proba = stream(2000, beta=0.3)
    monitor.update(y, proba, group=y % 2)
    groups = monitor.gaps()[-2:]
    assert [gap.nats for gap in groups] == [0.0, 0.0]
    assert not any(gap.is_listed for gap in groups)
    assert max(gap.mean for gap in groups) > 0.05


def test_a_gap_is_positive_if_probabilities_are_too_high():
    monitor = CalibrationMonitor(notions=["confidence"])
    monitor.update([0, 1] * 500, [[0.9, 0.1]] * 1000)
    gap = monitor.gaps()[0]
    assert gap.mean == pytest.approx(0.4)
    assert 0 < gap.low < gap.high
    assert "over all rows: +0.400 (95% CI +0." in str(monitor)


def test_intervals_of_claims_do_not_change_when_groups_appear(stream):
    plain, grouped = CalibrationMonitor(), CalibrationMonitor()
    y, proba = stream(300)
    plain.update(y, proba)
    grouped.update(y, proba, group=y % 2)
    for one, other in zip(plain.gaps(), grouped.gaps(), strict=False):
        assert (one.low, one.high) == (other.low, other.high)


@pytest.mark.parametrize("rate", [0.03, 0.0])
def test_a_relative_tolerance_finds_errors_of_rare_classes(rng, rate):
    """The tolerance of 0.02 hides that a class of probability 0.01 has another frequency."""
    y = (rng.random(20_000) < rate).astype(int)
    proba = np.repeat([[0.99, 0.01]], 20_000, axis=0)
    options = {"classes": [0, 1], "horizon": 20_000}
    assert not CalibrationMonitor(**options).update(y, proba).alarm
    monitor = CalibrationMonitor(**options, relative_tolerance=0.5)
    assert monitor.update(y, proba).alarm
    again = CalibrationMonitor.from_json(monitor.to_json())
    assert again.to_json() == monitor.to_json()
    assert "at most 50% of each probability" in str(again)


def test_a_gap_within_the_relative_tolerance_raises_no_alarm(rng):
    y = (rng.random(20_000) < 0.014).astype(int)
    proba = np.repeat([[0.99, 0.01]], 20_000, axis=0)
    monitor = CalibrationMonitor(classes=[0, 1], horizon=20_000, relative_tolerance=0.5)
    assert not monitor.update(y, proba).alarm


@pytest.mark.parametrize("options", [{"relative_tolerance": 2}, {"tolerance": 0.0}])
def test_a_relative_tolerance_is_a_share_and_needs_a_tolerance(options):
    with pytest.raises(ValueError, match="relative_tolerance must lie between 0 and 1"):
        CalibrationMonitor(**{"relative_tolerance": 0.5, **options})


def test_an_average_run_length_of_overlapping_streams_needs_twice_the_threshold():
    one, ten = (CalibrationMonitor(arl=1000.0, lag=lag).threshold for lag in (1, 10))
    assert ten - one == pytest.approx(np.log(2), abs=1e-12)
    plain, lagged = (CalibrationMonitor(lag=lag).threshold for lag in (1, 10))
    assert plain == lagged  # streams share the rows of the horizon


@pytest.mark.slow
def test_the_run_length_of_overlapping_streams_is_at_least_as_promised(rng):
    lengths = []
    for _ in range(60):
        monitor = CalibrationMonitor(tolerance=0.0, arl=150.0, lag=7, classes=[0, 1])
        while not monitor.alarm:
            score = rng.uniform(0.55, 0.95, 210)
            shared = np.repeat(rng.random(30), 7)
            monitor.update((shared >= score).astype(int), np.column_stack([score, 1 - score]))
        lengths.append(monitor.to_dict()["alarm_at"])
    assert np.mean(lengths) >= 150


def test_a_quiet_detector_says_how_far_it_is_and_claims_no_saving(stream):
    monitor = CalibrationMonitor(tolerance=0.0)
    monitor.update(*stream(3000))
    assert "would have reduced" not in str(monitor)
    assert "The monitor raises an alarm at 16.8." in str(monitor)


def test_an_alarm_says_what_was_saved_since_when(stream):
    monitor = CalibrationMonitor(tolerance=0.0, horizon=10_000)
    monitor.update(*stream(1500), when="May")
    y, proba = stream(1500, beta=0.5)
    monitor.update(y, proba, when="June")
    saved = format_number(monitor.saved)
    assert f"(log e-value): {saved} since June. Recalibration would have reduced" in str(monitor)
    better = sharpened(proba, 0.5)[np.arange(1500), y]
    most = np.log(better / proba[np.arange(1500), y]).sum()
    assert 0.7 * most < monitor.saved < 1.2 * most
    assert monitor.to_dict()["saved"] == monitor.saved
