"""The chart of risk and coverage, and its table."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.report._risk_content import RISK_COLUMNS, RiskCoverage, RiskCurve
from calibrant.report._risk_section import risk_section, risk_svg

CURVE = RiskCurve((0.05, 1.0), (0.0, 0.1), (0.05, 0.5, 1.0), (0.4, 0.08, 0.12))
CURVES = RiskCoverage(0.9, CURVE, CURVE, ((0.1, 0.5, 0.25),), "heuristic")


def test_the_chart_is_well_formed_and_stays_inside():
    root = ElementTree.fromstring(risk_svg(CURVES, 'a "label"'))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert root.attrib["aria-label"] == 'a "label"'
    for circle in root.iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height


def test_bounds_are_points_and_those_of_few_rows_do_not_raise_the_axis():
    text = risk_svg(CURVES, "")
    label = "after: error rate of at most 8% if 50% of the rows are answered"
    assert f"<title>{label}</title>" in text
    assert text.count("<title>after") == 2  # the bound of 0.4 is above the chart


def test_the_table_has_the_proved_shares(report):
    section = risk_section(replace(report, selective=CURVES))
    assert "at most 10%" in section
    for label, share in zip(RISK_COLUMNS[1:], ("50%", "25%"), strict=True):
        assert f'data-label="{label}">{share}</td>' in section


def test_without_curves_there_is_a_reason(report):
    assert risk_section(replace(report, selective=None)).startswith("<p>There are no bounds")
