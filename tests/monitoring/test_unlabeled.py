"""Drift of scores, and performance without labels."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import ScoreDrift, estimate_performance
from streams import draw, sharpened


def test_a_class_that_became_frequent_is_found_and_named(rng):
    drift = ScoreDrift(rng.dirichlet([1, 1, 2], 5000), horizon=10_000)
    assert not drift.update(rng.dirichlet([1, 1, 2], 1000)).alarm
    step = drift.update(rng.dirichlet([1, 3, 2], 1000))
    assert step.alarm
    assert step.worst_class == 1
    assert step.to_dict()["evidence"] > 1
    assert drift.mean[1] > drift.reference_mean[1]


def test_drift_rejects_other_classes_and_a_single_row(rng):
    with pytest.raises(ValueError, match="columns like the reference"):
        ScoreDrift(rng.dirichlet(np.ones(3), 10)).update(rng.dirichlet(np.ones(4), 10))
    with pytest.raises(ValueError, match="reference rows"):
        ScoreDrift([[0.5, 0.5]])
    with pytest.raises(ValueError, match="false_alarm"):
        ScoreDrift([[0.5, 0.5]] * 3, false_alarm=2)


@pytest.mark.slow
def test_the_level_holds_with_five_hundred_reference_rows(rng):
    def alarms():
        drift = ScoreDrift(rng.dirichlet(np.full(10, 0.2), 500), horizon=5000)
        return drift.update(rng.dirichlet(np.full(10, 0.2), 5000)).alarm

    assert np.mean([alarms() for _ in range(60)]) <= 0.05


@pytest.fixture
def overconfident(rng):
    """``overconfident(n)``: labels and overconfident forecasts."""

    def make(n_rows):
        proba = rng.dirichlet(np.full(4, 0.3), n_rows)
        return draw(sharpened(proba, 0.5), rng), proba

    return make


def test_accuracy_is_estimated_where_hard_rows_are_preferred(overconfident, rng):
    y, proba = overconfident(20_000)
    hard = rng.random(20_000) < np.where(proba.max(axis=1) > 0.8, 0.1, 1.0)
    estimate = estimate_performance(overconfident(3000), proba[hard], n_resamples=20, rng=0)
    truth = (proba.argmax(axis=1) == y)[hard].mean()
    assert estimate.low < truth < estimate.high
    assert abs(estimate.accuracy - truth) < 0.02 < abs(estimate.reference_accuracy - truth)


def test_losses_and_confusion_are_those_of_the_labels_to_come(overconfident):
    y, proba = overconfident(10_000)
    estimate = estimate_performance(overconfident(5000), proba, n_resamples=5, rng=0)
    onehot = np.eye(4)[y]
    assert estimate.log_loss == pytest.approx(-(onehot * np.log(proba)).sum(1).mean(), rel=0.05)
    assert estimate.brier_score == pytest.approx(((onehot - proba) ** 2).sum(1).mean(), rel=0.05)
    assert estimate.confusion.sum() == pytest.approx(10_000, rel=1e-9)
    assert np.trace(estimate.confusion) == pytest.approx(10_000 * estimate.accuracy, rel=1e-6)


def test_what_is_assumed_is_printed(overconfident):
    reference, (_, proba) = overconfident(300), overconfident(300)
    plain = estimate_performance(reference, proba, n_resamples=5, rng=0)
    wide = estimate_performance(reference, proba, n_resamples=5, rng=0, within=0.02)
    assert "Only labels can confirm this assumption." in str(plain)
    assert "up to a mean difference of 0.02" in str(wide)
    assert wide.high - plain.high == pytest.approx(0.02, abs=1e-12)
    assert wide.to_dict()["n_rows"] == 300


def test_performance_rejects_other_classes(overconfident):
    with pytest.raises(ValueError, match="must have the same number of columns"):
        estimate_performance(overconfident(30), [[0.5, 0.5]])
