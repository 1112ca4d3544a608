from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, softmax

from calibrant import Identity


def test_probabilities_are_returned_to_the_last_bit(rng):
    P = rng.dirichlet(np.ones(3), 20)
    np.testing.assert_array_equal(Identity().fit(P, np.arange(20) % 3).predict_proba(P), P)


def test_logits_become_their_softmax_and_its_logarithm(rng):
    z = 50 * rng.normal(size=(20, 3))
    model = Identity(inputs="logits").fit(z, np.arange(20) % 3)
    np.testing.assert_allclose(model.predict_proba(z), softmax(z, axis=1), rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(z), log_softmax(z, axis=1), rtol=1e-12)


def test_an_impossible_class_stays_impossible():
    model = Identity(inputs="logits").fit([[0.0, 1.0]], [1])
    np.testing.assert_array_equal(model.predict_log_proba([[-np.inf, 0.0]]), [[-np.inf, 0.0]])
    np.testing.assert_array_equal(model.predict_proba([[-np.inf, 0.0]]), [[0.0, 1.0]])
