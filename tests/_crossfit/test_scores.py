from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from calibrant import MulticlassToBinary, PlattScaling, datasets
from calibrant._crossfit.scores import SCORES, likelihood_losses, paired_scores
from calibrant._data.folds import as_folds
from calibrant._validation import check_predictions
from calibrant.base import BaseCalibrator
from calibrant.metrics import brier_score, log_loss


class Constant(BaseCalibrator):
    """Predicts the label frequencies of the rows that it was fitted on."""

    form = "proba"

    def __init__(self, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        rows = sample.rows("this method")
        u, y, weight = rows.u, rows.y, rows.weight
        self.frequency_ = np.bincount(y, weight, minlength=u.shape[1]) / weight.sum()

    def _log_proba(self, u):
        return np.log(np.maximum(np.broadcast_to(self.frequency_, u.shape), 1e-300))


def scores_of(y, scores, calibrator, *, sample_weight=None, **options):
    settings = {"score": "log_loss", "inputs": "proba", "cv": 5, "rng": 0, **options}
    data = check_predictions(y, scores, sample_weight, inputs=settings["inputs"])
    return paired_scores(data, calibrator, **settings)


def test_a_row_is_scored_by_a_calibrator_fitted_without_it(rng):
    y = rng.integers(3, size=40)
    proba = rng.dirichlet(np.ones(3), 40)
    pairs = scores_of(y, proba, Constant(), score="brier_score", rng=3)
    expected = []
    for fold in as_folds(5, proba, y, np.ones(40), 3):
        frequency = np.bincount(y[fold.fit], minlength=3) / len(fold.fit)
        expected.extend(((frequency - np.eye(3)[y[fold.held_out]]) ** 2).sum(axis=1))
    np.testing.assert_allclose(pairs.after, expected)


def test_neither_the_order_of_rows_nor_a_weight_for_copies_changes_anything(rng):
    data = datasets.noisy_simplex(50, 3, 0.2, rng=rng)
    weight = rng.integers(0, 4, 50)
    copies = rng.permutation(np.repeat(np.arange(50), weight))
    weighted = scores_of(data.labels, data.proba, Constant(), sample_weight=weight)
    repeated = scores_of(data.labels[copies], data.proba[copies], Constant())
    assert weighted.weight.sum() == repeated.weight.sum()
    for name in ("before", "after", "excess"):
        assert weighted.mean(getattr(weighted, name)) == pytest.approx(
            repeated.mean(getattr(repeated, name)), abs=1e-12
        )


def test_a_log_loss_needs_no_more_than_the_probability_of_the_truth(rng):
    proba, y = rng.dirichlet(np.ones(3), 20), rng.integers(3, size=20)
    proba[0] = np.eye(3)[y[0] - 1]
    losses = SCORES["log_loss"].losses(proba, y)
    np.testing.assert_array_equal(losses, likelihood_losses(proba[np.arange(20), y]))
    assert losses[0] == pytest.approx(-np.log(1e-12))


@pytest.mark.parametrize(
    ("score", "metric"), [("log_loss", log_loss), ("brier_score", brier_score)]
)
def test_scores_before_are_those_of_the_metric(score, metric, rng):
    data = datasets.noisy_simplex(60, 4, 0.2, rng=rng)
    weight = rng.integers(0, 3, 60)
    pairs = scores_of(data.labels, data.proba, Constant(), score=score, sample_weight=weight)
    assert pairs.mean(pairs.before) == pytest.approx(
        metric(data.labels, data.proba, sample_weight=weight), abs=1e-12
    )


@pytest.mark.parametrize("score", ["log_loss", "brier_score"])
def test_a_divergence_is_the_expected_cost_of_another_forecast(score, rng):
    p, q = rng.dirichlet(np.ones(4), 2)
    rule = SCORES[score]
    labels = np.arange(4)
    cost = p @ (rule.losses(np.tile(q, (4, 1)), labels) - rule.losses(np.tile(p, (4, 1)), labels))
    assert rule.divergence(p[None], q[None])[0] == pytest.approx(cost, abs=1e-12)


def test_the_excess_is_the_cost_of_estimating_the_parameters():
    # Frequencies of K classes are K - 1 parameters, which cost (K - 1) / 2n in log-loss.
    rng = np.random.default_rng(0)
    result = []
    for _ in range(100):
        y = rng.integers(3, size=200)
        pairs = scores_of(y, np.full((200, 3), 1 / 3), Constant(), rng=rng)
        result.append(pairs.mean(pairs.excess))
    assert np.mean(result) == pytest.approx(2 / 400, rel=0.2)


def test_logits_go_to_the_calibrator_as_they_are(rng):
    logits = rng.normal(size=(50, 3))
    y = datasets.draw_labels(softmax(logits, axis=1), rng=rng)
    pairs = scores_of(y, logits, Constant(inputs="logits"), inputs="logits")
    assert pairs.mean(pairs.before) == pytest.approx(
        log_loss(y, softmax(logits, axis=1)), abs=1e-12
    )


def test_rows_of_weight_zero_are_absent(rng):
    data = datasets.noisy_simplex(30, 3, 0.2, rng=rng)
    padded = scores_of(
        np.append(data.labels, 0),
        np.vstack([data.proba, [[0.1, 0.9, 0.0]]]),
        Constant(),
        sample_weight=[1] * 30 + [0],
    )
    plain = scores_of(data.labels, data.proba, Constant())
    assert np.array_equal(padded.after, plain.after)


def test_a_class_that_is_missing_from_a_fold_is_no_problem_for_a_calibrator_that_keeps_it(rng):
    y = np.array([0] * 20 + [1] * 20 + [2])
    pairs = scores_of(y, rng.dirichlet(np.ones(3), 41), Constant(), score="brier_score")
    assert np.isfinite(pairs.after).all()


def test_a_class_that_a_classifier_has_not_seen_is_impossible_to_it(rng):
    y = np.array([0] * 20 + [1] * 20 + [2])
    pairs = scores_of(y, rng.dirichlet(np.ones(3), 41), LogisticRegression())
    assert pairs.after.max() == pytest.approx(-np.log(1e-12))


def test_a_binary_calibrator_is_lifted_for_more_classes(rng):
    data = datasets.noisy_simplex(80, 3, 0.2, rng=rng)
    lifted = MulticlassToBinary(PlattScaling(), notion="class-wise", normalize=True)
    plain, result = (
        scores_of(data.labels, data.proba, calibrator) for calibrator in (PlattScaling(), lifted)
    )
    np.testing.assert_array_equal(plain.after, result.after)


def test_what_cannot_be_cross_fitted_is_rejected(rng):
    with pytest.raises(ValueError, match="at least 2 rows with positive weight, got 1"):
        scores_of([0], [[0.5, 0.5]], Constant())
    with pytest.raises(ValueError, match="cv must be an integer of at least 2"):
        scores_of([0, 1], [[0.5, 0.5]] * 2, Constant(), cv=1)
    with pytest.raises(ValueError, match="score must be one of 'log_loss', 'brier_score'"):
        scores_of([0, 1], [[0.5, 0.5]] * 2, Constant(), score="accuracy")
