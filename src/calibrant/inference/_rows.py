"""Rows that tests and intervals draw from: probabilities, and weights as copies."""

from __future__ import annotations

import numpy as np

from calibrant._kernels.simplex import as_proba
from calibrant._typing import LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import Predictions, check_predictions, check_weight


def check_rows(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: str,
    *,
    only_whole: bool = False,
) -> Predictions:
    """Checked probabilities of any kind of scores, a row of weight 2 twice, one of weight 0 not.

    Weights that are not whole numbers stay what they are, or are refused where ``only_whole`` says
    that rows are counted.
    """
    scores, y, weight, names = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    proba = scores if inputs == "proba" else as_proba(scores, inputs)
    if sample_weight is None:
        return Predictions(proba, y, weight, names)
    is_whole = bool((weight == np.floor(weight)).all())
    if only_whole and not is_whole:
        raise ValueError(
            "sample_weight must hold whole numbers here, the copies of each row: rows are counted "
            "and drawn; round the weights, or use debiased_interval or calibration_gain"
        )
    if not is_whole:
        rows = np.flatnonzero(weight)
        return Predictions(proba[rows], y[rows], weight[rows], names)
    rows = np.repeat(np.arange(len(y)), weight.astype(np.intp))
    return Predictions(proba[rows], y[rows], check_weight(None, len(rows)), names)
