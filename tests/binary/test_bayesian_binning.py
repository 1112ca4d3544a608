from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, softmax

from calibrant.binary import BayesianBinning
from calibrant.metrics import ks_error

# Two groups of eight: .2 without a hit, .7 with hits only.
SCORES, OUTCOMES = [0.2] * 8 + [0.7] * 8, [0] * 8 + [1] * 8


def log_beta_binomial(m, n, alpha, beta):
    return (
        gammaln(alpha + beta)
        - gammaln(n + alpha + beta)
        + gammaln(m + alpha)
        - gammaln(alpha)
        + gammaln(n - m + beta)
        - gammaln(beta)
    )


def test_evidence_and_posterior_means_by_hand():
    bbq = BayesianBinning(prior_strength=2.0).fit(SCORES, OUTCOMES)
    # One bin with midpoint 1/2; two bins (0, .2] and (.2, 1] with midpoints .1 and .6, each with
    # half of the prior.
    one = log_beta_binomial(8, 16, 1, 1)
    two = log_beta_binomial(0, 8, 0.1, 0.9) + log_beta_binomial(8, 8, 0.6, 0.4)
    assert bbq.n_bins_.tolist() == [1, 2]
    np.testing.assert_allclose(bbq.log_evidence_, [one, two])
    share = 1 / (1 + np.exp(one - two))
    np.testing.assert_allclose(bbq.weights_, [1 - share, share])
    np.testing.assert_allclose(
        bbq.values_, [(1 - share) / 2 + share * 0.1 / 9, (1 - share) / 2 + share * 8.6 / 9]
    )


def test_the_evidence_is_that_of_wengers_code_on_real_data(reference, real_data):
    # His scores include the uniform prior over 171 models. His edges lie between two scores instead
    # of at one, which moves the midpoints of the bins a little: the evidence differs by less than
    # 0.2 where it matters.
    data = real_data("focal_cifar10_resnet50_gupta")
    p = softmax(data["val_logits"].astype(float), axis=1)[:, 3]
    theirs = reference["focal_cifar10_resnet50_gupta"]["wenger_pycalib_methods (val->test)"][
        "BBQ_binary_class3"
    ]
    bbq = BayesianBinning().fit(p, (data["val_labels"] == 3).astype(int))
    assert bbq.n_bins_[[0, -1]].tolist() == theirs["n_bins_range"]
    score = np.array(theirs["log_scores"]) + np.log(171)
    np.testing.assert_allclose(bbq.log_evidence_[:5], score[:5], atol=2e-3)
    np.testing.assert_allclose(bbq.log_evidence_[:40], score[:40], atol=0.2)
    assert bbq.weights_.argmax() == np.argmax(theirs["weights"])
    # His value of a bin is the raw frequency; the posterior mean moves it by at most the prior
    # strength over the rows.
    test = softmax(data["test_logits"].astype(float), axis=1)[:10, 3]
    np.testing.assert_allclose(bbq.predict_proba(test)[:, 1], theirs["pred_test_head10"], atol=1e-4)


def test_scores_are_binned_at_prediction_as_they_were_at_fit():
    bbq = BayesianBinning().fit(SCORES, OUTCOMES)
    low, high = bbq.values_
    predicted = bbq.predict_proba([0.0, 0.2, 0.2 + 1e-9, 0.7, 1.0])[:, 1]
    assert predicted.tolist() == [low, low, high, high, high]


def test_the_average_is_a_step_function_with_edges_at_scores(rng):
    p = rng.random(500)
    bbq = BayesianBinning().fit(p, (rng.random(500) < p).astype(int))
    assert np.isin(bbq.edges_, p).all()
    assert bbq.edges_[-1] == p.max()
    assert (np.diff(bbq.edges_) > 0).all()


def test_the_weights_of_the_models_add_to_one(rng):
    p = rng.random(500)
    bbq = BayesianBinning().fit(p, (rng.random(500) < p).astype(int))
    assert bbq.weights_.sum() == pytest.approx(1)
    assert len(bbq.weights_) == len(bbq.n_bins_) == len(bbq.log_evidence_)


@pytest.mark.parametrize(("n", "lowest", "highest"), [(1000, 1, 100), (27, 1, 27), (8000, 2, 200)])
def test_the_range_of_bins_grows_with_the_cube_root_of_the_rows(rng, n, lowest, highest):
    bbq = BayesianBinning().fit(rng.random(n), rng.integers(2, size=n))
    assert bbq.n_bins_.tolist() == list(range(lowest, highest + 1))


def test_fewer_models_are_spread_over_the_same_range(rng):
    p, y = rng.random(1000), rng.integers(2, size=1000)
    assert BayesianBinning(n_models=4).fit(p, y).n_bins_.tolist() == [1, 34, 67, 100]
    assert BayesianBinning(n_models=10_000).fit(p, y).n_bins_.tolist() == list(range(1, 101))


def test_nothing_is_impossible_and_nothing_certain():
    for y in ([0] * 20, [1] * 20, [0] * 10 + [1] * 10):
        proba = BayesianBinning().fit(np.repeat([0.0, 1.0], 10), y).predict_proba([0.0, 0.5, 1.0])
        assert (proba > 0).all()


def test_a_strong_prior_keeps_the_midpoints():
    bbq = BayesianBinning(prior_strength=1e9).fit(SCORES, OUTCOMES)
    mixed = bbq.weights_[0] * 0.5 + bbq.weights_[1] * np.array([0.1, 0.6])
    np.testing.assert_allclose(bbq.values_, mixed, atol=1e-6)  # the data count 16 against 1e9


def test_it_calibrates_overconfident_scores(rng):
    z = rng.normal(scale=2, size=8000)
    p = 1 / (1 + np.exp(-3 * z))
    y = (rng.random(8000) < 1 / (1 + np.exp(-z))).astype(int)
    bbq = BayesianBinning().fit(p[:4000], y[:4000])
    assert ks_error(y[4000:], bbq.predict_proba(p[4000:]), notion="class-1") < 0.02
    assert ks_error(y[4000:], p[4000:], notion="class-1") > 0.04


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_models": 0}, "n_models must be an integer"),
        ({"prior_strength": 0.0}, "prior_strength must be a positive"),
    ],
)
def test_bad_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        BayesianBinning(**parameters).fit([0.2, 0.8], [0, 1])
