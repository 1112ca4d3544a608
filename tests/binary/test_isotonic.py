from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.isotonic import IsotonicRegression

from calibrant.binary import IsotonicCalibration
from calibrant.metrics import log_loss


def noisy(rng, n=300, n_values=40):
    p = rng.integers(0, n_values + 1, n) / n_values
    return p, (rng.random(n) < p**2).astype(int)


def test_by_hand():
    # .3 and .4 fall from 1 to 0 and are pooled to 1/2.
    isotonic = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.9], [0, 1, 0, 1])
    assert isotonic.edges_.tolist() == [0.1, 0.4, 0.9]
    assert isotonic.centers_.tolist() == [0.1, 0.35, 0.9]
    assert isotonic.values_.tolist() == [0, 0.5, 1]


def test_a_step_ends_at_the_last_score_of_its_block():
    isotonic = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.9], [0, 1, 0, 1])
    scores = [0.0, 0.1, 0.11, 0.4, 0.41, 0.9, 1.0]
    assert isotonic.predict_proba(scores)[:, 1].tolist() == [0, 0, 0.5, 0.5, 1, 1, 1]


def test_linear_joins_the_block_centers():
    isotonic = IsotonicCalibration("linear").fit([0.1, 0.3, 0.4, 0.9], [0, 1, 0, 1])
    scores = [0.0, 0.1, 0.225, 0.35, 0.625, 0.9, 1.0]
    np.testing.assert_allclose(isotonic.predict_proba(scores)[:, 1], [0, 0, 0.25, 0.5, 0.75, 1, 1])


def test_probcal_agrees_at_its_thresholds(probcal_golden, probcal_reference):
    p, y, _ = probcal_golden("binary_p_y_score").T
    isotonic = IsotonicCalibration().fit(p, y.astype(int))
    threshold, value = probcal_golden("binary_isotonic_thresholds").T
    np.testing.assert_allclose(isotonic.predict_proba(threshold)[:, 1], value, atol=1e-12)
    expected = probcal_reference["reference"]["binary"]["cal_isotonic"]
    np.testing.assert_allclose(
        isotonic.predict_proba(p[:6])[:, 1], expected["pred_head6"], atol=1e-12
    )


def test_probcal_agrees_on_a_grid_where_it_does_not_interpolate(probcal_golden, probcal_reference):
    # probcal joins the last score of a block and the first of the next by a line; the step is one
    # of its two ends there.
    p, y, _ = probcal_golden("binary_p_y_score").T
    isotonic = IsotonicCalibration().fit(p, y.astype(int))
    expected = probcal_reference["reference"]["binary"]["cal_isotonic"]
    grid, value = np.array(expected["grid"]), np.array(expected["pred_grid"])
    ours = isotonic.predict_proba(grid)[:, 1]
    first = np.append(p.min(), [p[p > edge].min() for edge in isotonic.edges_[:-1]])
    inside = ((grid[:, None] >= first) & (grid[:, None] <= isotonic.edges_)).any(axis=1)
    assert inside.sum() >= 15
    np.testing.assert_allclose(ours[inside], value[inside], atol=1e-12)
    assert (ours >= value - 1e-12).all()


@pytest.mark.parametrize("column", range(10))
def test_scikit_learn_agrees_at_the_calibration_scores_of_real_data(real_data, column):
    data = real_data("focal_cifar10_resnet50_gupta")
    p, y = (
        softmax(data["val_logits"].astype(float), axis=1)[:, column],
        (data["val_labels"] == column).astype(int),
    )
    expected = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p)
    np.testing.assert_allclose(
        IsotonicCalibration().fit(p, y).predict_proba(p)[:, 1], expected, atol=1e-12
    )


def test_ties_are_pooled_whatever_their_order():
    for y in ([0, 1, 1], [1, 0, 1], [1, 1, 0]):
        assert IsotonicCalibration().fit([0.5, 0.5, 0.5], y).predict_proba([0.5])[
            0, 1
        ] == pytest.approx(2 / 3)


@pytest.mark.parametrize("smoothing", [None, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_the_map_increases(rng, interpolation, smoothing):
    isotonic = IsotonicCalibration(interpolation, smoothing).fit(*noisy(rng))
    assert (np.diff(isotonic.values_) > 0).all()
    assert (np.diff(isotonic.predict_proba(np.linspace(0, 1, 500))[:, 1]) >= 0).all()


def test_smoothing_by_hand():
    # Two blocks of weight 2 with no hit and two hits; the rate is (2 + 1/2) / (4 + 1) = 1/2.
    isotonic = IsotonicCalibration(smoothing=1.0).fit([0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1])
    np.testing.assert_allclose(isotonic.values_, [0.5 / 3, 2.5 / 3])


def test_blocks_that_lose_their_order_by_smoothing_are_pooled():
    # None of 10, then 80 of 100, then 1 of 1: ten rows of the base rate pull the last block below
    # the one before.
    scores, y = [0.1] * 10 + [0.5] * 100 + [0.9], [0] * 10 + [1] * 80 + [0] * 20 + [1]
    strength, rate = 10.0, (81 + 10.0 / 2) / (111 + 10)
    isotonic = IsotonicCalibration(smoothing=strength).fit(scores, y)
    alone = (80 + strength * rate) / 110, (1 + strength * rate) / 11
    assert alone[1] < alone[0]
    np.testing.assert_allclose(
        isotonic.values_, [strength * rate / 20, (81 + 2 * strength * rate) / 121]
    )


@pytest.mark.parametrize("y", [[0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
def test_with_smoothing_nothing_is_impossible_and_nothing_certain(y):
    for interpolation in ("step", "linear"):
        isotonic = IsotonicCalibration(interpolation, smoothing=0.5).fit([0.0, 0.2, 0.8, 1.0], y)
        proba = isotonic.predict_proba(np.linspace(0, 1, 50))
        assert (proba > 0).all()


def test_smoothing_keeps_the_loss_of_new_rows_finite(rng):
    p, y = noisy(rng)
    fresh, truth = noisy(rng, 5000)
    rough = log_loss(truth, IsotonicCalibration().fit(p, y).predict_proba(fresh), eps=1e-300)
    smooth = log_loss(
        truth, IsotonicCalibration(smoothing=1.0).fit(p, y).predict_proba(fresh), eps=1e-300
    )
    assert smooth < 1 < rough


def test_no_loss_on_the_calibration_data_is_above_that_of_the_scores(rng):
    p, y = noisy(rng)
    q = IsotonicCalibration().fit(p, y).predict_proba(p)[:, 1]
    assert ((q - y) ** 2).sum() <= ((p - y) ** 2).sum()
    assert log_loss(y, q) <= log_loss(y, p)


@pytest.mark.parametrize("smoothing", [0.0, -1.0, np.nan, np.inf, "much"])
def test_a_pseudo_count_must_be_positive(smoothing):
    with pytest.raises(ValueError, match="smoothing must be None or a positive pseudo-count"):
        IsotonicCalibration(smoothing=smoothing).fit([0.2, 0.8], [0, 1])


def test_unknown_interpolation_is_rejected():
    with pytest.raises(ValueError, match="interpolation must be one of 'step', 'linear'"):
        IsotonicCalibration("cubic").fit([0.2, 0.8], [0, 1])


def test_lines_between_scores_that_are_barely_numbers_are_finite():
    score = np.array([5e-324, 2e-323, 3e-323, 5e-323, 0.5, 0.9])
    fitted = IsotonicCalibration("linear").fit(score, [0, 1, 0, 1, 1, 1])
    found = fitted.predict_proba(5e-324 * np.arange(12))[:, 1]
    assert ((found >= 0) & (found <= 1)).all()


def test_clipped_values_follow_the_rule_of_succession():
    score, outcome = np.linspace(0.1, 0.9, 8), np.repeat([0, 1], 4)
    plain = IsotonicCalibration("linear", smoothing=1.0).fit(score, outcome)
    clipped = IsotonicCalibration("linear", smoothing=1.0, clip=True).fit(score, outcome)
    np.testing.assert_allclose(clipped.values_, np.clip(plain.values_, 0.1, 0.9))
    assert IsotonicCalibration(clip=True).fit(score, outcome).values_.tolist() == [0.1, 0.9]
