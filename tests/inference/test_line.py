from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from calibrant.inference import calibration_line
from calibrant.metrics import calibration_intercept, calibration_slope

ONE = {"notion": "class-1"}


def drawn(rng, n_rows):
    score = rng.beta(1, 1, n_rows)
    return (rng.random(n_rows) < score).astype(int), score


def test_the_estimates_are_those_of_the_metrics(rng):
    y, p = drawn(rng, 300)
    line = calibration_line(y, p, **ONE)
    assert line.slope.estimate == calibration_slope(y, p, **ONE)
    assert line.intercept.estimate == calibration_intercept(y, p, **ONE)


def test_the_standard_error_is_that_of_the_information_matrix(rng):
    y, p = drawn(rng, 300)
    line = calibration_line(y, p, **ONE)
    odds = np.log(p / (1 - p))
    design = np.column_stack([np.ones(300), odds])
    beta = np.zeros(2)
    for _ in range(30):
        rate = expit(design @ beta)
        information = (design.T * (rate * (1 - rate))) @ design
        beta = beta + np.linalg.solve(information, design.T @ (y - rate))
    error = np.sqrt(np.linalg.inv(information)[1, 1])
    assert line.slope.standard_error == pytest.approx(error, rel=1e-6)


def test_too_extreme_scores_are_found(rng):
    odds = rng.normal(size=1000)
    line = calibration_line((rng.random(1000) < expit(odds)).astype(int), expit(2 * odds), **ONE)
    assert line.slope.high < 1
    assert line.test.p_value < 1e-6
    assert "calibration slope, class-1" in str(line)
    assert line.to_dict()["slope"]["estimate"] == line.slope.estimate


def test_a_slope_that_is_not_determined_has_an_interval_of_everything():
    line = calibration_line([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], **ONE)
    assert np.isnan(line.slope.estimate)
    assert (line.slope.low, line.slope.high) == (-np.inf, np.inf)
    assert line.test.guarantee == "heuristic"


def test_outcomes_that_a_threshold_separates_have_their_own_probability_as_p_value():
    line = calibration_line([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], **ONE)
    assert line.test.p_value == pytest.approx(0.9 * 0.8 * 0.8 * 0.9)
    shifted = calibration_line([0, 0, 1, 1, 1], [0.1, 0.2, 0.2, 0.8, 0.9], **ONE)
    likelihood = (
        0.9 * 0.8 * 0.2 * 0.8 * 0.9 / (0.5 * 0.5)
    )  # one of the two rows at the threshold is positive
    assert shifted.test.p_value == pytest.approx(likelihood)


@pytest.mark.parametrize(
    ("outcome", "score"),
    [
        (np.zeros(50, int), np.full(50, 0.99)),
        (np.zeros(60, int), np.linspace(0.8, 0.99, 60)),
        (np.ones(500, int), np.linspace(0.6, 0.9, 500)),
        (np.arange(100)[::-1] // 50, np.linspace(0.05, 0.95, 100)),
        (np.arange(200) % 5 < 3, np.full(200, 0.3)),
    ],
    ids=["wrong every time", "wrong at all scores", "always right", "reversed", "one score"],
)
def test_cox_rejects_scores_that_no_finite_line_corrects(outcome, score):
    assert calibration_line(outcome, score, **ONE).test.p_value < 1e-10


def test_cox_does_not_reject_one_score_that_is_right():
    line = calibration_line(np.arange(200) % 10 < 3, np.full(200, 0.3), **ONE)
    assert line.test.p_value > 0.99
    assert line.test.expected == 1.0


def test_a_notion_of_several_claims_is_rejected_with_those_that_work(rng):
    with pytest.raises(
        ValueError, match=r"has 2 claims, but this function needs exactly one claim.*'class-<k>'"
    ):
        calibration_line(*drawn(rng, 20), notion="class-wise")


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [50, 300])
def test_intervals_cover_and_the_test_keeps_its_level(n_rows):
    inside, rejected = [], []
    for seed in range(1000):
        line = calibration_line(*drawn(np.random.default_rng(seed), n_rows), **ONE)
        intervals = ((line.slope, 1.0), (line.intercept, 0.0))
        inside.append([part.low <= true <= part.high for part, true in intervals])
        rejected.append(line.test.p_value <= 0.05)
    assert np.mean(inside, axis=0).min() >= 0.93
    assert np.mean(rejected) <= 0.075
