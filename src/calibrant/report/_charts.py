"""Numbers of the charts: reliability diagrams, the KS graph and errors per class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from calibrant._typing import FloatArray
from calibrant.binning import BinTable, merge_small_bins
from calibrant.guarantees import clopper_pearson
from calibrant.inference._bands import binomial_band
from calibrant.metrics import MetricAccumulator
from calibrant.metrics.ks import KsPath
from calibrant.notions import Notion, as_notion
from calibrant.report._content import ClassRow, Curve, KsGraph, Reliability

NOTIONS = ("confidence", "top-label", "class-wise")
"""Types of calibration that have diagrams, in the order of the page."""

MOST_CLASSES = 100
"""Maximum number of diagrams per type. The diagrams with the smallest errors are omitted."""

_LEVEL = 0.95
"""Level of the consistency band of diagrams."""

_KS_POINTS = 200
"""Number of points of the KS graph. A screen cannot show more points."""

_DIGITS = 5
"""Decimal places of the numbers in charts. A screen cannot show more of them."""


def rounded(values: FloatArray) -> tuple[float, ...]:
    """Round numbers to the precision of a chart."""
    return tuple((np.round(values, _DIGITS) + 0.0).tolist())  # adding 0.0 turns -0.0 into 0.0


Tables = Mapping[str, BinTable]
"""Bins of each type of calibration."""


def tables_of(accumulator: MetricAccumulator) -> Tables:
    """Return the tables of the equal-width bins of an accumulator."""
    sums = accumulator._sums
    assert sums is not None
    return dict(zip(NOTIONS, (sums.confidence, sums.top_label, sums.class_wise), strict=True))


def reliability(both: Sequence[Tables], names: Sequence[str]) -> tuple[Reliability, ...]:
    """Return the diagrams of all types of calibration, with the largest errors first."""
    return tuple(
        diagram
        for name in NOTIONS
        for diagram in _diagrams(as_notion(name), [tables[name] for tables in both], names)
    )


def _diagrams(
    notion: Notion, tables: Sequence[BinTable], names: Sequence[str]
) -> Iterator[Reliability]:
    worst = tables[0].worst_first[:MOST_CLASSES]
    curves = [curves_of(table.select(worst)) for table in tables]
    for place, claim in enumerate(worst.tolist()):
        column, question = notion.column_of(claim, len(names)), notion.caption(claim, names)
        both = (curves[0][place], curves[1][place])
        rows = (_counts(table.weight[claim]) for table in tables)
        yield Reliability(notion.name, column, question, *both, *rows)


def curves_of(table: BinTable) -> list[Curve]:
    """Return the bins to draw for each binary event. Bins with few rows are merged."""
    merged = merge_small_bins(table)
    bounds = clopper_pearson(merged.outcome, merged.weight, 0.05)
    band = binomial_band(merged, _LEVEL)
    columns = (merged.mean_score, merged.mean_outcome, *bounds)
    curves = []
    for claim, is_occupied in enumerate(merged.weight > 0):
        score, frequency, low, high = (rounded(column[claim][is_occupied]) for column in columns)
        count = _counts(merged.weight[claim][is_occupied])
        ends = (rounded(end[claim][is_occupied]) for end in band)
        curves.append(Curve(score, frequency, low, high, count, *ends))
    return curves


def _counts(rows: FloatArray) -> tuple[float, ...]:
    return tuple(map(_whole, rows.tolist()))


def ks_graph(paths: Sequence[KsPath]) -> KsGraph:
    """Return cumulative confidence minus correctness, at evenly spaced shares of the rows."""
    share = np.linspace(0.0, 1.0, _KS_POINTS + 1)
    lines = [rounded(path.excess_at(share)) for path in paths]
    return KsGraph(paths[0].error, paths[1].error, rounded(share), lines[0], lines[1])


def class_rows(
    both: Sequence[Tables], class_weights: FloatArray, names: Sequence[str]
) -> tuple[ClassRow, ...]:
    """Return class-wise and top-label errors of every class, before and after calibration."""
    rows, predicted = (
        np.round(weights, 6).tolist()
        for weights in (class_weights, both[0]["top-label"].claim_weight)
    )
    errors = [
        tables[notion].claim_errors for notion in ("class-wise", "top-label") for tables in both
    ]
    columns = [np.round(error, 6).tolist() for error in errors]
    for column, tables in zip(columns[2:], both, strict=True):
        for k in np.flatnonzero(tables["top-label"].claim_weight == 0):
            column[k] = None  # a class that is never predicted has no top-label error
    return tuple(
        ClassRow(k, name, _whole(rows[k]), _whole(predicted[k]), *(column[k] for column in columns))
        for k, name in enumerate(names)
    )


def _whole(count: float) -> float:
    """Return a number of rows as an integer if possible."""
    return int(count) if count == int(count) else count
