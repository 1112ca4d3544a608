"""Reports that several tests read: one of an overconfident model, and one of hostile names."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant.report import summarize

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
    return summarize(
        labels,
        proba,
        calibrator=calibrant.VectorScaling(),
        classes=HOSTILE,
        name="<b>file</b>.csv",
        n_resamples=99,
    )


@pytest.fixture(scope="session")
def data():
    """Probabilities of an overconfident model, and labels."""
    rng = np.random.default_rng(7)
    logits = rng.normal(scale=2.0, size=(600, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    return proba, labels


@pytest.fixture(scope="session")
def report(data):
    """The report of these predictions, calibrated by temperature scaling."""
    proba, labels = data
    calibrator = calibrant.TemperatureScaling()
    return summarize(labels, proba, calibrator=calibrator, method="temperature", n_resamples=199)


@pytest.fixture(scope="session")
def metric():
    """``metric(report, "ks")``: a row of the table of metrics."""

    def find(report, name):
        return next(row for row in report.metrics if row.name == name)

    return find
