"""The search for kernel parameters and inducing inputs."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import draw_labels
from calibrant.multiclass._gp import search
from calibrant.multiclass._gp.bound import SparseBound
from calibrant.multiclass._gp.kernel import InducingInputs, Kernel
from calibrant.multiclass._gp.scores import ScoreSummary, standardize, summarize_scores
from calibrant.multiclass._gp.search import NOISE_FLOOR, fit_evidence


@pytest.fixture
def summary(rng) -> ScoreSummary:
    """Overconfident by a factor of two."""
    u = 3 * rng.normal(size=(300, 4))
    proba = np.exp(u / 2) / np.exp(u / 2).sum(axis=1, keepdims=True)
    return summarize_scores(standardize(u, draw_labels(proba, rng=rng), np.ones(300)))


def bound_of(summary: ScoreSummary):
    return lambda inducing: SparseBound(summary.rows, inducing)


def test_the_profile_has_the_gradient_of_its_value(summary, monkeypatch):
    monkeypatch.setattr(search, "TOLERANCE", 1e-20)
    profile = search._Profile(summary, bound_of(summary))
    packed = np.concatenate([np.log([1.5, 1.2, 0.01]), summary.spread_inputs(4)])
    _, gradient = profile(packed)
    step = 1e-5 * np.eye(len(packed))
    expected = [
        (profile.fresh(packed + e).value - profile.fresh(packed - e).value) / 2e-5 for e in step
    ]
    np.testing.assert_allclose(gradient, expected, atol=1e-8)


def test_the_search_beats_every_start_and_says_that_it_converged(summary):
    found = fit_evidence(summary, bound_of(summary), n_inducing=6)
    profile = search._Profile(summary, bound_of(summary))
    for start in search._usual_starts(summary, 6):
        assert found.solution.objective < profile.fresh(search._packed(start)).value
    assert found.solution.converged
    assert found.solution.n_iter >= 1


def test_what_is_found_is_a_stationary_point_but_for_the_noise(summary, monkeypatch):
    monkeypatch.setattr(search, "TOLERANCE", 1e-12)
    found = fit_evidence(summary, bound_of(summary), n_inducing=4)
    _, gradient = search._Profile(summary, bound_of(summary))(search._packed(found.inducing))
    free = np.delete(gradient, 2)
    assert np.abs(free).max() < 1e-4
    assert gradient[2] > 0  # noise only costs
    assert found.inducing.kernel.noise == pytest.approx(NOISE_FLOOR)


def test_the_objective_is_the_bound_and_the_priors_of_amplitude_and_roughness(summary):
    found = fit_evidence(summary, bound_of(summary), n_inducing=4)
    kernel = found.inducing.kernel
    prior = kernel.variance**0.5 / summary.amplitude + 0.5 / kernel.lengthscale
    assert found.solution.objective == pytest.approx((prior - found.point.value) / 300, rel=1e-12)


def test_a_given_start_competes(summary):
    best = fit_evidence(summary, bound_of(summary), n_inducing=5)
    again = fit_evidence(summary, bound_of(summary), n_inducing=5, starts=[best.inducing])
    assert again.solution.objective <= best.solution.objective


def test_a_search_that_is_cut_short_says_so(summary, monkeypatch):
    monkeypatch.setattr(search, "_MAX_ITER", 1)
    found = fit_evidence(summary, bound_of(summary), n_inducing=5)
    assert not found.solution.converged
    assert found.solution.n_iter == 1


def test_the_start_of_a_search_over_m_is_the_last_latent_function(summary):
    profile = search._Profile(summary, bound_of(summary))
    inputs = summary.spread_inputs(8)
    point = profile.fresh(np.concatenate([np.log([2.0, 1.0, 1e-6]), inputs])).point
    other = InducingInputs(Kernel(3.0, 1.1, 1e-6), inputs)
    old = InducingInputs(Kernel(2.0, 1.0, 1e-6), inputs)
    start = profile._start(other)
    grid = np.linspace(inputs[1], inputs[-2], 20)
    np.testing.assert_allclose(
        other.features(grid) @ start, old.features(grid) @ point.mean, atol=0.05
    )


@pytest.mark.parametrize("seed", range(4))
def test_scores_that_are_calibrated_keep_a_latent_function_that_hardly_moves(seed):
    rng = np.random.default_rng(seed)
    u = 3 * rng.normal(size=(300, 4))
    proba = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
    summary = summarize_scores(standardize(u, draw_labels(proba, rng=rng), np.ones(300)))
    found = fit_evidence(summary, bound_of(summary), n_inducing=5)
    assert found.inducing.kernel.variance == pytest.approx(1e-4)


def test_strong_evidence_is_asked_for(summary, monkeypatch):
    monkeypatch.setattr(search, "_STRONG_EVIDENCE", 1e6)
    found = fit_evidence(summary, bound_of(summary), n_inducing=5)
    assert found.inducing.kernel.variance == pytest.approx(1e-4)
