"""Risk-coverage curve: its points, and its bounds in simulated samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

from calibrant.inference import risk_coverage
from calibrant.metrics import aurc


def binary(confidence, is_wrong):
    """Rows of two classes with these confidences and errors."""
    return np.asarray(is_wrong, dtype=int), np.column_stack([confidence, 1 - confidence])


def drawn(rng, n_rows):
    confidence = 0.5 + rng.random(n_rows) / 2
    return binary(confidence, rng.random(n_rows) > confidence)


def test_points_are_the_surest_rows_with_exact_bounds(rng):
    y, proba = drawn(rng, 400)
    curve = risk_coverage(y, proba, level=0.9)
    assert curve.rows[0] == 20
    assert curve.rows[-1] == curve.n_samples == 400
    assert len(curve.rows) == 16
    confidence, wrong = proba.max(axis=1), proba.argmax(axis=1) != y
    for point, threshold in enumerate(curve.threshold):
        answered = confidence > threshold
        k, m = int(wrong[answered].sum()), int(answered.sum())
        assert (curve.rows[point], curve.coverage[point]) == (m, m / 400)
        assert curve.risk[point] == k / m
        assert curve.high[point] == pytest.approx(beta.ppf(1 - 0.1 / 16, k + 1, m - k), rel=1e-9)
        # Clopper and Pearson: so few errors have this probability at the bound.
        assert binom.cdf(k, m, curve.high[point]) == pytest.approx(0.1 / 16, rel=1e-6)


def test_the_path_is_the_whole_curve(rng):
    y, proba = drawn(rng, 300)
    path = risk_coverage(y, proba).path
    assert (path.errors / path.rows).mean() == pytest.approx(aurc(y, proba), abs=1e-12)


def test_a_risk_is_proved_by_its_last_point(rng):
    confidence = np.linspace(0.99, 0.5, 1000)
    y, proba = binary(confidence, np.arange(1000) >= 600)
    curve = risk_coverage(y, proba)
    point = curve.proved(0.05)
    assert curve.high[point] <= 0.05 < curve.high[point + 1]
    assert curve.proved_coverage(0.05) == curve.coverage[point]
    assert 0.3 < curve.proved_coverage(0.05) < 0.63
    assert curve.proved(1e-4) is None
    assert curve.proved_coverage(1e-4) == 0.0
    assert curve.proved_coverage(0.9) == 1.0


def test_tied_rows_are_answered_together_and_never_more_than_the_rank(rng):
    confidence = np.repeat([0.9, 0.8, 0.6], [30, 50, 20])
    y, proba = binary(confidence, rng.random(100) < 0.2)
    curve = risk_coverage(y, proba)
    assert curve.rows.tolist() == [30, 80, 100]
    assert curve.threshold.tolist() == [0.8, 0.6, -np.inf]


def test_equal_scores_leave_one_point(rng):
    y, proba = binary(np.full(50, 0.8), rng.random(50) < 0.2)
    assert risk_coverage(y, proba).rows.tolist() == [50]


@pytest.mark.parametrize("n_rows", [1, 5, 19, 20, 21])
def test_few_rows_have_wide_bounds(rng, n_rows):
    y, proba = drawn(rng, n_rows)
    curve = risk_coverage(y, proba)
    assert curve.rows[-1] == n_rows
    assert (curve.high > curve.risk).all() or curve.risk.max() == 1
    assert curve.high.min() > 0.2


def test_all_bounds_hold_together_in_nine_of_ten_samples_also_with_ties():
    # The error rate rises and falls with the score, so no monotone shape helps.
    values = np.linspace(0.55, 0.95, 12)
    chance = np.array([0.05, 0.3, 0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.25, 0.05, 0.1, 0.02])
    true_risk = {v: chance[values > v].mean() for v in values[:-1]} | {-np.inf: chance.mean()}
    rng, n_failed, n_drawn = np.random.default_rng(0), 0, 400
    for _ in range(n_drawn):
        place = rng.integers(0, 12, 300)
        y, proba = binary(values[place], rng.random(300) < chance[place])
        curve = risk_coverage(y, proba, n_points=6, level=0.9)
        at = [min(true_risk, key=lambda v, t=t: abs(v - t)) for t in curve.threshold[:-1]]
        risk = np.array([true_risk[v] for v in at] + [chance.mean()])
        n_failed += bool((risk > curve.high).any())
    assert n_failed / n_drawn <= 0.1 + 3 * np.sqrt(0.09 / n_drawn)
    assert n_failed > 0  # the bounds are not wider than they have to be


def test_another_score_and_logits_are_accepted(rng):
    proba, y = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    curve = risk_coverage(y, proba, score="margin")
    same = risk_coverage(y, np.log(proba), score="margin", inputs="logits")
    np.testing.assert_allclose(curve.high, same.high)
    assert curve.high.tolist() != risk_coverage(y, proba).high.tolist()


def test_a_curve_is_text_and_plain_values(rng):
    curve = risk_coverage(*drawn(rng, 100), n_points=3)
    assert "All bounds hold jointly with probability 90%" in str(curve)
    assert len(str(curve).splitlines()) == 5
    assert curve.to_dict()["rows"] == curve.rows.tolist()
    assert "RiskCoverageCurve(threshold=<array 3>" in repr(curve)


def test_bad_options_are_errors(rng):
    y, proba = drawn(rng, 30)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        risk_coverage(y, proba, level=1)
    with pytest.raises(ValueError, match="n_points must be an integer of at least 1"):
        risk_coverage(y, proba, n_points=0)
