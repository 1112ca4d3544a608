"""The averaged two-bin error: its integral, its truthfulness, weights and ties."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from calibrant import inference
from calibrant.metrics import averaged_two_bin_error, expected_calibration_error


def by_hand(outcome, score):
    """The integral over cuts between sorted scores, by brute force."""
    edges = np.concatenate([[0.0], np.sort(score), [1.0]])
    total = 0.0
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        below, above = score <= middle, score > middle
        total += (high - low) * sum((score - outcome)[part].sum() ** 2 for part in (below, above))
    return total / len(score) ** 2


def test_two_rows_by_hand():
    # Cuts below 1/4, between and above 3/4: 1/4 x 0 + 1/2 x 2 / 64 + 1/4 x 0.
    assert averaged_two_bin_error([0, 1], [0.25, 0.75]) == pytest.approx(1 / 64, abs=1e-15)


@pytest.mark.parametrize("n_rows", [1, 2, 7, 300])
def test_it_is_the_integral_over_cuts(rng, n_rows):
    score = rng.random(n_rows).round(2)
    outcome = rng.random(n_rows) < score
    result = averaged_two_bin_error(outcome.astype(int), score, notion="class-1")
    assert result == pytest.approx(by_hand(outcome, score), abs=1e-12)


def test_two_classes_have_the_error_of_one(rng):
    score = rng.random(50)
    y = (rng.random(50) < score).astype(int)
    both = averaged_two_bin_error(y, score)
    assert both == pytest.approx(averaged_two_bin_error(y, score, notion="class-1"), abs=1e-14)


def test_weight_two_is_the_row_twice_and_zero_the_row_absent(rng):
    proba = rng.dirichlet(np.ones(4), 40)
    y, weight = rng.integers(0, 4, 40), rng.integers(0, 3, 40)
    copies = np.repeat(np.arange(40), weight)
    weighted = averaged_two_bin_error(y, proba, sample_weight=weight)
    assert weighted == pytest.approx(averaged_two_bin_error(y[copies], proba[copies]), abs=1e-14)


def test_the_order_of_rows_with_equal_scores_does_not_matter(rng):
    score, y = np.repeat([0.2, 0.6], 20), rng.integers(0, 2, 40)
    order = rng.permutation(40)
    there, here = averaged_two_bin_error(y, score), averaged_two_bin_error(y[order], score[order])
    assert there == pytest.approx(here, abs=1e-15)


def test_a_consistency_test_takes_it_by_name(rng):
    proba = rng.dirichlet(np.ones(3), 300)
    y = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    metric = averaged_two_bin_error
    honest = inference.consistency_test(y, proba, metric, n_resamples=99, rng=0)
    wrong = inference.consistency_test(2 - y, proba, metric, n_resamples=99, rng=0)
    assert honest.p_value > 0.05
    assert wrong.p_value == 0.01


def lies(truth):
    """Forecasts that differ from the true probabilities on purpose."""
    yield np.full_like(truth, 0.5)
    yield 0.5 + 0.8 * (truth - 0.5)
    yield (np.floor(truth * 5) + 0.5) / 5
    yield np.clip(0.5 + 1.25 * (truth - 0.5), 0, 1)


@pytest.mark.slow
def test_the_truth_has_the_smallest_mean_error_and_ece_prefers_the_base_rate(rng):
    def errors(metric):
        truth = rng.random(200)
        y = (rng.random(200) < truth).astype(int)
        return [metric(y, text, notion="class-1") for text in (truth, *lies(truth))]

    two_bin = np.array([errors(averaged_two_bin_error) for _ in range(3000)])
    excess = two_bin[:, 1:] - two_bin[:, :1]
    assert (excess.mean(axis=0) > 3 * excess.std(axis=0) / np.sqrt(len(excess))).all()
    ece = np.array([errors(expected_calibration_error) for _ in range(200)])
    assert ece.mean(axis=0).argmin() == 1


@pytest.mark.slow
def test_the_truth_has_the_smallest_class_wise_error_of_ten_classes(rng):
    def excess():
        truth = rng.dirichlet(np.full(10, 0.5), 200)
        y = (truth.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1).clip(max=9)
        lied = [np.full_like(truth, 0.1), 0.8 * truth + 0.02]
        sharp = truth**1.25
        lied.append(sharp / sharp.sum(axis=1, keepdims=True))
        honest = averaged_two_bin_error(y, truth)
        return [averaged_two_bin_error(y, text) - honest for text in lied]

    draws = np.array([excess() for _ in range(600)])
    assert (draws.mean(axis=0) > 3 * draws.std(axis=0) / np.sqrt(len(draws))).all()
