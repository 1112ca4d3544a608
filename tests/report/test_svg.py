"""Primitives of charts: places, ticks and marks."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from calibrant.report._svg import (
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

PLANE = Plane(200, 100, (0.0, 10.0), (-1.0, 1.0), left=20, right=10, top=10, bottom=20)


def test_numbers_have_their_place_in_the_area():
    assert (PLANE.across(0.0), PLANE.across(10.0)) == (20, 190)
    assert (PLANE.up(-1.0), PLANE.up(1.0)) == (80, 10)


def test_a_chart_is_well_formed_and_its_label_is_escaped():
    parts = frame(PLANE, "x", "<y>"), legend(PLANE, [("band", "b")])
    drawn = PLANE.drawn('a "label" & more', *parts)
    root = ElementTree.fromstring(drawn)
    assert root.attrib["aria-label"] == 'a "label" & more'
    assert root.attrib["viewBox"] == "0 0 200 100"
    assert "&lt;y&gt;" in drawn


def test_given_ticks_replace_round_numbers():
    drawn = frame(PLANE, columns=[(5.0, "Monday")], rows=[(0.0, "")])
    assert drawn.count("<text") == 1
    assert ">Monday</text>" in drawn


def test_lines_and_bands_pass_through_their_points():
    assert line(PLANE, [(0.0, -1.0), (10.0, 1.0)], "a line") == (
        '<path class="a line" d="M20.0 80.0L190.0 10.0"/>'
    )
    assert line(PLANE, [], "a line") == ""
    assert band(PLANE, [0.0, 10.0], [-1.0, -1.0], [1.0, 1.0]).count("L") == 3


def test_series_differ_in_shape():
    assert "<circle" in point(5, 5, 2, "after")
    assert "<path" in point(5, 5, 2, "before few")


def test_bars_have_positive_sizes_and_a_tooltip():
    drawn = rectangle(PLANE, (5.0, 0.0), (0.0, -0.5), "bar", "<5 rows>")
    assert 'width="85.0" height="17.5"' in drawn
    assert "<title>&lt;5 rows&gt;</title>" in drawn


def test_texts_are_escaped_and_anchored():
    assert text(1, 2, "<", "end") == '<text x="1.0" y="2.0" text-anchor="end">&lt;</text>'


def test_large_numbers_fit_next_to_their_axis():
    values = (1_250_000.0, 750_000.0, 2000.0, 0.25)
    assert list(map(tick_text, values)) == ["1.25M", "750k", "2,000", "0.25"]


def test_axes_have_round_numbers():
    assert ticks(0.0, 600.0) == [0.0, 200.0, 400.0, 600.0]
    assert ceiling(577.0) == 600.0
    assert ceiling(0.0123) == pytest.approx(0.0125)
