from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.plots import ScoreBoxDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 4, 0.4, rng=3)


def test_quantiles_means_and_deviations_are_those_of_the_rows(data):
    display = ScoreBoxDisplay.from_predictions(data.labels, data.proba)
    mine = data.proba[data.labels == 2]
    expected = np.quantile(mine[:, 1], [0.05, 0.25, 0.5, 0.75, 0.95], method="inverted_cdf")
    np.testing.assert_allclose(display.quantiles[2, 1], expected)
    np.testing.assert_allclose(display.mean[2], mine.mean(axis=0))
    np.testing.assert_allclose(display.sd[2], mine.std(axis=0))


def test_weight_two_is_the_row_twice_and_zero_is_absent(data):
    weight = np.arange(500) % 3
    repeated = np.repeat(np.arange(500), weight)
    one = ScoreBoxDisplay.from_predictions(data.labels, data.proba, sample_weight=weight)
    other = ScoreBoxDisplay.from_predictions(data.labels[repeated], data.proba[repeated])
    for name in ("quantiles", "mean", "sd", "rows"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))


def test_boxes_are_drawn_from_the_quantiles(data):
    display = ScoreBoxDisplay.from_predictions(data.labels, data.proba).plot()
    box = display.boxes(0, [3])[0]
    low, q1, median, q3, high = display.quantiles[0, 3]
    assert (box["whislo"], box["q1"], box["med"], box["q3"], box["whishi"]) == (
        low,
        q1,
        median,
        q3,
        high,
    )
    half = 1.57 * (q3 - q1) / np.sqrt((data.labels == 0).sum())
    assert box["cihi"] == pytest.approx(min(q3, median + half))
    patch = display.axes_[0].patches[3]
    drawn = patch.get_path().vertices[:, 1]
    np.testing.assert_allclose([drawn.min(), drawn.max()], [q1, q3])


def test_error_bars_are_the_mean_and_one_deviation(data):
    display = ScoreBoxDisplay.from_predictions(data.labels, data.proba).plot()
    container = display.axes_[1].containers[0]
    np.testing.assert_allclose(container.lines[0].get_ydata(), display.mean[1])
    ends = np.array([segment[:, 1] for segment in container.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * display.sd[1])


def test_a_class_without_rows_has_no_axes():
    display = ScoreBoxDisplay.from_predictions([0, 0, 2], np.full((3, 3), 1 / 3)).plot()
    assert [ax.get_title(loc="left") for ax in display.axes_] == [
        "truth 0 (2 rows)",
        "truth 2 (1 rows)",
    ]


def test_of_many_classes_the_worst_are_drawn_with_their_rivals(rng):
    proba = rng.dirichlet(np.full(100, 0.1), 3000)
    y = proba.argmax(axis=1)
    proba = proba[:, np.r_[1, 0, 2:100]]  # rows of classes 0 and 1 are given to each other
    display = ScoreBoxDisplay.from_predictions(y, proba).plot(max_classes=4)
    assert set(display.worst_first[:2].tolist()) == {0, 1}
    assert display.columns(0, 4)[:2].tolist() == [0, 1]
    assert len(display.axes_) == 4
