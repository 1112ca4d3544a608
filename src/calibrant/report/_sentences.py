"""The report in words: the verdict at its top, what to be careful about, and sentences that its
forms share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2_contingency

from calibrant._kernels.simplex import EPS, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import shortened
from calibrant.inference import Gain, Interval
from calibrant.metrics import Evaluation
from calibrant.report._advice import shows_rest
from calibrant.report._checks import PossibleError
from calibrant.report._content import CheckRow, Report

NO_GUARANTEE = (
    "There are too few calibration rows for a distribution-free guarantee: 50 rows per bin are "
    "needed."
)

_WEIGHTED = "No guarantee is given for rows with weights: its proof counts rows."

FEW_ROWS = 20
"""Rows of a class below which its numbers mean little."""

_SHIFT_LEVEL = 1e-3
"""Of the test of label shift: a report is read once, so that one in a thousand is rare enough."""

_TIED_SHARE = 0.5
"""Of top probabilities that repeat another one: if most do, quantile bins are not equal."""


_OVERCONFIDENT = 0.01
"""Mean confidence minus accuracy that is relevant: a percentage point."""


def verdict(
    before: Evaluation, gap: Interval, gain: Gain, method: str, last: str = ""
) -> tuple[str, str]:
    """What calibration does, "good", "mixed" or "bad", and the sentences.

    ``gap`` is confidence minus accuracy, and ``last`` the sentence about the remaining error or
    about errors that could have been missed.
    """
    sentences = [_state(before, gap), gain.sentence(method), last]
    return gain.judgement, " ".join(filter(None, sentences))


def remaining(gap: Interval, tests: Sequence[CheckRow], *, is_held_out: bool) -> tuple[bool, str]:
    """Whether miscalibration remains after calibration, and a sentence about it.

    ``gap`` is confidence minus accuracy after calibration. Tests count only for rows that no fit
    has used: after cross-fitting they miss most of the remaining error.
    """
    if is_beyond(gap):
        kind = "overconfident" if gap.estimate > 0 else "underconfident"
        size = abs(gap.estimate)
        return True, f"The calibrated probabilities are still {kind}, by {size:.1%} on average."
    if not is_held_out:
        return False, (
            "All rows were used for the fit, so they cannot show whether miscalibration remains; "
            "pass separate rows to fit on."
        )
    if not shows_rest(tests):
        return False, "No remaining miscalibration was detected."
    worst = min(tests, key=lambda test: test.p_after)
    expected = worst.expected_after
    noise = "" if expected is None else f", {expected:z.4f} expected under calibration"
    return True, (
        f"Remaining miscalibration detected: {worst.title} {worst.statistic_after:z.4f}{noise}."
    )


def possible_sentence(possible: PossibleError) -> str:
    """The largest errors that could have been missed."""
    rows = "1 row" if round(possible.rows) == 1 else f"{possible.rows:,.0f} rows"
    return (
        f"Mean errors of up to {possible.overall:.1%} over all rows, and of up to "
        f"{possible.worst:.1%} for predictions of {possible.name} ({rows}), cannot be excluded "
        "(95% confidence)."
    )


def is_beyond(gap: Interval) -> bool:
    """Whether confidence minus accuracy is relevant and significant."""
    return abs(gap.estimate) > _OVERCONFIDENT and not gap.low <= 0 <= gap.high


def _state(before: Evaluation, gap: Interval) -> str:
    """Overconfidence or underconfidence, if it is relevant and significant."""
    numbers = (
        f"mean confidence {before.accuracy + gap.estimate:.1%}, accuracy {before.accuracy:.1%}"
    )
    if is_beyond(gap):
        return f"{'Overconfident' if gap.estimate > 0 else 'Underconfident'}: {numbers}."
    return f"No over- or underconfidence on average was detected: {numbers}."


def cautions(
    proba: FloatArray,
    y: IntArray,
    classes: Sequence[str],
    seen: FloatArray,
    shift: tuple[FloatArray, FloatArray],
    remarks: Sequence[str],
) -> tuple[str, ...]:
    """What to be careful about; ``seen`` are the calibration rows of each class, ``shift`` label
    counts to compare.
    """
    warnings = [
        _never_seen(seen, classes),
        _few_rows(seen, classes),
        _label_shift(*shift),
        _ties(proba),
        _certain(proba, y),
    ]
    return tuple(line for line in warnings if line) + tuple(remarks)


def _never_seen(seen: FloatArray, classes: Sequence[str]) -> str | None:
    missing = [classes[k] for k in np.flatnonzero(seen == 0).tolist()]
    return (
        f"Never seen in the calibration rows: {shortened(missing)}. Nothing is known about them."
        if missing
        else None
    )


def _few_rows(seen: FloatArray, classes: Sequence[str]) -> str | None:
    few = [
        f"{classes[k]} ({seen[k]:g})"
        for k in np.flatnonzero((seen > 0) & (seen < FEW_ROWS)).tolist()
    ]
    return (
        f"Few calibration rows, fewer than {FEW_ROWS}: {shortened(few)}. Their own numbers mean "
        f"little."
        if few
        else None
    )


def _label_shift(fitted: FloatArray, evaluated: FloatArray) -> str | None:
    """Whether two sets of rows, or a forecast and the truth, have different label frequencies."""
    table = np.array([fitted, evaluated])
    table = table[:, (table > 0).any(axis=0)]
    if (
        table.shape[1] < 2
        or not (table.sum(axis=1) > 0).all()
        or chi2_contingency(table).pvalue >= _SHIFT_LEVEL
    ):
        return None
    return (
        "Label shift: the classes are not as frequent here as in the calibration rows; see "
        "calibrant.label_shift.adapt."
    )


def _ties(proba: FloatArray) -> str | None:
    top = proba.max(axis=1)
    share = 1.0 - np.unique(top).size / top.size
    if share <= _TIED_SHARE:
        return None
    return (
        f"Ties: {share:.0%} of the top probabilities repeat another one. Quantile bins "
        f"cannot split them."
    )


def _certain(proba: FloatArray, y: IntArray) -> str | None:
    impossible = int((true_class(proba, y) == 0).sum())
    if not impossible:
        return None
    return (
        f"{impossible} row(s) gave their true class a probability of exactly 0; log-loss counts "
        f"them as {EPS:g}."
    )


def facts(report: Report) -> str:
    """Numbers of rows and classes."""
    return f"{report.n_samples:,.0f} rows, {report.n_classes} classes"


def no_guarantee(report: Report) -> str:
    """Why there is none."""
    return _WEIGHTED if report.is_weighted else NO_GUARANTEE


def ks_sentence(report: Report) -> str:
    """The KS graph in words."""
    return (
        f"KS error {report.ks.before_error:.4f} before and {report.ks.after_error:.4f} after "
        f"calibration."
    )


def decomposition_sentence(report: Report) -> str:
    """The decomposition in words."""
    pairs = (("before", report.decomposition.before), ("after", report.decomposition.after))
    sums = [
        f"{when} {c + r:z.4f} = calibration {c:z.4f} + refinement {r:z.4f}"
        for when, (c, r) in pairs
    ]
    return f"Log-loss {sums[0]}; {sums[1]}."


def null_sentence(test: CheckRow) -> str:
    """The null hypothesis of a test, and what holds of its p-values."""
    after = test.guarantee_after or test.guarantee
    guarantee = test.guarantee if after == test.guarantee else f"{test.guarantee}; after: {after}"
    return f"{test.null} ({guarantee})"
