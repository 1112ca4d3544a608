"""Performance without labels: right where the claims hold, and honest about what it assumes."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import estimate_performance
from streams import draw, sharpened


@pytest.fixture
def overconfident(rng):
    """``overconfident(n)``: labels and forecasts that say too much."""

    def make(n_rows):
        proba = rng.dirichlet(np.full(4, 0.3), n_rows)
        return draw(sharpened(proba, 0.5), rng), proba

    return make


def test_accuracy_is_estimated_where_hard_rows_are_preferred(overconfident, rng):
    y, proba = overconfident(20_000)
    hard = rng.random(20_000) < np.where(proba.max(axis=1) > 0.8, 0.1, 1.0)
    found = estimate_performance(overconfident(3000), proba[hard], n_resamples=20, rng=0)
    truth = (proba.argmax(axis=1) == y)[hard].mean()
    assert found.low < truth < found.high
    assert abs(found.accuracy - truth) < 0.02 < abs(found.reference_accuracy - truth)


def test_losses_and_confusion_are_those_of_the_labels_to_come(overconfident):
    y, proba = overconfident(10_000)
    found = estimate_performance(overconfident(5000), proba, n_resamples=5, rng=0)
    onehot = np.eye(4)[y]
    assert found.log_loss == pytest.approx(-(onehot * np.log(proba)).sum(1).mean(), rel=0.05)
    assert found.brier_score == pytest.approx(((onehot - proba) ** 2).sum(1).mean(), rel=0.05)
    assert found.confusion.sum() == pytest.approx(10_000, rel=1e-9)
    assert np.trace(found.confusion) == pytest.approx(10_000 * found.accuracy, rel=1e-6)


def test_what_is_assumed_is_printed(overconfident):
    reference, (_, proba) = overconfident(300), overconfident(300)
    plain = estimate_performance(reference, proba, n_resamples=5, rng=0)
    wide = estimate_performance(reference, proba, n_resamples=5, rng=0, within=0.02)
    assert "only labels can tell" in str(plain)
    assert "within 0.02" in str(wide)
    assert wide.high - plain.high == pytest.approx(0.02, abs=1e-12)
    assert wide.to_dict()["n_rows"] == 300


def test_other_classes_are_refused(overconfident):
    with pytest.raises(ValueError, match="same classes"):
        estimate_performance(overconfident(30), [[0.5, 0.5]])
