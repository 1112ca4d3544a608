"""Sentences that all formats of a report contain, such as the verdict and the warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2_contingency

from calibrant._kernels.simplex import EPS, true_class
from calibrant._output.numbers import format_interval, format_number, format_percent
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import shortened
from calibrant.inference import Gain, Interval
from calibrant.metrics import Evaluation
from calibrant.report._advice import shows_rest
from calibrant.report._checks import PossibleError
from calibrant.report._content import CheckRow, Report
from calibrant.report._risk_content import RiskCurve

NO_GUARANTEE = (
    "There are too few calibration rows for a distribution-free guarantee. At least 50 rows per "
    "bin are needed."
)

_WEIGHTED = "There is no guarantee, because its proof requires rows without weights."

_HEURISTIC_BOUNDS = (
    " The bounds after calibration are heuristic, because the calibrator was cross-fitted on these "
    "rows."
)

FEW_ROWS = 20
"""Number of rows below which the figures of a class are not reliable."""

_SHIFT_LEVEL = 1e-3
"""Level of the test of label shift. A low level keeps false warnings rare."""

_TIED_SHARE = 0.5
"""Share of tied confidences above which quantile bins differ much in size."""

_NEGLIGIBLE = 1e-4
"""Reduction in log-loss, in nats, that a sentence shows as 0."""

_OVERCONFIDENT = 0.01
"""Smallest relevant difference of mean confidence and accuracy, one percentage point."""


def verdict(
    before: Evaluation, gap: Interval, gain: Gain, method: str, error_sentence: str = ""
) -> tuple[str, str]:
    """Rate the effect of calibration as "good", "mixed" or "bad", and return sentences about it.

    ``gap`` is confidence minus accuracy. ``error_sentence`` states remaining or possible errors.
    """
    sentences = [_state(before, gap), gain_sentence(gain, method), error_sentence]
    return gain.conclusion, " ".join(filter(None, sentences))


def gain_sentence(gain: Gain, method: str) -> str:
    """State the change in log-loss on held-out rows, with its confidence interval."""
    change = f"from {format_number(gain.before)} to {format_number(gain.after)} on held-out rows"
    if gain.conclusion == "mixed":
        # Round small reductions, because 0.00001 nats would be shown in scientific notation.
        reduction = 0.0 if abs(gain.gain) < _NEGLIGIBLE else gain.gain
        return (
            f"It is uncertain whether calibration by {method} reduces log-loss. Log-loss changes "
            f"{change} (reduction {format_number(reduction, signed=True)}, "
            f"{format_percent(gain.level)} CI {format_interval(gain.low, gain.high, signed=True)})."
        )
    verb, sign = ("reduces", 1.0) if gain.conclusion == "good" else ("increases", -1.0)
    low, high = sorted((sign * gain.low, sign * gain.high))
    return (
        f"Calibration by {method} {verb} log-loss {change}, by {format_number(sign * gain.gain)} "
        f"({format_percent(gain.level)} CI {format_interval(low, high)})."
    )


def remaining(gap: Interval, tests: Sequence[CheckRow], *, is_held_out: bool) -> tuple[bool, str]:
    """Return whether miscalibration was detected after calibration, and the result in a sentence.

    ``gap`` is confidence minus accuracy after calibration. Tests are used only if no fit has used
    the rows, because tests after cross-fitting miss most remaining errors.
    """
    if is_beyond(gap):
        kind = "overconfident" if gap.estimate > 0 else "underconfident"
        size = format_percent(abs(gap.estimate))
        return True, f"The calibrated probabilities are still {kind}, by {size} on average."
    if not is_held_out:
        return False, (
            "Tests on cross-fitted rows cannot show whether miscalibration remains. Fit on "
            "separate rows to test for remaining miscalibration."
        )
    if not shows_rest(tests):
        return False, "No remaining miscalibration was detected."
    return True, _detection_sentence(min(tests, key=lambda test: test.p_after))


def _detection_sentence(test: CheckRow) -> str:
    expected = test.expected_after
    noise = "" if expected is None else f", {format_number(expected)} expected under calibration"
    return (
        f'The test "{test.title}" detects remaining miscalibration (statistic '
        f"{format_number(test.statistic_after)}{noise})."
    )


def possible_sentence(possible: PossibleError) -> str:
    """State the largest errors that the rows do not exclude."""
    rows = "1 row" if round(possible.rows) == 1 else f"{possible.rows:,.0f} rows"
    return (
        f"With 95% confidence, mean confidence and accuracy differ by at most "
        f"{format_percent(possible.overall)} over all rows. For predictions of class "
        f"{possible.name} ({rows}), the difference may be up to {format_percent(possible.worst)}."
    )


def is_beyond(gap: Interval) -> bool:
    """Return whether the difference between confidence and accuracy is relevant and significant."""
    return abs(gap.estimate) > _OVERCONFIDENT and not gap.low <= 0 <= gap.high


def _state(before: Evaluation, gap: Interval) -> str:
    """State overconfidence or underconfidence that is relevant and significant."""
    numbers = (
        f"mean confidence {format_percent(before.accuracy + gap.estimate)}, accuracy "
        f"{format_percent(before.accuracy)}"
    )
    if is_beyond(gap):
        return f"{'Overconfident' if gap.estimate > 0 else 'Underconfident'}: {numbers}."
    return f"No average over- or underconfidence was detected: {numbers}."


def cautions(
    proba: FloatArray,
    y: IntArray,
    classes: Sequence[str],
    class_weights: FloatArray,
    shift: tuple[FloatArray, FloatArray],
    fit_notes: Sequence[str],
) -> tuple[str, ...]:
    """Return the warnings of a report.

    ``class_weights`` are the numbers of calibration rows per class. ``shift`` is a pair of label
    counts that must have similar class frequencies.
    """
    warnings = [
        _missing_classes(class_weights, classes),
        _few_rows(class_weights, classes),
        _label_shift(*shift),
        _ties(proba),
        _zero_probabilities(proba, y),
    ]
    return tuple(line for line in warnings if line) + tuple(fit_notes)


def _missing_classes(class_weights: FloatArray, classes: Sequence[str]) -> str | None:
    missing = [classes[k] for k in np.flatnonzero(class_weights == 0).tolist()]
    if not missing:
        return None
    return (
        f"Classes without calibration rows: {shortened(missing)}. The calibrated probabilities of "
        "these classes cannot be checked."
    )


def _few_rows(class_weights: FloatArray, classes: Sequence[str]) -> str | None:
    few = [
        f"{classes[k]} ({class_weights[k]:g})"
        for k in np.flatnonzero((class_weights > 0) & (class_weights < FEW_ROWS)).tolist()
    ]
    if not few:
        return None
    return (
        f"Classes with fewer than {FEW_ROWS} calibration rows: {shortened(few)}. The figures of "
        "these classes are not reliable."
    )


def _label_shift(fitted: FloatArray, evaluated: FloatArray) -> str | None:
    """Warn if two label counts have significantly different class frequencies."""
    table = np.array([fitted, evaluated])
    table = table[:, (table > 0).any(axis=0)]
    if (
        table.shape[1] < 2
        or not (table.sum(axis=1) > 0).all()
        or chi2_contingency(table).pvalue >= _SHIFT_LEVEL
    ):
        return None
    return (
        "Label shift: the class frequencies differ significantly between the evaluated rows and "
        "the calibration rows. "
        "Use calibrant.label_shift.adapt to account for label shift."
    )


def _ties(proba: FloatArray) -> str | None:
    top = proba.max(axis=1)
    share = 1.0 - np.unique(top).size / top.size
    if share <= _TIED_SHARE:
        return None
    return (
        f"Ties: {format_percent(share)} of the confidences are repeated values. Quantile bins "
        "cannot split repeated values."
    )


def _zero_probabilities(proba: FloatArray, y: IntArray) -> str | None:
    n_rows = int((true_class(proba, y) == 0).sum())
    if not n_rows:
        return None
    rows = "1 row" if n_rows == 1 else f"{n_rows:,} rows"
    return (
        f"The true class has a predicted probability of exactly 0 in {rows}. Log-loss uses {EPS:g} "
        "instead."
    )


def audit_facts(report: Report) -> tuple[tuple[str, str], ...]:
    """Return the facts that identify a report, such as size, date and digest of the data."""
    facts = {
        "Rows": f"{report.n_samples:,.0f}",
        "Classes": f"{report.n_classes:,}",
        "Method": report.method,
        "Date": report.created,
        "Version": f"calibrant {report.version}",
        "SHA-256 of the data": report.data_sha256,
    }
    return tuple((name, value) for name, value in facts.items() if value)


def reduction_sentence(report: Report) -> str:
    """State the reduction in log-loss with its confidence interval."""
    reduction = report.headline.reduction
    value = 0.0 if abs(reduction.value) < _NEGLIGIBLE else reduction.value
    low, high = reduction.low or 0.0, reduction.high or 0.0
    ends = format_interval(low, high, signed=True)
    return f"Reduction {format_number(value, signed=True)} (95% CI {ends}). Lower is better."


def diagram_sentence(report: Report) -> str:
    """Return the caption of the large diagram."""
    row = next(row for row in report.metrics if row.name == "conf_ece")
    before, after = format_number(row.before.value), format_number(row.after.value)
    return (
        f"{report.reliability[0].question} The expected calibration error (ECE) is {before} before "
        f"and {after} after calibration, on held-out rows."
    )


def headline_sentence(report: Report) -> str:
    """State mean confidence and accuracy, before and after calibration."""
    pairs = zip(report.headline.confidence, report.headline.accuracy, strict=True)
    before, after = (
        f"mean confidence {format_percent(confidence)} and accuracy {format_percent(accuracy)}"
        for confidence, accuracy in pairs
    )
    return f"Before calibration: {before}. After calibration: {after}."


def no_guarantee(report: Report) -> str:
    """Explain why the report has no guarantee."""
    return _WEIGHTED if report.is_weighted else NO_GUARANTEE


def ks_sentence(report: Report) -> str:
    """Describe the KS graph in a sentence."""
    return (
        f"The KS error is {format_number(report.ks.before_error)} before and "
        f"{format_number(report.ks.after_error)} after calibration."
    )


def decomposition_sentence(report: Report) -> str:
    """Describe the decomposition in sentences."""
    pairs = (("Before", report.decomposition.before), ("After", report.decomposition.after))
    return " ".join(
        f"{when} calibration, the log-loss of {format_number(c + r)} is the sum of a calibration "
        f"part of {format_number(c)} and a refinement part of {format_number(r)}."
        for when, (c, r) in pairs
    )


def risk_sentence(report: Report) -> str:
    """Describe the risk-coverage curves, or explain why the report has no curves."""
    curves = report.selective
    if curves is None:
        return "There are no bounds of the error rate, because they require rows without weights."
    before, after = (_risk_at_half(curve) for curve in (curves.before, curves.after))
    caution = _HEURISTIC_BOUNDS if curves.guarantee_after == "heuristic" else ""
    return (
        f"Among the most confident half of the held-out rows, {format_percent(before)} of the "
        f"predictions are wrong before calibration and {format_percent(after)} after "
        f"calibration.{caution}"
    )


def _risk_at_half(curve: RiskCurve) -> float:
    return float(np.interp(0.5, curve.coverage, curve.risk))


def null_sentence(test: CheckRow) -> str:
    """State the null hypothesis of a test, and the validity of its p-values."""
    before, after = (
        "conservative" if guarantee == "finite-sample" else guarantee
        for guarantee in (test.guarantee, test.guarantee_after or test.guarantee)
    )
    validity = (
        before if before == after else f"{before} before calibration and {after} after calibration"
    )
    return f"{test.null[0].upper()}{test.null[1:]}. The p-value is {validity}."
