from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def models(rng):
    """Labels, and two models of which the first is calibrated and the second is overconfident."""
    z = rng.normal(scale=1.5, size=(800, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    sharp, soft = np.exp(2 * z), np.exp(z)
    return y, {
        "soft": soft / soft.sum(axis=1, keepdims=True),
        "sharp": sharp / sharp.sum(axis=1, keepdims=True),
    }
