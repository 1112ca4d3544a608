"""Guarantee of a report, which holds for histogram binning on the same rows."""

from __future__ import annotations

from calibrant._typing import AnyArray
from calibrant.binary import HistogramBinning
from calibrant.exceptions import TooFewRowsError
from calibrant.guarantees import Guarantee
from calibrant.notions import class_text
from calibrant.reductions import MulticlassToBinary
from calibrant.report._content import GuaranteeNote
from calibrant.report._rows import ReportRows
from calibrant.report._weights import has_weights

_MOST_BINS_SHOWN = 60
"""Maximum number of rows of the table. Rows with the widest intervals are shown."""


def guarantee_note(rows: ReportRows, labels: AnyArray, inputs: str) -> GuaranteeNote | None:
    """Return the guarantee of top-label histogram binning, or None for weighted or too few rows."""
    guarantee = None if has_weights(rows.sample) else _fit_guarantee(rows, labels, inputs)
    if guarantee is None:
        return None
    widest = sorted(guarantee.intervals, key=lambda interval: -interval.gap)[:_MOST_BINS_SHOWN]
    columns = {class_text(label): k for k, label in enumerate(labels.tolist())}
    ordered = sorted(widest, key=lambda interval: (columns[interval.claim], interval.value))
    bins = tuple((str(labels[columns[i.claim]]), i.value, i.count, i.low, i.high) for i in ordered)
    method = "top-label histogram binning (50 rows per bin)"
    text = (
        "The following guarantee is not about the calibrator of this report. The guarantee holds "
        f"if you use {method} instead. {guarantee}"
    )
    return GuaranteeNote(method, text, bins)


def _fit_guarantee(rows: ReportRows, labels: AnyArray, inputs: str) -> Guarantee | None:
    binning = MulticlassToBinary(
        HistogramBinning(), notion="top-label", inputs=inputs, classes=labels
    )
    try:
        return binning._fit_checked(rows.gather(), labels).guarantee(0.05)
    except TooFewRowsError:
        return None
