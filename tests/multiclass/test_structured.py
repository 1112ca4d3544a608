from __future__ import annotations

import numpy as np
import pytest

from calibrant import StructuredScaling, TemperatureScaling
from calibrant._kernels.simplex import softmax
from calibrant.datasets import digits_predictions
from calibrant.metrics import log_loss

STRUCTURES = ["matrix", "vector"]


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(3000, 4))
    y = (
        logits * [0.5, 1.0, 1.0, 1.5] + [0.0, 1.0, -1.0, 0.5] + rng.gumbel(size=logits.shape)
    ).argmax(axis=1)
    return softmax(logits), y


@pytest.mark.parametrize("structure", STRUCTURES)
def test_with_few_rows_it_is_close_to_temperature_scaling_and_with_many_far_from_it(
    structure, data
):
    proba, y = data
    distance = []
    for n in (5, 3000):
        fitted = StructuredScaling(structure).fit(proba[:n], y[:n])
        temperature = TemperatureScaling().fit(proba[:n], y[:n])
        assert fitted.temperature_ == temperature.temperature_
        distance.append(np.abs(fitted.coef_ - (1.0 if structure == "vector" else np.eye(4))).max())
    assert distance[0] < 0.2
    assert distance[1] > 0.4


@pytest.mark.parametrize("structure", STRUCTURES)
def test_it_improves_on_temperature_scaling_on_new_rows(structure, data):
    proba, y = data
    fitted = StructuredScaling(structure).fit(proba[:1500], y[:1500])
    temperature = TemperatureScaling().fit(proba[:1500], y[:1500])
    loss, reference = (
        log_loss(y[1500:], c.predict_proba(proba[1500:])) for c in (fitted, temperature)
    )
    assert loss < reference - 0.02


def test_the_objective_is_the_formula_of_the_docstring(data):
    proba, y = data
    n, k = len(y), 4
    fitted = StructuredScaling().fit(proba, y)
    delta = fitted.coef_ - np.eye(k)
    off = delta[~np.eye(k, dtype=bool)]
    penalty = (
        k / n * (fitted.intercept_ @ fitted.intercept_ + (np.diag(delta) ** 2).sum())
        + k * (k - 1) / n * off @ off
    )
    assert fitted.objective_ == pytest.approx(
        log_loss(y, fitted.predict_proba(proba)) + penalty, abs=1e-10
    )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_class_ever_gets_probability_zero(structure):
    data = digits_predictions("forest")
    assert (data.val_proba == 0).any()
    fitted = StructuredScaling(structure).fit(data.val_proba, data.val_labels)
    assert fitted.predict_proba(data.test_proba).min() > 0


@pytest.mark.parametrize("structure", STRUCTURES)
def test_large_data_lifted_on_demand_give_the_same_fit(structure, data, monkeypatch):
    proba, y = data
    kept = StructuredScaling(structure).fit(proba, y)
    monkeypatch.setattr("calibrant._data.sample.WORK_MEMORY", 100)
    monkeypatch.setattr("calibrant._optim.objective.WORK_MEMORY", 100)
    lazy = StructuredScaling(structure).fit(proba, y)
    np.testing.assert_allclose(lazy.coef_, kept.coef_, atol=1e-8)


@pytest.mark.parametrize("structure", ["matrix", "vector"])
def test_a_fit_that_begins_where_another_ended_finds_the_same_optimum(structure, data):
    proba, y = data
    other = StructuredScaling(structure).fit(proba[::2], y[::2])
    alone, begun = StructuredScaling(structure), StructuredScaling(structure)
    begun._start_like(other)
    for model in (alone, begun):
        model.fit(proba, y)
    np.testing.assert_allclose(begun.coef_, alone.coef_, atol=1e-8)
    assert begun.objective_ == pytest.approx(alone.objective_, abs=1e-13)
    assert "_start" not in vars(begun)


def test_an_unknown_structure_is_named():
    with pytest.raises(ValueError, match="structure must be one of 'matrix', 'vector', got 'full'"):
        StructuredScaling("full").fit([[0.5, 0.5]], [0])
