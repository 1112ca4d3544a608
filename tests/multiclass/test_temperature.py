from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import EnsembleTemperatureScaling, TemperatureScaling
from calibrant._kernels.simplex import softmax
from calibrant.datasets import digits_predictions
from calibrant.exceptions import ConvergenceWarning
from calibrant.metrics import log_loss


@pytest.fixture(scope="module")
def digits():
    return digits_predictions()


def test_a_known_temperature_is_found(rng):
    logits = 2 * rng.normal(size=(50_000, 4))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    fitted = TemperatureScaling(inputs="logits").fit(3 * logits, y)
    assert fitted.temperature_ == pytest.approx(3, abs=0.05)  # four standard errors
    assert fitted.converged_


def test_probabilities_and_their_logits_give_the_same_temperature(rng):
    logits = rng.normal(size=(300, 4))
    y = rng.integers(4, size=300)
    from_logits = TemperatureScaling(inputs="logits").fit(logits, y).temperature_
    assert TemperatureScaling().fit(softmax(logits), y).temperature_ == pytest.approx(
        from_logits, rel=1e-9
    )


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_temperature_and_its_ensemble_keep_the_ranking(seed, n_classes):
    generator = np.random.default_rng(seed)
    proba = generator.dirichlet(np.ones(n_classes), 40)
    y = generator.integers(n_classes, size=40)
    for calibrator in (TemperatureScaling(prior_scale=0.5), EnsembleTemperatureScaling()):
        out = quietly(calibrator, proba, y)
        for before, after in zip(proba, out, strict=True):
            assert (np.diff(after[np.argsort(before)]) >= -1e-15).all()


def quietly(calibrator, proba, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return calibrator.fit(proba, y).predict_proba(proba)


@pytest.mark.filterwarnings("ignore:TemperatureScaling. the true class of 1 of 30 rows")
def test_a_prior_pulls_the_temperature_towards_one(digits):
    few = slice(0, 30)
    plain, held = (
        abs(
            np.log(
                TemperatureScaling(prior_scale=s)
                .fit(digits.val_proba[few], digits.val_labels[few])
                .temperature_
            )
        )
        for s in (None, 0.1)
    )
    assert held < plain


@pytest.mark.parametrize("scale", [0, -1.0])
def test_a_prior_needs_a_positive_scale(scale):
    with pytest.raises(ValueError, match="prior_scale must be positive"):
        TemperatureScaling(prior_scale=scale).fit([[0.5, 0.5]], [0])


def test_the_ensemble_is_never_worse_than_its_members_on_its_own_data(digits):
    proba, y = digits.val_proba, digits.val_labels
    ensemble = EnsembleTemperatureScaling().fit(proba, y)
    loss = log_loss(y, ensemble.predict_proba(proba))
    assert loss <= log_loss(y, TemperatureScaling().fit(proba, y).predict_proba(proba)) + 1e-12
    assert loss <= log_loss(y, proba) + 1e-9  # the floor of log-probabilities
    assert ensemble.objective_ == pytest.approx(loss, abs=1e-9)
    assert ensemble.weights_.sum() == pytest.approx(1)


def test_anti_informative_scores_become_uniform_with_one_warning(rng):
    proba = softmax(3 * rng.normal(size=(200, 3)))
    worst = proba.argmin(axis=1)
    with pytest.warns(
        ConvergenceWarning,
        match="TemperatureScaling: true classes do not have higher scores than other classes",
    ) as record:
        out = TemperatureScaling().fit(proba, worst).predict_proba(proba)
    assert len(record) == 1
    np.testing.assert_allclose(out, 1 / 3, atol=1e-5)


def test_the_warning_points_at_the_line_of_the_user():
    with pytest.warns(ConvergenceWarning, match="separate the calibration labels") as record:
        TemperatureScaling().fit([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    assert record[0].filename == __file__


def test_probabilities_of_the_ensemble_are_those_of_its_logarithms(rng):
    proba = rng.dirichlet(np.ones(4), 60)
    y = (np.log(proba) + rng.gumbel(size=proba.shape)).argmax(axis=1)
    model = EnsembleTemperatureScaling().fit(proba, y)
    for weights in ([0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        model.weights_ = np.array(weights)
        np.testing.assert_allclose(
            model.predict_proba(proba), np.exp(model.predict_log_proba(proba)), rtol=1e-13
        )


def test_the_explanation_uses_all_rows_to_distinguish_overconfidence_from_sampling_noise(rng):
    """A temperature of 1.05 is certain with 100,000 rows, but not with the rows of a summary."""
    logits = rng.normal(scale=2.0, size=(100_000, 10))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    assert (
        "the model is overconfident"
        in TemperatureScaling(inputs="logits").fit(1.05 * logits, y).explain()
    )
    assert "not significantly" in TemperatureScaling(inputs="logits").fit(logits, y).explain()


def test_curvature_is_the_second_derivative_of_the_loss_in_the_logarithm_of_the_temperature(rng):
    logits = rng.normal(scale=2.0, size=(400, 5))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    model = TemperatureScaling(inputs="logits").fit(1.3 * logits, y)

    def loss(log_t):
        return log_loss(y, softmax(1.3 * logits / np.exp(log_t)))

    t, h = np.log(model.temperature_), 1e-3
    second = (loss(t + h) - 2 * loss(t) + loss(t - h)) / h**2
    assert model.curvature_ == pytest.approx(second, rel=1e-4)
