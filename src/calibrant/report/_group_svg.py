"""Charts of groups as inline SVG: a forest plot of gaps, and small reliability diagrams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from calibrant._output.numbers import format_interval, format_number
from calibrant._validation import printable
from calibrant.report._content import Curve, Estimate, GroupCharts, GroupNote
from calibrant.report._markup import Markup
from calibrant.report._svg import WIDTH, ceiling, point, ticks

MOST_DRAWN = 40
"""Maximum number of groups in the forest plot, which then fills about one page."""

MOST_CURVES = 12
"""Maximum number of small reliability diagrams. Only the groups with the most rows are drawn."""

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM, _ROW = WIDTH, 206, 24, 30, 46, 30
_LONGEST_NAME = 21
_SIZE, _MARGIN = 200, 38


def forest_svg(note: GroupNote) -> Markup:
    """Draw the gap of each group with its interval, before and after calibration."""
    charts = note.charts[:MOST_DRAWN]
    ends = [
        abs(value)
        for chart in charts
        for gap in (chart.gap_before, chart.gap_after)
        for value in (gap.low or 0.0, gap.high or 0.0)
    ]
    edge = ceiling(max(*ends, 0.01))
    bottom = _TOP + _ROW * len(charts)

    def across(value: float) -> float:
        return _LEFT + (value + edge) / (2 * edge) * (_WIDTH - _LEFT - _RIGHT)

    grid = "".join(f"M{across(t):.1f} {_TOP}V{bottom}" for t in ticks(-edge, edge, 3))
    labels = "".join(
        f'<text x="{across(t):.1f}" y="{bottom + 16}" text-anchor="middle">{t:g}</text>'
        for t in ticks(-edge, edge, 3)
    )
    rows = "".join(
        _forest_row(chart, _TOP + _ROW * (number + 0.5), across)
        for number, chart in enumerate(charts)
    )
    label = "Forest plot of the gap of each group with its interval, before and after calibration."
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {bottom + _BOTTOM}" role="img" aria-label="{label}">'
        f'<path class="grid" d="{grid}"/><path class="calibrated" '
        f'd="M{across(0.0):.1f} {_TOP}V{bottom}"/>{labels}{rows}{_legend()}'
        f'<text class="title" x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{bottom + 38}" '
        f'text-anchor="middle">{escape(note.gap_title)}</text></svg>'
    )


def _legend() -> str:
    before = point(_LEFT + 4.0, 14.0, 5.0, "before")
    after = point(_LEFT + 84.0, 14.0, 5.0, "after")
    return (
        f'{before}<text x="{_LEFT + 18}" y="18">before</text>'
        f'{after}<text x="{_LEFT + 98}" y="18">after</text>'
    )


def _forest_row(chart: GroupCharts, y: float, across: Callable[[float], float]) -> str:
    name = _short(chart.name)
    text = f'<text class="name" x="{_LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
    marks = (("before", chart.gap_before, y - 5.0), ("after", chart.gap_after, y + 5.0))
    return text + "".join(_forest_mark(chart.name, *mark, across) for mark in marks)


def _forest_mark(
    name: str, when: str, gap: Estimate, y: float, across: Callable[[float], float]
) -> str:
    assert gap.low is not None
    assert gap.high is not None
    x = across(gap.value)
    interval = format_interval(gap.low, gap.high, signed=True)
    title = (
        f"{printable(name)}, {when}: gap {format_number(gap.value, signed=True)} "
        f"(95% CI {interval})"
    )
    shape = point(x, y, 4.4, when)
    bar = (
        f'<path class="{when} whisker" d="M{across(gap.low):.1f} {y:.1f}H{across(gap.high):.1f}"/>'
    )
    return f'<g class="point {when}"><title>{escape(title)}</title>{bar}{shape}</g>'


def _short(name: str) -> str:
    text = printable(name)
    return escape(text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}\u2026")


def curve_svgs(charts: Sequence[GroupCharts]) -> Iterator[tuple[str, Markup]]:
    """Yield name and small reliability diagram of the groups with the most rows."""
    largest = sorted(charts, key=lambda chart: -sum(chart.before.count))[:MOST_CURVES]
    for chart in charts:
        if chart in largest:
            yield printable(chart.name), _small_svg(chart)


def _small_svg(chart: GroupCharts) -> Markup:
    inner = _SIZE - 2 * _MARGIN

    def place(score: float, share: float) -> str:
        return f"{_MARGIN + score * inner:.1f} {_SIZE - _MARGIN - share * inner:.1f}"

    frame = f"M{place(0, 1)}V{_SIZE - _MARGIN}H{_SIZE - _MARGIN}"
    tick_texts = "".join(
        f'<text x="{_MARGIN + t * inner:.0f}" y="{_SIZE - _MARGIN + 16}" '
        f'text-anchor="middle">{t:g}</text><text x="{_MARGIN - 6}" '
        f'y="{_SIZE - _MARGIN - t * inner + 4:.0f}" text-anchor="end">{t:g}</text>'
        for t in (0.0, 0.5, 1.0)
    )
    marks = "".join(_small_curve(getattr(chart, when), when, place) for when in ("before", "after"))
    label = escape(f"Reliability diagram of {printable(chart.name)}", quote=True)
    return Markup(
        f'<svg class="small" viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="{label}">'
        f'<path class="grid" fill="none" d="{frame}"/>'
        f'<path class="calibrated" d="M{place(0, 0)}L{place(1, 1)}"/>{tick_texts}{marks}</svg>'
    )


def _small_curve(curve: Curve, when: str, place: Callable[[float, float], str]) -> str:
    most = max(curve.count, default=1.0)
    marks = []
    for score, share, count in zip(curve.score, curve.frequency, curve.count, strict=True):
        x, y = map(float, place(score, share).split())
        radius = 1.5 + 3.0 * (count / most) ** 0.5  # the area grows with the number of rows
        marks.append(f'<g class="point {when}">{point(x, y, radius, when)}</g>')
    return "".join(marks)
