"""What a fitted calibrator says of itself where its method has no better words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrant import HistogramBinning, TemperatureScaling
from calibrant.base._words import is_beyond_chance, plain_words, words_of_fit


@pytest.fixture(scope="module")
def fitted():
    generator = np.random.default_rng(0)
    proba = generator.dirichlet(np.ones(3), size=60)
    return TemperatureScaling().fit(proba, np.arange(60) % 2)


def test_settings_and_the_few_numbers_of_a_fit_are_said(fitted):
    said = plain_words(fitted)
    assert "prior_scale = None" in said
    assert f"temperature_ = {fitted.temperature_:.4g}" in said


def test_what_is_about_the_data_is_not_said(fitted):
    said = plain_words(fitted)
    for name in ("inputs", "classes", "n_iter_", "class_weights_"):
        assert name not in said


def test_long_arrays_are_not_said():
    scores = np.linspace(0.01, 0.99, 60)
    binned = HistogramBinning(n_bins=6).fit(scores, np.arange(60) % 2)
    assert "values_" not in plain_words(binned)
    assert "n_bins = 6" in plain_words(binned)


def test_the_fit_is_told_with_its_rows_and_losses(fitted):
    training = fitted.training_
    said = words_of_fit(training)
    assert said.startswith("Fitted on 60 rows of 2 of 3 classes")
    assert f"{training.log_loss_before:.4f} to {training.log_loss_after:.4f}" in said


def test_a_map_inside_another_says_nothing_of_its_fit():
    assert words_of_fit(None) == ""


def test_a_gain_is_beyond_chance_by_the_likelihood_ratio(fitted):
    before = fitted.training_.log_loss_before
    limit = 3.84 / (2 * fitted.training_.n_rows)
    above = replace(fitted.training_, log_loss_after=before - 1.01 * limit)
    below = replace(fitted.training_, log_loss_after=before - 0.99 * limit)
    assert is_beyond_chance(above)
    assert not is_beyond_chance(below)
