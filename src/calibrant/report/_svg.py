"""The charts of a report as inline SVG.

Charts print and need no JavaScript. Their colors come from the style of the page, so one drawing
serves light and dark schemes and paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from calibrant._output.numbers import format_number, format_percent
from calibrant.report._content import Curve, Decomposition, KsGraph, Reliability

_WHEN = ("before", "after")
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 30, 46
_LEAST_RADIUS, _MOST_RADIUS = 2.0, 9.0
"""Radius of points in pixels, for a bin with very few rows and for the largest bin."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_BAR = 0.016
"""Width of a bar of rows, as a share of the axis."""


@dataclass(frozen=True)
class _Plane:
    """The area of a chart, with the coordinates of numbers."""

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        low, high = self.x
        return _LEFT + (value - low) / (high - low) * (self.width - _LEFT - _RIGHT)

    def up(self, value: float) -> float:
        low, high = self.y
        inner = self.height - _TOP - _BOTTOM
        return self.height - _BOTTOM - (value - low) / (high - low) * inner

    def drawn(self, label: str, *parts: str) -> str:
        """The chart; screen readers read ``label``."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
        )


def reliability_svg(diagram: Reliability, label: str) -> str:
    """Observed frequency against predicted probability. The area of a point is proportional to its
    number of rows.
    """
    plane = _Plane(560, 420, (0.0, 1.0), (0.0, 1.0))
    most = max((*diagram.before.count, *diagram.after.count), default=1.0)
    parts = [
        _frame(plane, "predicted probability", "observed frequency"),
        _path(plane, ((0.0, 0.0), (1.0, 1.0)), "calibrated"),
        *(_points(plane, getattr(diagram, when), when, most) for when in _WHEN),
        _legend(plane, [*((when, when) for when in _WHEN), ("calibrated", "perfect calibration")]),
    ]
    return plane.drawn(label, *parts)


def _points(plane: _Plane, curve: Curve, when: str, most: float) -> str:
    joined = _path(plane, tuple(zip(curve.score, curve.frequency, strict=True)), f"{when} joined")
    return joined + "".join(_point(plane, when, most, *values) for values in curve.bins())


def _point(
    plane: _Plane,
    when: str,
    most: float,
    score: float,
    share: float,
    low: float,
    high: float,
    rows: float,
) -> str:
    x, y, radius = plane.across(score), plane.up(share), _radius(rows, most)
    label = (
        f"{when}: mean probability {format_percent(score)}, observed frequency "
        f"{format_percent(share)} (95% CI {format_percent(low)} to {format_percent(high)}), "
        f"{_row_text(rows)}"
    )
    faint = 0.15 + 0.5 * math.sqrt(
        rows / max(most, 1.0)
    )  # bins with few rows have the longest bars
    bar = (
        f'<path class="whisker" opacity="{faint:.2f}" '
        f'd="M{x:.1f} {plane.up(low):.1f}V{plane.up(high):.1f}"/>'
    )
    mark = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        if when == "after"
        else _diamond(x, y, 1.2 * radius)
    )
    return f'<g class="point {when}"><title>{label}</title>{bar}{mark}</g>'


def _row_text(rows: float) -> str:
    return "1 row" if rows == 1 else f"{rows:,.0f} rows"


def _diamond(x: float, y: float, r: float) -> str:
    return f'<path d="M{x - r:.1f} {y:.1f}l{r:.1f} {-r:.1f} {r:.1f} {r:.1f} {-r:.1f} {r:.1f}Z"/>'


def _radius(rows: float, most: float) -> float:
    return _LEAST_RADIUS + (_MOST_RADIUS - _LEAST_RADIUS) * math.sqrt(rows / max(most, 1.0))


def counts_svg(diagram: Reliability, label: str) -> str:
    """Number of rows per bin of predicted probability, before and after calibration."""
    most = max((*diagram.before.count, *diagram.after.count), default=1.0)
    plane = _Plane(380, 420, (-0.03, 1.03), (0.0, _ceiling(most)))
    bars = [
        bar
        for when, shift in (("before", -_BAR), ("after", 0.0))
        for bar in _bars(plane, getattr(diagram, when), when, shift)
    ]
    frame = _frame(plane, "predicted probability", "rows", ticks=(0.0, 0.25, 0.5, 0.75, 1.0))
    return plane.drawn(label, frame, *bars, _legend(plane, [(when, when) for when in _WHEN]))


def _bars(plane: _Plane, curve: Curve, when: str, shift: float) -> Iterator[str]:
    for score, rows in zip(curve.score, curve.count, strict=True):
        x = (score + shift, score + shift + _BAR)
        title = f"{when}: {_row_text(rows)} with mean probability {format_percent(score)}"
        yield _rectangle(plane, x, (0.0, rows), when, title)


def ks_svg(graph: KsGraph, label: str) -> str:
    """Cumulative confidence minus correctness, over rows ordered by confidence."""
    lines = {when: getattr(graph, when) for when in _WHEN}
    reach = max((abs(value) for line in lines.values() for value in line), default=0.0)
    edge = _ceiling(max(reach, 1e-4))
    plane = _Plane(960, 320, (0.0, 1.0), (-edge, edge))
    frame = _frame(plane, "share of rows, lowest confidence first", "cumulative difference")
    zero = _path(plane, ((0.0, 0.0), (1.0, 0.0)), "calibrated")
    drawn = [
        _path(plane, tuple(zip(graph.share, line, strict=True)), f"{when} line")
        for when, line in lines.items()
    ]
    return plane.drawn(label, frame, zero, *drawn, _legend(plane, [(when, when) for when in _WHEN]))


def decomposition_svg(parts: Decomposition, label: str) -> str:
    """A score as calibration and refinement; a negative calibration part has no bar."""
    most = max(sum(map(abs, pair)) for pair in (parts.before, parts.after))
    plane = _Plane(960, 170, (0.0, _ceiling(most or 1.0)), (0.0, 2.0))
    bars = []
    for place, when in enumerate(_WHEN):
        calibration, refinement = getattr(parts, when)
        width = max(calibration, 0.0)
        end, y = max(width, width + refinement), (1.15 - place, 1.85 - place)
        bars += [
            _rectangle(
                plane, (0.0, width), y, "before", f"calibration {format_number(calibration)}"
            ),
            _rectangle(plane, (width, end), y, "after", f"refinement {format_number(refinement)}"),
            f'<text class="name" x="{_LEFT - 8}" y="{plane.up(1.5 - place) + 4:.1f}" '
            f'text-anchor="end">{when}</text>',
        ]
    names = [("before", "calibration (can be corrected)"), ("after", "refinement")]
    frame = _frame(plane, "log-loss", "", has_rows=False)
    return plane.drawn(label, frame, *bars, _legend(plane, names, shape="square"))


def _rectangle(
    plane: _Plane, x: tuple[float, float], y: tuple[float, float], kind: str, title: str
) -> str:
    (left, right), (bottom, top) = map(plane.across, x), map(plane.up, y)
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}"><title>{title}</title></rect>'
    )


def _frame(
    plane: _Plane,
    across: str,
    up: str,
    *,
    has_rows: bool = True,
    ticks: Sequence[float] | None = None,
) -> str:
    """Grid, tick labels and titles of the axes."""
    columns = _ticks(*plane.x) if ticks is None else ticks
    rows = _ticks(*plane.y) if has_rows else ()
    bottom, right = plane.height - _BOTTOM, plane.width - _RIGHT
    lines = [
        *(f"M{plane.across(t):.1f} {_TOP}V{bottom}" for t in columns),
        *(f"M{_LEFT} {plane.up(t):.1f}H{right}" for t in rows),
    ]
    middle = (_TOP + bottom) / 2
    return (
        f'<path class="grid" d="{"".join(lines)}"/>'
        + "".join(_tick(plane.across(t), bottom + 16, "middle", t) for t in columns)
        + "".join(_tick(_LEFT - 7, plane.up(t) + 4, "end", t) for t in rows)
        + f'<text class="title" x="{(_LEFT + right) / 2:.0f}" y="{plane.height - 8}" '
        f'text-anchor="middle">{across}</text>'
        f'<text class="title" transform="rotate(-90 14 {middle:.0f})" x="14" y="{middle:.0f}" '
        f'text-anchor="middle">{up}</text>'
    )


def _tick(x: float, y: float, anchor: str, value: float) -> str:
    text = f"{value / 1e6:,.6g}M" if abs(value) >= 1e6 else f"{value:,.6g}"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _legend(plane: _Plane, entries: Sequence[tuple[str, str]], shape: str = "point") -> str:
    parts, x, y = [], float(_LEFT + 4), 14.0
    for kind, name in entries:
        if kind == "calibrated":
            mark = f'<path class="calibrated" d="M{x - 5:.0f} {y}H{x + 9:.0f}"/>'
        elif kind == "before" and shape == "point":
            mark = f'<g class="before">{_diamond(x, y, 6.0)}</g>'
        elif shape == "point":
            mark = f'<circle class="{kind}" cx="{x:.0f}" cy="{y}" r="5"/>'
        else:
            mark = f'<rect class="{kind}" x="{x - 5:.0f}" y="{y - 5}" width="10" height="10"/>'
        parts.append(f'{mark}<text x="{x + 14:.0f}" y="{y + 4}">{name}</text>')
        x += 34 + 7.2 * len(name)
    return "".join(parts)


def _path(plane: _Plane, points: Sequence[tuple[float, float]], kind: str) -> str:
    places = "L".join(f"{plane.across(x):.1f} {plane.up(y):.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{places}"/>' if points else ""


def _ticks(low: float, high: float, n_ticks: int = 5) -> list[float]:
    """About ``n_ticks`` round numbers between ``low`` and ``high``.

    Examples
    --------
    >>> _ticks(0.0, 1.0), _ticks(-0.02, 0.02)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-0.02, -0.01, 0.0, 0.01, 0.02])
    """
    step = _round_up((high - low) / n_ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) + 0.0 for place in range(first, last + 1)]


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * power >= value * (1 - 1e-9)) * power


def _ceiling(value: float) -> float:
    """A round number of at least ``value``, for the end of an axis."""
    step = _round_up(value / 5)
    return math.ceil(value / step - 1e-9) * step
