"""A small report whose names try to be more than names."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant.report import summarise

HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b'c",
    "</script><img src=x onerror=alert(2)>",
    "x|y`z`",
    "$data",
    "&amp;",
]


@pytest.fixture(scope="session")
def hostile():
    """A report with such class names."""
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(len(HOSTILE)), 400)
    labels = np.array(HOSTILE)[calibrant.datasets.draw_labels(proba, rng=rng)]
    return summarise(
        labels,
        proba,
        calibrator=calibrant.VectorScaling(),
        classes=HOSTILE,
        name="<b>file</b>.csv",
        n_resamples=99,
    )
