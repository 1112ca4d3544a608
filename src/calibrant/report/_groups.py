"""The groups of a report: how sure and how right, before and after."""

from __future__ import annotations

from typing import Any

from calibrant._typing import FloatArray, IntArray
from calibrant.evaluation import GroupEvaluation, evaluate
from calibrant.report._content import MapTable

HEADER = ("group", "rows", "accuracy", "gap before", "gap after", "finding after")


def group_table(
    y: IntArray, weight: FloatArray, before: FloatArray, after: FloatArray, by: Any, n_bins: int
) -> MapTable:
    """One row a group: mean confidence minus accuracy with intervals, before and after."""
    options = {"by": by, "n_bins": n_bins, "sample_weight": weight}
    pair = [evaluate(y, proba, **options) for proba in (before, after)]
    rows = tuple(_cells(*groups) for groups in zip(*pair, strict=True))
    return MapTable(f"Groups by {', '.join(pair[0].by)}. {pair[1].note()}", HEADER, rows)


def _cells(before: GroupEvaluation, after: GroupEvaluation) -> tuple[Any, ...]:
    accuracy = f"{after.evaluation.accuracy:.3f}"
    rows = f"{after.evaluation.n_samples:,.0f}"
    return (after.name, rows, accuracy, _gap(before), _gap(after), after.finding)


def _gap(group: GroupEvaluation) -> str:
    return f"{group.gap:+.3f} ({group.gap_low:+.3f} to {group.gap_high:+.3f})"
