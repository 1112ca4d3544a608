"""Check rows for tests and intervals, and define the effect of weights.

A row has one label, regardless of its weight, so the variance of a weighted sum of outcomes
contains squared weights. Statistics that need a number of rows use the effective number of Kish
(`effective_weights`). If weights are numbers of copies, repeat the rows with ``np.repeat``.
"""

from __future__ import annotations

import numpy as np

from calibrant._kernels.simplex import as_proba, is_unit
from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import Predictions, check_predictions, check_weight
from calibrant.notions import Claim


def check_rows(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: str,
    *,
    only_equal: str = "",
) -> Predictions:
    """Return checked probabilities for any type of scores, without rows of weight 0.

    ``only_equal`` is the name of a method that rejects unequal weights, for the error message.
    """
    scores, y, weight, names = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    proba = scores if inputs == "proba" else as_proba(scores, inputs)
    if sample_weight is None:
        return Predictions(proba, y, weight, names)
    rows = np.flatnonzero(weight)
    weight = weight[rows]
    is_equal = (weight == weight[0]).all()
    if only_equal and not is_equal:
        raise ValueError(
            f"{only_equal} accepts only equal weights. If the weights are numbers of copies, "
            f"repeat the rows: np.repeat(y_true, sample_weight) and "
            f"np.repeat(y_prob, sample_weight, axis=0)."
        )
    weight = check_weight(None, len(rows)) if is_equal else weight
    return Predictions(proba[rows], y[rows], weight, names)


def squared_weights(claim: Claim) -> FloatArray:
    """Return the contribution of each entry of a claim to the variance of a weighted sum.

    An entry is a row, or a cell of scores with several rows.
    """
    if claim.squares is not None:
        return claim.squares
    return claim.weight if is_unit(claim.weight) else claim.weight**2
