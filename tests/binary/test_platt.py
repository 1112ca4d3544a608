from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant.binary import PlattScaling
from calibrant.exceptions import ConvergenceWarning


def noisy(rng, n=400):
    z = rng.normal(scale=2.0, size=n)
    return 1 / (1 + np.exp(-z)), (rng.random(n) < 1 / (1 + np.exp(-0.5 * z - 0.3))).astype(int)


def test_it_finds_the_line_that_made_the_outcomes(rng):
    platt = PlattScaling().fit(*noisy(rng, 100_000))
    assert platt.coef_ == pytest.approx(0.5, abs=0.02)  # standard error 0.005
    assert platt.intercept_ == pytest.approx(0.3, abs=0.03)
    assert platt.converged_


def test_probcal_agrees_on_raw_scores(probcal_golden, probcal_reference):
    _, y, score = probcal_golden("binary_p_y_score").T
    expected = probcal_reference["reference"]["binary"]["cal_platt_on_score"]
    platt = PlattScaling(inputs="logits").fit(score, y.astype(int))
    np.testing.assert_allclose([platt.intercept_, platt.coef_], expected["coef"], atol=1e-9)
    np.testing.assert_allclose(
        platt.predict_proba(score[:6])[:, 1], expected["pred_head6"], atol=1e-9
    )


def test_without_smoothing_it_is_logistic_regression(rng):
    p, y = noisy(rng)
    platt = PlattScaling(target_smoothing=False).fit(p, y)
    sk = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(np.log(p / (1 - p))[:, None], y)
    assert platt.coef_ == pytest.approx(
        sk.coef_[0, 0], abs=1e-5
    )  # where scikit-learn's solver stops
    assert platt.intercept_ == pytest.approx(sk.intercept_[0], abs=1e-5)


def test_the_mean_prediction_is_the_mean_of_the_smoothed_targets(rng):
    p, y = noisy(rng)
    targets = np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2))
    assert PlattScaling().fit(p, y).predict_proba(p)[:, 1].mean() == pytest.approx(
        targets.mean(), abs=1e-12
    )


def test_the_objective_is_the_mean_loss_against_the_smoothed_targets(rng):
    p, y = noisy(rng)
    platt = PlattScaling().fit(p, y)
    targets = np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2))
    q = platt.predict_proba(p)[:, 1]
    assert platt.objective_ == pytest.approx(
        -np.mean(targets * np.log(q) + (1 - targets) * np.log1p(-q)), abs=1e-12
    )


def test_scores_that_point_the_wrong_way_are_turned_round(rng):
    p, y = noisy(rng)
    forward, backward = PlattScaling().fit(p, y), PlattScaling().fit(1 - p, y)
    assert backward.coef_ == pytest.approx(-forward.coef_, abs=1e-9)
    np.testing.assert_allclose(backward.predict_proba(1 - p), forward.predict_proba(p), atol=1e-10)


def test_separable_scores_have_a_finite_slope_with_smoothed_targets():
    platt = PlattScaling().fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])  # a warning would be an error
    assert platt.converged_
    assert 0 < platt.coef_ < 5


def test_separable_scores_warn_once_without_smoothing():
    platt = PlattScaling(target_smoothing=False)
    with pytest.warns(
        ConvergenceWarning, match="separate the calibration labels.*target_smoothing=True"
    ) as caught:
        platt.fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not platt.converged_
    q = platt.predict_proba([0.1, 0.9])[:, 1]
    assert q[0] < 1e-6
    assert q[1] > 1 - 1e-6


def test_one_outcome_gives_its_smoothed_target_everywhere():
    platt = PlattScaling().fit([0.1, 0.5, 0.9], [1, 1, 1])
    np.testing.assert_allclose(platt.predict_proba([0.0, 0.3, 1.0])[:, 1], 4 / 5)


def test_logits_beyond_the_floor_of_probabilities_are_used_as_they_are(rng):
    z = rng.normal(scale=40, size=2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-z / 20))).astype(int)
    from_logits = PlattScaling(inputs="logits").fit(z, y)
    assert from_logits.coef_ == pytest.approx(1 / 20, rel=0.15)
    floored = PlattScaling().fit(1 / (1 + np.exp(-z)), y)
    assert floored.coef_ > 1.2 * from_logits.coef_  # the far log-odds were cut at 27.6


def test_a_bad_floor_is_rejected():
    with pytest.raises(ValueError, match=r"eps must be a number between 0 and 0.5"):
        PlattScaling(eps=0.7).fit([0.2, 0.8], [0, 1])
