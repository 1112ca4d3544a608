from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import notion_names
from calibrant import datasets
from calibrant.inference import score_decomposition
from calibrant.metrics import brier_score, log_loss


def model():
    return LogisticRegression(max_iter=500)


@pytest.fixture(scope="module")
def data():
    return datasets.noisy_simplex(300, 3, 0.3, rng=8)


@pytest.mark.parametrize(
    ("score", "metric"), [("log_loss", log_loss), ("brier_score", brier_score)]
)
def test_calibration_and_refinement_sum_to_the_score(score, metric, data):
    parts = score_decomposition(data.labels, data.proba, model(), score=score, rng=0)
    assert parts.value == pytest.approx(metric(data.labels, data.proba), abs=1e-10)
    assert parts.calibration + parts.refinement == pytest.approx(parts.value, abs=1e-10)


@pytest.mark.parametrize("notion", notion_names.NAMES)
@pytest.mark.parametrize("score", ["log_loss", "brier_score"])
def test_the_terms_of_every_claim_sum_to_its_score_and_are_not_negative(notion, score, data):
    parts = score_decomposition(data.labels, data.proba, model(), score=score, notion=notion, rng=0)
    for claim in parts.claims:
        total = claim.miscalibration - claim.discrimination + claim.uncertainty
        assert total == pytest.approx(claim.score, abs=1e-10)
        assert min(claim.miscalibration, claim.discrimination, claim.uncertainty) >= 0
    assert sum(claim.share for claim in parts.claims) == pytest.approx(1)


@pytest.mark.parametrize("notion", notion_names.NAMES)
def test_the_scores_of_the_claims_average_to_the_brier_score_of_the_notion(notion, data):
    parts = score_decomposition(
        data.labels, data.proba, model(), score="brier_score", notion=notion, rng=0
    )
    mean = sum(claim.share * claim.score for claim in parts.claims)
    assert mean == pytest.approx(brier_score(data.labels, data.proba, notion=notion), abs=1e-10)


def test_the_log_loss_of_a_binary_claim_is_the_log_loss():
    data = datasets.power_family(200, 2.0, rng=1)
    parts = score_decomposition(data.labels, data.proba, model(), notion="class-1", rng=0)
    assert parts.claims[0].score == pytest.approx(log_loss(data.labels, data.proba), abs=1e-10)


def test_by_hand():
    # Outcomes 1, 0, 1 at scores .2, .4, .9: the isotonic fit is .5, .5, 1.
    parts = score_decomposition(
        [1, 0, 1] * 4, [0.2, 0.4, 0.9] * 4, model(), score="brier_score", notion="class-1", rng=0
    )
    claim = parts.claims[0]
    assert claim.score == pytest.approx((0.64 + 0.16 + 0.01) / 3)
    assert claim.uncertainty == pytest.approx(2 / 9)
    assert claim.miscalibration == pytest.approx(claim.score - 0.5 / 3)
    assert claim.discrimination == pytest.approx(2 / 9 - 0.5 / 3)


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_ties_zeros_and_ones_leave_finite_terms_that_sum_up(seed):
    generator = np.random.default_rng(seed)
    score = generator.integers(0, 4, 30) / 3
    y = np.append(generator.integers(0, 2, 28), [0, 1])
    for name in ("log_loss", "brier_score"):
        parts = score_decomposition(y, score, model(), score=name, notion="class-1", rng=0, cv=2)
        claim = parts.claims[0]
        assert min(claim.miscalibration, claim.discrimination, claim.uncertainty) >= 0
        assert claim.miscalibration - claim.discrimination + claim.uncertainty == pytest.approx(
            claim.score, abs=1e-10
        )


def test_a_weight_is_a_number_of_copies_for_every_claim(data, rng):
    copies = rng.integers(0, 3, size=300)
    rows = np.repeat(np.arange(300), copies)
    weighted = score_decomposition(data.labels, data.proba, model(), sample_weight=copies, rng=0)
    repeated = score_decomposition(data.labels[rows], data.proba[rows], model(), rng=0)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-12)
    for one, other in zip(weighted.claims, repeated.claims, strict=True):
        assert one.miscalibration == pytest.approx(other.miscalibration, abs=1e-12)
        assert one.discrimination == pytest.approx(other.discrimination, abs=1e-12)


def test_classes_that_are_never_predicted_make_no_claim():
    proba = np.array([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]] * 10)
    parts = score_decomposition([0, 1] * 9 + [2, 2], proba, Uniform(), notion="top-label", rng=0)
    assert [claim.claim for claim in parts.claims] == [0, 1]


class Uniform(LogisticRegression):
    """Calibrator that always predicts 1/K."""

    def fit(self, X, y, sample_weight=None):
        return self

    def predict_proba(self, X):
        return np.full(X.shape, 1 / X.shape[1])


def test_the_result_has_a_text(data):
    parts = score_decomposition(data.labels, data.proba, model(), rng=0)
    lines = str(parts).splitlines()
    assert lines[0].startswith("log_loss ")
    assert "= calibration" in lines[0]
    assert len(lines) == 2 + 3
    assert len(json.loads(json.dumps(parts.to_dict()))["claims"]) == 3
