"""Marks of reliability diagrams: what is drawn is what the table holds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from calibrant.binning import Bins, BinTable, UniformBins
from calibrant.plots._marks import (
    draw_background_shares,
    draw_line,
    draw_means,
    draw_mirrored_shares,
    draw_one,
    draw_pair,
    draw_shares,
    occupied_bins,
)
from calibrant.plots._style import AFTER


def table(bins=None):
    sums = (
        np.array([[2.0, 0.0, 6.0, 2.0]]),
        np.array([[0.2, 0, 3.6, 1.8]]),
        np.array([[1.0, 0, 3, 2]]),
    )
    return BinTable(*sums, 1, 1, bins or UniformBins(4))


@pytest.fixture
def ax():
    return plt.figure().add_subplot()


def test_empty_bins_are_left_out():
    curve = occupied_bins(table(), 0)
    assert curve.share.tolist() == [0.2, 0.6, 0.2]
    assert curve.score == pytest.approx([0.1, 0.6, 0.9])
    assert curve.outcome.tolist() == [0.5, 0.5, 1.0]
    assert curve.left.tolist() == [0.0, 0.5, 0.75]


def test_bins_made_from_data_have_no_left_edge():
    assert occupied_bins(table(Bins((np.array([0.2, 0.3, 0.7, 1.0]),))), 0).left is None


def test_a_band_follows_the_occupied_bins():
    low, high = np.array([[0.1, 0.2, 0.3, 0.4]]), np.array([[0.5, 0.6, 0.7, 0.8]])
    curve = occupied_bins(table(), 0, (low, high))
    assert curve.low.tolist() == [0.1, 0.3, 0.4]
    assert curve.high.tolist() == [0.5, 0.7, 0.8]


def test_bins_are_points_at_mean_score_and_frequency_with_gaps_to_the_diagonal(ax):
    handles = draw_one(ax, occupied_bins(table(), 0))
    assert [handle.get_label() for handle in handles] == ["observed"]
    gaps, _, hollow = ax.collections  # ten rows in all, so every bin has few
    np.testing.assert_allclose(hollow.get_offsets(), [[0.1, 0.5], [0.6, 0.5], [0.9, 1.0]])
    np.testing.assert_allclose(gaps.get_segments()[0], [[0.1, 0.1], [0.1, 0.5]])


def test_a_band_passes_through_all_bins(ax):
    low, high = np.array([[0.1, 0.2, 0.3, 0.4]]), np.array([[0.5, 0.6, 0.7, 0.8]])
    _, band = draw_one(ax, occupied_bins(table(), 0, (low, high)))
    corners = band.get_paths()[0].vertices
    assert (corners == [0.6, 0.3]).all(axis=1).any()
    assert (corners == [0.9, 0.8]).all(axis=1).any()


def test_a_line_is_named(ax):
    assert draw_line(ax, occupied_bins(table(), 0), AFTER, "after").get_label() == "after"


def test_a_pair_shows_the_band_of_what_came_after(ax):
    low, high = np.zeros((1, 4)), np.ones((1, 4))
    before = occupied_bins(table(), 0)
    assert len(draw_pair(ax, before, occupied_bins(table(), 0))) == 2
    assert len(draw_pair(ax, before, occupied_bins(table(), 0, (low, high)))) == 3


def test_shares_are_those_of_the_rows(ax):
    draw_shares(ax, occupied_bins(table(), 0))
    assert [bar.get_height() for bar in ax.patches] == [0.2, 0.6, 0.2]


def test_mirrored_shares_point_up_and_down(ax):
    draw_mirrored_shares(ax, occupied_bins(table(), 0), occupied_bins(table(), 0))
    assert [bar.get_height() for bar in ax.patches] == [0.2, 0.6, 0.2, -0.2, -0.6, -0.2]
    low, high = ax.get_ylim()
    assert low == -high < -0.6


def test_means_are_written_beside_their_lines(ax):
    draw_means(ax, occupied_bins(table(), 0))
    assert [text.get_text() for text in ax.texts] == ["mean score 0.560", "frequency 0.600"]


def test_background_shares_are_named(ax):
    bars = draw_background_shares(ax, np.array([0.0, 0.5]), 0.5, np.array([0.3, 0.7]))
    assert bars.get_label() == "share of rows"
    assert [bar.get_height() for bar in bars] == [0.3, 0.7]
