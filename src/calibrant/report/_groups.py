"""The groups of a report: confidence and accuracy, before and after calibration."""

from __future__ import annotations

from typing import Any

from calibrant._data.sample import Sample
from calibrant._output.numbers import format_interval, format_number
from calibrant.metrics import GroupEvaluation
from calibrant.metrics._groups import evaluate_groups
from calibrant.report._content import MapTable

HEADER = ("Group", "Rows", "Accuracy", "Gap before", "Gap after", "Finding after")

_LEVEL = 0.95


def group_table(before: Sample, after: Sample, names: tuple[str, ...], n_bins: int) -> MapTable:
    """One row per group: mean confidence minus accuracy with intervals, before and after.

    The columns of the samples define the groups; ``names`` are the names of these columns.
    """
    pair = [
        evaluate_groups(sample, names, _LEVEL, inputs="proba", n_bins=n_bins)
        for sample in (before, after)
    ]
    rows = tuple(_cells(*groups) for groups in zip(*pair, strict=True))
    return MapTable(f"Groups by {', '.join(names)}. {pair[1].note()}", HEADER, rows)


def _cells(before: GroupEvaluation, after: GroupEvaluation) -> tuple[Any, ...]:
    accuracy = format_number(after.evaluation.accuracy)
    rows = f"{after.evaluation.n_samples:,.0f}"
    return (after.name, rows, accuracy, _gap(before), _gap(after), after.finding)


def _gap(group: GroupEvaluation) -> str:
    interval = format_interval(group.gap_low, group.gap_high, signed=True)
    return f"{format_number(group.gap, signed=True)} ({interval})"
