"""Plot the evidence and the gap of a monitor over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.monitoring import CalibrationMonitor, MonitorEntry
from calibrant.plots._canvas import GridDisplay, grid_spec, heading, require_matplotlib
from calibrant.plots._style import BLUE, INK, PALE, SMALL, VERMILION, label, tidy

_MOST_TICKS = 8


@dataclass(eq=False)
class MonitorDisplay(GridDisplay):
    """Evidence and mean gap of a `CalibrationMonitor` after each update.

    Use `from_monitor` and `plot`. The upper panel has the threshold of the alarm, the lower one the
    confidence interval of the gap and the tolerance.

    Parameters
    ----------
    history : sequence of entries
        `CalibrationMonitor.history`.
    threshold : float
        Log e-value that raises an alarm.
    tolerance : float
        Tolerance of the monitor.
    claim : str
        Name of the event of the gap.

    See Also
    --------
    calibrant.monitoring.CalibrationMonitor : The monitor.
    calibrant.report.monitor_page : The same as an HTML page.

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

    @classmethod
    def from_monitor(cls, monitor: CalibrationMonitor) -> Self:
        """Create the display from the history of a monitor."""
        require_matplotlib()
        if not monitor.history:
            raise ValueError("The monitor has seen no rows yet. Call update(y, p) first.")
        tolerance = monitor.to_dict()["rule"]["tolerance"]
        return cls(monitor.history, monitor.threshold, tolerance, monitor.gaps()[0].claim)

    def plot(self, ax: Any = None) -> Self:
        """Draw the evidence above and the gap below."""
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
        ax.plot(x, nats, color=BLUE, linewidth=1.6, marker="o", markersize=3)
        alarm = np.array([entry.alarm for entry in self.history])
        ax.plot(x[alarm], nats[alarm], color=VERMILION, linestyle="", marker="X", markersize=6)
        ax.axhline(self.threshold, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        ax.tick_params(labelbottom=False)
        label(ax, "", "log e-value", "Evidence against calibration (dashed: alarm)")

    def _draw_gap(self, ax: Any) -> None:
        tidy(ax)
        x = np.arange(len(self.history))
        mean, low, high = (
            np.array([getattr(entry, name) for entry in self.history])
            for name in ("mean", "low", "high")
        )
        ax.axhspan(-self.tolerance, self.tolerance, color=PALE, alpha=0.6, linewidth=0)
        ax.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(x, mean, color=BLUE, linewidth=1.6)
        ax.axhline(0.0, color=INK, linewidth=0.8)
        step = -(-len(x) // _MOST_TICKS)
        names = [entry.when for entry in self.history[::step]]
        ax.set_xticks(x[::step], names, rotation=30, ha="right", fontsize=SMALL)
        label(ax, "", "predicted minus observed", f"Mean gap until each update, {self.claim}")
