"""Recommendation at the top of a report."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.inference import Gain
from calibrant.report._content import CheckRow

LEAST_ROWS = 100
"""With fewer rows, sampling noise is too large for a recommendation."""

_LEVEL = 0.05
_SMALL = 0.01
"""Reductions in log-loss below this number of nats are too small to recommend a change."""
_TOLERABLE = 0.1
"""The advice "good" requires that the rows exclude larger mean errors of predicted classes."""


def advise(
    n_samples: float,
    gain: Gain,
    tests: Sequence[CheckRow],
    method: str,
    *,
    possible: float,
    has_rest: bool,
) -> tuple[str, str]:
    """Return a recommendation and its rating: "good", "mixed" or "bad".

    The recommendation is to calibrate if calibration reduces the log-loss of held-out rows.
    ``has_rest`` is True if remaining miscalibration was detected after calibration. The
    recommendation is no change if at most a small reduction is possible and no test is significant
    (Holm). The rating of no change is "good" only if the confidence intervals exclude mean errors
    of predicted classes above 0.1. ``possible`` is the largest error in these intervals.
    """
    if n_samples < LEAST_ROWS:
        return (
            f"{n_samples:.0f} rows are too few for a recommendation. Collect at least "
            f"{LEAST_ROWS} rows.",
            "mixed",
        )
    if gain.conclusion == "good" and has_rest:
        return (
            "Use the calibrated probabilities. Calibration reduces log-loss, but remaining "
            "miscalibration was detected.",
            "mixed",
        )
    if gain.conclusion == "good":
        return "Use the calibrated probabilities.", "good"
    if gain.conclusion == "bad":
        other = "" if method == "auto" else " Try the method auto, which combines several methods."
        return (
            f"Keep the original probabilities. The method {method} increases log-loss.{other}",
            "bad",
        )
    if shows_error(tests):
        return (
            f"Miscalibration was detected, but it is uncertain whether {method} reduces log-loss. "
            "Collect more rows, or try another method.",
            "mixed",
        )
    if gain.high < _SMALL:
        sure = "good" if possible <= _TOLERABLE else "mixed"
        return "No miscalibration detected; no change recommended.", sure
    return (
        "No miscalibration was detected, but calibration may still reduce log-loss. Collect more "
        "rows to decide.",
        "mixed",
    )


def advise_on_one_class(name: str) -> tuple[str, str]:
    """Return the recommendation and its rating if all rows belong to one class.

    The log-loss is then lowest for a calibrator that always predicts this class.
    """
    return (
        f"No recommendation is possible, because all rows belong to class {name}. Evaluate rows of "
        "at least two classes.",
        "bad",
    )


def shows_error(tests: Sequence[CheckRow]) -> bool:
    """Return whether any test of the original probabilities is significant."""
    return _rejects([test.p_before for test in tests])


def shows_rest(tests: Sequence[CheckRow]) -> bool:
    """Return whether any test of the calibrated probabilities is significant."""
    return _rejects([test.p_after for test in tests])


def _rejects(p_values: Sequence[float]) -> bool:
    """Return whether Holm's procedure rejects any hypothesis.

    Only the smallest p-value matters, because the procedure starts with this p-value.
    """
    return bool(p_values) and min(p_values) * len(p_values) < _LEVEL
