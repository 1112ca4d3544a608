from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from calibrant.datasets import noisy_simplex
from calibrant.metrics import expected_calibration_error
from calibrant.plots import EceVersusBinsDisplay


def test_lines_are_the_errors_with_each_number_of_bins():
    data = noisy_simplex(300, 3, 0.4, rng=3)
    models = {"scores": data.proba, "uniform": np.full_like(data.proba, 1 / 3)}
    display = EceVersusBinsDisplay.from_predictions(data.labels, models, n_bins=[3, 7]).plot()
    lines = iter(display.ax_.lines)
    for name, proba in models.items():
        for notion in ("top-label", "confidence"):
            expected = [
                expected_calibration_error(data.labels, proba, notion=notion, n_bins=b)
                for b in (3, 7)
            ]
            line = next(lines)
            assert line.get_label() == f"{name}, {notion}"
            np.testing.assert_allclose(line.get_ydata(), expected)


def test_norm_and_strategy_are_passed_on():
    data = noisy_simplex(300, 3, 0.4, rng=3)
    options = {"strategy": "quantile", "norm": 2}
    display = EceVersusBinsDisplay.from_predictions(
        data.labels, data.proba, n_bins=[6], notions=["class-wise"], **options
    )
    expected = expected_calibration_error(
        data.labels, data.proba, notion="class-wise", n_bins=6, **options
    )
    assert display.errors["model", "class-wise"].tolist() == [expected]


def test_the_top_label_error_of_resnet50_exceeds_the_confidence_error(real_data):
    data = real_data("cifar10_resnet50_gupta")
    proba = softmax(data["test_logits"].astype(np.float64), axis=1)
    display = EceVersusBinsDisplay.from_predictions(
        data["test_labels"].ravel(), proba, n_bins=range(5, 26, 5)
    )
    # Gupta & Ramdas, Figure 2; and it must, with the same bins
    assert (display.errors["model", "top-label"] > display.errors["model", "confidence"]).all()
    assert display.errors["model", "top-label"][2] == pytest.approx(0.02498403, abs=5e-9)


def test_a_number_of_bins_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1, got 0"):
        EceVersusBinsDisplay.from_predictions([0, 1], [0.2, 0.8], n_bins=[0])
