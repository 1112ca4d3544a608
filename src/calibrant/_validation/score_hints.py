"""Diagnose scores of a type other than the declared type, and suggest a fix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._kernels.simplex import row_sum
from calibrant._typing import FloatArray

LARGEST_TOLERANCE = 0.05
"""Largest difference of a row sum from one that rounding can explain, for any number of
decimals."""

HALF_TOLERANCE = 1e-2
"""Tolerance of row sums for 16-bit values (float16 and bfloat16)."""

_LOOKS = 1e-3
"""Tolerance of row sums for deciding whether scores look like probabilities."""

SOME_ROWS = 1000
"""Number of rows that are inspected to diagnose scores and their rounding."""


class ScoreHints(NamedTuple):
    """The fixes that error messages suggest, as code that can be pasted after "Pass"."""

    logits: str
    log_odds: str
    log_proba: str
    proba: str = "inputs='proba'"
    percent: str = "p / 100"
    divide: str = "p / p.sum(axis=1, keepdims=True)"


LOGITS_HINT = ScoreHints(
    logits="inputs='logits'", log_odds="inputs='logits'", log_proba="inputs='log_proba'"
)
"""Fixes for functions that have a parameter ``inputs``."""

SOFTMAX_HINT = ScoreHints(
    logits="scipy.special.softmax(z, axis=1)",
    log_odds="scipy.special.expit(z)",
    log_proba="np.exp(p)",
)
"""Fixes for functions that only accept probabilities."""

NEW_SCORE_HINTS = {
    "proba": SOFTMAX_HINT,
    "logits": ScoreHints(logits="z", log_odds="z", log_proba="z", proba="np.log(p)"),
    "log_proba": ScoreHints(
        logits="scipy.special.log_softmax(z, axis=1)",
        log_odds="scipy.special.log_expit(z)",
        log_proba="z",
        proba="np.log(p)",
    ),
}
"""Fixes for new scores of a fitted calibrator, by the type of the scores in the fit."""


def look_like_proba(scores: FloatArray) -> bool:
    """Return whether scores that were declared as logits have the form of probabilities."""
    # The first row is enough to rule out nearly all logits.
    if not all(0 <= score <= 1 for score in scores[0].tolist()):
        return False
    first_rows = scores[:SOME_ROWS]
    is_inside = bool(first_rows.min() >= 0 and first_rows.max() <= 1)
    return is_inside and bool(np.abs(row_sum(first_rows) - 1).max() <= _LOOKS)


def diagnose(array: FloatArray, hints: ScoreHints) -> str | None:
    """Return the likely type of invalid probabilities and a fix, or None if the type is unclear."""
    first_rows = np.asarray(array[:SOME_ROWS], dtype=np.float64)
    if first_rows.max() <= 0:
        return _diagnose_negative(first_rows, hints)
    # This condition also holds for NaN and +inf.
    if first_rows.min() < 0 or not 1 < first_rows.max() <= 100 * (1 + HALF_TOLERANCE):
        return None
    if first_rows.shape[1] == 1:
        labels = (
            "" if (first_rows % 1).any() else "model.predict_proba(X) instead of predicted labels, "
        )
        return f"Pass {labels}{hints.percent} for percentages, or {hints.log_odds} for log-odds."
    if np.abs(first_rows.sum(axis=1) - 100).max() <= 100 * LARGEST_TOLERANCE:
        return f"These are percentages. Pass {hints.percent}."
    return shares_hint(hints)


def _diagnose_negative(first_rows: FloatArray, hints: ScoreHints) -> str | None:
    if first_rows.shape[1] == 1:
        return (
            f"No score is positive. Pass {hints.log_proba} for log-probabilities, or "
            f"{hints.log_odds} for log-odds."
        )
    if np.abs(np.exp(first_rows).sum(axis=1) - 1).max() <= HALF_TOLERANCE:
        return f"These are log-probabilities. Pass {hints.log_proba}."
    return None


def positive_hint(array: FloatArray, hints: ScoreHints) -> str:
    """Suggest what to pass instead of log-probabilities that are positive."""
    is_score = array.shape[1] == 1  # of class 1, so rows need not sum to one
    is_proba = ((array >= 0) & (array <= 1)).all() if is_score else look_like_proba(array)
    if is_proba:
        return f"These look like probabilities. Pass {hints.proba}."
    return f"Pass {hints.logits} for raw scores."


def raw_hint(array: FloatArray, hints: ScoreHints) -> str:
    """Suggest how to pass raw scores."""
    if array.shape[1] == 1:
        return f"Pass {hints.log_odds} for log-odds."
    return f"Pass {hints.logits} for raw scores."


def shares_hint(hints: ScoreHints) -> str:
    """Suggest how to pass rows that do not sum to one."""
    return f"Pass {hints.divide} for counts or shares, or {hints.logits} for raw scores."
