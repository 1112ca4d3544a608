from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.metrics import expected_calibration_error
from calibrant.plots import ChoiceDisplay, ClassErrorDisplay


def test_choices_are_counted_over_the_grid():
    display = ChoiceDisplay.from_values(
        [0.1, 0.01, 0.1], grid=[0.001, 0.01, 0.1], name="lam"
    ).plot()
    assert [p.get_height() for p in display.ax_.patches] == [0, 1, 2]
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["0.001", "0.01", "0.1"]


def test_a_choice_outside_the_grid_is_rejected():
    with pytest.raises(
        ValueError, match="The value 5 was selected, but this value is not in the grid"
    ):
        ChoiceDisplay.from_values([5], grid=[10, 20])


def test_errors_by_class_and_class_ratios():
    data = noisy_simplex(400, 3, 0.4, rng=3)
    models = {"scores": data.proba, "uniform": np.full_like(data.proba, 1 / 3)}
    display = ClassErrorDisplay.from_predictions(data.labels, models, notion="class-wise").plot()
    single = [
        expected_calibration_error(data.labels, data.proba, notion=f"class-{k}") for k in range(3)
    ]
    np.testing.assert_allclose(display.errors["scores"], single)
    np.testing.assert_allclose(display.share, np.bincount(data.labels) / 400)
    heights = [[p.get_height() for p in c] for c in display.axes_[0].containers]
    np.testing.assert_allclose(heights, [display.errors["scores"], display.errors["uniform"]])


def test_shares_of_predicted_classes_sum_to_one_and_an_absent_one_has_no_error():
    display = ClassErrorDisplay.from_predictions([0, 1], [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]).plot()
    assert display.share.tolist() == [0.5, 0.5, 0.0]
    assert np.isnan(display.errors["model"][2])
