"""Charts drawn in Python: places, sizes, and what is said about them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from calibrant.report._content import Curve, Decomposition, KsGraph, Reliability
from calibrant.report._svg import (
    _ceiling,
    _radius,
    _tick,
    _ticks,
    counts_svg,
    decomposition_svg,
    ks_svg,
    reliability_svg,
)

CURVE = Curve((0.2, 0.9), (0.1, 0.95), (0.0, 0.9), (0.4, 0.98), (1.0, 400.0))
NOTHING = Curve((), (), (), (), ())
DIAGRAM = Reliability("confidence", None, "Right?", CURVE, CURVE)


def drawings():
    yield reliability_svg(DIAGRAM, 'a "label" & more')
    yield reliability_svg(Reliability("confidence", None, "?", CURVE, NOTHING), "one is empty")
    yield counts_svg(DIAGRAM, "rows")
    yield ks_svg(KsGraph(0.1, 0.0, (0.0, 1.0), (0.0, -0.1), (0.0, 0.0)), "cumulative")
    yield decomposition_svg(Decomposition("log_loss", (0.2, 0.5), (-0.01, 0.5)), "parts")


@pytest.mark.parametrize("text", list(drawings()))
def test_charts_are_well_formed_and_stay_inside(text):
    root = ElementTree.fromstring(text)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert root.attrib["aria-label"]
    for element in root.iter():
        if element.tag == "circle":
            assert 0 <= float(element.attrib["cx"]) <= width
            assert 0 <= float(element.attrib["cy"]) <= height
        if element.tag == "rect":
            assert float(element.attrib["width"]) >= 0
            assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width


def test_points_are_sized_by_rows():
    sizes = [
        float(r) for r in re.findall(r'<circle cx[^>]* r="([\d.]+)"', reliability_svg(DIAGRAM, ""))
    ]
    assert sizes[0] < 3 < 8 < sizes[1]
    assert _radius(100, 400) - _radius(0, 400) == pytest.approx(
        (_radius(400, 400) - _radius(0, 400)) / 2
    )


def test_points_say_their_values():
    text = reliability_svg(DIAGRAM, "")
    label = "before: mean probability 20%, observed frequency 10% (95% CI 0% to 40%), 1 row"
    assert f"<title>{label}</title>" in text


def test_millions_of_rows_fit_beside_their_axis():
    assert ">1.25M<" in _tick(0.0, 0.0, "end", 1_250_000.0)
    assert ">750,000<" in _tick(0.0, 0.0, "end", 750_000.0)


def test_axes_have_round_numbers():
    assert _ticks(0.0, 600.0) == [0.0, 200.0, 400.0, 600.0]
    assert _ceiling(577.0) == 600.0
    assert _ceiling(0.0123) == pytest.approx(0.0125)
