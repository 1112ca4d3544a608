"""What to do: the first words of a report."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.inference import Gain
from calibrant.report._content import CheckRow

LEAST_ROWS = 100
"""With fewer rows, sampling noise hides both a gain and its absence."""

_LEVEL = 0.05
_SMALL = 0.01
"""Log-loss that is not worth a change: a hundredth of a nat."""
_TOLERABLE = 0.1
"""A mean error of a predicted class above this is too large to remain possible without a notice."""


def advise(
    n_samples: float,
    gain: Gain,
    tests: Sequence[CheckRow],
    method: str,
    *,
    possible: float,
    has_rest: bool,
) -> tuple[str, str]:
    """What to do, in a few words, and how sure that is: "good", "mixed" or "bad".

    Calibration is recommended if it reduces the log-loss of held-out rows; ``has_rest`` is whether
    miscalibration remains after it. No change is recommended if little can be gained and no test,
    by Holm's rule, shows an error. That is "good" only if the rows exclude errors of a predicted
    class above 0.1; ``possible`` is the largest error that they do not exclude.
    """
    if n_samples < LEAST_ROWS:
        return (
            f"Too few rows: {n_samples:.0f}. Collect {LEAST_ROWS} or more before deciding.",
            "mixed",
        )
    if gain.judgement == "good" and has_rest:
        return "Use the calibrated probabilities. They are better, but an error remains.", "mixed"
    if gain.judgement == "good":
        return "Use the calibrated probabilities.", "good"
    if gain.judgement == "bad":
        other = "" if method == "auto" else " Try the method auto, which chooses among several."
        return f"Keep the probabilities as they are: {method} makes them worse.{other}", "bad"
    if shows_error(tests):
        return (
            f"Miscalibration detected, but it is not certain that {method} reduces it. Collect "
            f"more rows, or try another method.",
            "mixed",
        )
    if gain.high < _SMALL:
        sure = "good" if possible <= _TOLERABLE else "mixed"
        return "No miscalibration detected; no change recommended.", sure
    return (
        "No miscalibration detected, but calibration may still help. Collect more rows to decide.",
        "mixed",
    )


def shows_error(tests: Sequence[CheckRow]) -> bool:
    """Whether any test of the scores as they are rejects."""
    return _rejects([test.p_before for test in tests])


def shows_rest(tests: Sequence[CheckRow]) -> bool:
    """Whether any test of the calibrated probabilities rejects."""
    return _rejects([test.p_after for test in tests])


def _rejects(p_values: Sequence[float]) -> bool:
    """By Holm's rule the smallest p-value decides."""
    return bool(p_values) and min(p_values) * len(p_values) < _LEVEL
