from __future__ import annotations

import numpy as np
import pytest

from calibrant import BayesianTemperatureScaling, TemperatureScaling
from calibrant._kernels.simplex import softmax
from calibrant.metrics import log_loss


def drawn(rng, n_rows, temperature, n_classes=100):
    """Logits of a model that is too sure by a factor, and what happened."""
    logits = 2.0 * rng.normal(size=(n_rows, n_classes))
    return temperature * logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def test_many_rows_leave_nothing_to_the_prior(rng):
    logits, y = drawn(rng, 20_000, 2.0, n_classes=5)
    averaged = BayesianTemperatureScaling(inputs="logits").fit(logits, y)
    likeliest = TemperatureScaling(inputs="logits").fit(logits, y)
    np.testing.assert_allclose(
        averaged.predict_proba(logits[:500]), likeliest.predict_proba(logits[:500]), atol=2e-3
    )


def test_no_rows_but_one_leave_the_prior(rng):
    logits, y = drawn(rng, 1, 1.0, n_classes=3)
    model = BayesianTemperatureScaling(inputs="logits").fit(0.0 * logits, y)
    middle = model.weights_[np.abs(np.log(model.temperatures_) - 0.1).argmin()]
    assert middle > 0.7
    assert model.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("temperature", [0.4, 2.5])
def test_thirty_rows_mend_a_model_that_is_far_off(rng, temperature):
    logits, y = drawn(rng, 2030, temperature)
    model = BayesianTemperatureScaling(inputs="logits").fit(logits[:30], y[:30])
    new, truth = logits[30:], y[30:]
    best = log_loss(truth, softmax(new / temperature))
    before, after = log_loss(truth, softmax(new)), log_loss(truth, model.predict_proba(new))
    assert after - best < 0.2 * (before - best)


def test_few_rows_of_an_calibrated_model_harm_less_than_the_likeliest_temperature(rng):
    harm = []
    for _ in range(30):
        logits, y = drawn(rng, 530, 1.0)
        new, truth = logits[30:], y[30:]
        fits = (
            made(inputs="logits").fit(logits[:30], y[:30])
            for made in (BayesianTemperatureScaling, TemperatureScaling)
        )
        honest = log_loss(truth, softmax(new))
        harm.append([log_loss(truth, fit.predict_proba(new)) - honest for fit in fits])
    averaged, likeliest = np.array(harm).T
    assert averaged.mean() < 0.7 * likeliest.mean()
    assert averaged.max() < 0.7 * likeliest.max()


def test_the_ranking_is_kept(rng):
    proba = rng.dirichlet(np.ones(6), 60)
    out = BayesianTemperatureScaling().fit(proba, rng.integers(6, size=60)).predict_proba(proba)
    order = proba.argsort(axis=1)
    assert (np.diff(np.take_along_axis(out, order, axis=1), axis=1) >= -1e-15).all()


def test_rows_that_are_all_right_do_not_make_it_certain(rng):
    logits, _ = drawn(rng, 40, 1.0, n_classes=10)
    model = BayesianTemperatureScaling(inputs="logits").fit(logits, logits.argmax(axis=1))
    assert model.predict_proba(logits).max(axis=1).min() < 0.9
    assert model.converged_


def test_it_says_what_it_averages(rng):
    logits, y = drawn(rng, 300, 2.0)
    said = BayesianTemperatureScaling(inputs="logits").fit(logits, y).explain()
    assert "temperatures around 2" in said
    assert "ranking of the classes does not change" in said


def test_a_loss_that_rises_is_not_said_to_fall():
    """Two rows that are right leave the prior, which doubts them."""
    model = BayesianTemperatureScaling(inputs="logits").fit([[3.0, -1.0], [0.2, 2.0]], [0, 1])
    assert model.training_.log_loss_after > model.training_.log_loss_before
    assert "falls" not in model.explain()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"width": 0.0}, "width must be a positive"), ({"center": np.inf}, "center must be a finite")],
)
def test_a_prior_that_is_none_is_rejected(given, message):
    with pytest.raises(ValueError, match=message):
        BayesianTemperatureScaling(**given).fit([[0.5, 0.5]], [0])
