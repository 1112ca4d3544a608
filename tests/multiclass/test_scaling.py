from __future__ import annotations

import numpy as np
import pytest

from calibrant import Identity, MatrixScaling, TemperatureScaling, VectorScaling
from calibrant._kernels.simplex import softmax
from calibrant.exceptions import ConvergenceWarning
from calibrant.metrics import log_loss


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(500, 4))
    y = (
        logits * [0.5, 1.0, 1.0, 2.0] + [0.0, 1.0, -1.0, 0.5] + rng.gumbel(size=logits.shape)
    ).argmax(axis=1)
    return logits, y


def test_vector_scaling_finds_scales_and_offsets(rng):
    logits = 2 * rng.normal(size=(200_000, 3))
    logits -= logits.mean(axis=1, keepdims=True)
    d, b = np.array([0.5, 1.0, 1.5]), np.array([-0.5, 0.0, 0.5])
    y = (logits * d + b + rng.gumbel(size=logits.shape)).argmax(axis=1)
    fitted = VectorScaling(inputs="logits").fit(logits, y)
    np.testing.assert_allclose(fitted.coef_, d, atol=0.02)  # a few standard errors
    np.testing.assert_allclose(fitted.intercept_ - fitted.intercept_.mean(), b, atol=0.03)


@pytest.mark.parametrize("seed", [5, 16, 21, 35])
def test_rounding_does_not_move_unpenalized_intercepts_away_from_the_optimum(seed):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(2000, 5))
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = VectorScaling(inputs="logits").fit(logits, y).predict_proba(logits)
    # The derivative by the intercept of a class is its mean probability minus its frequency.
    np.testing.assert_allclose(proba.mean(axis=0), np.bincount(y) / len(y), atol=1e-9)


@pytest.mark.parametrize(
    "calibrator", [VectorScaling(), MatrixScaling(), MatrixScaling(lam=0.01)], ids=repr
)
def test_the_training_loss_is_never_above_that_of_the_identity_or_of_temperature(calibrator, data):
    logits, y = data
    proba = softmax(logits)
    loss = log_loss(y, calibrator.fit(proba, y).predict_proba(proba))
    assert loss <= log_loss(y, proba)
    if not isinstance(calibrator, MatrixScaling) or calibrator.lam == 0:
        assert loss <= log_loss(y, TemperatureScaling().fit(proba, y).predict_proba(proba)) + 1e-9


@pytest.mark.parametrize(
    "calibrator", [VectorScaling(inputs="logits"), MatrixScaling(0.01, inputs="logits")], ids=repr
)
def test_a_constant_added_to_every_logit_of_a_row_changes_nothing(calibrator, data, rng):
    logits, y = data
    moved = logits + 5 * rng.normal(size=(len(y), 1))
    first = calibrator.fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(calibrator.predict_proba(moved), first, atol=1e-12)
    np.testing.assert_allclose(calibrator.fit(moved, y).predict_proba(moved), first, atol=1e-7)


def test_matrix_scaling_with_a_strong_penalty_is_diagonal_without_intercept(data):
    logits, y = data
    fitted = MatrixScaling(lam=1e6, inputs="logits").fit(logits, y)
    assert np.abs(fitted.coef_ - np.diag(np.diag(fitted.coef_))).max() < 1e-6
    assert np.abs(fitted.intercept_).max() < 1e-6


def test_mu_is_lam_unless_given(data):
    logits, y = data
    same, other = (
        MatrixScaling(0.1, mu, inputs="logits").fit(logits, y).intercept_ for mu in (0.1, 10.0)
    )
    np.testing.assert_array_equal(
        MatrixScaling(0.1, inputs="logits").fit(logits, y).intercept_, same
    )
    assert np.abs(other).max() < np.abs(same).max()


@pytest.mark.parametrize(
    ("options", "message"), [({"lam": -1}, "lam must be"), ({"lam": 1, "mu": np.nan}, "mu must be")]
)
def test_penalties_are_not_negative(options, message):
    with pytest.raises(ValueError, match=message):
        MatrixScaling(**options).fit([[0.5, 0.5]], [0])


def test_a_class_that_never_occurs_is_named_once_in_a_warning(data):
    logits, y = data
    present = y != 2
    with pytest.warns(
        ConvergenceWarning, match="a class has no rows in the calibration data"
    ) as record:
        out = VectorScaling(inputs="logits").fit(logits[present], y[present]).predict_proba(logits)
    assert len(record) == 1
    assert np.isfinite(out).all()


def test_the_factor_of_a_class_that_never_occurs_is_that_of_the_temperature(rng):
    """No row tells anything about it; one that ends anywhere makes the class likely elsewhere."""
    logits = 2 * rng.normal(size=(200, 4))
    logits[:, 3] = rng.uniform(-36, -8, 200)
    y = (1.5 * logits[:, :3] + rng.gumbel(size=(200, 3))).argmax(axis=1)
    with pytest.warns(ConvergenceWarning, match="a class has no rows in the calibration data"):
        fitted = VectorScaling(inputs="logits", classes=range(4)).fit(logits, y)
    tempered = TemperatureScaling(inputs="logits", classes=range(4)).fit(logits, y)
    np.testing.assert_allclose(fitted.coef_[3], 1 / tempered.temperature_, rtol=1e-6)
    assert fitted.predict_proba(logits)[:, 3].max() < 1e-9


def test_a_matrix_of_two_classes_is_fitted_where_one_never_occurs(rng):
    logits = rng.normal(size=(30, 2))
    made = MatrixScaling(lam=0.1, inputs="logits", classes=range(2))
    with pytest.warns(ConvergenceWarning, match="a class has no rows in the calibration data"):
        fitted = made.fit(logits, np.zeros(30, int))
    assert (fitted.predict_proba(logits)[:, 0] > 0.5).all()


def test_the_identity_returns_probabilities_bit_for_bit(data):
    logits, y = data
    proba = softmax(logits)
    np.testing.assert_array_equal(Identity().fit(proba, y).predict_proba(proba), proba)
    np.testing.assert_allclose(
        Identity(inputs="logits").fit(logits, y).predict_proba(logits), proba
    )
