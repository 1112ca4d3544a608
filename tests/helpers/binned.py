"""Fitted bins of claims that tests of guarantees share."""

from __future__ import annotations

import numpy as np

from calibrant.guarantees import BinnedClaim, BinnedQuantity


def make_claim(hits, counts, name="'cat'", points_per_bin=50):
    hits, counts = np.array(hits, dtype=float), np.array(counts, dtype=float)
    return BinnedClaim(name, points_per_bin, hits / counts, counts, hits)


def make_quantity(*claims, name="all labels", n_samples=1000):
    return BinnedQuantity(name, n_samples, claims)
