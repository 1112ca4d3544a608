"""Risk-coverage metrics against plain sums over ranks."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import trapezoid

from calibrant import TemperatureScaling
from calibrant.metrics import augrc, aurc, coverage_at_risk, risk_at_coverage

METRICS = (aurc, augrc, coverage_at_risk, risk_at_coverage)


def rows(rng, n_rows, digits=None):
    """Rows of three classes; rounded to ``digits``, so confidences are tied."""
    proba = rng.dirichlet(np.ones(3), n_rows)
    if digits is not None:
        proba[:, :2] = proba[:, :2].round(digits)
        proba[:, 2] = 1 - proba[:, 0] - proba[:, 1]
        proba = np.abs(proba.round(digits))
    return rng.integers(0, 3, n_rows), proba


def binary(scores, wrong):
    """Rows of two classes with these confidences and errors."""
    proba = np.column_stack([scores, 1 - np.asarray(scores)])
    return np.asarray(wrong, dtype=int), proba


def risks(y, proba):
    """Error rates of the m most confident rows, m = 1, ..., n, without ties."""
    order = np.argsort(-proba.max(axis=1))
    wrong = (proba.argmax(axis=1) != y)[order]
    return np.cumsum(wrong) / np.arange(1, len(y) + 1)


@pytest.mark.parametrize("n_rows", [1, 2, 7, 300])
def test_areas_are_sums_over_ranks(rng, n_rows):
    y, proba = rows(rng, n_rows)
    risk = risks(y, proba)
    assert aurc(y, proba) == pytest.approx(risk.mean(), abs=1e-12)
    joint = risk * np.arange(1, n_rows + 1) / n_rows
    assert augrc(y, proba) == pytest.approx(joint.mean(), abs=1e-12)
    if n_rows > 1:
        area = trapezoid(risk, np.arange(1, n_rows + 1) / n_rows) / (1 - 1 / n_rows)
        assert aurc(y, proba, convention="trapezoid") == pytest.approx(area, abs=1e-12)


def test_three_rows_whose_last_one_is_wrong():
    y, proba = binary([0.9, 0.8, 0.7], [0, 0, 1])
    assert aurc(y, proba) == pytest.approx(1 / 9, abs=1e-15)
    assert aurc(y, proba, convention="trapezoid") == pytest.approx(1 / 12, abs=1e-15)


def test_ties_are_the_mean_over_all_orders():
    scores = np.array([0.9, 0.8, 0.8, 0.8, 0.8, 0.6])
    wrong = np.array([0, 1, 0, 0, 1, 0])
    y, proba = binary(scores, wrong)
    ranks = np.arange(1, 7)
    orders = [[0, *order, 5] for order in permutations(range(1, 5))]
    for metric, divisor in ((aurc, ranks), (augrc, 6)):
        values = [(np.cumsum(wrong[order]) / divisor).mean() for order in orders]
        assert metric(y, proba) == pytest.approx(np.mean(values), abs=1e-14)
    at_three = np.mean([wrong[order][:3].mean() for order in orders])
    assert risk_at_coverage(y, proba, coverage=0.5) == pytest.approx(at_three, abs=1e-14)


def test_the_excess_is_that_over_the_best_order(rng):
    y, proba = rows(rng, 200)
    n, k = 200, int((proba.argmax(axis=1) != y).sum())
    m = np.arange(1, n + 1)
    best = np.maximum(0, m - n + k) / m
    expected = risks(y, proba).mean() - best.mean()
    assert aurc(y, proba, excess=True) == pytest.approx(expected, abs=1e-12)
    y, proba = binary([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1])
    for convention in ("mean", "trapezoid"):
        assert aurc(y, proba, excess=True, convention=convention) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("wrong", [0, 1])
def test_rows_that_are_all_right_or_all_wrong(wrong):
    y, proba = binary([0.9, 0.8, 0.7], [wrong] * 3)
    assert aurc(y, proba) == augrc(y, proba) * 3 / 2 == wrong
    assert aurc(y, proba, excess=True) == 0
    assert coverage_at_risk(y, proba) == 1 - wrong
    assert risk_at_coverage(y, proba) == wrong


def test_coverage_and_risk_are_inverse_where_scores_differ(rng):
    y, proba = rows(rng, 200)
    risk = risks(y, proba)
    for level in (0.3, 0.5, 0.6):
        ranks = np.flatnonzero(risk <= level)
        expected = (ranks.max() + 1) / 200 if ranks.size else 0.0
        coverage = coverage_at_risk(y, proba, risk=level)
        assert coverage == expected
        if coverage:
            assert risk_at_coverage(y, proba, coverage=coverage) <= level
    assert risk_at_coverage(y, proba, coverage=1) == risk[-1]
    assert risk_at_coverage(y, proba, coverage=0.8) == risk[159]


def test_tied_rows_are_answered_together():
    y, proba = binary([0.9, 0.8, 0.8], [0, 0, 1])
    assert coverage_at_risk(y, proba, risk=0.1) == pytest.approx(1 / 3)


@pytest.mark.parametrize("score", ["confidence", "margin"])
@pytest.mark.parametrize("metric", METRICS)
def test_only_ratios_of_weights_matter_and_zero_is_the_row_absent(rng, metric, score):
    y, proba = rows(rng, 60, digits=1)
    weight = rng.integers(0, 3, 60)
    weighted = metric(y, proba, sample_weight=weight, score=score)
    shares = weight / weight.sum()
    assert metric(y, proba, sample_weight=shares, score=score) == pytest.approx(weighted, abs=1e-13)
    present = np.minimum(weight, 1) / 7
    expected = metric(y[weight > 0], proba[weight > 0], score=score)
    assert metric(y, proba, sample_weight=present, score=score) == pytest.approx(
        expected, abs=1e-13
    )


def test_areas_of_many_weighted_rows_are_those_of_repeated_rows(rng):
    y, proba = rows(rng, 4000)
    weight = rng.integers(1, 3, 4000)
    copies = np.repeat(np.arange(4000), weight)
    for metric in METRICS:
        expected = metric(y[copies], proba[copies])
        assert metric(y, proba, sample_weight=weight) == pytest.approx(expected, abs=5e-4)


def test_another_score_gives_another_order(rng):
    y, proba = rows(rng, 300)
    by_hand = aurc(y, proba, score=lambda p: np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2])
    assert aurc(y, proba, score="margin") == by_hand != aurc(y, proba)
    assert aurc(y, np.log(proba), score="margin", inputs="logits") == pytest.approx(by_hand)
    same = aurc(y, proba, score=lambda p: p.max(axis=1))
    assert same == pytest.approx(aurc(y, proba), abs=1e-15)


def test_bad_options_are_errors():
    y, proba = binary([0.9, 0.8, 0.7], [0, 0, 1])
    with pytest.raises(ValueError, match="convention must be one of 'mean', 'trapezoid'"):
        aurc(y, proba, convention="trapz")
    with pytest.raises(ValueError, match=r"risk must be at least 0 and below 1, got 1\.5"):
        coverage_at_risk(y, proba, risk=1.5)
    with pytest.raises(ValueError, match="coverage must be above 0 and at most 1, got 0"):
        risk_at_coverage(y, proba, coverage=0)
    assert coverage_at_risk(y, proba, risk=0) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="score must be one of 'confidence'"):
        aurc(y, proba, score="entropy")


def test_real_scores_have_the_figures_that_were_computed_elsewhere(real_data):
    # Computed by plain cumulative sums in another program, after temperature scaling; its
    # temperature differs in the last digits.
    data = real_data("cifar10_resnet50_gupta")
    scaling = TemperatureScaling(inputs="logits").fit(data["val_logits"], data["val_labels"])
    y, proba = data["test_labels"], scaling.predict_proba(data["test_logits"])
    area = aurc(y, proba)
    assert area == pytest.approx(0.00707188, abs=3e-8)
    assert aurc(y, proba, convention="trapezoid") == pytest.approx(0.00707008, abs=3e-8)
    assert area - aurc(y, proba, excess=True) == pytest.approx(0.00127387, abs=5e-9)
