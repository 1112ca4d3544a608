"""`BaseCalibrator`: the inner form of whole vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant.base import BaseCalibrator


class Seen(BaseCalibrator):
    """Keeps what it was given."""

    def __init__(self, eps=1e-12, *, inputs="proba", classes=None):
        self.eps = eps
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        rows = sample.rows("this method")
        self.shape_, self.u_ = rows.u.shape, rows.u[:]

    def _log_proba(self, u):
        return log_softmax(u, axis=1)


class SeenLogSoftmax(Seen):
    form = "log_softmax"


class SeenProba(Seen):
    form = "proba"


def data(rng):
    return rng.normal(scale=3, size=(20, 3)), np.arange(20) % 3


def test_probabilities_are_clipped_and_not_renormalised():
    P = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    for kind in (Seen, SeenLogSoftmax):
        seen = kind(eps=1e-3).fit(P, [0, 1]).u_
        np.testing.assert_allclose(np.exp(seen), [[0.999, 1e-3, 1e-3], P[1]])


def test_logits_are_centered_normalised_or_made_probabilities_by_form(rng):
    z, y = data(rng)
    np.testing.assert_allclose(
        Seen(inputs="logits").fit(z, y).u_, z - z.mean(axis=1, keepdims=True), atol=1e-12
    )
    np.testing.assert_allclose(SeenLogSoftmax(inputs="logits").fit(z, y).u_, log_softmax(z, axis=1))
    np.testing.assert_allclose(SeenProba(inputs="logits").fit(z, y).u_, softmax(z, axis=1))


def test_probabilities_of_the_form_proba_are_as_they_are(rng):
    P = rng.dirichlet(np.ones(3), 20)
    np.testing.assert_array_equal(SeenProba().fit(P, np.arange(20) % 3).u_, P)


@pytest.mark.parametrize("kind", [Seen, SeenLogSoftmax, SeenProba])
def test_large_data_are_lifted_when_their_rows_are_asked_for(rng, kind, monkeypatch):
    z, y = data(rng)
    at_once = kind(inputs="logits").fit(z, y)
    monkeypatch.setattr("calibrant._data.sample.WORK_MEMORY", 10)
    on_demand = kind(inputs="logits").fit(z, y)
    assert on_demand.shape_ == (20, 3)
    np.testing.assert_array_equal(on_demand.u_, at_once.u_)


def test_probabilities_are_the_exponentials_of_what_the_method_gives(rng):
    z, y = data(rng)
    model = Seen(inputs="logits").fit(z, y)
    np.testing.assert_allclose(model.predict_proba(z), softmax(z, axis=1), rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(z), log_softmax(z, axis=1), rtol=1e-12)
