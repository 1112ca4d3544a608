"""Charts of a monitor page, drawn with the primitives of `calibrant.report._svg`.

A time series needs a wide chart, so each chart has two versions, for wide screens and for phones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from calibrant._output.numbers import format_interval, format_number
from calibrant.monitoring import CalibrationMonitor, MonitorEntry
from calibrant.monitoring._results import entries_since_reset
from calibrant.monitoring.periods import PeriodGap, cumulative_gaps, has_weights, period_gaps
from calibrant.report._markup import Markup, joined, tag
from calibrant.report._svg import WIDTH, Plane, band, ceiling, frame, line, named_ticks, point, text

_LETTER = 8.6
"""Width of a letter of a label on a phone, which has the largest text."""

_LONGEST = 12
"""Maximum number of letters of the name of an update at the axis."""


class _Size(NamedTuple):
    """Size of a chart: CSS class, width, height, and maximum number of periods."""

    kind: str
    width: float
    height: float
    most: int


_SIZES = (_Size("wide", 1080.0, 280.0, 80), _Size("narrow", WIDTH, 300.0, 30))


def evidence_charts(history: Sequence[MonitorEntry], threshold: float) -> Markup:
    """Draw the log e-value after each update, with the threshold and the first alarm."""
    values = [entry.nats for entry in history]
    low, high = min([*values, 0.0]), max([*values, threshold])
    y = (0.0 if low > -0.02 * high else -ceiling(-low), ceiling(1.08 * high))
    points = list(enumerate(values))

    def draw(size: _Size) -> Markup:
        plane = _plane(size, len(history), y)
        limit = ((plane.x[0], threshold), (plane.x[1], threshold))
        return plane.drawn(
            "Evidence against calibration over time",
            _time_frame(plane, history, "log e-value"),
            line(plane, limit, "limit"),
            _limit_text(plane, threshold),
            _alarm_mark(plane, history),
            line(plane, points, "reference-line"),
            joined(
                _evidence_point(plane, *pair, size) for pair in zip(points, history, strict=True)
            ),
            kind=size.kind,
        )

    return _both_sizes(draw)


def _evidence_point(
    plane: Plane, place: tuple[int, float], entry: MonitorEntry, size: _Size
) -> Markup:
    """Draw a point with its tooltip. If there are many updates, only alarms are drawn as points."""
    if plane.x[1] > size.most and not entry.alarm:
        return Markup("")
    x, y = plane.across(place[0]), plane.up(place[1])
    mark = point(x, y, 3.0, "alarm-point" if entry.alarm else "ink")
    return tag("g", tag("title", f"{entry.when}: {format_number(entry.nats)}"), mark)


def gap_charts(monitor: CalibrationMonitor, tolerance: float) -> Markup:
    """Draw the gap of each period with its interval, and the tolerance around zero."""
    return _both_sizes(partial(_gap_chart, monitor, tolerance))


def _gap_chart(monitor: CalibrationMonitor, tolerance: float, size: _Size) -> Markup:
    gaps_of = cumulative_gaps if has_weights(monitor) else period_gaps
    periods = gaps_of(monitor.history, size.most)
    ends = [end for period in periods for end in (period.low, period.high)]
    reach = ceiling(max([*map(abs, ends), 2 * tolerance, 0.01]))
    plane = _plane(size, len(monitor.history), (-reach, reach))
    return plane.drawn(
        "Mean gap per period",
        _time_frame(plane, monitor.history, "predicted minus observed"),
        band(plane, plane.x, [-tolerance] * 2, [tolerance] * 2) if tolerance else Markup(""),
        line(plane, [(x, 0.0) for x in plane.x], "calibrated"),
        _alarm_mark(plane, monitor.history),
        joined(_period_mark(plane, period, tolerance) for period in periods),
        kind=size.kind,
    )


def _period_mark(plane: Plane, period: PeriodGap, tolerance: float) -> Markup:
    """Draw a point and its interval, in the alarm color if no tolerated gap is in the interval."""
    is_beyond = period.low > tolerance or period.high < -tolerance
    x = plane.across(period.place)
    ends = format_interval(period.low, period.high, signed=True)
    title = (
        f"{period.when}: {format_number(period.mean, signed=True)} (95% CI {ends}), "
        f"{period.n_rows:,} rows"
    )
    path = f"M{x:.1f} {plane.up(period.low):.1f}V{plane.up(period.high):.1f}"
    kind = "alarm-point" if is_beyond else "ink"
    whisker = Markup(f'<path class="{kind} whisker" d="{path}"/>')
    return tag("g", tag("title", title), whisker, point(x, plane.up(period.mean), 4.0, kind))


def _plane(size: _Size, n_updates: int, y: tuple[float, float]) -> Plane:
    """Return the area of a chart, with half a step of space at both ends of the horizontal axis."""
    x = (-0.5, max(n_updates, 1) - 0.5)
    return Plane(size.width, size.height, x, y, right=52.0, bottom=40.0)


def _time_frame(plane: Plane, history: Sequence[MonitorEntry], title: str) -> Markup:
    """Draw axes with round numbers, and with as many names of updates as fit.

    The names are wide, so they are drawn below the lowest number of the vertical axis.
    """
    names = [_short(entry.when) for entry in history]
    width = _LETTER * max(map(len, names), default=1) + 14
    most = max(1, int((plane.end - plane.left) / width))
    step = -(-len(names) // most)
    columns = [(float(place), names[place]) for place in range(0, len(names), max(step, 1))]
    return frame(plane, "", title, columns=columns, rows=named_ticks(*plane.y), drop=24.0)


def _short(name: str) -> str:
    # Names of updates usually differ at their end.
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def _limit_text(plane: Plane, threshold: float) -> Markup:
    place = plane.left + 6, plane.up(threshold) - 6
    return text(*place, f"alarm at {format_number(threshold)}", class_="alarm-text")


def _alarm_mark(plane: Plane, history: Sequence[MonitorEntry]) -> Markup:
    """Draw a line at the first alarm since the last reset, with the name of the update."""
    now = entries_since_reset(history)
    alarms = [i for i, entry in enumerate(now, start=len(history) - len(now)) if entry.alarm]
    if not alarms:
        return Markup("")
    x, name = plane.across(alarms[0]), f"alarm: {_short(history[alarms[0]].when)}"
    mark = Markup(f'<path class="alarm" d="M{x:.1f} {plane.top:g}V{plane.floor:g}"/>')
    # The name is centered on the line, unless it would leave the chart or overlap the axis.
    half = _LETTER * len(name) / 2
    middle = min(max(x, plane.left + half), plane.width - half)
    label = text(middle, plane.top - 9, name, "middle", class_="alarm-text")
    return joined([mark, label])


def _both_sizes(draw: Callable[[_Size], Markup]) -> Markup:
    return joined(map(draw, _SIZES))
