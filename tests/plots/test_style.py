"""Series are told apart without colour, axes are square where two probabilities meet."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from calibrant.plots import _style
from calibrant.plots._style import label, series, tidy, unit_square


@pytest.fixture
def ax():
    return plt.figure().add_subplot()


def test_neighbouring_series_differ_in_colour_line_and_marker():
    one, other = series(0), series(1)
    assert one.color != other.color
    assert one.linestyle != other.linestyle
    assert one.marker != other.marker


def test_series_begin_again_when_they_run_out():
    assert series(len(_style._SERIES)) == series(0)


def test_a_tidy_axes_has_no_upper_and_right_frame(ax):
    tidy(ax)
    assert not ax.spines["top"].get_visible()
    assert not ax.spines["right"].get_visible()


def test_labels_and_titles_are_set(ax):
    label(ax, "x", "y", "title")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    assert "title" in (ax.get_title(), ax.get_title(loc="left"))


def test_the_unit_square_holds_the_diagonal(ax):
    unit_square(ax)
    low, high = ax.get_xlim()
    assert low <= 0
    assert high >= 1
    assert any(line.get_xdata()[0] == line.get_ydata()[0] for line in ax.lines)
