from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from calibrant.inference import critical_difference, friedman_test

# Kull et al. 2019, supplement, Table 4: ranks of log-loss of naive Bayes after seven calibration
# methods, 20 datasets.
METHODS = ["DirL2", "Beta", "FreqB", "Isot", "WidB", "TempS", "Uncal"]
RANKS = {
    "abalone": [1, 4, 2, 5, 6, 3, 7],
    "balance-scale": [1, 2, 5, 3, 4, 6, 7],
    "car": [1, 4, 2, 3, 5, 6.5, 6.5],
    "cleveland": [1, 4, 2, 5, 3, 6, 7],
    "dermatology": [1, 5, 2, 3, 4, 7, 6],
    "glass": [1, 4, 3, 5, 2, 6.5, 6.5],
    "iris": [1, 5, 6, 7, 4, 3, 2],
    "landsat-satellite": [1, 2, 4, 3, 5, 6.5, 6.5],
    "libras-movement": [1, 2, 4, 5, 3, 6.5, 6.5],
    "mfeat-karhunen": [1, 2, 6, 5, 4, 3, 7],
    "mfeat-morphological": [1, 5, 2, 3, 4, 6.5, 6.5],
    "mfeat-zernike": [1, 2, 4, 6, 5, 3, 7],
    "optdigits": [2, 4, 3, 1, 5, 6, 7],
    "page-blocks": [1, 4, 3, 2, 5, 6.5, 6.5],
    "pendigits": [1, 3, 4, 2, 5, 6.5, 6.5],
    "segment": [1, 5, 3, 2, 4, 6.5, 6.5],
    "vehicle": [1, 3, 2, 5, 4, 6, 7],
    "vowel": [1, 2, 6, 7, 5, 4, 3],
    "waveform-5000": [1, 2, 3, 4, 6, 5, 7],
    "yeast": [1, 4, 2, 3, 5, 6.5, 6.5],
}


def test_the_published_ranks_give_the_published_test():
    result = friedman_test(list(RANKS.values()))
    # Printed with two digits, 5.525 and 6.275 rounded up.
    assert result.average_ranks == pytest.approx([1.05, 3.40, 3.40, 3.95, 4.40, 5.525, 6.275])
    assert result.statistic == pytest.approx(73.82, abs=0.005)
    assert result.p_value == pytest.approx(6.71e-14, rel=1e-3)
    assert (result.n_datasets, result.n_methods) == (20, 7)


def test_scores_and_their_ranks_give_the_same_test(rng):
    scores = np.round(rng.random((12, 5)), 1)
    expected = friedmanchisquare(*scores.T)
    result = friedman_test(scores)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue)
    assert np.sum(result.average_ranks) == pytest.approx(15)


def test_methods_that_never_differ_have_p_value_one():
    result = friedman_test(np.ones((4, 3)))
    assert (result.statistic, result.p_value, result.average_ranks) == (0.0, 1.0, (2.0, 2.0, 2.0))


def test_the_smallest_score_ranks_first():
    assert friedman_test([[0.1, 0.2], [0.3, 0.4]]).average_ranks == (1.0, 2.0)


def test_the_result_has_a_text():
    result = friedman_test(list(RANKS.values()))
    assert str(result).startswith(
        "Friedman test of 7 methods on 20 datasets: statistic 73.82, p-value 6.71e-14 (asymptotic)"
    )
    assert json.loads(json.dumps(result.to_dict()))["n_methods"] == 7


def test_bad_tables_are_rejected():
    with pytest.raises(ValueError, match="dataset 1, method 0 is missing"):
        friedman_test([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="one row per dataset"):
        friedman_test([1.0, 2.0])
    with pytest.raises(ValueError, match="one row per dataset"):
        friedman_test([[1.0], [2.0]])


def test_the_critical_difference_of_the_paper():
    assert critical_difference(7, 20) == pytest.approx(1.635, abs=5e-4)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_nemenyi_quantiles_of_the_table_of_demsar(k, q):
    # Demsar 2006, Table 5(a), level 0.05.
    assert critical_difference(k, 6, method="nemenyi") == pytest.approx(
        q * np.sqrt(k * (k + 1) / 36), abs=1e-3 * k
    )


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.241), (5, 2.498), (7, 2.638), (10, 2.773)])
def test_two_tailed_bonferroni_dunn_quantiles_of_the_table_of_demsar(k, q):
    # Demsar 2006, Table 5(b), level 0.05.
    assert critical_difference(k, 6, tails=2) == pytest.approx(
        q * np.sqrt(k * (k + 1) / 36), abs=1e-3 * k
    )


def test_nonsense_is_rejected():
    with pytest.raises(ValueError, match="n_methods must be an integer of at least 2"):
        critical_difference(1, 20)
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        critical_difference(7, 20, alpha=5)
    with pytest.raises(ValueError, match="tails must be one of"):
        critical_difference(7, 20, tails=3)
