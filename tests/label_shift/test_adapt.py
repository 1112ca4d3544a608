from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrant import StructuredScaling, metrics
from calibrant._optim.mixture import mixture_weights
from calibrant._optim.solution import Outcome
from calibrant.exceptions import ConvergenceWarning
from calibrant.label_shift import _adapt, adapt


def _posterior(rng, prior, n_rows, source_prior, separation=2.0):
    """Exact probabilities under ``source_prior`` of Gaussian classes with frequencies ``prior``."""
    k = len(prior)
    y = rng.choice(k, size=n_rows, p=prior)
    x = rng.normal(size=(n_rows, k))
    x[np.arange(n_rows), y] += separation
    logits = separation * x + np.log(source_prior)
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True), y


def test_em_finds_the_frequencies_of_the_target(rng):
    before, after = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    source, _ = _posterior(rng, before, 5000, before)
    target, y = _posterior(rng, after, 5000, before)
    result = adapt(source, target, n_resamples=60, rng=0)
    np.testing.assert_allclose(result.target_prior, after, atol=0.03)
    assert ((result.low < after / before) & (after / before < result.high)).all()
    assert metrics.log_loss(y, result.proba) < metrics.log_loss(y, target) - 0.05


def test_the_likelihood_is_at_its_maximum(rng):
    """First-order conditions: the mean of p'_k / q_k is one where q_k > 0."""
    source, _ = _posterior(rng, np.full(4, 0.25), 2000, np.full(4, 0.25))
    target, _ = _posterior(rng, np.array([0.7, 0.1, 0.1, 0.1]), 500, np.full(4, 0.25))
    result = adapt(source, target, n_resamples=2, rng=0)
    ratio = target / result.source_prior
    slope = np.mean(ratio / (ratio @ result.target_prior)[:, None], axis=0)
    np.testing.assert_allclose(slope, 1.0, atol=1e-9)  # the solver's tolerance is 1e-10


def test_a_class_that_never_occurs_gets_weight_zero(rng):
    source, _ = _posterior(rng, np.full(3, 1 / 3), 3000, np.full(3, 1 / 3), separation=4.0)
    target, _ = _posterior(rng, np.array([0.5, 0.5, 0.0]), 3000, np.full(3, 1 / 3), separation=4.0)
    assert adapt(source, target, n_resamples=20, rng=0).weights[2] < 0.01


@pytest.mark.slow
def test_without_shift_the_weights_are_one_within_their_interval():
    """Joint intervals hold in 95% of the samples: 88 of 100 is 3 standard errors below."""
    prior = np.array([0.5, 0.3, 0.2])
    kept = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        source, target = (_posterior(rng, prior, 400, prior)[0] for _ in range(2))
        kept += not adapt(source, target, n_resamples=60, rng=seed).is_shifted.any()
    assert kept >= 88


def test_long_tailed_calibration_is_adapted_to_a_balanced_test_set(real_data):
    file = real_data("cifar10lt_resnet110_sctl")
    calibrator = StructuredScaling(inputs="logits").fit(file["val_logits"], file["val_labels"])
    source, target = (calibrator.predict_proba(file[f"{part}_logits"]) for part in ("val", "test"))
    result = adapt(source, target, n_resamples=50, rng=0)
    y = file["test_labels"]
    assert metrics.log_loss(y, result.proba) < metrics.log_loss(y, target) - 0.05
    assert metrics.accuracy(y, result.proba) > metrics.accuracy(y, target) + 0.01
    assert result.is_shifted.sum() >= 8
    true = 0.1 / np.bincount(file["val_labels"]) * len(file["val_labels"])
    np.testing.assert_allclose(
        result.weights, true, rtol=0.2
    )  # the net is not perfectly calibrated


def test_a_fitted_calibrator_stands_for_the_source(real_data):
    file = real_data("cifar10lt_resnet110_sctl")
    calibrator = StructuredScaling(inputs="logits").fit(file["val_logits"], file["val_labels"])
    result = adapt(calibrator, file["test_logits"], n_resamples=2, rng=0)
    np.testing.assert_allclose(
        result.source_prior, np.bincount(file["val_labels"]) / len(file["val_labels"])
    )
    np.testing.assert_allclose(result.proba.sum(axis=1), 1.0)


def test_other_rows_of_the_target_are_adapted_alike(rng):
    source, _ = _posterior(rng, np.full(3, 1 / 3), 500, np.full(3, 1 / 3))
    target, _ = _posterior(rng, np.array([0.6, 0.2, 0.2]), 500, np.full(3, 1 / 3))
    result = adapt(source, target, n_resamples=2, rng=0)
    np.testing.assert_allclose(result.apply(target[:7]), result.proba[:7])


def test_a_class_that_never_occurs_does_not_widen_the_intervals_of_the_others():
    """Its weight is zero in every sample.

    Round-off of this weight, in units of its own standard deviation, would widen the joint band
    (to 0.58 in version 0.1.0).
    """
    rng, prior = np.random.default_rng(0), np.full(3, 1 / 3)
    source, _ = _posterior(rng, prior, 1000, prior)
    target, _ = _posterior(rng, np.array([0.5, 0.5, 0.0]), 1000, prior)
    result = adapt(source, target, n_resamples=60, rng=0)
    assert (result.high - result.low)[:2].max() < 0.45


def test_a_search_that_does_not_converge_raises_a_warning(rng, monkeypatch):
    source, _ = _posterior(rng, np.full(3, 1 / 3), 200, np.full(3, 1 / 3))

    def stopped(likelihood, weight):
        result = mixture_weights(likelihood, weight)
        return replace(result, outcome=Outcome.ITERATION_LIMIT)

    monkeypatch.setattr(_adapt, "mixture_weights", stopped)
    with pytest.warns(ConvergenceWarning, match=r"label_shift\.adapt: .*iteration"):
        adapt(source, source, n_resamples=1, rng=0)


def test_it_rejects_where_the_shift_cannot_be_identified(rng):
    constant = np.tile([0.5, 0.3, 0.2], (300, 1))
    with pytest.raises(ValueError, match="cannot be identified"):
        adapt(constant, constant)
    twins = rng.dirichlet([1, 1], size=300)
    twins = np.column_stack([twins[:, 0], twins[:, 1] / 2, twins[:, 1] / 2])
    with pytest.raises(ValueError, match="merge these classes"):
        adapt(twins, twins)


def test_a_class_without_source_frequency_is_rejected():
    with pytest.raises(ValueError, match="Class 2 has frequency zero"):
        adapt([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]], [[0.3, 0.4, 0.3]])


def test_bad_arguments_are_rejected(rng):
    proba = rng.dirichlet(np.ones(3), size=50)
    with pytest.raises(ValueError, match="level must lie"):
        adapt(proba, proba, level=1.5)
    with pytest.raises(ValueError, match="same classes"):
        adapt(proba, rng.dirichlet(np.ones(4), size=50))


def test_a_band_reaches_to_the_draw_that_others_exceed_as_rarely_as_was_asked_for():
    """The 38th largest of 39 draws: another draw is larger with probability 2/40."""
    drawn = 1 + np.linspace(-0.3, 0.5, 39)[:, None] * [1.0, 0.0]
    low, high = _adapt._band(np.ones(2), drawn, 0.95)
    assert high[0] == pytest.approx(np.sort(drawn[:, 0])[37])
    assert low[0] == pytest.approx(2 - high[0])
    assert (low[1], high[1]) == (1.0, 1.0)
    _, few = _adapt._band(np.ones(2), drawn[-5:], 0.95)
    assert few[0] == pytest.approx(1.5)


def test_classes_of_three_rows_are_too_rare_to_know_their_weights():
    """The shift is identified, but three rows per class are too few for each of 100 classes."""
    proba = 0.9 * np.eye(100)[np.tile(np.arange(100), 10)] + 0.001
    with pytest.raises(ValueError, match=r"class \d+ has a frequency of only 0\.01"):
        adapt(proba, proba[:300])
    assert adapt(proba, proba, n_resamples=5, rng=0).information > 0.5


def test_known_class_frequencies_of_the_target_are_used_unchanged(rng):
    z = rng.normal(scale=2, size=(400, 3))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    model = StructuredScaling(inputs="logits").fit(z, labels)
    known = np.array([0.1, 0.3, 0.6])
    result = adapt(model, z[:2], target_prior=known)
    expected = model.predict_proba(z[:2]) * known / model.class_prior_
    np.testing.assert_allclose(result.proba, expected / expected.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(result.target_prior, known)
    np.testing.assert_array_equal(result.low, result.weights)
    np.testing.assert_allclose(result.apply(model.predict_proba(z[:2])), result.proba)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], r"shape \(3,\)"),
        ([10, 30, 60], r"counts / counts\.sum\(\)"),
        ([-0.1, 0.5, 0.6], "sum to 1"),
        ([0.1, 0.3, np.nan], "sum to 1"),
    ],
)
def test_wrong_frequencies_of_the_target_are_errors(rng, prior, message):
    proba = rng.dirichlet(np.ones(3), 50)
    with pytest.raises(ValueError, match=message):
        adapt(proba, proba, target_prior=prior)


def test_a_class_that_the_source_lacks_may_only_be_absent_from_the_target():
    proba = np.array([[0.4, 0.6, 0.0]] * 3)
    assert adapt(proba, proba, target_prior=[0.5, 0.5, 0.0]).weights[2] == 0.0
    with pytest.raises(ValueError, match="Class 2 has frequency zero in the source"):
        adapt(proba, proba, target_prior=[0.5, 0.4, 0.1])
