"""The reduction of costs by calibration."""

import numpy as np
import pytest

from calibrant import Identity, TemperatureScaling
from calibrant.inference import decision_gain
from calibrant.metrics import decision_cost


@pytest.fixture
def rows(rng):
    """Probabilities that are far too confident."""
    true = rng.dirichlet(np.ones(3), size=1500)
    labels = (rng.random((1500, 1)) > np.cumsum(true, axis=1)).sum(axis=1)
    sharp = true**4
    return np.minimum(labels, 2), sharp / sharp.sum(axis=1, keepdims=True)


def test_calibration_of_confident_scores_saves_costs(rows):
    labels, proba = rows
    cost = 5 * (1 - np.eye(3))
    result = decision_gain(labels, proba, cost, TemperatureScaling(), abstain=1, rng=0)
    assert result.low > 0
    assert result.before == pytest.approx(decision_cost(labels, proba, cost, abstain=1))
    assert result.gain == pytest.approx(result.before - result.after)
    assert str(result).startswith("Mean cost ")
    assert result.interval == "nadeau-bengio"


def test_the_identity_saves_nothing_and_its_interval_has_the_range_of_the_costs(rows):
    result = decision_gain(*rows, 7 * (1 - np.eye(3)), Identity(), rng=0)
    assert result.gain == 0
    assert result.high == pytest.approx(7 / 1500)


def test_groups_and_splitters_are_accepted(rows):
    labels, proba = rows
    grouped = decision_gain(labels, proba, groups=np.arange(1500) // 5, rng=0)
    halves = [(np.arange(750), np.arange(750, 1500)), (np.arange(750, 1500), np.arange(750))]
    assert decision_gain(labels, proba, cv=halves).n_samples == grouped.n_samples == 1500
