"""Rows whose truth was called impossible: the floor of scores decides what they say."""

from __future__ import annotations

import numpy as np

from calibrant._simplex import true_class
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import remark

_USUAL = 0.02
"""Share of rows whose true class may have the probability zero without a remark."""

_FEW_CLASSES = 16
"""Up to so many the least score of all is found sooner than those of the true classes."""


def remark_impossible(
    owner: str, scores: FloatArray, y: IntArray, weight: FloatArray, inputs: str
) -> bool:
    """Say how many rows of checked scores give their true class the score -inf, or zero: votes of a
    forest are zero now and then, which is said where more than two rows in a hundred are. Whether
    it is known that no score is so.
    """
    none = 0.0 if inputs == "proba" else -np.inf
    if scores.shape[1] <= _FEW_CLASSES and scores.min() > none:
        return True
    is_none = true_class(scores, y) == none
    if not is_none.any():
        return False
    count = int(np.count_nonzero(is_none & (weight > 0)))
    if count > (_USUAL * len(y) if inputs == "proba" else 0):
        remark(
            f"{owner}: {count:,} of {len(y):,} rows have a true class of score "
            f"{'zero' if inputs == 'proba' else '-inf'}, which is taken as the probability eps and "
            "makes the fit cautious; where scores were cut off (the best five tokens, say), put "
            "the least score of the row that is known in the place of what is not, as the notes "
            "of TemperatureScaling show"
        )
    return False
