from __future__ import annotations

import numpy as np
import pytest

from calibrant import CanonicalBinning, DirichletCalibration, Identity, TemperatureScaling
from calibrant.datasets import noisy_simplex
from calibrant.plots import SimplexDisplay
from calibrant.plots.simplex import to_plane


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(600, 3, 0.4, rng=3)


def test_corners_are_a_side_of_one_apart():
    corners = to_plane(np.eye(3))
    np.testing.assert_allclose(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1), 1)


def test_predictions_stand_at_their_place_by_true_class(data):
    display = SimplexDisplay.from_predictions(data.labels, data.proba).plot()
    for k, dots in enumerate(display.ax_.collections):
        np.testing.assert_allclose(dots.get_offsets(), to_plane(data.proba[data.labels == k]))


def test_arrows_lead_from_before_to_after(data):
    after = TemperatureScaling().fit(data.proba, data.labels).predict_proba(data.proba)
    display = SimplexDisplay.from_predictions(
        data.labels[:50], data.proba[:50], after=after[:50]
    ).plot()
    quiver = display.ax_.collections[-1]
    start, end = to_plane(data.proba[:50]), to_plane(after[:50])
    long = np.hypot(*(end - start).T) > 0.004
    np.testing.assert_allclose(np.column_stack([quiver.U, quiver.V]), (end - start)[long])
    np.testing.assert_allclose(quiver.get_offsets(), start[long])


def test_interpretation_points_are_the_centre_and_the_middles_of_the_sides(data):
    calibrator = DirichletCalibration(lam=1e-3).fit(data.proba, data.labels)
    display = SimplexDisplay.from_estimator(calibrator).plot()
    np.testing.assert_allclose(display.marks.sum(axis=1), 1)
    np.testing.assert_allclose(display.mark_heads[0], calibrator.canonical()[1])
    np.testing.assert_allclose(display.heads, calibrator.predict_proba(display.tails))


def test_the_grid_lies_inside_the_simplex(data):
    display = SimplexDisplay.from_estimator(Identity().fit(data.proba, data.labels), resolution=5)
    assert display.tails.shape == (21, 3)
    assert (display.tails > 0).all()
    np.testing.assert_allclose(display.heads, display.tails)


def test_a_calibrator_of_logits_is_asked_in_logits(data):
    logits = np.log(data.proba) + 3.0
    by_logits = TemperatureScaling(inputs="logits").fit(logits, data.labels)
    by_proba = TemperatureScaling().fit(data.proba, data.labels)
    maps = [SimplexDisplay.from_estimator(c) for c in (by_logits, by_proba)]
    np.testing.assert_allclose(maps[0].heads, maps[1].heads, atol=1e-5)


@pytest.mark.parametrize("partition", ["sierpinski", "grid", "projection"])
def test_bins_colour_the_dots_and_arrows_lead_to_their_values(partition, data):
    binning = CanonicalBinning(partition=partition, depth=1, resolution=3, n_bins=6).fit(
        data.proba, data.labels
    )
    display = SimplexDisplay.from_estimator(binning, data.proba, min_rows=20).plot()
    place = binning.bins(data.proba)
    counts = np.bincount(place, minlength=binning.n_bins_)
    full = np.flatnonzero(counts >= 20)
    np.testing.assert_allclose(display.tails, [data.proba[place == b].mean(axis=0) for b in full])
    np.testing.assert_allclose(
        display.heads, [binning.values_[binning.occupied_ == b][0] for b in full]
    )
    assert len(np.unique(display.groups)) == (counts > 0).sum()


def test_without_rows_the_whole_triangle_is_coloured(data):
    binning = CanonicalBinning(partition="sierpinski", depth=1).fit(data.proba, data.labels)
    display = SimplexDisplay.from_estimator(binning).plot()
    assert display.group_kind == "region"
    assert set(display.groups) == {0, 1, 2, 3}
    assert np.bincount(display.groups).min() / len(display.groups) == pytest.approx(0.25, abs=0.02)


def test_names_stand_at_the_corners(data):
    names = np.array(["ant", "bee", "cat"])
    display = SimplexDisplay.from_predictions(names[data.labels], data.proba, classes=names).plot()
    assert [t.get_text() for t in display.ax_.texts] == ["ant", "bee", "cat"]


def test_other_numbers_of_classes_are_rejected():
    with pytest.raises(ValueError, match="A triangle shows three classes, but the scores have 2"):
        SimplexDisplay.from_predictions([0, 1], [0.2, 0.8])
