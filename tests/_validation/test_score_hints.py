from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation.score_hints import (
    LOGITS_HINT,
    SOFTMAX_HINT,
    diagnose,
    look_like_proba,
    raw_hint,
    shares_hint,
)

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])


@pytest.mark.parametrize(
    ("scores", "expected"), [(P, True), (np.log(P), False), (2 * P, False), (P / 2, False)]
)
def test_probabilities_are_recognized(scores, expected):
    assert look_like_proba(scores) is expected


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (100 * P, "These are percentages. Pass p / 100."),
        (np.log(P), "These are log-probabilities. Pass inputs='log_proba'."),
        (20 * P, shares_hint(LOGITS_HINT)),
        (np.log(P) + 2, None),
        (np.log(P) - 1, None),
        (np.where(P > 0.5, np.nan, P), None),
    ],
)
def test_tables_that_are_not_probabilities_are_diagnosed(scores, message):
    assert diagnose(scores, LOGITS_HINT) == message


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        ([50.0, 20.5], "Pass p / 100 for percentages, or inputs='logits' for log-odds."),
        ([2.0, 0.0], "Pass model.predict_proba(X) instead of predicted labels, p / 100"),
        ([-2.0, -0.1], "No score is positive. Pass inputs='log_proba' for log-probabilities"),
    ],
)
def test_one_score_per_row_has_its_own_diagnosis(scores, start):
    assert diagnose(np.array(scores)[:, None], LOGITS_HINT).startswith(start)


def test_functions_without_inputs_suggest_a_conversion():
    assert raw_hint(P, SOFTMAX_HINT) == "Pass scipy.special.softmax(z, axis=1) for raw scores."
    assert raw_hint(P[:, :1], SOFTMAX_HINT) == "Pass scipy.special.expit(z) for log-odds."
    assert diagnose(np.log(P), SOFTMAX_HINT) == "These are log-probabilities. Pass np.exp(p)."
