"""Summaries of the calibration scores."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import LazyRows
from calibrant.datasets import draw_labels
from calibrant.multiclass._gp.scores import standardize, summarize_scores


def some_data(rng, n_rows=400, n_classes=5, spread=3.0):
    u = spread * rng.normal(size=(n_rows, n_classes))
    proba = np.exp(u / 2) / np.exp(u / 2).sum(axis=1, keepdims=True)
    return u, draw_labels(proba, rng=rng)


def test_the_kernel_sees_mean_zero_and_variance_one(rng):
    u, y = some_data(rng)
    weight = rng.random(len(u))
    x = standardize(u, y, weight).inputs(slice(None))
    assert abs(np.average(x.mean(axis=1), weights=weight)) < 1e-12
    assert abs(np.average((x**2).mean(axis=1), weights=weight) - 1) < 1e-12


@pytest.mark.parametrize("value", [0.0, 1e4])
def test_constant_scores_are_left_in_their_units(value):
    assert standardize(np.full((5, 3), value), np.zeros(5, dtype=int), np.ones(5)).scale == 1.0


def test_the_line_is_the_best_inverse_temperature(rng):
    u, y = some_data(rng)
    summary = summarize_scores(standardize(u, y, np.ones(len(u))))

    def loss(beta):
        return np.mean(np.log(np.exp(beta * u).sum(axis=1)) - beta * u[np.arange(len(u)), y])

    beta = summary.line / summary.rows.scale
    assert loss(beta) < min(loss(beta * 1.02), loss(beta / 1.02))


@pytest.mark.parametrize(("sign", "expected"), [(1, 30.0), (-1, -30.0)])
def test_the_line_of_separable_data_ends_at_a_limit(rng, sign, expected):
    u = rng.normal(size=(50, 3))
    assert summarize_scores(standardize(u, (sign * u).argmax(axis=1), np.ones(50))).line == expected


def test_weights_and_blocks_are_equivalent_to_repeated_rows(rng, monkeypatch):
    u, y = some_data(rng, 60)
    weight = rng.integers(1, 4, size=60)
    a = summarize_scores(standardize(u, y, weight.astype(float)))
    repeated = np.repeat(u, weight, axis=0)
    b = summarize_scores(
        standardize(LazyRows(repeated, np.array), np.repeat(y, weight), np.ones(weight.sum()))
    )
    np.testing.assert_allclose([a.low, a.high, a.line], [b.low, b.high, b.line], rtol=1e-9)
    np.testing.assert_allclose(a.spread_inputs(7), b.spread_inputs(7), atol=1e-9)


def test_inducing_inputs_start_apart_and_in_range_even_where_scores_are_tied():
    u = np.log(np.tile([0.97, 0.01, 0.01, 0.01], (50, 1)))
    summary = summarize_scores(standardize(u, np.zeros(50, dtype=int), np.ones(50)))
    inputs = summary.spread_inputs(10)
    gaps = np.diff(inputs)
    assert (gaps > 0).all()
    assert ((gaps[1:] > 0.1) | (gaps[:-1] > 0.1)).all()  # never three on top of each other
    assert summary.low <= inputs[0]
    assert inputs[-1] <= summary.high


def test_rare_scores_that_matter_get_inducing_inputs(rng):
    """One of 1000 classes has a high score: a share of inputs, not a thousandth of them, starts
    there."""
    u = np.concatenate([np.full((30, 1), -0.1), -9 + rng.normal(size=(30, 999))], axis=1)
    summary = summarize_scores(standardize(u, np.zeros(30, dtype=int), np.ones(30)))
    scores = summary.spread_inputs(10) * summary.rows.scale + summary.rows.center
    assert (scores > -2).sum() >= 2
