"""The gap of each period is that of its own rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring.periods import cumulative_gaps, has_weights, period_gaps


@pytest.fixture
def weeks(rng):
    """A monitor of ten weeks, and the mean gap of each week."""
    monitor, gaps = CalibrationMonitor(classes=[0, 1]), []
    for week in range(10):
        p = rng.uniform(0.5, 1.0, 200)
        y = (rng.random(200) >= p - (0.2 if week > 5 else 0.0)).astype(int)
        monitor.update(y, np.column_stack([p, 1 - p]), when=f"week {week}")
        gaps.append(float(np.mean(p - (y == 0))))
    return monitor, gaps


def test_periods_have_the_gap_of_their_own_rows(weeks):
    monitor, gaps = weeks
    periods = period_gaps(monitor.history)
    assert [period.mean for period in periods] == pytest.approx(gaps)
    assert [period.n_rows for period in periods] == [200] * 10
    assert [period.when for period in periods] == [f"week {week}" for week in range(10)]


def test_intervals_contain_the_gaps_of_a_calibrated_model_and_exclude_a_large_one(weeks):
    periods = period_gaps(weeks[0].history)
    assert all(period.low <= 0 <= period.high for period in periods[:5])
    assert periods[8].low > 0


def test_many_updates_are_joined_into_fewer_periods(weeks):
    monitor, gaps = weeks
    periods = period_gaps(monitor.history, most=3)
    assert [period.place for period in periods] == [2, 5, 9]
    assert periods[1].mean == pytest.approx(np.mean(gaps[3:6]))


def test_periods_start_at_the_last_reset(weeks):
    monitor, _ = weeks
    monitor.reset()
    monitor.update([0, 1], [[0.5, 0.5]] * 2, when="new")
    (period,) = period_gaps(monitor.history)
    assert (period.place, period.when, period.n_rows) == (10, "new", 2)


def test_without_updates_there_are_no_periods():
    assert period_gaps([]) == []


def test_weighted_rows_have_gaps_of_all_rows_until_an_update():
    monitor = CalibrationMonitor(classes=[0, 1])
    monitor.update([0, 1], [[0.5, 0.5]] * 2, sample_weight=[0.5, 1.0])
    assert has_weights(monitor)
    (gap,) = cumulative_gaps(monitor.history)
    entry = monitor.history[0]
    assert (gap.mean, gap.low, gap.high) == (entry.mean, entry.low, entry.high)
    assert not has_weights(CalibrationMonitor(classes=[0, 1]))
