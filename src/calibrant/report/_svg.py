"""Primitives of the charts of reports and monitor pages, as inline SVG.

Charts can be printed and need no JavaScript. The style sheet sets colors and font sizes, so
the same chart works in light and dark schemes, on phones and on paper. The viewBox of a
chart is about as wide as a chart on the page. Margins leave space for the larger text on phones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.report._markup import Markup, as_markup, tag

WIDTH = 480
"""Width of most charts. A phone shows charts at three quarters of their size, and report.css
enlarges their text accordingly."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

_LETTER = 9.6
"""Width of a letter in a legend on paper, which has the largest text."""


@dataclass(frozen=True)
class Plane:
    """The area of a chart, which converts numbers to coordinates.

    ``x`` and ``y`` are the ranges of the axes, and the last four fields are margins.
    """

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    left: float = 68.0
    right: float = 22.0
    top: float = 30.0
    bottom: float = 48.0

    @property
    def floor(self) -> float:
        """Vertical coordinate of the horizontal axis."""
        return self.height - self.bottom

    @property
    def end(self) -> float:
        """Horizontal coordinate of the right edge."""
        return self.width - self.right

    def across(self, value: float) -> float:
        """Return the horizontal coordinate of a number."""
        low, high = self.x
        return self.left + (value - low) / (high - low) * (self.end - self.left)

    def up(self, value: float) -> float:
        """Return the vertical coordinate of a number."""
        low, high = self.y
        return self.floor - (value - low) / (high - low) * (self.floor - self.top)

    def drawn(self, label: str, *parts: Markup, kind: str | None = None) -> Markup:
        """Return the chart. Screen readers read ``label``."""
        box = f"0 0 {self.width:g} {self.height:g}"
        return tag("svg", *parts, viewBox=box, role="img", aria_label=label, class_=kind)


def frame(
    plane: Plane,
    across: str = "",
    up: str = "",
    *,
    columns: Sequence[tuple[float, str]] | None = None,
    rows: Sequence[tuple[float, str]] | None = None,
    drop: float = 17.0,
) -> Markup:
    """Draw the grid, the tick labels and the titles of the axes.

    Each tick is a pair of a number and its text.

    ``drop`` is the distance between the horizontal axis and its labels.
    """
    columns = named_ticks(*plane.x) if columns is None else columns
    rows = named_ticks(*plane.y) if rows is None else rows
    lines = [
        *(f"M{plane.across(t):.1f} {plane.top:g}V{plane.floor:g}" for t, _ in columns),
        *(f"M{plane.left:g} {plane.up(t):.1f}H{plane.end:g}" for t, _ in rows),
    ]
    middle = (plane.top + plane.floor) / 2
    parts = [
        Markup(f'<path class="grid" d="{"".join(lines)}"/>'),
        *(text(plane.across(t), plane.floor + drop, name, "middle") for t, name in columns if name),
        *(text(plane.left - 7, plane.up(t) + 4, name, "end") for t, name in rows if name),
    ]
    if across:
        place = (plane.left + plane.end) / 2, plane.height - 8
        parts.append(text(*place, across, "middle", class_="title"))
    if up:
        turned = f"rotate(-90 15 {middle:.0f})"
        parts.append(text(15, middle, up, "middle", class_="title", transform=turned))
    return Markup("".join(parts))


def text(x: float, y: float, content: str, anchor: str | None = None, **more: str) -> Markup:
    """Draw a text at a point, which is the "start", "middle" or "end" of the text (``anchor``)."""
    if more:
        return tag("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)
    side = f' text-anchor="{anchor}"' if anchor else ""
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}"{side}>{as_markup(content)}</text>')


def line(plane: Plane, points: Sequence[tuple[float, float]], kind: str) -> Markup:
    """A line through points."""
    places = "L".join(f"{plane.across(x):.1f} {plane.up(y):.1f}" for x, y in points)
    return Markup(f'<path class="{kind}" d="M{places}"/>' if points else "")


def band(
    plane: Plane,
    x: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    kind: str = "band",
) -> Markup:
    """Draw the area between two lines."""
    upper = list(zip(x, high, strict=True))
    lower = list(zip(x, low, strict=True))
    return line(plane, [*upper, *reversed(lower)], kind)


def point(x: float, y: float, radius: float, kind: str) -> Markup:
    """Draw the marker of a series, which is a diamond before calibration and a circle otherwise."""
    if kind.startswith("before"):
        r = 1.15 * radius  # a diamond of this size has about the area of the circle
        path = f"M{x - r:.1f} {y:.1f}l{r:.1f} {-r:.1f} {r:.1f} {r:.1f} {-r:.1f} {r:.1f}Z"
        return Markup(f'<path class="{kind}" d="{path}"/>')
    return Markup(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')


def rectangle(
    plane: Plane, x: tuple[float, float], y: tuple[float, float], kind: str, title: str = ""
) -> Markup:
    """Draw a bar between two numbers on each axis, with a tooltip."""
    left, right = sorted(map(plane.across, x))
    top, bottom = sorted(map(plane.up, y))
    tooltip = tag("title", title) if title else ""
    return Markup(
        f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}">{tooltip}</rect>'
    )


def legend(plane: Plane, entries: Sequence[tuple[str, str]]) -> Markup:
    """Draw a legend of marks and names above the chart. The kind of a mark is its CSS class."""
    parts, x, y = [], plane.left + 6, 14.0
    for kind, name in entries:
        parts.append(_legend_mark(x, y, kind))
        parts.append(text(x + 13, y + 4, name))
        x += 30 + _LETTER * len(name)
    return Markup("".join(parts))


def _legend_mark(x: float, y: float, kind: str) -> Markup:
    if "line" in kind or kind == "calibrated":
        # Two dashes of the line of a calibrated model, which end before the name.
        return Markup(f'<path class="{kind}" d="M{x - 10:.0f} {y:g}h17"/>')
    if "bar" in kind or kind == "band":
        return Markup(f'<path class="{kind}" d="M{x - 6:.0f} {y - 5:g}h12v10h-12Z"/>')
    return point(x, y, 5.0, kind)


def named_ticks(low: float, high: float, n_ticks: int = 5) -> list[tuple[float, str]]:
    """Return round numbers between ``low`` and ``high``, with their texts."""
    return [(value, tick_text(value)) for value in ticks(low, high, n_ticks)]


def tick_text(value: float) -> str:
    """Return the tick label of a number. Large numbers are abbreviated.

    Examples
    --------
    >>> [tick_text(value) for value in (0.25, 2000.0, 15_000.0, 1_250_000.0)]
    ['0.25', '2,000', '15k', '1.25M']
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.6g}M"
    return f"{value / 1e3:,.6g}k" if abs(value) >= 1e4 else f"{value:,.6g}"


def ticks(low: float, high: float, n_ticks: int = 5) -> list[float]:
    """Return about ``n_ticks`` round numbers between ``low`` and ``high``.

    Examples
    --------
    >>> ticks(0.0, 1.0), ticks(-0.02, 0.02)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-0.02, -0.01, 0.0, 0.01, 0.02])
    """
    step = _round_up((high - low) / n_ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) + 0.0 for place in range(first, last + 1)]


def _round_up(value: float) -> float:
    """Round a number up to 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * power >= value * (1 - 1e-9)) * power


def ceiling(value: float) -> float:
    """Return a round number of at least ``value``, for the end of an axis."""
    step = _round_up(value / 5)
    return math.ceil(value / step - 1e-9) * step
