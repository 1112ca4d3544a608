"""The panels of the top-label figure."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.plots import ReliabilityDisplay
from calibrant.plots._top_label import (
    MOST_BARS,
    draw_counts,
    draw_detail,
    draw_overview,
    furthest,
)


@pytest.fixture(scope="module")
def display():
    data = noisy_simplex(2000, 3, noise=0.4, rng=0)
    return ReliabilityDisplay.from_predictions(data.labels, data.proba, notion="top-label")


@pytest.fixture
def axes():
    figure = plt.figure()
    return figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)


def test_the_furthest_of_either_sign_are_named():
    assert furthest(np.array([0.1, -0.5, 0.3, 0.0]), 2).tolist() == [1, 2]


def test_the_overview_says_what_its_axes_are(display, axes):
    draw_overview(axes[0], display)
    assert axes[0].get_xlabel() == "confidence (highest probability)"
    assert axes[0].get_ylabel() == "accuracy"


def test_a_detail_shows_every_class_of_the_bin(display, axes):
    b = int(display.table.weight.sum(axis=0).argmax())
    draw_detail(*axes, display, b, is_last=True)
    shown = display.table.weight[:, b] > 0
    classes = axes[0].collections[1].get_offsets()
    np.testing.assert_allclose(classes[:, 1], display.table.mean_outcome[shown, b])
    assert axes[0].get_title(loc="left") or axes[0].get_title()


def test_of_many_classes_the_fullest_are_counted(axes):
    weight = np.arange(1.0, 15.0)
    draw_counts(axes[0], weight, np.arange(14), is_last=True)
    assert [bar.get_width() for bar in axes[0].patches] == weight[-MOST_BARS:].tolist()
