"""Bands of reliability diagrams; `test_reliability` has how they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.binning import bin_table
from calibrant.datasets import draw_labels
from calibrant.notions import as_notion, claims_of
from calibrant.plots._bands import band_ends


@pytest.fixture
def binned(rng):
    proba = rng.dirichlet(np.ones(3), 500)
    labels = draw_labels(proba, rng=rng)
    claims, _ = claims_of(as_notion("confidence"), labels, proba)
    return claims, bin_table(claims, n_bins=5)


def test_without_a_band_there_are_no_ends(binned):
    assert band_ends(None, *binned, 0.9, 10, None) is None


@pytest.mark.parametrize("band", ["binomial", "resampling", "simultaneous"])
def test_a_higher_level_has_a_wider_band(binned, band):
    _, table = binned
    used = table.weight > 0
    narrow, wide = (band_ends(band, *binned, level, 500, 0) for level in (0.5, 0.99))
    assert (narrow[0][used] <= narrow[1][used]).all()
    assert (wide[0][used] <= narrow[0][used]).all()
    assert (wide[1][used] >= narrow[1][used]).all()


def test_a_simultaneous_band_needs_equal_weights(rng):
    proba = rng.dirichlet(np.ones(3), 50)
    labels = draw_labels(proba, rng=rng)
    claims, _ = claims_of(as_notion("confidence"), labels, proba, np.arange(1.0, 51.0))
    with pytest.raises(ValueError, match=r"with equal weights. Pass band='binomial'"):
        band_ends("simultaneous", claims, bin_table(claims, n_bins=5), 0.9, 10, None)
