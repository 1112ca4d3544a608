"""The groups of a report: how sure and how right, before and after."""

from __future__ import annotations

from typing import Any

from calibrant._data.sample import Sample
from calibrant.metrics import GroupEvaluation
from calibrant.metrics._groups import evaluate_groups
from calibrant.report._content import MapTable

HEADER = ("group", "rows", "accuracy", "gap before", "gap after", "finding after")

_LEVEL = 0.95


def group_table(before: Sample, after: Sample, names: tuple[str, ...], n_bins: int) -> MapTable:
    """One row per group: mean confidence minus accuracy with intervals, before and after.

    Groups are given by the columns of the samples, which are called ``names``.
    """
    pair = [
        evaluate_groups(sample, names, _LEVEL, inputs="proba", n_bins=n_bins)
        for sample in (before, after)
    ]
    rows = tuple(_cells(*groups) for groups in zip(*pair, strict=True))
    return MapTable(f"Groups by {', '.join(names)}. {pair[1].note()}", HEADER, rows)


def _cells(before: GroupEvaluation, after: GroupEvaluation) -> tuple[Any, ...]:
    accuracy = f"{after.evaluation.accuracy:.3f}"
    rows = f"{after.evaluation.n_samples:,.0f}"
    return (after.name, rows, accuracy, _gap(before), _gap(after), after.finding)


def _gap(group: GroupEvaluation) -> str:
    return f"{group.gap:+z.3f} ({group.gap_low:+z.3f} to {group.gap_high:+z.3f})"
