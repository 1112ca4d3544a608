"""Plot the evidence and the gap of a monitor over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.monitoring import CalibrationMonitor, MonitorEntry
from calibrant.monitoring.periods import PeriodGap, cumulative_gaps, has_weights, period_gaps
from calibrant.plots._canvas import GridDisplay, grid_spec, heading, require_matplotlib
from calibrant.plots._style import ALARM, INK, REFERENCE, SMALL, label, tidy

_MOST_TICKS, _MOST_PERIODS = 8, 60
"""Maximum number of names at the axis, and maximum number of periods without overlapping marks."""


@dataclass(eq=False)
class MonitorDisplay(GridDisplay):
    """Plot of the evidence of a `CalibrationMonitor` per update, and of the mean gap per period.

    Call `from_monitor`, then `plot`. The upper panel shows the evidence and the threshold of the
    alarm. The lower panel shows the 95% confidence interval of the gap of each period, and the
    tolerance.

    Parameters
    ----------
    history : sequence of entries
        The attribute `CalibrationMonitor.history`.
    threshold : float
        Log e-value that raises an alarm.
    tolerance : float
        Tolerance of the monitor.
    claim : str
        Name of the event of the gap.
    is_weighted : bool
        Whether rows have weights. If rows have weights, each gap is the mean over all rows up to an
        update.

    See Also
    --------
    calibrant.monitoring.CalibrationMonitor : Monitor calibration in production.
    calibrant.report.monitor_page : Write the state of a monitor as an HTML page.

    Examples
    --------
    >>> monitor = CalibrationMonitor()
    >>> step = monitor.update([0, 1], [[0.7, 0.3], [0.4, 0.6]], when="Monday")
    >>> len(MonitorDisplay.from_monitor(monitor).history)
    1
    """

    history: Sequence[MonitorEntry]
    threshold: float
    tolerance: float = 0.0
    claim: str = "gap"
    is_weighted: bool = False

    @classmethod
    def from_monitor(cls, monitor: CalibrationMonitor) -> Self:
        """Create the display from the history of a monitor."""
        require_matplotlib()
        if not monitor.history:
            raise ValueError("The monitor has no rows yet. Call update(y, p) first.")
        tolerance = monitor.to_dict()["rule"]["tolerance"]
        claim = monitor.gaps()[0].claim
        return cls(monitor.history, monitor.threshold, tolerance, claim, has_weights(monitor))

    def plot(self, ax: Any = None) -> Self:
        """Draw the evidence in the upper panel and the gap in the lower panel."""
        self.figure_, grid = grid_spec(ax, 2, 1, (6.4, 5.2))
        above = self.figure_.add_subplot(grid[0, 0])
        below = self.figure_.add_subplot(grid[1, 0], sharex=above)
        self._draw_evidence(above)
        self._draw_gap(below)
        heading(self.figure_, ax, "Calibration monitor")
        self.axes_ = np.array([above, below])
        return self

    def _draw_evidence(self, ax: Any) -> None:
        tidy(ax)
        nats = np.array([entry.nats for entry in self.history])
        x = np.arange(len(nats))
        ax.plot(x, nats, color=INK, linewidth=1.4, marker="o", markersize=3)
        alarm = np.array([entry.alarm for entry in self.history])
        ax.plot(x[alarm], nats[alarm], color=ALARM, linestyle="", marker="X", markersize=6)
        ax.axhline(self.threshold, color=ALARM, linewidth=1, linestyle=(0, (4, 3)))
        ax.tick_params(labelbottom=False)
        label(ax, "", "log e-value", "Evidence against calibration (dashed: alarm)")

    def _draw_gap(self, ax: Any) -> None:
        tidy(ax)
        gaps = (cumulative_gaps if self.is_weighted else period_gaps)(self.history, _MOST_PERIODS)
        ax.axhspan(self.tolerance, -self.tolerance, color=REFERENCE, alpha=0.2, linewidth=0)
        ax.axhline(0.0, color=REFERENCE, linewidth=1, linestyle=(0, (4, 3)))
        for gap in gaps:
            _draw_interval(ax, gap, self.tolerance)
        step = -(-len(self.history) // _MOST_TICKS)
        places = range(0, len(self.history), step)
        names = [self.history[place].when for place in places]
        ax.set_xticks(list(places), names, rotation=30, ha="right", fontsize=SMALL)
        period = "until each update" if self.is_weighted else "per period"
        label(ax, "", "predicted minus observed", f"Mean gap {period}, {self.claim}")


def _draw_interval(ax: Any, gap: PeriodGap, tolerance: float) -> None:
    # The color of alarms marks periods whose interval excludes the tolerance.
    is_beyond = gap.low > tolerance or gap.high < -tolerance
    look = {"color": ALARM if is_beyond else INK, "linewidth": 1.4}
    ax.plot([gap.place] * 2, [gap.low, gap.high], alpha=0.5, **look)
    ax.plot(gap.place, gap.mean, marker="o", markersize=4, **look)
