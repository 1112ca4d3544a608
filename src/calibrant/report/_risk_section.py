"""Section on risk and coverage in a report, with a chart and a table."""

from __future__ import annotations

from calibrant._output.numbers import format_percent
from calibrant.report._content import Report
from calibrant.report._markup import Markup, joined, tag
from calibrant.report._risk_content import RISK_COLUMNS, RiskCoverage, RiskCurve
from calibrant.report._sentences import risk_sentence
from calibrant.report._svg import WIDTH, Plane, ceiling, frame, legend, line, point
from calibrant.report._tables import head, number, table

_WHEN = ("before", "after")
_CAPTION = "Share of rows that can be answered with a guaranteed maximum error rate"

_SHOWN_COVERAGE = 0.1
"""Bounds at a lower share of rows do not determine the height of a chart. These bounds are much
higher than the others, because they are for few rows."""


def risk_section(report: Report) -> Markup:
    """Return the chart and the table, or the reason why the section is empty."""
    curves, sentence = report.selective, risk_sentence(report)
    if curves is None:
        return tag("p", sentence)
    chart = tag("figure", risk_svg(curves, sentence), tag("figcaption", sentence), id="chart-risk")
    return tag("div", chart, tag("div", _proved_table(curves)), class_="beside")


def _proved_table(curves: RiskCoverage) -> Markup:
    rows = [
        [
            head(f"at most {format_percent(risk)}"),
            *(
                number(share, format_percent, label)
                for label, share in zip(RISK_COLUMNS[1:], shares, strict=True)
            ),
        ]
        for risk, *shares in curves.proved
    ]
    return table(_CAPTION, RISK_COLUMNS, rows)


def risk_svg(curves: RiskCoverage, label: str) -> Markup:
    """Draw the error rate of the most confident rows by share, with upper bounds as points."""
    both = {when: getattr(curves, when) for when in _WHEN}
    most = max(_height(curve) for curve in both.values())
    plane = Plane(WIDTH, 300, (0.0, 1.0), (0.0, min(1.0, ceiling(most))))
    return plane.drawn(
        label,
        frame(plane, "share of rows, highest confidence first", "error rate"),
        *(_risk_curve(plane, curve, when) for when, curve in both.items()),
        legend(plane, [(when, when) for when in _WHEN]),
    )


def _height(curve: RiskCurve) -> float:
    """Return the highest error rate or bound on the chart, except bounds for few rows."""
    pairs = zip(curve.bound_coverage, curve.bound, strict=True)
    bounds = [bound for coverage, bound in pairs if coverage >= _SHOWN_COVERAGE]
    return max(*curve.risk, *bounds, 0.01)


def _risk_curve(plane: Plane, curve: RiskCurve, when: str) -> Markup:
    rates = line(plane, tuple(zip(curve.coverage, curve.risk, strict=True)), f"{when} line")
    points = zip(curve.bound_coverage, curve.bound, strict=True)
    bounds = [_bound(plane, when, *pair) for pair in points if pair[1] <= plane.y[1]]
    return joined([rates, *bounds])


def _bound(plane: Plane, when: str, coverage: float, bound: float) -> Markup:
    title = (
        f"{when}: error rate of at most {format_percent(bound)} if {format_percent(coverage)} of "
        f"the rows are answered"
    )
    mark = point(plane.across(coverage), plane.up(bound), 4.0, when)
    return tag("g", tag("title", title), mark, class_="point")
