"""Charts of a report: places, sizes and tooltips."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from calibrant.report._content import (
    Curve,
    Decomposition,
    Estimate,
    Headline,
    KsGraph,
    Reliability,
)
from calibrant.report._drawings import (
    decomposition_svg,
    dots_svg,
    headline_svg,
    interval_svg,
    ks_svg,
    radius,
    reliability_svg,
)

CURVE = Curve(
    (0.2, 0.9), (0.1, 0.95), (0.0, 0.9), (0.4, 0.98), (1.0, 400.0), (0.0, 0.86), (0.5, 0.93)
)
NOTHING = Curve((), (), (), (), ())
ROWS = (1, 0, 0, 400)
DIAGRAM = Reliability("confidence", None, "Right?", CURVE, CURVE, ROWS, ROWS)


def drawings():
    yield reliability_svg(DIAGRAM, 'a "label" & more')
    yield reliability_svg(Reliability("confidence", None, "?", CURVE, NOTHING), "one is empty")
    yield headline_svg(Headline((0.99, 0.9), (0.8, 0.8), (2.0, 1.0), Estimate(1.0)), "bars")
    yield ks_svg(KsGraph(0.1, 0.0, (0.0, 1.0), (0.0, -0.1), (0.0, 0.0)), "cumulative")
    yield decomposition_svg(Decomposition("log_loss", (0.2, 0.5), (-0.01, 0.5)), "parts")
    yield dots_svg(Estimate(0.2, 0.1, 0.3), Estimate(0.0))
    yield interval_svg(0.8, 0.7, 0.95)


@pytest.mark.parametrize("text", list(drawings()))
def test_charts_are_well_formed_and_stay_inside(text):
    root = ElementTree.fromstring(text)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert root.attrib.get("aria-label") or root.attrib["aria-hidden"] == "true"
    for element in root.iter():
        if element.tag == "circle":
            assert 0 <= float(element.attrib["cx"]) <= width
            assert 0 <= float(element.attrib["cy"]) <= height
        if element.tag == "rect":
            assert float(element.attrib["width"]) >= 0
            assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width


def test_the_area_of_points_grows_with_their_rows():
    assert radius(100, 400) - radius(0, 400) == pytest.approx(
        (radius(400, 400) - radius(0, 400)) / 2
    )
    sizes = re.findall(r'<circle class="[^"]*" cx[^>]* r="([\d.]+)"', reliability_svg(DIAGRAM, ""))
    assert max(map(float, sizes)) == pytest.approx(radius(400, 400))


def test_points_with_few_rows_are_marked_and_no_line_joins_points():
    text = reliability_svg(DIAGRAM, "")
    assert text.count('class="after few"') == text.count('class="before few"') == 1
    paths = re.findall(r'<path class="([^"]*)"', text)
    assert not [kind for kind in paths if "line" in kind or "joined" in kind]


def test_there_is_one_band_through_the_bins_after_calibration():
    large = replace(CURVE, count=(400.0, 400.0))
    text = reliability_svg(replace(DIAGRAM, after=large), "")
    (places,) = _bands(text)
    assert places.count("L") == 7  # two bins and two ends, above and below


def test_the_band_of_few_rows_is_a_bar_of_its_own():
    joined, alone = _bands(reliability_svg(DIAGRAM, ""))
    assert joined.count("L") == alone.count("L") == 5  # a bin and two ends, above and below

    def width(places):
        xs = [float(place.split()[0]) for place in places.split("L")]
        return max(xs) - min(xs)

    assert width(alone) < width(joined)


def _bands(text):
    """The places of the bands; the first of all is in the legend."""
    return [d for d in re.findall(r'<path class="band" d="M([^"]*)"/>', text) if "L" in d]


@pytest.mark.parametrize(("rows", "end"), [(12, "15"), (400, "400"), (1, "1")])
def test_the_axis_of_rows_ends_at_a_whole_number(rows, end):
    text = reliability_svg(replace(DIAGRAM, rows_before=(rows,), rows_after=(0,)), "")
    assert text.count(f">{end}</text>") >= 2
    assert "12.5" not in re.findall(r">([\d.]+)</text>", text)


def test_the_histogram_mirrors_before_and_after():
    text = reliability_svg(DIAGRAM, "")
    before, after = (
        re.findall(rf'<rect class="bar {when}" x="[\d.]+" y="([\d.]+)"', text)
        for when in ("before", "after")
    )
    assert len(before) == len(after) == 2
    assert max(map(float, before)) < min(map(float, after))
    assert "before: 400 rows with probability 0.750 to 1.00" in text


def test_points_state_their_values():
    label = "before: mean probability 20%, observed frequency 10% (95% CI 0% to 40%), 1 row"
    assert f"<title>{label}</title>" in reliability_svg(DIAGRAM, "")


def test_colors_of_the_decomposition_are_those_of_before_and_after():
    text = decomposition_svg(Decomposition("log_loss", (0.2, 0.5), (0.1, 0.5)), "")
    kinds = re.findall(r'<rect class="([^"]*)"', text)
    assert kinds == ["bar before", "bar before pale", "bar after", "bar after pale"]
