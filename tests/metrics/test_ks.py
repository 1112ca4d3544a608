from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import datasets
from calibrant._kernels.blocks import CACHE_BLOCK
from calibrant.metrics import expected_calibration_error, ks_error
from calibrant.metrics.ks import claim_ks, ks_path
from calibrant.notions import Claim


def test_by_hand():
    # Sorted scores .6 (wrong) and .8 (correct): the excess is .6, then .6 - .2 = .4. The largest,
    # divided by two rows, is .3.
    assert ks_error([0, 1], [[0.8, 0.2], [0.6, 0.4]]) == pytest.approx(0.3)


def test_ties_are_taken_together_whatever_their_order():
    scores = [0.5, 0.5, 0.5, 0.5]
    assert ks_error([1, 1, 0, 0], scores, notion="class-1") == 0.0
    assert ks_error([0, 1, 0, 1], scores, notion="class-1") == 0.0


@given(st.integers(0, 10**6))
def test_the_order_of_rows_is_irrelevant_and_ks_is_below_ece(seed):
    generator = np.random.default_rng(seed)
    proba = generator.integers(1, 5, size=(30, 3)).astype(float)
    proba /= proba.sum(1, keepdims=True)
    y = generator.integers(3, size=30)
    order = generator.permutation(30)
    assert ks_error(y[order], proba[order]) == pytest.approx(ks_error(y, proba), abs=1e-12)
    assert ks_error(y, proba) <= expected_calibration_error(y, proba, strategy="unique") + 1e-12


@pytest.mark.parametrize(
    "notion", ["confidence", "top-label", "class-wise", "rank-2", "within-top-2", "top-2-label"]
)
def test_a_weight_is_a_number_of_copies(notion, rng):
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    copies = rng.integers(0, 3, size=40)
    repeated = np.repeat(np.arange(40), copies)
    weighted = ks_error(y, proba, notion=notion, sample_weight=copies)
    assert weighted == pytest.approx(
        ks_error(y[repeated], proba[repeated], notion=notion), abs=1e-13
    )


def test_several_claims_are_averaged(rng):
    proba, y = rng.dirichlet(np.ones(3), 100), rng.integers(3, size=100)
    each = [ks_error(y, proba, notion=f"class-{k}") for k in range(3)]
    assert ks_error(y, proba, notion="class-wise") == pytest.approx(np.mean(each))


def test_synthetic_families_have_the_error_of_their_formula():
    for data in (
        datasets.power_family(400_000, 3.0, rng=1),
        datasets.linear_family(400_000, 0.4, rng=1),
    ):
        assert ks_error(data.labels, data.proba, notion="class-1") == pytest.approx(
            data.errors["class-1-ks"], abs=0.003
        )
    data = datasets.noisy_simplex(400_000, 4, 0.4, rng=1)
    assert ks_error(data.labels, data.proba) == pytest.approx(
        data.errors["confidence-ks"], abs=0.003
    )


def path_of(score, outcome, weight=None):
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, dtype=float)
    claim = Claim(0, slice(None), np.array(score), np.array(outcome, dtype=bool), weight)
    return ks_path(claim)


def test_the_path_by_hand():
    path = path_of([0.8, 0.6, 0.8, 0.2], [1, 0, 1, 0])
    assert path.score.tolist() == [0.2, 0.6, 0.8]
    assert path.share.tolist() == [0.25, 0.5, 1.0]
    assert path.outcome.tolist() == [0.0, 0.0, 0.5]
    assert path.excess == pytest.approx([0.05, 0.2, 0.1])
    assert (path.worst, path.error) == (1, pytest.approx(0.2))


@pytest.mark.parametrize("decimals", [1, 4, 17])
def test_a_path_of_many_blocks_is_that_of_all_rows_at_once(decimals, rng):
    score = rng.random(3 * CACHE_BLOCK + 7).round(decimals)
    outcome, weight = rng.random(len(score)) < score, rng.random(len(score))
    order = np.argsort(score)
    ends = np.append(np.diff(score[order]) > 0, True)
    excess = np.cumsum(((score - outcome) * weight)[order])[ends] / weight[order].sum()
    path = path_of(score, outcome, weight)
    assert np.array_equal(path.score, score[order][ends])
    assert np.array_equal(path.excess, excess)


def test_rows_of_weight_zero_are_no_steps():
    path = path_of([0.9, 0.5, 0.7], [1, 0, 1], [1, 0, 1])
    assert path.score.tolist() == [0.7, 0.9]
    assert path.error == path_of([0.9, 0.7], [1, 1]).error


def test_between_distinct_scores_the_path_is_linear():
    path = path_of([0.5, 0.5, 0.8, 0.8], [0, 0, 1, 1])
    at = path.excess_at(np.array([0.0, 0.25, 0.5, 0.75, 1.0]))
    assert at == pytest.approx([0.0, 0.125, 0.25, 0.2, 0.15])


@pytest.mark.parametrize("decimals", [1, 3, 12])
def test_the_error_of_rows_that_count_one_is_that_of_their_path(decimals, rng):
    score = np.round(rng.random(CACHE_BLOCK), decimals)
    claim = Claim(0, slice(None), score, rng.random(score.size) < score**1.1, np.ones(score.size))
    assert claim_ks(claim) == ks_path(claim).error
