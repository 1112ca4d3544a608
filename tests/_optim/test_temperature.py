"""The fast search finds what the plain one does."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample, LazyRows
from calibrant._optim import fast_temperature, slope_search
from calibrant._optim.plain_temperature import find_log_beta_plainly
from calibrant._optim.solution import Outcome
from calibrant._optim.temperature import find_log_beta

SHAPES = [(5, 2), (30, 3), (500, 10), (60, 400), (3_000, 10), (700, 60), (8_000, 4), (20_000, 12)]
"""Samples of few scores, of few rows with many scores, and of so many rows that some give the
start; the last one has more than one block."""


def sample_of(rng, n_rows, n_classes, *, temperature=1.5, spread=2.0, is_weighted=False):
    u = spread * rng.normal(size=(n_rows, n_classes))
    y = (u + rng.gumbel(size=u.shape)).argmax(axis=1)
    weight = rng.exponential(size=n_rows) * (rng.random(n_rows) < 0.9) if is_weighted else None
    u = temperature * u + 0.3 * rng.normal(size=u.shape)
    return ArraySample(u, y, np.broadcast_to(1.0, n_rows) if weight is None else weight)


def assert_same(sample, prior_scale=None):
    """Temperatures agree to 1e-9, log-losses to 1e-12."""
    found = find_log_beta(sample, prior_scale=prior_scale)
    plain = find_log_beta_plainly(sample, prior_scale=prior_scale)
    assert found.outcome is plain.outcome is Outcome.CONVERGED
    assert found.parameters[0] == pytest.approx(plain.parameters[0], abs=1e-9)
    assert found.objective == pytest.approx(plain.objective, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("temperature", [0.3, 1.0, 6.0])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_fast_search_finds_the_temperature_of_the_plain_one(
    rng, shape, temperature, is_weighted
):
    assert_same(sample_of(rng, *shape, temperature=temperature, is_weighted=is_weighted), 2.0)


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("spread", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("prior_scale", [None, 0.25])
def test_priors_and_scores_of_any_spread_have_the_same_result(rng, shape, spread, prior_scale):
    assert_same(sample_of(rng, *shape, spread=spread), prior_scale)


@pytest.mark.parametrize("seed", range(100))
def test_random_samples_have_the_same_result(seed):
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(30, 400)), int(rng.integers(2, 30))
    temperature, spread = np.exp(rng.normal()), rng.uniform(0.5, 4.0)
    sample = sample_of(rng, *shape, temperature=temperature, spread=spread, is_weighted=True)
    assert_same(sample, rng.choice([0.1, 0.5, 3.0]))


@pytest.mark.parametrize("shape", [(500, 10), (8_000, 10)])
def test_single_precision_input_has_the_same_result(rng, shape):
    sample = sample_of(rng, *shape)
    assert_same(ArraySample(sample.u.astype(np.float32), sample.y, sample.weight))


@pytest.mark.parametrize("n_rows", [200, 6_000])
def test_rows_that_are_nearly_separable_have_the_same_result(rng, n_rows):
    y = rng.integers(3, size=n_rows)
    u = 8 * np.eye(3)[y] + 0.1 * rng.normal(size=(n_rows, 3))
    y[0] = (y[0] + 1) % 3  # without this row every margin would be positive
    assert_same(ArraySample(u, y, np.ones(n_rows)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0, 1e4])
@pytest.mark.parametrize("shift", [0.0, 60.0, -720.0, 1e5])
@pytest.mark.parametrize("n_rows", [500, 6_000])
def test_scores_of_any_scale_and_offset_have_the_same_result(rng, scale, shift, n_rows):
    sample = sample_of(rng, n_rows, 5, is_weighted=True)
    assert_same(ArraySample(scale * sample.u + shift, sample.y, sample.weight))


def test_rows_that_are_computed_on_demand_have_the_same_result(rng):
    sample = sample_of(rng, 20_000, 12)
    assert_same(ArraySample(LazyRows(np.exp(sample.u), np.log), sample.y, sample.weight))


@pytest.mark.parametrize("n_rows", [30, 9_000])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_separable_and_uninformative_scores_are_named(n_rows, scale):
    y = np.arange(n_rows) % 3
    right, weight = np.eye(3)[y], np.ones(n_rows)
    for find in (find_log_beta, find_log_beta_plainly):
        assert find(ArraySample(scale * right, y, weight)).outcome is Outcome.SEPARABLE
        worse = find(ArraySample(-scale * right, y, weight))
        assert worse.outcome is Outcome.UNINFORMATIVE
        assert np.isfinite(worse.parameters).all()


def test_scores_without_any_information_keep_the_temperature():
    sample = ArraySample(np.zeros((10, 3)), np.arange(10) % 3, np.ones(10))
    for find in (find_log_beta, find_log_beta_plainly):
        solution = find(sample)
        assert solution.parameters[0] == 0
        assert solution.outcome is Outcome.CONVERGED


def test_a_start_from_rows_without_weight_is_no_start(rng):
    sample = sample_of(rng, 8_000, 5)
    weight = np.ones(8_000)
    weight[::16] = 0.0
    assert_same(sample.weighted(weight))


def test_a_search_that_ran_out_of_steps_is_no_optimum(rng, monkeypatch):
    monkeypatch.setattr(slope_search, "MAX_ITER", 1)
    u, y = 5 * rng.normal(size=(100, 3)), rng.integers(3, size=100)
    solution = find_log_beta(ArraySample(u, y, np.ones(100)))
    assert solution.outcome is Outcome.ITERATION_LIMIT


@pytest.fixture
def passes(monkeypatch):
    """Rows and precision of every pass."""
    done, sums = [], fast_temperature.block_sums

    def counted(beta, arithmetic, n_powers, constants, block):
        done.append((len(block.y), arithmetic is fast_temperature._SINGLE))
        return sums(beta, arithmetic, n_powers, constants, block)

    monkeypatch.setenv("CALIBRANT_FAST", "0")
    monkeypatch.setattr(fast_temperature, "block_sums", counted)
    return done


def test_few_scores_take_three_passes_in_double_precision(rng, passes):
    counts = []
    for temperature in np.geomspace(0.5, 3.0, 20):
        passes.clear()
        find_log_beta(sample_of(rng, 500, 10, temperature=temperature))
        counts.append(len(passes))
        assert not any(is_single for _, is_single in passes)
    assert np.mean(counts) <= 3
    assert max(counts) <= 4


def test_many_rows_take_one_pass_in_each_precision(rng, passes):
    find_log_beta(sample_of(rng, 10_000, 10))
    assert [p for p in passes if p[0] == 10_000] == [(10_000, True), (10_000, False)]
