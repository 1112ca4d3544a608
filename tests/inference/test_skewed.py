from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calibrant.datasets import draw_labels
from calibrant.inference._skewed import Spread, model_spread, spread_of
from calibrant.metrics import brier_score, log_loss


def transformed(x, skewness, n):
    """Hall's polynomial of a mean in units of standard deviations."""
    return x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / (6 * n)


def test_without_skewness_the_interval_is_that_of_student(rng):
    values = np.r_[rng.random(20), 0]
    values = np.r_[values, -values]
    low, high = values.mean() + spread_of(values).ends(0.9)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert (low, high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("skewness", [-1.5, 1e-5, 0.3, 2.0])
def test_the_ends_are_where_the_transformed_mean_has_students_quantiles(skewness):
    spread = Spread(0.2, skewness, 50)
    deviation = 0.2 * 50 / np.sqrt(49)
    y = [transformed(-end / deviation, skewness, 50) * np.sqrt(50) for end in spread.ends(0.95)]
    quantile = stats.t(49).ppf(0.975)
    assert y == pytest.approx([quantile, -quantile], rel=1e-9)


def test_losses_that_are_skewed_upwards_reach_further_upwards():
    low, high = spread_of(np.r_[np.zeros(95), np.ones(5)]).ends(0.95)
    assert high > 1.5 * -low > 0


def test_a_transformation_is_not_followed_beyond_its_turning_point():
    _, high = Spread(0.1, 3.0, 10).ends(0.95)
    assert high == pytest.approx(0.1 * 10 / np.sqrt(9) * 3 / 3.0)


def test_one_unit_and_equal_units_know_no_spread():
    assert spread_of(np.array([0.3])).ends(0.95).tolist() == [0.0, 0.0]
    assert spread_of(np.full(5, 0.3)).ends(0.95).tolist() == [0.0, 0.0]


def test_groups_of_one_row_are_rows_and_groups_of_equal_rows_are_as_few_as_they_are(rng):
    values = rng.exponential(size=30)
    rows = spread_of(values)
    alone = spread_of(values, [np.array([i]) for i in range(30)])
    thrice = spread_of(np.repeat(values, 3), np.split(np.arange(90), 30))
    assert (alone.error, alone.skewness, alone.n_units) == pytest.approx(
        (rows.error, rows.skewness, 30)
    )
    assert (thrice.error, thrice.skewness, thrice.n_units) == pytest.approx(
        (rows.error, rows.skewness, 30)
    )


@pytest.mark.parametrize(("name", "metric"), [("log_loss", log_loss), ("brier_score", brier_score)])
def test_the_model_spread_is_that_of_labels_drawn_from_the_model(name, metric, rng):
    row = np.array([[0.7, 0.2, 0.1]])
    own = model_spread(name, np.repeat(row, 4, axis=0))
    losses = np.array([metric([k], row) for k in range(3)])
    mean = row[0] @ losses
    variance = row[0] @ (losses - mean) ** 2
    assert own.error == pytest.approx(np.sqrt(variance / 4))
    assert own.skewness == pytest.approx(row[0] @ (losses - mean) ** 3 / variance**1.5)


@pytest.mark.slow
def test_intervals_of_skewed_means_hold_the_truth_where_those_of_student_do_not():
    """Lognormal rows, which were not used to choose any constant."""
    truth, inside = np.exp(0.5), {"student": 0, "hall": 0}
    for seed in range(1000):
        values = np.random.default_rng(seed).lognormal(size=30)
        low, high = values.mean() + spread_of(values).ends(0.95)
        expected = stats.ttest_1samp(values, 0.0).confidence_interval()
        inside["hall"] += low <= truth <= high
        inside["student"] += expected.low <= truth <= expected.high
    assert inside["hall"] > inside["student"] + 20


def test_labels_of_a_calibrated_model_vary_by_the_model_spread(rng):
    proba = rng.dirichlet(np.full(3, 0.5), 50)
    own = model_spread("brier_score", proba)
    drawn = [brier_score(draw_labels(proba, rng=rng), proba) for _ in range(400)]
    # The model spread includes the choice of rows, so it exceeds that of labels alone.
    assert np.std(drawn) < own.error < 1.5 * np.std(drawn)
