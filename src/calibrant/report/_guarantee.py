"""The guarantee of a report: that of histogram binning, which has one."""

from __future__ import annotations

from calibrant._typing import AnyArray
from calibrant.binary import HistogramBinning
from calibrant.exceptions import TooFewRowsError
from calibrant.reductions import MulticlassToBinary
from calibrant.report._content import GuaranteeNote
from calibrant.report._rows import ReportRows
from calibrant.report._weights import has_weights

_MOST_BINS_SHOWN = 60
"""Ranges of a guarantee that a table shows, the widest: some screens of it."""


def guarantee_note(rows: ReportRows, labels: AnyArray, inputs: str) -> GuaranteeNote | None:
    """What top-label histogram binning of the same rows guarantees; None if they have weights, or
    are too few.
    """
    if has_weights(rows.sample):
        return None
    binning = MulticlassToBinary(
        HistogramBinning(), notion="top-label", inputs=inputs, classes=labels
    )
    try:
        promise = binning._fit_checked(rows.gather(), labels).guarantee(0.05)
    except TooFewRowsError:
        return None
    widest = sorted(promise.intervals, key=lambda interval: -interval.gap)[:_MOST_BINS_SHOWN]
    bins = tuple((i.claim, i.value, i.count, i.low, i.high) for i in widest)
    method = "top-label histogram binning, 50 rows per bin"
    head = (
        f"Of another calibrator than the map of this report: if the top probabilities were "
        f"replaced by those of {method}, this would hold."
    )
    return GuaranteeNote(method, f"{head} {promise}", bins)
