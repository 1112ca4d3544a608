from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from calibrant import datasets
from calibrant._crossfit.scores import SCORES, paired_scores, random_folds
from calibrant.base import BaseCalibrator
from calibrant.metrics import brier_score, log_loss


class Constant(BaseCalibrator):
    """Predicts the label frequencies of the rows that it was fitted on."""

    form = "proba"

    def __init__(self, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, u, y, weight):
        self.frequency_ = np.bincount(y, weight, minlength=u.shape[1]) / weight.sum()

    def _log_proba(self, u):
        return np.log(np.maximum(np.broadcast_to(self.frequency_, u.shape), 1e-300))


def scores_of(y, proba, calibrator, **options):
    settings = {
        "score": "log_loss",
        "inputs": "proba",
        "cv": 5,
        "sample_weight": None,
        "classes": None,
        "rng": 0,
    }
    return paired_scores(y, proba, calibrator, **{**settings, **options})


def test_folds_are_as_equal_as_can_be():
    fold = random_folds(23, 5, 0)
    assert sorted(np.bincount(fold)) == [4, 4, 5, 5, 5]
    assert set(random_folds(3, 5, 0)) == {0, 1, 2}
    assert np.array_equal(random_folds(23, 5, 1), random_folds(23, 5, 1))


def test_a_row_is_judged_by_a_map_that_has_not_seen_it(rng):
    y = rng.integers(3, size=40)
    proba = rng.dirichlet(np.ones(3), 40)
    pairs = scores_of(y, proba, Constant(), score="brier_score", rng=3)
    fold = random_folds(40, 5, 3)
    for i in range(40):
        frequency = np.bincount(y[fold != fold[i]], minlength=3) / np.sum(fold != fold[i])
        assert pairs.after[i] == pytest.approx(np.sum((frequency - np.eye(3)[y[i]]) ** 2))


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
    # The frequencies of K classes from n rows: (K - 1) / 2n in log-loss, K - 1 parameters.
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        y = rng.integers(3, size=200)
        pairs = scores_of(y, np.full((200, 3), 1 / 3), Constant(), rng=rng)
        found.append(pairs.mean(pairs.excess))
    assert np.mean(found) == pytest.approx(2 / 400, rel=0.2)


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


def test_a_classifier_that_drops_a_class_is_named(rng):
    y = np.array([0] * 20 + [1] * 20 + [2])
    with pytest.raises(ValueError, match="LogisticRegression gave 2 columns for 3 classes"):
        scores_of(y, rng.dirichlet(np.ones(3), 41), LogisticRegression())


def test_what_cannot_be_cross_fitted_is_refused(rng):
    with pytest.raises(ValueError, match="at least 2 rows of positive weight, got 1"):
        scores_of([0], [[0.5, 0.5]], Constant())
    with pytest.raises(ValueError, match="cv must be a whole number of at least 2"):
        scores_of([0, 1], [[0.5, 0.5]] * 2, Constant(), cv=1)
    with pytest.raises(ValueError, match="score must be one of 'log_loss', 'brier_score'"):
        scores_of([0, 1], [[0.5, 0.5]] * 2, Constant(), score="accuracy")
