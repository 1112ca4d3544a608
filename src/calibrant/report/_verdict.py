"""The report in words: the verdict at its top, and what to be careful about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency

from calibrant._typing import FloatArray, IntArray
from calibrant.evaluation import Evaluation
from calibrant.inference._gain import Gain

FEW_ROWS = 20
"""Rows of a class below which its numbers mean little."""

_SHIFT_LEVEL = 1e-3
_TIED_SHARE = 0.5
_OVERCONFIDENT = 0.01


def verdict(before: Evaluation, confidence: float, gain: Gain, method: str) -> tuple[str, str]:
    """The judgement of what calibration does, "good", "mixed" or "bad", and the sentence."""
    return gain.judgement, f"{_state(before, confidence)} {gain.sentence(method)}"


def _state(before: Evaluation, confidence: float) -> str:
    said = (
        f"the model is {confidence:.1%} sure on average and right in {before.accuracy:.1%} of the "
        f"cases"
    )
    gap = confidence - before.accuracy
    if gap > _OVERCONFIDENT:
        return f"Overconfident: {said}."
    if gap < -_OVERCONFIDENT:
        return f"Underconfident: {said}."
    return f"Sure about as often as right: {said}."


def cautions(
    proba: FloatArray,
    y: IntArray,
    classes: Sequence[str],
    seen: FloatArray,
    shift: tuple[Any, Any],
    remarks: Sequence[str],
) -> tuple[str, ...]:
    """What to be careful about; ``seen`` are the calibration rows of each class, ``shift`` label
    counts to compare.
    """
    said = [
        _never_seen(seen, classes),
        _few_rows(seen, classes),
        _shifted(*shift),
        _tied(proba),
        _certain(proba, y),
    ]
    return tuple(line for line in said if line) + tuple(remarks)


def _never_seen(seen: FloatArray, classes: Sequence[str]) -> str | None:
    missing = [classes[k] for k in np.flatnonzero(seen == 0).tolist()]
    return (
        f"Never seen in the calibration rows: {_some(missing)}. Nothing is known about them."
        if missing
        else None
    )


def _few_rows(seen: FloatArray, classes: Sequence[str]) -> str | None:
    few = [
        f"{classes[k]} ({seen[k]:g})"
        for k in np.flatnonzero((seen > 0) & (seen < FEW_ROWS)).tolist()
    ]
    return (
        f"Few calibration rows, fewer than {FEW_ROWS}: {_some(few)}. Their own numbers mean little."
        if few
        else None
    )


def _shifted(one: FloatArray, other: FloatArray) -> str | None:
    """Whether two sets of rows, or a forecast and the truth, have different label frequencies."""
    table = np.array([one, other])
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


def _tied(proba: FloatArray) -> str | None:
    top = proba.max(axis=1)
    share = 1.0 - np.unique(top).size / top.size
    if share <= _TIED_SHARE:
        return None
    return (
        f"Ties: {share:.0%} of the top probabilities repeat another one. Bins of equal mass "
        f"cannot split them."
    )


def _certain(proba: FloatArray, y: IntArray) -> str | None:
    impossible = int((proba[np.arange(len(y)), y] == 0).sum())
    if not impossible:
        return None
    return (
        f"{impossible} row(s) gave their true class a probability of exactly 0; log-loss counts "
        f"them as 1e-12."
    )


def _some(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(names[:limit]) + (
        f" and {len(names) - limit} more" if len(names) > limit else ""
    )
