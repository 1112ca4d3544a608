"""Check class frequencies, and compute probabilities under other frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._kernels.simplex import row_sum
from calibrant._typing import FloatArray

_SUM_SLACK = 0.01
"""Maximum difference between the sum of rounded frequencies and one."""

TINY = float(np.finfo(np.float64).tiny)
"""Smallest positive denominator, which replaces zero."""


def check_frequencies(values: Any, name: str, n_classes: int) -> FloatArray:
    """Return class frequencies that sum to one. ``name`` is the name of the parameter."""
    frequencies = np.asarray(values, dtype=np.float64)
    if frequencies.shape != (n_classes,):
        raise ValueError(
            f"{name} must have one frequency per class, shape ({n_classes},), got shape "
            f"{frequencies.shape}. Pass frequencies in the order of the columns."
        )
    if not (frequencies.min() >= 0 and abs(frequencies.sum() - 1) <= _SUM_SLACK):
        raise ValueError(
            f"{name} must be frequencies that sum to 1, got {frequencies.tolist()}. Pass "
            f"{name}=counts / counts.sum()."
        )
    return frequencies / frequencies.sum()


def frequency_ratio(target: FloatArray, source: FloatArray) -> FloatArray:
    """Return target divided by source frequencies.

    A ValueError is raised if a class occurs only in the target.
    """
    absent_classes = np.flatnonzero((source <= 0) & (target > 0))
    if absent_classes.size:
        raise ValueError(
            f"Class {int(absent_classes[0])} has frequency zero in the source, so its "
            "probabilities cannot be adapted. Set the target frequency of this class to 0."
        )
    return np.divide(target, source, out=np.zeros(len(source)), where=target > 0)


def reweight(proba: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows proportional to ``proba * weights``."""
    products = np.asarray(proba, dtype=np.float64) * weights
    return products / np.maximum(row_sum(products), TINY)[:, None]
