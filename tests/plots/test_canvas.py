from __future__ import annotations

import re
import sys

import matplotlib.pyplot as plt
import pytest

from calibrant.datasets import two_label_example
from calibrant.metrics import calibration_curve
from calibrant.plots import CumulativeDisplay, ReliabilityDisplay


def test_without_matplotlib_a_display_names_the_line_that_installs_it(monkeypatch):
    data = two_label_example()
    table = calibration_curve(data.labels, data.proba)
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    expected = 'Plots need matplotlib, which is not installed. Run pip install "calibrant[plot]".'
    with pytest.raises(ImportError, match=f"^{re.escape(expected)}$"):
        ReliabilityDisplay.from_predictions(data.labels, data.proba)
    with pytest.raises(ImportError, match=f"^{re.escape(expected)}$"):
        ReliabilityDisplay(table).plot()


@pytest.fixture
def display():
    data = two_label_example()
    return CumulativeDisplay.from_predictions(data.labels, data.proba)


def test_a_display_of_several_axes_takes_the_place_of_the_axes_given(display):
    figure, (left, right) = plt.subplots(1, 2)
    display.plot(left)
    figure.canvas.draw()
    assert display.figure_ is figure
    assert max(panel.get_position().x1 for panel in display.axes_.ravel()) < right.get_position().x0
    assert not left.axison


def test_axes_outside_a_grid_give_their_place_too(display):
    figure = plt.figure()
    display.plot(figure.add_axes((0.5, 0.5, 0.4, 0.4)))
    assert min(panel.get_position().x0 for panel in display.axes_.ravel()) >= 0.5 - 1e-9


def test_one_axes_draws_into_the_axes_given():
    data = two_label_example()
    _, ax = plt.subplots()
    display = ReliabilityDisplay.from_predictions(data.labels, data.proba).plot(ax)
    assert display.figure_ is ax.figure


def test_plot_returns_the_display(display):
    assert display.plot() is display
