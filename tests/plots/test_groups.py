from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from calibrant import evaluate
from calibrant.datasets import digits_predictions
from calibrant.plots import GroupDisplay

DATA = digits_predictions("forest")
MONTH = np.array("2026-01", dtype="datetime64[M]") + np.arange(600) // 100


def test_groups_are_drawn_in_their_order_with_their_intervals():
    display = GroupDisplay.from_predictions(DATA.test_labels, DATA.test_proba, by=MONTH).plot()
    texts = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert texts == [f"2026-0{m}" for m in range(1, 7)]
    found = evaluate(DATA.test_labels, DATA.test_proba, by=MONTH)
    (container,) = display.ax_.containers  # a forest is underconfident in every month
    assert container.lines[0].get_ydata().tolist() == [group.gap for group in found]


def test_what_was_found_is_in_the_legend():
    rows = np.r_[0:600, 0:4]
    group = np.repeat(["many", "few"], [600, 4])
    display = GroupDisplay.from_predictions(
        DATA.test_labels[rows], DATA.test_proba[rows], by=group
    ).plot(Figure().add_subplot())
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["underconfident", "too few rows"]


def test_an_array_of_axes_raises_an_error_that_shows_how_to_pass_one():
    display = GroupDisplay.from_predictions(DATA.test_labels, DATA.test_proba, by=MONTH)
    with pytest.raises(
        TypeError, match=r"must be a single axes, got an array of 2. Pass one element"
    ):
        display.plot(Figure().subplots(1, 2))


def test_its_repr_is_one_line():
    display = GroupDisplay.from_predictions(DATA.test_labels, DATA.test_proba, by={"month": MONTH})
    assert repr(display) == "<GroupDisplay: 6 groups by month, 6 miscalibrated>"
