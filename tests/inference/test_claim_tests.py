from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from calibrant.datasets import digits_predictions
from calibrant.inference import (
    hosmer_lemeshow_test,
    ks_test,
    kuiper_test,
    mean_test,
    spiegelhalter_test,
)
from calibrant.inference._claim_tests import distance_tail, range_tail
from calibrant.metrics import ks_error

TESTS = [spiegelhalter_test, hosmer_lemeshow_test, ks_test, kuiper_test]
ONE = {"notion": "class-1"}


def drawn(rng, n_rows):
    score = rng.beta(1, 1, n_rows)
    return (rng.random(n_rows) < score).astype(int), score


def test_spiegelhalter_is_the_formula(rng):
    y, p = drawn(rng, 400)
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    result = spiegelhalter_test(y, p, **ONE)
    assert result.statistic == pytest.approx(abs(z))
    assert result.p_value == pytest.approx(2 * norm.sf(abs(z)))


def test_hosmer_lemeshow_is_the_formula(rng):
    y, p = drawn(rng, 100)
    order = np.argsort(p).reshape(10, 10)
    expected, observed = p[order].sum(axis=1), y[order].sum(axis=1)
    statistic = ((observed - expected) ** 2 / (expected * (1 - expected / 10))).sum()
    result = hosmer_lemeshow_test(y, p, **ONE)
    assert result.statistic == pytest.approx(statistic)
    assert result.p_value == pytest.approx(chi2.sf(statistic, 10))
    fitted = hosmer_lemeshow_test(y, p, is_training=True, **ONE)
    assert fitted.p_value == pytest.approx(chi2.sf(statistic, 8))


def test_groups_that_expect_few_outcomes_make_hosmer_lemeshow_heuristic(rng):
    y, p = drawn(rng, 1000)
    assert hosmer_lemeshow_test(y, p, n_bins=5, **ONE).guarantee == "asymptotic"
    assert hosmer_lemeshow_test(y[:20], p[:20], **ONE).guarantee == "heuristic"


def test_the_ks_statistic_is_the_ks_error_in_standard_deviations(rng):
    y, p = drawn(rng, 200)
    expected = 200 * ks_error(y, p, **ONE) / np.sqrt((p * (1 - p)).sum())
    assert ks_test(y, p, **ONE).statistic == pytest.approx(expected)


def test_kuiper_sees_what_the_two_halves_hide_from_each_other():
    # The first half is too low by as much as the second is too high: the range is the same step.
    p = np.repeat([0.4, 0.6], 200)
    y = np.concatenate([np.arange(200) % 2, np.arange(200) % 2])
    one_sided = ks_test(y, p, **ONE).statistic
    assert kuiper_test(y, p, **ONE).statistic == pytest.approx(one_sided)
    y[200:] = np.arange(200) % 10 < 9  # now the scores of both halves are too low
    assert kuiper_test(y, p, **ONE).statistic >= ks_test(y, p, **ONE).statistic


@pytest.mark.parametrize("test", TESTS)
def test_a_claim_of_certainty_that_fails_is_impossible(test):
    assert test([0, 0], [1.0, 1.0], **ONE).p_value == 0.0


@pytest.mark.parametrize("test", TESTS)
def test_a_claim_of_certainty_that_holds_says_nothing(test):
    assert test([1, 1], [1.0, 1.0], **ONE).p_value == 1.0


@pytest.mark.parametrize("test", TESTS)
def test_only_ratios_of_weights_matter(rng, test):
    y, p = drawn(rng, 200)
    plain = test(y, p, **ONE).p_value
    for scale in (1 / 200, 100.0):
        weight = np.full(200, scale)
        assert test(y, p, sample_weight=weight, **ONE).p_value == pytest.approx(plain)


@pytest.mark.parametrize("test", TESTS)
def test_rows_of_weight_zero_are_absent(rng, test):
    y, p = drawn(rng, 200)
    weight = np.where(np.arange(200) < 150, 2.5, 0.0)
    present = test(y[:150], p[:150], **ONE).p_value
    assert test(y, p, sample_weight=weight, **ONE).p_value == pytest.approx(present)


@pytest.mark.parametrize("test", [*TESTS, mean_test])
def test_weights_of_whole_numbers_are_not_copies(rng, test):
    """Weights of 2 and 20 do not make the test reject a calibrated model."""
    p_values = []
    for _ in range(25):
        y, p = drawn(rng, 200)
        weight = rng.choice([2, 20], 200)
        p_values.append(test(y, p, sample_weight=weight, **ONE).p_value)
    assert np.mean(np.array(p_values) < 0.05) < 0.2  # 0.05 and three standard errors


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("notion", ["confidence", "class-wise", "top-label", "cumulative"])
def test_every_notion_is_tested_the_worst_claim_by_bonferroni(test, notion):
    data = digits_predictions()
    result = test(data.test_labels, data.test_proba, notion=notion)
    assert result.p_value < 0.01
    assert ("Bonferroni" in result.test) == (notion != "confidence")


def test_several_claims_multiply_the_smallest_p_value(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    labels = np.minimum(2, (rng.random(200)[:, None] > proba.cumsum(axis=1)).sum(axis=1))
    single = [ks_test(labels, proba, notion=f"class-{k}").p_value for k in range(3)]
    assert ks_test(labels, proba, notion="class-wise").p_value == min(1, 3 * min(single))


def test_the_tails_are_those_of_tables():
    # Brownian motion: P(max |W| > 2.2414) = 0.05; range: Feller's law, by simulation below
    assert distance_tail(2.2414027) == pytest.approx(0.05, abs=1e-7)
    assert range_tail(2.4976722) == pytest.approx(0.05, abs=1e-7)
    assert [distance_tail(0.0), range_tail(0.0)] == [1.0, 1.0]
    assert [distance_tail(np.inf), range_tail(np.inf)] == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [50, 500])
@pytest.mark.parametrize("test", TESTS)
def test_the_level_holds_under_calibration(test, n_rows):
    small = [
        test(*drawn(np.random.default_rng(seed), n_rows), **ONE).p_value <= 0.05
        for seed in range(1000)
    ]
    assert np.mean(small) <= 0.08


def test_the_test_of_the_mean_is_exact_for_equal_scores():
    """Predictions of class 1 with 0.9, of which 8 in 20 are correct: a binomial tail."""
    proba = np.repeat([[0.1, 0.9]], 20, axis=0)
    result = mean_test(np.arange(20) < 8, proba)
    assert result.p_value == pytest.approx(2 * binom.cdf(8, 20, 0.9))
    assert result.guarantee == "finite-sample"


def test_the_test_of_the_mean_finds_a_rare_predicted_class(rng):
    score = rng.uniform(0.5, 1, 1000)
    proba, y = np.column_stack([score, 1 - score]), (rng.random(1000) > score).astype(int)
    proba[:20], y[:20] = [0.1, 0.9], np.arange(20) < 8
    assert mean_test(y, proba).p_value < 1e-4
    assert mean_test(y, proba, notion="confidence").p_value > 0.01


def test_the_test_of_the_mean_weights_by_a_normal_approximation(rng):
    score = rng.uniform(0.3, 0.7, 400)
    y = rng.random(400) < score
    weighted = mean_test(y, score, notion="class-1", sample_weight=np.full(400, 3.0))
    assert weighted.guarantee == "asymptotic"
    assert weighted.p_value == pytest.approx(
        mean_test(y, score, notion="class-1").p_value, abs=0.05
    )


@pytest.mark.parametrize("test", [spiegelhalter_test, ks_test, kuiper_test])
def test_scores_near_zero_are_rejected_as_rarely_as_the_level_states(test):
    """One outcome in fifty rows of probability 0.003 is not unusual, and two are rare."""
    p = np.full(50, 0.003)
    one, two = (test(np.arange(50) < hits, p, **ONE) for hits in (1, 2))
    assert one.guarantee == two.guarantee == "exact"
    assert one.p_value == pytest.approx(1 - 0.997**50, abs=0.02)
    assert two.p_value < 0.02
    assert one.n_resamples == 1999


@pytest.mark.parametrize("test", [spiegelhalter_test, ks_test, kuiper_test])
def test_many_outcomes_need_no_draws(rng, test):
    y, p = drawn(rng, 400)
    assert test(y, p, **ONE).guarantee == "asymptotic"
