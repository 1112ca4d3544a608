"""Scores that rank predictions from the most to the least reliable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from calibrant._kernels.simplex import EPS, log_floored
from calibrant._typing import FloatArray
from calibrant._validation import as_array, check_option

ScoreFunction = Callable[[FloatArray], Any]

ScoreLike: TypeAlias = str | ScoreFunction
"""Type of the argument ``score``: a name in `SCORES`, or a function of probabilities (n, K)."""


def _two_largest(proba: FloatArray) -> tuple[FloatArray, FloatArray]:
    top = np.partition(proba, -2, axis=1)[:, -2:]
    return top[:, 1], top[:, 0]


def _confidence(proba: FloatArray) -> FloatArray:
    return np.asarray(proba.max(axis=1))


def _margin(proba: FloatArray) -> FloatArray:
    first, second = _two_largest(proba)
    return first - second


def _log_margin(proba: FloatArray) -> FloatArray:
    # The floor keeps the score finite if a probability is zero.
    first, second = (log_floored(values, EPS) for values in _two_largest(proba))
    return first - second


SCORES: dict[str, ScoreFunction] = {
    "confidence": _confidence,
    "margin": _margin,
    "log-margin": _log_margin,
}
"""Score functions by name. Rows with higher scores are answered first."""


def check_score(score: Any) -> ScoreFunction:
    """Return the score function for a name or a function."""
    if callable(score):
        function: ScoreFunction = score
        return function
    return SCORES[check_option(score, "score", tuple(SCORES))]


def sureness(score: Any, proba: FloatArray) -> FloatArray:
    """Compute the score of each row, and raise if a user's function returns invalid scores."""
    values = as_array(check_score(score)(proba))
    if values.shape != (len(proba),) or values.dtype.kind not in "fiu":
        raise ValueError(
            f"score must return one number per row, shape ({len(proba)},), got shape "
            f"{values.shape} of {values.dtype}. For example, pass score=lambda proba: "
            f"proba.max(axis=1)."
        )
    values = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"score returned {values[bad[0]]} for row {bad[0]}, but scores must be finite. Clip "
            f"the scores, for example with np.clip(values, -1e9, 1e9)."
        )
    return values
