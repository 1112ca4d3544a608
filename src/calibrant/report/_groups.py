"""Groups of a report, with confidence and accuracy before and after calibration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant._data.sample import Sample
from calibrant._output.numbers import format_interval, format_number
from calibrant.metrics import GroupedEvaluation, GroupEvaluation
from calibrant.metrics.groups import evaluate_groups, sum_groups
from calibrant.report._charts import curves_of
from calibrant.report._content import Curve, Estimate, GroupCharts, GroupNote

HEADER = ("Group", "Rows", "Accuracy", "Gap before", "Gap after", "Finding after")

_BINARY_AXIS = "mean probability minus frequency"
"""Label of the axis of gaps with two classes. The full definition would not fit on a phone."""

_LEVEL = 0.95
_CURVE_BINS = 8
"""Number of bins of the small reliability diagrams, which have few rows."""


def group_note(
    before: Sample, after: Sample, names: tuple[str, ...], n_bins: int, min_rows: float = 0
) -> GroupNote:
    """Return the gaps of all groups with intervals and charts, before and after calibration.

    A gap is mean confidence minus accuracy. The groups are defined by the columns of the samples,
    which have the names ``names``.
    """
    samples = before, after
    pair = [
        evaluate_groups(sample, names, _LEVEL, inputs="proba", n_bins=n_bins, min_rows=min_rows)
        for sample in samples
    ]
    curves = [dict(_curves(sample, names, pair[0])) for sample in samples]
    groups = list(zip(*pair, strict=True))
    return GroupNote(
        f"Groups by {', '.join(names)}",
        HEADER,
        tuple(_cells(*both) for both in groups),
        f"{_finding(*pair)} {pair[1].note(with_test=False)}".lstrip(),
        _BINARY_AXIS if pair[1].overall.is_binary else pair[1].gap_title,
        tuple(
            GroupCharts(
                first.name,
                _estimate(first),
                _estimate(second),
                *(curve[first.name] for curve in curves),
            )
            for first, second in groups
        ),
    )


def _finding(before: GroupedEvaluation, after: GroupedEvaluation) -> str:
    """Return the conclusions of the test for group differences, or an empty string."""
    if before.difference is None or after.difference is None:
        return ""
    return (
        f"Before calibration: {before.difference_sentence()} After calibration: "
        f"{after.difference_sentence()}"
    )


def _curves(
    sample: Sample, names: tuple[str, ...], groups: GroupedEvaluation
) -> Iterator[tuple[str, Curve]]:
    """Yield the reliability curve of each group.

    With two classes, the curve shows the second class. With more classes, the curve shows the
    confidence.
    """
    _, accumulators = sum_groups(sample, names, "proba", _CURVE_BINS, 0)
    for name, accumulator in accumulators.items():
        sums = accumulator._sums
        assert sums is not None
        is_binary = groups.overall.is_binary
        table, claim = (sums.class_wise, 1) if is_binary else (sums.confidence, 0)
        yield name, curves_of(table)[claim]


def _estimate(group: GroupEvaluation) -> Estimate:
    return Estimate(group.gap, group.gap_low, group.gap_high)


def order_columns(columns: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return group columns with the columns of a fitted model first."""
    first = () if model is None else vars(model).get("by_", ())
    absent = [name for name in first if name not in columns]
    if absent:
        raise ValueError(
            f"The model was fitted with the group columns {', '.join(first)}, but by= has no "
            f"column {absent[0]!r}. Pass by=frame[{list(first)!r}]."
        )
    return {name: columns[name] for name in (*first, *columns)}


def _cells(before: GroupEvaluation, after: GroupEvaluation) -> tuple[Any, ...]:
    accuracy = format_number(after.evaluation.accuracy)
    rows = f"{after.evaluation.n_samples:,.0f}"
    return (after.name, rows, accuracy, _gap(before), _gap(after), after.finding)


def _gap(group: GroupEvaluation) -> str:
    interval = format_interval(group.gap_low, group.gap_high, signed=True)
    return f"{format_number(group.gap, signed=True)} ({interval})"
