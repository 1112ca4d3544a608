"""Charts of groups: intervals, short names, and sizes for phones."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import calibrant
from calibrant.report import summarize
from calibrant.report._content import Curve, Estimate, GroupCharts, GroupNote
from calibrant.report._group_svg import MOST_CURVES, MOST_DRAWN, curve_svgs, forest_svg


@pytest.fixture(scope="module")
def note():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 300)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    wards = np.resize(["the <north> wing of the old hospital", "south"], 300)
    calibrator = calibrant.TemperatureScaling()
    made = summarize(labels, proba, calibrator=calibrator, n_resamples=19, by={"ward": wards})
    return made.groups


def test_every_group_has_an_interval_before_and_after(note):
    root = ElementTree.fromstring(forest_svg(note))
    kinds = [path.attrib["class"] for path in root.iter("path")]
    assert kinds.count("before whisker") == kinds.count("after whisker") == len(note.charts)


def test_the_chart_is_as_wide_as_others_and_names_are_short(note):
    root = ElementTree.fromstring(forest_svg(note))
    assert root.attrib["viewBox"].split()[2] == "480"
    assert max(len(text.text) for text in root.iter("text") if "name" in text.attrib.values()) <= 21


def test_each_group_has_a_small_diagram(note):
    drawn = dict(curve_svgs(note.charts))
    assert len(drawn) == len(note.charts)
    assert all('class="small"' in chart for chart in drawn.values())


def chart(name, rows=100.0):
    curve = Curve((0.2, 0.8), (0.1, 0.9), (0.0, 0.8), (0.2, 1.0), (rows, rows))
    return GroupCharts(name, Estimate(0.2, 0.1, 0.3), Estimate(0.0, -0.1, 0.1), curve, curve)


def drawn_note(names):
    return GroupNote("Groups", (), (), "", "gap", tuple(map(chart, names)))


def test_a_forest_plot_has_a_row_for_each_group_with_escaped_names():
    drawn = forest_svg(drawn_note(["a<b", "x" * 60]))
    tree = ElementTree.fromstring(drawn)
    names = [text.text for text in tree.iter("text") if text.get("class") == "name"]
    assert names[0] == "a<b"
    assert len(names[1]) == 21
    assert drawn.count(' whisker"') == 4


def test_many_groups_are_limited():
    assert forest_svg(drawn_note(map(str, range(60)))).count('class="name"') == MOST_DRAWN
    charts = [chart(str(number), rows=float(number + 1)) for number in range(20)]
    names = [name for name, _ in curve_svgs(charts)]
    assert names == [str(number) for number in range(20 - MOST_CURVES, 20)]


def test_a_small_diagram_is_valid_without_any_bin():
    empty = Curve((), (), (), (), ())
    (pair,) = curve_svgs([GroupCharts("g", Estimate(0, 0, 0), Estimate(0, 0, 0), empty, empty)])
    assert pair[0] == "g"
    ElementTree.fromstring(pair[1])
