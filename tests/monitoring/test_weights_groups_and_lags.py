"""Rows that count in part, groups of shards, rows that overlap."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring._wealth import run_factors, run_members
from streams import draw, sharpened


@pytest.mark.parametrize("is_detector", [False, True])
@pytest.mark.parametrize("scale", [0.2, 9.0])
def test_products_and_logarithms_run_alike(rng, is_detector, scale):
    log_f = rng.normal(scale=scale, size=(300, 2, 5))
    start = np.array([[-np.inf if is_detector else 0.0] * 5, [3.0, -800.0, 0.0, 1.0, 2.0]])
    entry = np.full((300, 2), float(is_detector))
    weight = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    logs = run_members(start, log_f, entry, weight)
    own = run_factors(start, np.exp(log_f), entry, weight)
    np.testing.assert_allclose(own.path, logs.path, atol=1e-8)
    np.testing.assert_allclose(own.last, logs.last, atol=1e-8)
    np.testing.assert_allclose(own.gained, log_f.sum(axis=0), atol=1e-8)


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


def test_a_row_of_half_a_weight_wins_half(stream):
    y, proba = stream(200, beta=0.5)
    options = {"tolerance": 0.02, "mode": "test", "notions": ["class-1"]}
    whole, half = (CalibrationMonitor(**options) for _ in range(2))
    whole.update(y, proba)
    half.update(y, proba, sample_weight=np.full(200, 0.5))
    np.testing.assert_allclose(half._evidence.wealth, whole._evidence.wealth / 2, atol=1e-9)
    assert half.gaps()[0].mean == pytest.approx(whole.gaps()[0].mean, abs=1e-12)
    assert half.gaps()[0].n_rows == 100


def test_weights_above_one_are_refused_with_the_reason(stream):
    y, proba = stream(10)
    with pytest.raises(ValueError, match="at most 1"):
        CalibrationMonitor().update(y, proba, sample_weight=np.full(10, 2.0))
    with pytest.raises(ValueError, match="one group a row"):
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


def test_b7_groups_and_weights_of_four_shards_merged_are_those_of_one_pass(stream, rng):
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
    assert min(gap.mean for gap in groups) < -0.05


def test_an_average_run_length_of_overlapping_streams_needs_twice_the_threshold():
    one, ten = (CalibrationMonitor(arl=1000.0, lag=lag).threshold for lag in (1, 10))
    assert ten - one == pytest.approx(np.log(2), abs=1e-12)
    plain, lagged = (CalibrationMonitor(lag=lag).threshold for lag in (1, 10))
    assert plain == lagged  # streams share the rows of the horizon


@pytest.mark.slow
def test_b8_the_run_length_of_overlapping_streams_is_at_least_as_promised(rng):
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
    assert "saved" not in str(monitor)
    assert "at 16.8 it is an alarm" in str(monitor)


def test_an_alarm_says_what_was_saved_since_when(stream):
    monitor = CalibrationMonitor(tolerance=0.0, horizon=10_000)
    monitor.update(*stream(1500), when="May")
    y, proba = stream(1500, beta=0.5)
    monitor.update(y, proba, when="June")
    assert f"would have saved {monitor.saved:.1f} nats since June" in str(monitor)
    better = sharpened(proba, 0.5)[np.arange(1500), y]
    most = np.log(better / proba[np.arange(1500), y]).sum()
    assert 0.7 * most < monitor.saved < 1.2 * most
    assert monitor.to_dict()["saved"] == monitor.saved
