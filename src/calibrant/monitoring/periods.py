"""Gap of each period of a monitor, computed from its history."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from calibrant.monitoring._results import MonitorEntry, entries_since_reset

if TYPE_CHECKING:
    from calibrant.monitoring._monitor import CalibrationMonitor

_ALPHA = 0.05
"""One minus the confidence level of the interval of a period."""


class PeriodGap(NamedTuple):
    """Mean gap of the rows of a period, with a 95% confidence interval.

    ``place`` is the position of the last update of the period in the history.
    """

    place: int
    when: str
    n_rows: int
    mean: float
    low: float
    high: float


def period_gaps(history: Sequence[MonitorEntry], most: int = 1000) -> list[PeriodGap]:
    r"""Return the gap of the first event in each period since the last reset.

    Entries of the history contain means :math:`g_t` over all :math:`n_t` rows so far. The rows of a
    period from s to t therefore have the mean :math:`(n_t g_t - n_s g_s) / (n_t - n_s)`. Updates
    are combined into at most ``most`` periods. The interval is
    :math:`\pm\sqrt{\log(2 / 0.05) / 2n}`, because the outcomes lie between 0 and 1 (Hoeffding;
    Azuma for dependent rows).

    References
    ----------
    Hoeffding (1963), Probability inequalities for sums of bounded random variables,
    doi:10.1080/01621459.1963.10500830.

    Examples
    --------
    >>> history = [MonitorEntry(name, 100, n, 0.0, g, 0.0, 0.0, False)
    ...            for name, n, g in (("May", 100, 0.02), ("June", 200, 0.05))]
    >>> [(period.when, round(period.mean, 3)) for period in period_gaps(history)]
    [('May', 0.02), ('June', 0.08)]
    """
    entries = entries_since_reset(history)
    first = len(history) - len(entries)
    periods, n_before, sum_before = [], 0, 0.0
    for place in _ends(len(entries), most):
        entry = entries[place]
        n_rows, total = entry.n_seen - n_before, entry.n_seen * entry.mean
        if n_rows > 0:
            mean, margin = (total - sum_before) / n_rows, sqrt(log(2 / _ALPHA) / (2 * n_rows))
            low, high = max(-1.0, mean - margin), min(1.0, mean + margin)
            periods.append(PeriodGap(first + place, entry.when, n_rows, mean, low, high))
        n_before, sum_before = entry.n_seen, total
    return periods


def _ends(n_updates: int, most: int) -> list[int]:
    """Return the last update of each period, for at most ``most`` periods of equal length."""
    n_periods = min(most, n_updates)
    return [(k + 1) * n_updates // n_periods - 1 for k in range(n_periods)]


def cumulative_gaps(history: Sequence[MonitorEntry], most: int = 1000) -> list[PeriodGap]:
    """Return the gap of all rows up to each update, with an interval that holds at all times."""
    return [
        PeriodGap(place, entry.when, entry.n_rows, entry.mean, entry.low, entry.high)
        for place, entry in ((place, history[place]) for place in _ends(len(history), most))
    ]


def has_weights(monitor: CalibrationMonitor) -> bool:
    """Return whether rows have weights.

    The history contains no weights, so the gaps of periods of weighted rows are unknown.
    """
    return monitor.n_rows > 0 and monitor.gaps()[0].n_rows != monitor.n_rows
