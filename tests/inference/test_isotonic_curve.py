"""The isotonic curve of a claim, and its consistency band."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calibrant.datasets import draw_labels
from calibrant.inference._isotonic_curve import isotonic_curve
from calibrant.notions import as_notion, claims_of


def confidence_claim(proba, y):
    return next(iter(claims_of(as_notion("confidence"), y, proba)[0]))


@pytest.fixture
def calibrated(rng):
    proba = rng.dirichlet(np.ones(3), 2000)
    return proba, draw_labels(proba, rng=rng)


def test_a_curve_of_few_rows_is_the_isotonic_regression(calibrated):
    proba, y = (rows[:400] for rows in calibrated)
    curve = isotonic_curve(confidence_claim(proba, y), 0.9, 10, 0)
    fitted = IsotonicRegression().fit(proba.max(axis=1), proba.argmax(axis=1) == y)
    np.testing.assert_allclose(curve.frequency, fitted.predict(curve.score))


def test_many_rows_are_merged_into_cells(calibrated):
    curve = isotonic_curve(confidence_claim(*calibrated), 0.9, 10, 0)
    assert len(curve.score) == 1000
    assert (np.diff(curve.score) > 0).all()
    assert (np.diff(curve.frequency) >= 0).all()


def test_the_band_contains_a_calibrated_curve_and_excludes_an_overconfident_one(calibrated):
    proba, y = calibrated
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    inside = [
        np.mean((curve.low <= curve.frequency) & (curve.frequency <= curve.high))
        for curve in (isotonic_curve(confidence_claim(p, y), 0.9, 100, 0) for p in (proba, sharp))
    ]
    assert inside[0] > 0.7  # the level is 0.9, and neighboring scores are dependent
    assert inside[1] < 0.2
