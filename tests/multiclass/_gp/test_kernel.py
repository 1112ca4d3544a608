"""Features of a Gaussian process, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.multiclass._gp.kernel import InducingInputs, Kernel, rbf

PACKED = np.concatenate([np.log([0.7, 1.3, 0.05]), [-2.0, -0.9, 0.1, 1.2, 2.0]])


def inducing(packed: np.ndarray) -> InducingInputs:
    return InducingInputs(Kernel(*np.exp(packed[:3])), packed[3:])


def finite_difference(function, at, step=1e-5):
    return np.array(
        [(function(at + e) - function(at - e)) / (2 * step) for e in step * np.eye(len(at))]
    )


def test_products_of_features_are_what_the_inducing_inputs_explain(rng):
    x = rng.normal(size=6)
    prior = inducing(PACKED)
    cross = rbf(x, prior.inputs, prior.kernel)
    covariance = rbf(prior.inputs, prior.inputs, prior.kernel) + (0.05 + 1e-8 * 0.7) * np.eye(5)
    features = prior.features(x)
    np.testing.assert_allclose(
        features @ features.T, cross @ np.linalg.solve(covariance, cross.T), atol=1e-12
    )
    np.testing.assert_allclose(
        prior.unexplained(features), 0.75 - np.diag(features @ features.T), atol=1e-12
    )


def test_the_noise_is_never_explained(rng):
    prior = inducing(PACKED)
    at_inputs = prior.unexplained(prior.features(prior.inputs))
    assert (at_inputs >= 0.05).all()


def test_coinciding_inducing_inputs_are_legal():
    prior = InducingInputs(Kernel(1.0, 1.0, 1e-6), np.zeros(4))
    np.testing.assert_allclose((prior.features(np.zeros(1)) ** 2).sum(), 1.0, atol=1e-5)


def test_weights_expand_the_mean_in_kernels(rng):
    prior, mean, x = inducing(PACKED), rng.normal(size=5), rng.normal(size=7)
    expansion = rbf(x, prior.inputs, prior.kernel) @ prior.weights(mean)
    np.testing.assert_allclose(prior.features(x) @ mean, expansion, atol=1e-12)


def test_slopes_are_derivatives_of_features(rng):
    prior, x, step = inducing(PACKED), rng.normal(size=7), 1e-6
    difference = (prior.features(x + step) - prior.features(x - step)) / (2 * step)
    np.testing.assert_allclose(prior.slopes(x), difference, atol=1e-8)


def test_gradient_of_features_matches_finite_differences(rng):
    x, slope = rng.normal(size=40) * 2, rng.normal(size=(40, 5))
    prior = inducing(PACKED)
    gradient = prior.gradient(*prior.pulled(x, prior.features(x), slope))
    expected = finite_difference(
        lambda packed: (slope * inducing(packed).features(x)).sum(), PACKED
    )
    np.testing.assert_allclose(gradient, expected, atol=1e-7)


def test_gradient_of_slopes_matches_finite_differences(rng):
    x, weight, mean = rng.normal(size=40) * 2, rng.random(40), rng.normal(size=5)
    gradient = inducing(PACKED).slope_gradient(x, weight, mean)
    expected = finite_difference(lambda packed: weight @ inducing(packed).slopes(x) @ mean, PACKED)
    np.testing.assert_allclose(gradient, expected, atol=1e-7)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4)])
def test_features_keep_the_shape_of_the_scores(rng, shape):
    assert inducing(PACKED).features(rng.normal(size=shape)).shape == (*shape, 5)
