from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calibrant.binary import VennAbers
from calibrant.binning import distinct_sums


def refitted(score, outcome, weight, new, label):
    """The isotonic fit at a new score that is added with the given outcome."""
    values, total, hits = distinct_sums(
        np.append(score, new), np.append(outcome, label), np.append(weight, 1.0)
    )
    return isotonic_regression(hits / total, weights=total).x[np.searchsorted(values, new)]


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 30),
    st.integers(1, 30),
    st.sampled_from(["one", "copies", "any"]),
)
def test_the_interval_is_that_of_two_isotonic_refits(seed, n, n_values, kind):
    generator = np.random.default_rng(seed)
    score = generator.integers(0, n_values + 1, n) / n_values
    outcome = (
        generator.random(n)
        < generator.choice([0.0, 0.5, 1.0]) + generator.choice([-1, 0, 1]) * score
    ).astype(int)
    weight = {
        "one": np.ones(n),
        "copies": generator.integers(1, 4, n),
        "any": generator.exponential(size=n) + 0.01,
    }[kind]
    new = np.unique(np.concatenate([score, generator.random(8), [0.0, 1.0]]))
    p0, p1 = VennAbers().fit(score, outcome, weight).predict_pair(new)
    np.testing.assert_allclose(
        p0, [refitted(score, outcome, weight, s, 0) for s in new], atol=1e-12
    )
    np.testing.assert_allclose(
        p1, [refitted(score, outcome, weight, s, 1) for s in new], atol=1e-12
    )


def test_by_hand():
    venn = VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1])
    # A hit at .3 is pooled with the miss at .4; a miss at .8 with the hits at .6 and .8.
    p0, p1 = venn.predict_pair([0.3, 0.8])
    np.testing.assert_allclose(p0, [0, 2 / 3])
    np.testing.assert_allclose(p1, [1 / 2, 1])


def test_the_prediction_is_the_minimax_of_the_interval(rng):
    p = rng.random(100)
    venn = VennAbers().fit(p, (rng.random(100) < p).astype(int))
    p0, p1 = venn.predict_pair(p)
    q = venn.predict_proba(p)[:, 1]
    np.testing.assert_allclose(q, p1 / (1 - p0 + p1))
    # The regrets of the two outcomes are equal: log(p1 / q) = log((1 - p0) / (1 - q)).
    np.testing.assert_allclose(p1 / q, (1 - p0) / (1 - q))
    assert (p0 <= q).all()
    assert (q <= p1).all()


def test_intervals_increase_and_shrink_with_more_data(rng):
    grid = np.linspace(0, 1, 101)
    widths = []
    for n in (50, 5000):
        p = rng.random(n)
        p0, p1 = VennAbers().fit(p, (rng.random(n) < p).astype(int)).predict_pair(grid)
        assert (np.diff(p0) >= 0).all()
        assert (np.diff(p1) >= 0).all()
        widths.append(np.mean(p1 - p0))
    assert widths[1] < widths[0] / 5


def test_beyond_the_calibration_scores_one_end_is_open():
    venn = VennAbers().fit([0.4, 0.6], [0, 1])
    p0, p1 = venn.predict_pair([0.1, 0.9])
    assert p0[0] == 0
    assert p1[1] == 1


def test_nothing_is_impossible_and_nothing_certain():
    proba = VennAbers().fit([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]).predict_proba([0.0, 0.5, 1.0])
    assert (proba > 0).all()


def test_the_dtype_of_the_interval_is_that_of_the_scores():
    venn = VennAbers().fit([0.4, 0.6], [0, 1])
    assert all(p.dtype == np.float32 for p in venn.predict_pair(np.array([0.5], dtype=np.float32)))
    assert all(p.dtype == np.float64 for p in venn.predict_pair([0.5]))


@pytest.mark.slow
def test_the_right_end_of_the_interval_is_calibrated():
    # The theorem: of p0 and p1, the one for the outcome that comes is calibrated, E[y | p_y] = p_y,
    # here with n = 20 rows.
    generator = np.random.default_rng(7)
    n_sets, n = 20_000, 20
    score = generator.random((n_sets, n + 1))
    outcome = (generator.random((n_sets, n + 1)) < 1 - score**3).astype(
        int
    )  # as wrong as scores can be
    chosen = np.empty(n_sets)
    for i in range(n_sets):
        p0, p1 = VennAbers().fit(score[i, :n], outcome[i, :n]).predict_pair(score[i, n:])
        chosen[i] = p1[0] if outcome[i, n] else p0[0]
    chosen = chosen.round(9)  # p0 and p1 of the same fraction differ by round-off
    for p in np.unique(chosen):
        rows = chosen == p
        error = 4 * np.sqrt(p * (1 - p) / rows.sum()) + 1e-12
        assert abs(outcome[rows, n].mean() - p) <= max(error, 4 / rows.sum())


def test_one_row_is_predicted_as_among_many(rng):
    model = VennAbers().fit(np.round(rng.random(50), 2), rng.integers(2, size=50))
    new = np.concatenate([model.scores_, np.linspace(0, 1, 7)])
    alone = np.concatenate([model.predict_proba(score[None]) for score in new])
    np.testing.assert_array_equal(alone, model.predict_proba(new))
