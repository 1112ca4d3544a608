from __future__ import annotations

import numpy as np
import pytest

from calibrant.plots import LatentDisplay


class Latent:
    """A latent function that is known."""

    classes_ = np.arange(3)

    def __init__(self, inputs):
        self.inputs = inputs

    def latent(self, z):
        return 2 * z, 0.1 + 0 * z


@pytest.fixture
def proba(rng):
    return rng.dirichlet(np.ones(3), 40)


def test_the_latent_function_and_its_band_are_drawn(proba):
    display = LatentDisplay.from_estimator(
        Latent("proba"), proba, np.zeros(40, dtype=int), n_points=50
    ).plot()
    mean, prior = display.axes_[0].lines
    np.testing.assert_allclose(mean.get_ydata(), 2 * mean.get_xdata())
    np.testing.assert_allclose(prior.get_ydata(), np.log(prior.get_xdata()))
    low, high = display.band
    np.testing.assert_allclose(high - low, 0.4)
    np.testing.assert_allclose(
        display.axes_[0].collections[0].get_paths()[0].vertices[:, 1].max(), high.max()
    )


def test_the_prior_of_logits_is_the_identity(rng):
    logits = rng.normal(size=(20, 3))
    display = LatentDisplay.from_estimator(Latent("logits"), logits, np.zeros(20, dtype=int)).plot()
    np.testing.assert_array_equal(display.prior_mean, display.z)
    centred = logits - logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(display.z[[0, -1]], [centred.min(), centred.max()])
    np.testing.assert_allclose(display.scores, centred)


def test_scores_of_the_true_class_and_of_the_others_are_told_apart(proba):
    y = np.arange(40) % 3
    display = LatentDisplay.from_estimator(Latent("proba"), proba, y).plot()
    hits, misses = (c.get_offsets() for c in display.axes_[1].collections)
    np.testing.assert_allclose(hits[:, 0], proba[np.arange(40), y])
    assert len(misses) == 80
    assert hits[:, 0].sum() + misses[:, 0].sum() == pytest.approx(40)


def test_exact_zeros_have_a_finite_prior():
    display = LatentDisplay.from_estimator(Latent("proba"), np.eye(3), [0, 1, 2]).plot()
    assert np.isfinite(display.prior_mean).all()


def test_minus_infinite_logits_do_not_stretch_the_axis_to_infinity():
    display = LatentDisplay.from_estimator(Latent("logits"), [[0.0, -np.inf, 1.0]], [0]).plot()
    assert np.isfinite(display.z).all()
