"""The display of a monitor."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring.periods import period_gaps
from calibrant.plots import MonitorDisplay
from calibrant.plots._style import ALARM, INK


@pytest.fixture
def monitor():
    watched = CalibrationMonitor(horizon=1000)
    for week in range(12):
        y = np.arange(200) % (2 if week > 6 else 10) == 0
        watched.update(y.astype(int), [[0.9, 0.1]] * 200, when=f"week {week} $x")
    return watched


def test_it_draws_evidence_threshold_and_gap(monitor):
    display = MonitorDisplay.from_monitor(monitor).plot()
    above, below = display.axes_
    drawn = above.lines[0].get_ydata()
    assert drawn.tolist() == [one.nats for one in monitor.history]
    assert above.lines[2].get_ydata()[0] == monitor.threshold
    assert len(above.lines[1].get_xdata()) == sum(one.alarm for one in monitor.history) > 0
    assert len(below.get_xticks()) <= 8
    points = [line.get_ydata()[0] for line in below.lines if line.get_marker() == "o"]
    assert points == [gap.mean for gap in period_gaps(monitor.history)]
    colors = [line.get_color() for line in below.lines if line.get_marker() == "o"]
    assert (colors[0], colors[-1]) == (INK, ALARM)


def test_it_draws_in_the_place_of_axes(monitor):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    assert MonitorDisplay.from_monitor(monitor).plot(ax).figure_ is figure
    plt.close(figure)


def test_a_monitor_that_has_seen_nothing_cannot_be_drawn():
    with pytest.raises(ValueError, match="The monitor has no rows yet"):
        MonitorDisplay.from_monitor(CalibrationMonitor())
