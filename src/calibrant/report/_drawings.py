"""Charts of a report, drawn with the primitives of `calibrant.report._svg`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from calibrant._output.numbers import format_number, format_percent
from calibrant.binning import least_rows
from calibrant.report._content import (
    Curve,
    Decomposition,
    Estimate,
    Headline,
    KsGraph,
    Reliability,
)
from calibrant.report._markup import Markup, joined, tag
from calibrant.report._svg import (
    WIDTH,
    Plane,
    band,
    ceiling,
    frame,
    legend,
    line,
    point,
    rectangle,
    text,
    tick_text,
    ticks,
)

_WHEN = ("before", "after")
_LEAST_RADIUS, _MOST_RADIUS = 2.5, 11.0
"""Radius of points, for a bin with very few rows and for the largest bin."""

_DIAGRAM, _HISTOGRAM, _GAP = 424.0, 156.0, 25.0
"""Heights of a reliability diagram and of the histogram below it, and the gap between them."""


def reliability_svg(diagram: Reliability, label: str) -> Markup:
    """Draw observed frequency against predicted probability, above a mirrored histogram.

    The area of a point increases with its number of rows. Bins with few rows are faint and hollow.
    """
    height = _DIAGRAM + _HISTOGRAM
    plane = Plane(WIDTH, height, (0.0, 1.0), (0.0, 1.0), bottom=_HISTOGRAM)
    curves = {when: getattr(diagram, when) for when in _WHEN}
    most = max((rows for curve in curves.values() for rows in curve.count), default=1.0)
    names = [*((when, when) for when in _WHEN), ("calibrated", "calibrated"), ("band", "95% band")]
    return plane.drawn(
        label,
        # The tick labels are below the histogram, which has the same axis.
        frame(plane, "", "observed frequency", columns=[(t, "") for t in ticks(0.0, 1.0)]),
        _consistency_band(plane, diagram.after),
        line(plane, ((0.0, 0.0), (1.0, 1.0)), "calibrated"),
        *(_points(plane, curve, when, most) for when, curve in curves.items()),
        legend(plane, names),
        _histogram(height, diagram),
        kind="diagram",
    )


def _consistency_band(plane: Plane, curve: Curve) -> Markup:
    """Draw the band of frequencies of a calibrated model, through the bins after calibration.

    A bin with few rows has a wide interval, which is drawn as a separate bar. If this interval were
    joined to its neighbors, the band would have a spike.
    """
    few = _few_rows(curve)
    ends = list(zip(curve.score, curve.band_low, curve.band_high, strict=True))
    small = [end for end, rows in zip(ends, curve.count, strict=True) if rows < few]
    large = [end for end in ends if end not in small]
    bars = (_band_through(plane, [end], 0.006) for end in small)
    return joined([_band_through(plane, large, 0.015) if large else "", *bars])


def _band_through(
    plane: Plane, bins: Sequence[tuple[float, float, float]], margin: float
) -> Markup:
    """Draw the band of bins, with a margin at both ends."""
    score, low, high = zip(*bins, strict=True)
    x = [max(0.0, score[0] - margin), *score, min(1.0, score[-1] + margin)]
    return band(plane, x, [low[0], *low, low[-1]], [high[0], *high, high[-1]])


def _few_rows(curve: Curve) -> float:
    """Return the number of rows below which a bin is drawn faintly."""
    return float(least_rows(np.array(sum(curve.count))))


def _points(plane: Plane, curve: Curve, when: str, most: float) -> Markup:
    few = _few_rows(curve)
    return joined(
        _point(plane, f"{when} few" if values[-1] < few else when, most, values)
        for values in curve.bins()
    )


def _point(plane: Plane, kind: str, most: float, values: Sequence[float]) -> Markup:
    score, share, low, high, rows = values
    label = (
        f"{kind.split()[0]}: mean probability {format_percent(score)}, observed frequency "
        f"{format_percent(share)} (95% CI {format_percent(low)} to {format_percent(high)}), "
        f"{_row_text(rows)}"
    )
    mark = point(plane.across(score), plane.up(share), radius(rows, most), kind)
    return tag("g", tag("title", label), mark, class_="point")


def _row_text(rows: float) -> str:
    return "1 row" if rows == 1 else f"{rows:,.0f} rows"


def radius(rows: float, most: float) -> float:
    """Return the radius of a point, which grows with the square root of the number of rows."""
    return _LEAST_RADIUS + (_MOST_RADIUS - _LEAST_RADIUS) * math.sqrt(rows / max(most, 1.0))


def _histogram(height: float, diagram: Reliability) -> Markup:
    """Draw a histogram of rows, upward before calibration and downward after calibration."""
    counts = (diagram.rows_before, diagram.rows_after)
    most = _row_ceiling(max((*counts[0], *counts[1], 1.0)))
    plane = Plane(WIDTH, height, (0.0, 1.0), (-most, most), top=_DIAGRAM + _GAP)
    rows = [(value, tick_text(abs(value))) for value in (-most, 0.0, most)]
    bars = [
        bar
        for sign, when, numbers in zip((1, -1), _WHEN, counts, strict=True)
        for bar in _bars(plane, numbers, when, sign)
    ]
    return joined([frame(plane, "predicted probability", "rows", rows=rows), *bars])


def _row_ceiling(rows: float) -> float:
    """Return the end of an axis for numbers of rows."""
    most = ceiling(rows)
    return most if most == int(most) else 5.0 * math.ceil(rows / 5)


def _bars(plane: Plane, counts: Sequence[float], when: str, sign: int) -> Iterator[Markup]:
    for place, rows in enumerate(counts):
        if rows:
            x = place / len(counts), (place + 1) / len(counts)
            ends = f"{format_number(x[0])} to {format_number(x[1])}"
            title = f"{when}: {_row_text(rows)} with probability {ends}"
            yield rectangle(plane, x, (0.0, sign * rows), f"bar {when}", title)


def headline_svg(headline: Headline, label: str) -> Markup:
    """Draw mean confidence and accuracy as bars, before and after calibration."""
    plane = Plane(WIDTH, 200, (0.0, 1.0), (0.0, 4.4), left=168.0, top=4.0, bottom=26.0, right=26.0)
    parts = [frame(plane, columns=_PERCENT, rows=())]
    for place, when in enumerate(_WHEN):
        for half, (name, pair, kind) in enumerate(
            (
                ("confidence", headline.confidence, f"bar {when}"),
                ("accuracy", headline.accuracy, "bar reference"),
            )
        ):
            y = 4.4 - 2.4 * place - half  # a gap separates both pairs of bars
            parts += _named_bar(plane, y, pair[place], f"{name} {when}", kind)
    return plane.drawn(label, *parts)


def _named_bar(plane: Plane, y: float, value: float, name: str, kind: str) -> list[Markup]:
    height = plane.up(y - 0.5) + 4
    return [
        rectangle(plane, (0.0, value), (y - 0.85, y - 0.15), kind),
        text(plane.left - 8, height, name, "end", class_="name"),
        _bar_text(plane, value, height),
    ]


def _bar_text(plane: Plane, value: float, height: float) -> Markup:
    """Draw a percentage at the end of its bar, inside a long bar or next to a short bar."""
    if value < _SHORT_BAR:
        return text(plane.across(value) + 6, height, format_percent(value), class_="name")
    return text(plane.across(value) - 8, height, format_percent(value), "end", class_="on-bar")


_SHORT_BAR = 0.3
"""A shorter bar has no space for its percentage."""

_PERCENT = [(share, format_percent(share)) for share in (0.0, 0.5, 1.0)]


def ks_svg(graph: KsGraph, label: str) -> Markup:
    """Draw cumulative confidence minus correctness over rows in order of confidence."""
    lines = {when: getattr(graph, when) for when in _WHEN}
    reach = max((abs(value) for values in lines.values() for value in values), default=0.0)
    edge = ceiling(max(reach, 1e-4))
    plane = Plane(WIDTH, 300, (0.0, 1.0), (-edge, edge), left=94.0)
    return plane.drawn(
        label,
        frame(plane, "share of rows, lowest confidence first", "cumulative difference"),
        line(plane, ((0.0, 0.0), (1.0, 0.0)), "calibrated"),
        *(
            line(plane, tuple(zip(graph.share, values, strict=True)), f"{when} line")
            for when, values in lines.items()
        ),
        legend(plane, [(f"{when} line", when) for when in _WHEN]),
    )


def decomposition_svg(parts: Decomposition, label: str) -> Markup:
    """Draw a score as calibration plus refinement. A negative calibration part is not drawn."""
    most = max(sum(map(abs, pair)) for pair in (parts.before, parts.after))
    plane = Plane(WIDTH, 190, (0.0, ceiling(most or 1.0)), (0.0, 2.0))
    bars: list[Markup] = []
    for place, when in enumerate(_WHEN):
        bars += _stacked_bars(plane, when, getattr(parts, when), 1.5 - place)
    names = [("bar", "calibration"), ("bar pale", "refinement")]
    return plane.drawn(label, frame(plane, "log-loss", rows=()), *bars, legend(plane, names))


def _stacked_bars(
    plane: Plane, when: str, parts: tuple[float, float], middle: float
) -> list[Markup]:
    """Draw calibration and refinement as two bars in a row."""
    calibration, refinement = parts
    width = max(calibration, 0.0)
    end, y = max(width, width + refinement), (middle - 0.35, middle + 0.35)
    title = f"{when}: calibration {format_number(calibration)}"
    pale_title = f"{when}: refinement {format_number(refinement)}"
    return [
        rectangle(plane, (0.0, width), y, f"bar {when}", title),
        rectangle(plane, (width, end), y, f"bar {when} pale", pale_title),
        text(plane.left - 8, plane.up(middle) + 4, when, "end", class_="name"),
    ]


def dots_svg(before: Estimate, after: Estimate) -> Markup:
    """Draw two values with their intervals on an axis that starts at zero, for a row of a table."""
    ends = [
        value for e in (before, after) for value in (e.value, e.low, e.high) if value is not None
    ]
    low, high = min(0.0, *ends), max(0.0, *ends) or 1.0
    plane = _row_plane((low, high), (0.0, 2.0))
    rails = [line(plane, ((low, y), (high, y)), "rail") for y in (1.5, 0.5)]
    parts = [*rails, line(plane, ((0.0, 0.0), (0.0, 2.0)), "zero")]
    for y, when, estimate in ((1.5, "before", before), (0.5, "after", after)):
        if estimate.low is not None and estimate.high is not None:
            parts.append(line(plane, ((estimate.low, y), (estimate.high, y)), f"{when} whisker"))
        parts.append(point(plane.across(estimate.value), plane.up(y), 4.5, when))
    return _row_chart(plane, parts)


def interval_svg(value: float, low: float, high: float) -> Markup:
    """Draw a probability and its bounds on an axis from 0 to 1, for a row of a table."""
    plane = _row_plane((0.0, 1.0), (0.0, 1.0), 20.0)
    grid = [line(plane, ((t, 0.0), (t, 1.0)), "zero") for t in (0.0, 0.5, 1.0)]
    bar = rectangle(plane, (low, high), (0.2, 0.8), "bar pale after")
    return _row_chart(plane, [*grid, bar, point(plane.across(value), plane.up(0.5), 4.5, "after")])


def _row_plane(x: tuple[float, float], y: tuple[float, float], height: float = 30.0) -> Plane:
    return Plane(200, height, x, y, left=6.0, right=6.0, top=2.0, bottom=2.0)


def _row_chart(plane: Plane, parts: Sequence[Markup]) -> Markup:
    """Draw a small chart. Screen readers skip the chart, because its numbers are in the table."""
    box = f"0 0 {plane.width:g} {plane.height:g}"
    return tag("svg", *parts, viewBox=box, class_="row-chart", aria_hidden="true")
