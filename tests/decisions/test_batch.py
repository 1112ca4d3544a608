"""`select_answers`: p-values, the procedure, and its error rate on average."""

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant.decisions import select_answers
from calibrant.decisions._batch import _p_values, _step_up


def test_p_values_equal_their_formula(rng):
    wrong, scores = rng.integers(10, size=40) / 10, rng.integers(10, size=30) / 10
    expected = [(1 + sum(w >= s for w in wrong)) / 101 for s in scores]
    np.testing.assert_allclose(_p_values(wrong, 100, scores), expected)


def test_the_procedure_equals_its_definition(rng):
    for _ in range(50):
        p = rng.integers(1, 40, size=25) / 100
        counts = [k for k in range(1, 26) if (p <= 0.2 * k / 25).sum() >= k]
        expected = p <= 0.2 * max(counts) / 25 if counts else np.zeros(25, bool)
        np.testing.assert_array_equal(_step_up(p, 0.2), expected)


def _rows(rng, n, shape):
    """Probabilities of two classes with labels: calibrated, tied, or worse if surer."""
    confidence = rng.uniform(0.5, 1, size=n)
    if shape == "ties":
        confidence = np.round(confidence * 10) / 10
    chance = confidence
    if shape == "not monotone":
        # Neither the most confident rows nor the least sure rows are the best.
        chance = np.where(confidence > 0.9, 0.7, np.where(confidence > 0.7, 0.99, 0.6))
    labels = np.where(rng.random(n) < chance, 1, 0)
    return np.column_stack([1 - confidence, confidence]), labels


@pytest.mark.parametrize("shape", ["calibrated", "ties", "not monotone"])
@pytest.mark.parametrize("risk", [0.1, 0.2])
def test_the_expected_share_of_wrong_answers_is_at_most_the_risk(rng, shape, risk):
    shares = []
    for _ in range(400):
        proba, labels = _rows(rng, 300, shape)
        chosen = select_answers(labels[:200], proba[:200], proba[200:], risk)
        wrong = chosen.labels[chosen.answered] != labels[200:][chosen.answered]
        shares.append(wrong.mean() if wrong.size else 0.0)
    assert np.mean(shares) <= risk + 3 * np.std(shares) / np.sqrt(len(shares))


def test_it_answers_the_surest_rows_and_says_so(rng):
    proba, labels = _rows(rng, 2000, "calibrated")
    chosen = select_answers(labels[:1000], proba[:1000], proba[1000:], 0.15)
    confidence = proba[1000:].max(axis=1)
    assert 100 < chosen.n_answered < 1000
    assert confidence[chosen.answered].min() >= confidence[~chosen.answered].max()
    assert str(chosen).startswith(f"{chosen.n_answered} of 1000 rows are answered. On average")
    assert chosen.to_dict()["n_answered"] == sum(chosen.to_dict()["answered"])


def test_the_rows_of_a_calibrator_are_rejected(rng):
    proba, labels = _rows(rng, 600, "calibrated")
    calibrator = TemperatureScaling().fit(proba[:300], labels[:300])
    with pytest.raises(ValueError, match="rows that are also in X"):
        select_answers(labels[:300], proba[:300], proba[300:], estimator=calibrator)
    select_answers(labels[300:], proba[300:], proba[:300], estimator=calibrator)


def test_nothing_is_answered_if_all_rows_are_wrong(rng):
    proba, labels = _rows(rng, 400, "calibrated")
    chosen = select_answers(1 - proba.argmax(axis=1)[:200], proba[:200], proba[200:], 0.05)
    assert chosen.n_answered == 0
    with pytest.raises(ValueError, match="risk must be a number between 0 and 1"):
        select_answers(labels, proba, proba, 1.0)
