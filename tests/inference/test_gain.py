from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.model_selection import KFold

from calibrant import datasets
from calibrant._crossfit.scores import paired_scores
from calibrant._validation import check_predictions
from calibrant.base import BaseCalibrator
from calibrant.inference import calibration_gain
from calibrant.inference._gain import LossMoments, paired_gain
from calibrant.metrics import brier_score, log_loss
from calibrant.multiclass import StructuredScaling, TemperatureScaling


class Temperature(BaseCalibrator):
    """Temperature scaling by a scalar optimizer."""

    def __init__(self, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        given = sample.rows("this method")
        u, y, weight = given.u, given.y, given.weight
        rows = np.arange(len(y))

        def loss(log_beta):
            return -weight @ log_softmax(np.exp(log_beta) * u, axis=1)[rows, y]

        self.beta_ = np.exp(
            minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-3}).x
        )

    def _log_proba(self, u):
        return log_softmax(self.beta_ * u, axis=1)


class TowardsUniform(BaseCalibrator):
    """``(1 - d) p + d / K`` with d by least squares, the true family of `noisy_simplex`."""

    form = "proba"

    def __init__(self, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        rows = sample.rows("this method")
        u, y, weight = rows.u, rows.y, rows.weight
        step = 1 / u.shape[1] - u
        residual = np.eye(u.shape[1])[y] - u
        self.noise_ = np.clip(
            weight @ (step * residual).sum(axis=1) / (weight @ (step**2).sum(axis=1)), -0.2, 1
        )

    def _log_proba(self, u):
        proba = np.maximum((1 - self.noise_) * u + self.noise_ / u.shape[1], 1e-12)
        return np.log(proba / proba.sum(axis=1, keepdims=True))


@pytest.fixture
def overconfident():
    rng = np.random.default_rng(11)
    logits = rng.normal(size=(800, 3)) * 1.5
    return datasets.draw_labels(softmax(logits, axis=1), rng=rng), softmax(2 * logits, axis=1)


@pytest.mark.parametrize(
    ("score", "metric"), [("log_loss", log_loss), ("brier_score", brier_score)]
)
def test_the_gain_is_before_minus_after(score, metric, overconfident):
    y, proba = overconfident
    result = calibration_gain(y, proba, Temperature(), score=score, rng=0)
    assert result.before == pytest.approx(metric(y, proba), abs=1e-12)
    assert result.gain == pytest.approx(result.before - result.after, abs=1e-12)
    assert 0 < result.low < result.gain < result.high
    assert result.p_value < 1e-5
    assert result.guarantee == "asymptotic"


def test_a_calibrated_model_gains_nothing():
    data = datasets.noisy_simplex(500, 3, 0.0, rng=2)
    result = calibration_gain(data.labels, data.proba, Temperature(), rng=0)
    assert result.low <= 0 <= result.high
    assert result.p_value > 0.05
    assert result.excess == pytest.approx(1 / (2 * 500), rel=1.5)


def test_logits_may_be_given(overconfident):
    y, proba = overconfident
    # Random folds depend on the scores, these folds do not.
    given = {"calibrator": TemperatureScaling(), "cv": KFold(5)}
    by_logits = calibration_gain(y, np.log(proba), inputs="logits", **given)
    by_proba = calibration_gain(y, proba, **given)
    assert by_logits.gain == pytest.approx(by_proba.gain, abs=1e-6)
    assert calibration_gain(y, np.log(proba), inputs="logits", rng=0).gain == pytest.approx(
        by_proba.gain, abs=0.01
    )


def test_weights_that_sum_to_one_are_equivalent_to_weights_of_one(overconfident):
    y, proba = overconfident[0][:200], overconfident[1][:200]
    weight = np.full(200, 1 / 200)
    weighted = calibration_gain(y, proba, Temperature(), rng=0, sample_weight=weight)
    plain = calibration_gain(y, proba, Temperature(), rng=0)
    for name in ("gain", "low", "high", "standard_error", "excess", "p_value", "n_samples"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name), rel=1e-9), name


def test_the_interval_of_a_gain_counts_the_effective_number_of_rows(overconfident):
    y, proba = overconfident[0][:200], overconfident[1][:200]
    weight = np.where(np.arange(200) < 20, 20.0, 2.0)
    weighted = calibration_gain(y, proba, Temperature(), rng=0, sample_weight=weight)
    assert weighted.n_samples == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_the_order_of_rows_changes_nothing(overconfident, rng):
    y, proba = overconfident
    order = rng.permutation(len(y))
    plain, mixed = (
        calibration_gain(labels, scores, Temperature(), rng=0)
        for labels, scores in ((y, proba), (y[order], proba[order]))
    )
    assert mixed.gain == pytest.approx(plain.gain, rel=1e-5)


def test_a_seed_decides_the_folds(overconfident):
    y, proba = overconfident
    first, again, other = (calibration_gain(y, proba, Temperature(), rng=s) for s in (1, 1, 2))
    assert first == again
    assert first.gain != other.gain


def test_a_higher_level_widens_the_interval(overconfident):
    y, proba = overconfident
    wide, narrow = (
        calibration_gain(y, proba, Temperature(), rng=0, level=level) for level in (0.99, 0.8)
    )
    assert wide.low < narrow.low < narrow.high < wide.high
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        calibration_gain(y, proba, Temperature(), level=95)


def test_the_result_has_a_text(overconfident):
    result = calibration_gain(*overconfident, Temperature(), rng=0)
    assert str(result).startswith(
        f"Log-loss {result.before:#.3g} before and {result.after:#.3g} after, a reduction of "
        f"{result.gain:#.3g} (95% CI {result.low:#.3g} to {result.high:#.3g}). The interval "
    )
    assert json.loads(json.dumps(result.to_dict()))["statistic"] == pytest.approx(
        result.gain / result.standard_error
    )


def test_the_text_of_an_interval_names_its_quantity(overconfident, rng):
    best = calibration_gain(*overconfident, Temperature(), rng=0)
    before, after = rng.random(50), rng.random(50)
    crossed = paired_gain(before, after, np.ones(50), FIVE_FOLDS, score="log_loss")
    held = paired_gain(before, after, np.ones(50), score="log_loss")
    assert (best.interval, crossed.interval, held.interval) == (
        "jackknife",
        "nadeau-bengio",
        "paired",
    )
    subject = "The interval estimates"
    assert f"{subject} the calibration error, which is the improvement by the best" in str(best)
    assert f"{subject} the change by a calibrator fitted on as many rows" in str(crossed)
    assert f"{subject} the change by this calibrator on new rows" in str(held)


FIVE_FOLDS = [0.25] * 5
"""Held-out weight relative to the weight of the fit, in five folds."""


@pytest.mark.parametrize("size", [1, 7, 50])
def test_moments_of_chunks_add_up_to_those_of_all_rows(size, rng):
    losses, weight = 1000 + 1e-6 * rng.normal(size=(3, 50)), rng.integers(0, 3, 50).astype(float)
    weight[0] = 1.0
    whole = LossMoments.of_rows(losses, weight)
    chunks = [slice(start, start + size) for start in range(0, 50, size)]
    parts = [LossMoments.of_rows(losses[:, rows], weight[rows]) for rows in chunks]
    total = sum(parts[1:], parts[0])
    for a, b in ((0, 1), (1, 2), (2, 0)):
        one, other = whole.gain(a, b, score="log_loss"), total.gain(a, b, score="log_loss")
        assert one.standard_error > 1e-8
        assert other.standard_error == pytest.approx(one.standard_error, rel=1e-6)
        assert other.gain == pytest.approx(one.gain, abs=1e-12)


def test_the_interval_of_cross_fitting_is_that_of_nadeau_and_bengio(rng):
    before, after = rng.random(100), rng.random(100)
    gain = paired_gain(before, after, np.ones(100), FIVE_FOLDS, score="log_loss")
    error = stats.sem(before - after) * 1.5
    reach = stats.t(99).ppf(0.975) * error
    assert gain.gain == pytest.approx((before - after).mean())
    assert (gain.low, gain.high) == pytest.approx((gain.gain - reach, gain.gain + reach))
    assert gain.p_value == pytest.approx(stats.t(99).sf(gain.gain / error))


def test_the_interval_of_rows_held_out_is_that_of_student(rng):
    before, after = rng.random(100), rng.random(100)
    gain = paired_gain(before, after, np.ones(100), score="log_loss")
    expected = stats.ttest_rel(before, after).confidence_interval()
    assert (gain.low, gain.high) == pytest.approx((expected.low, expected.high))


def test_weighted_pairs_count_their_effective_number(rng):
    before, after, weight = rng.random(40), rng.random(40), rng.integers(1, 4, 40).astype(float)
    one = paired_gain(before, after, weight, FIVE_FOLDS, score="log_loss")
    rows, difference = weight.sum() ** 2 / (weight**2).sum(), before - after
    mean = np.average(difference, weights=weight)
    variance = np.average((difference - mean) ** 2, weights=weight) * rows / (rows - 1)
    assert one.n_samples == pytest.approx(rows)
    assert one.standard_error == pytest.approx(1.5 * np.sqrt(variance / rows))


def test_the_effective_rows_of_chunks_add_up(rng):
    losses, weight = rng.random((2, 50)), rng.random(50)
    whole = LossMoments.of_rows(losses, weight)
    both = LossMoments.of_rows(losses[:, :20], weight[:20]) + LossMoments.of_rows(
        losses[:, 20:], weight[20:]
    )
    assert both.n_effective == pytest.approx(whole.n_effective)
    np.testing.assert_allclose(both.variances, whole.variances, atol=1e-12)


def test_no_difference_is_known_to_one_row_at_best():
    gain = paired_gain(np.ones(50), np.ones(50), np.ones(50), FIVE_FOLDS, score="log_loss")
    assert (gain.low, gain.gain, gain.high) == (-0.02, 0.0, 0.02)


@pytest.mark.parametrize(
    ("after", "conclusion", "text"),
    [
        (0.5, "good", "Calibration by magic helps: Brier score 1.00 before and 0.500 after, a"),
        (1.5, "bad", "Calibration by magic increases the Brier score, so keep the original"),
        (1.0, "mixed", "No significant effect of calibration by magic was detected: "),
    ],
)
def test_the_sentence_of_a_gain_states_its_conclusion(after, conclusion, text):
    gain = paired_gain(
        np.ones(50), np.full(50, after), np.ones(50), FIVE_FOLDS, score="brier_score"
    )
    assert gain.conclusion == conclusion
    assert gain.sentence("magic").startswith(text)
    assert gain.sentence() == gain.sentence("magic").replace(" by magic", "")


def test_the_default_calibrator_is_structured_scaling(overconfident):
    result = calibration_gain(*overconfident, rng=0)
    assert result == calibration_gain(*overconfident, StructuredScaling(), rng=0)
    assert result.low > 0


def test_predictions_that_no_map_changes():
    result = calibration_gain([0, 1] * 10, np.full((20, 2), 0.5), Temperature(), rng=0)
    assert result.gain == pytest.approx(0, abs=1e-15)
    assert np.isfinite([result.low, result.high, result.p_value, result.statistic]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "noise"), [(2, 0.4), (3, 0.2), (3, 0.4), (10, 0.4)])
def test_intervals_cover_the_true_calibration_error_in_brier_score(n_classes, noise):
    covered = 0
    for seed in range(1000):
        data = datasets.noisy_simplex(500, n_classes, noise, rng=seed)
        result = calibration_gain(
            data.labels, data.proba, TowardsUniform(), score="brier_score", rng=seed
        )
        covered += result.low <= data.errors["canonical-l2"] ** 2 <= result.high
    assert covered >= 920


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 1.5, 2.0])
def test_intervals_cover_the_true_calibration_error_in_log_loss(temperature):
    # The mean relative entropy of truth and prediction, over a million rows: accurate to 0.3%.
    logits = np.random.default_rng(99).normal(size=(1_000_000, 3))
    truth, text = log_softmax(logits, axis=1), log_softmax(temperature * logits, axis=1)
    error = np.mean(np.sum(np.exp(truth) * (truth - text), axis=1))
    covered = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        logits = rng.normal(size=(300, 3))
        y = datasets.draw_labels(softmax(logits, axis=1), rng=rng)
        result = calibration_gain(y, softmax(temperature * logits, axis=1), Temperature(), rng=rng)
        covered += result.low <= error <= result.high
    assert covered >= 920


def test_ten_rows_that_are_all_right_do_not_prove_a_calibration_error():
    """A temperature fitted to them increases the confidence and gains a little on each row."""
    proba = np.column_stack([np.linspace(0.9, 0.99, 10), np.linspace(0.1, 0.01, 10)])
    result = calibration_gain(np.zeros(10, dtype=int), proba, Temperature(), rng=0)
    assert result.gain > 0
    assert result.low < 0


def test_what_labels_of_the_model_would_vary_by_counts_as_four_rows(rng):
    """For underconfident scores, gains vary more with labels drawn from the scores."""
    z = rng.normal(size=(400, 3))
    y, proba = datasets.draw_labels(softmax(3 * z, axis=1), rng=rng), softmax(z, axis=1)
    data = check_predictions(y, proba, None, None)
    pairs = paired_scores(data, Temperature(), score="log_loss", inputs="proba", cv=5, rng=0)
    actual = np.var(pairs.before - pairs.after, ddof=1)
    own = (pairs.moments[1].mean() - pairs.moments[0].mean() ** 2) * 400 / 399
    four = stats.norm.ppf(0.975) ** 2
    result = calibration_gain(y, proba, Temperature(), rng=0)
    assert own > 1.5 * actual
    assert result.standard_error**2 == pytest.approx(
        (400 * actual + four * own) / (400 + four) / 400
    )
