"""Large logits and weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrant
from calibrant import export, load, save
from calibrant.exceptions import ConvergenceWarning, DataWarning
from calibrant.selection.methods import METHODS

BINARY = [name for name, entry in METHODS.items() if entry.is_binary]
VECTOR = [name for name in METHODS if name not in BINARY]
MASKS = np.array([[-1e308, -1e308, 0.0], [1.0, float(np.finfo(np.float32).min), 0.5]])


@pytest.fixture
def logits(rng):
    z = rng.normal(scale=2, size=(150, 3))
    return z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


@pytest.mark.parametrize("name", VECTOR)
def test_large_logits_give_probabilities_or_an_error(logits, name):
    model = calibrant.method(name).set_params(inputs="logits").fit(*logits)
    for row in ([1e308, 1e308, 1e308], [1e308, -1e308, 0.0], [-1e308, -1e308, -1e308]):
        with pytest.raises(ValueError, match=r"Row 0 of the logits .* values above 1e\+30"):
            model.predict_proba([row])
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            out = model.predict_proba(np.array([*MASKS, [1e30, -1e30, 0.0]]).astype(dtype))
        np.testing.assert_allclose(out.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("name", ["vector", "matrix", "dirichlet", "temperature"])
def test_the_lowest_float_is_treated_as_minus_infinity(logits, name):
    model = calibrant.method(name).set_params(inputs="logits").fit(*logits)
    out = model.predict_proba(MASKS)
    np.testing.assert_array_equal(out, model.predict_proba(np.where(MASKS < -1e30, -np.inf, MASKS)))
    program = export.program(model)
    assert np.isnan(export._boundary.guarded(program).run(np.array([[1e31, 0.0, 0.0]]))).all()


@pytest.mark.parametrize("name", ["platt", "beta", "isotonic", "spline"])
@pytest.mark.parametrize("scale", [1e-99, 1e99, "both"])
def test_weights_of_any_scale_give_finite_probabilities(rng, name, scale, tmp_path):
    score = rng.random(60)
    outcome = (rng.random(60) < score).astype(int)
    weight = rng.uniform(0.5, 2, 60) * (
        10 ** rng.uniform(-99, 99, 60) if scale == "both" else scale
    )
    model = calibrant.method(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = model.fit(score, outcome, sample_weight=weight).predict_proba(score)
    assert np.isfinite(expected).all()
    save(model, tmp_path / "m.json")
    np.testing.assert_array_equal(load(tmp_path / "m.json").predict_proba(score), expected)


@pytest.mark.parametrize("name", [name for name in VECTOR if name not in ("auto", "gp")])
@pytest.mark.parametrize("weight", [1e9, 1e20, 1e99])
def test_large_integer_weights_need_no_more_memory_than_small_weights(logits, name, weight):
    model = calibrant.method(name).set_params(inputs="logits")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*logits, sample_weight=np.full(150, weight))
    np.testing.assert_allclose(model.predict_proba(logits[0]).sum(axis=1), 1.0, atol=1e-9)


def test_the_averaged_temperature_converges_to_the_temperature_for_large_weights(logits):
    z, y = logits
    point = calibrant.TemperatureScaling(inputs="logits").fit(z, y).temperature_
    model = calibrant.BayesianTemperatureScaling(inputs="logits")
    for weight in (1e12, 1e20, 1e30):
        model.fit(z, y, sample_weight=np.full(150, weight))
        np.testing.assert_allclose(model.temperatures_, point, rtol=1e-4)


@pytest.mark.parametrize("name", [*BINARY, "temperature", "vector"])
def test_weights_that_are_too_large_raise_an_error(name):
    score, outcome = np.linspace(0.1, 0.9, 40), np.arange(40) % 2
    with pytest.raises(
        ValueError, match=r"sample_weight of row 3 is 1e\+307.* between 1e-100 and 1e\+100"
    ):
        calibrant.method(name).fit(
            score, outcome, sample_weight=np.where(np.arange(40) == 3, 1e307, 1.0)
        )


def test_venn_abers_rejects_weights_of_very_different_magnitudes():
    with pytest.raises(ValueError, match=r"w \* len\(w\) / w.sum"):
        calibrant.VennAbers().fit([0.2, 0.8], [0, 1], sample_weight=[1e80, 1e97])
