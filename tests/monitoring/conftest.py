"""Streams of forecasts and labels whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from streams import draw, sharpened


@pytest.fixture
def stream(rng):
    """``stream(n, beta)``: labels and forecasts; the truth is the forecast to the power beta."""

    def make(n_rows, beta=1.0, n_classes=4):
        proba = rng.dirichlet(np.full(n_classes, 0.5), n_rows)
        return draw(sharpened(proba, beta), rng), proba

    return make
