"""What to do: the first words of a report, by what chance allows to say."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.inference import Gain
from calibrant.report._content import CheckRow

LEAST_ROWS = 100
"""Below this neither a gain nor its absence is shown by anything but luck."""

_LEVEL = 0.05
_SMALL = 0.01
"""Log-loss that is not worth a change: a hundredth of a nat."""


def advise(n_samples: float, gain: Gain, tests: Sequence[CheckRow], method: str) -> tuple[str, str]:
    """What to do, in a few words, and how sure that is: "good", "mixed" or "bad".

    Calibration is advised where it gains on rows that the map has not seen, with a word of warning
    where tests still show an error after it; nothing is to be done
    where at most little can be gained and no test, by Holm's rule, shows an error.
    """
    if n_samples < LEAST_ROWS:
        return (
            f"Too few rows: {n_samples:.0f}. Collect {LEAST_ROWS} or more before deciding.",
            "mixed",
        )
    if gain.judgement == "good" and shows_rest(tests):
        return "Use the calibrated probabilities: they are better, though not yet right.", "mixed"
    if gain.judgement == "good":
        return "Use the calibrated probabilities.", "good"
    if gain.judgement == "bad":
        other = "" if method == "auto" else " Try the method auto, which chooses among several."
        return f"Keep the probabilities as they are: {method} makes them worse.{other}", "bad"
    if gain.high < _SMALL and not _shows_error(tests):
        return "Already calibrated, nothing to do.", "good"
    if _shows_error(tests):
        return (
            f"Not calibrated, but {method} does not mend it for certain: collect more rows, or try "
            f"another method.",
            "mixed",
        )
    return "Not decided: these rows show neither an error nor a gain. Collect more.", "mixed"


def _shows_error(tests: Sequence[CheckRow]) -> bool:
    """Whether any test of the scores as they are rejects."""
    return _rejects([test.p_before for test in tests])


def shows_rest(tests: Sequence[CheckRow]) -> bool:
    """Whether any test of the calibrated probabilities rejects."""
    return _rejects([test.p_after for test in tests])


def _rejects(p_values: Sequence[float]) -> bool:
    """By Holm's rule the smallest p-value decides."""
    return bool(p_values) and min(p_values) * len(p_values) < _LEVEL
