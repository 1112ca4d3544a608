"""Calibeating: bounds for any sequence, and claims that come true as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import expected_calibration_error
from calibrant.monitoring import OnlineCalibration
from calibrant.monitoring._calibeat import BINS, TopBins


def watch_bin(score, outcomes):
    """What a bin says before each outcome."""
    bins, said = TopBins.start(), []
    for outcome in outcomes:
        proba = np.array([[score, 1 - score]])
        said.append(bins.replaced(proba)[0, 0])
        bins = bins.after(proba, np.array([1 - outcome]))
    return np.array(said)


def worst_outcomes(n_rows, score):
    """Each the one that the bin believes in less."""
    bins, out = TopBins.start(), []
    for _ in range(n_rows):
        proba = np.array([[score, 1 - score]])
        out.append(int(bins.replaced(proba)[0, 0] < 0.5))
        bins = bins.after(proba, np.array([1 - out[-1]]))
    return np.array(out)


@pytest.mark.parametrize("score", [0.51, 0.72, 0.97])
@pytest.mark.parametrize("n_rows", [1, 2, 30, 100])
def test_d_a_bin_loses_a_logarithm_to_the_best_constant_on_any_sequence(rng, score, n_rows):
    coin = (rng.random(n_rows) < 0.3).astype(int)
    never, always = np.zeros(n_rows, dtype=int), np.ones(n_rows, dtype=int)
    for outcome in (never, always, coin, worst_outcomes(n_rows, score)):
        said, best = watch_bin(score, outcome), outcome.mean()
        loss, least = (
            -np.log(np.where(outcome == 1, q, 1 - q)).sum() for q in (said, np.full(n_rows, best))
        )
        assert loss <= least + np.log(n_rows) + np.log(2 * BINS) + 1e-9
        brier, lowest = (((q - outcome) ** 2).sum() for q in (said, best))
        assert brier <= lowest + 1 + np.log(n_rows + 1) + 1e-9


def test_a_claim_says_what_its_bin_has_seen_and_the_rest_is_rescaled():
    proba = np.array([[0.72, 0.21, 0.07]])
    bins = TopBins.start().after(np.repeat(proba, 9, axis=0), np.array([0, 1, 2] * 3))
    said = (3 + 0.725) / 10
    np.testing.assert_allclose(bins.replaced(proba)[0, 0], said)
    np.testing.assert_allclose(bins.replaced(proba).sum(), 1.0)
    assert bins.count.sum() == 9
    assert bins.count[14] == 9


def test_a_certain_claim_belongs_to_the_last_bin():
    bins = TopBins.start().after(np.array([[1.0, 0.0]]), np.array([0]))
    assert bins.hits[-1] == 1


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"count": [1.0] * BINS, "hits": [2.0] * BINS},
        {"count": [-1.0] * BINS, "hits": [0.0] * BINS},
        {"count": [1.0], "hits": [1.0]},
    ],
    ids=str,
)
def test_a_state_that_no_bins_have_is_refused(state):
    with pytest.raises(ValueError, match="state"):
        TopBins.from_state(state)


def test_a_state_comes_back(rng):
    bins = TopBins.start().after(rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50))
    again = TopBins.from_state(bins.to_state())
    np.testing.assert_array_equal(again.count, bins.count)
    np.testing.assert_array_equal(again.hits, bins.hits)


def test_d_it_mends_what_no_expert_can(rng):
    """Claims from 0.6 to 0.8 come true as often as a coin does: no map of the family has a dip."""

    def make(n_rows):
        top = rng.uniform(0.5, 1.0, n_rows)
        right = rng.random(n_rows) < np.where((top > 0.6) & (top < 0.8), 0.5, top)
        return np.column_stack([top, 1 - top]), np.where(right, 0, 1)

    (proba, y), (later, truth) = make(6000), make(6000)
    plain, beaten = (
        OnlineCalibration(calibeat=calibeat).partial_fit(proba, y).predict_proba(later)
        for calibeat in (False, True)
    )
    errors = [expected_calibration_error(truth, q, n_bins=20) for q in (plain, beaten)]
    assert errors[1] < 0.5 * errors[0]
    loss = [-np.log(q[np.arange(6000), truth]).mean() for q in (plain, beaten)]
    assert loss[1] < loss[0] - 0.005
