"""Venn-Abers calibration: two isotonic fits, one for each outcome that a new row might have."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from calibrant._kernels import kernel
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike
from calibrant.base import BaseBinaryCalibrator, Citation
from calibrant.base.fitted import RATES, SCORES, FittedValue
from calibrant.base.new_scores import check_new_scores
from calibrant.base.references import VOVK_PETEJ_2014
from calibrant.binning import distinct_sums
from calibrant.notions import Claim

_MOST_ROWS = 1e12
"""Maximum sum of weights. Round-off would hide the effect of an additional row on larger sums."""

_LOOP_COST = 200
"""Cost of one point of the hull, in array elements. The choice of the kernel depends on it."""


class VennAbers(BaseBinaryCalibrator):
    r"""Calibrate by two isotonic fits that bound the probability (inductive Venn-Abers predictor).

    `predict_pair` returns :math:`p_0 \le p_1`, and `predict_proba` returns one probability between
    them. The difference :math:`p_1 - p_0` shows how much one additional row can change the fit. The
    pair is not a confidence interval for the true probability.

    Parameters
    ----------
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.

    Attributes
    ----------
    scores_ : array of shape (n_distinct,)
        Distinct calibration scores.
    p0_, p1_ : arrays of shape (n_distinct,)
        The two fits at the distinct calibration scores.

    See Also
    --------
    IsotonicCalibration : One isotonic fit.
    inference.calibration_band : Simultaneous confidence band of the calibration curve.

    Notes
    -----
    For a new score s, isotonic regression is fitted to the calibration rows with (s, 0) added, and
    again with (s, 1) added. The two fits at s are :math:`p_0` and :math:`p_1`. `predict_proba`
    returns

    .. math:: q = \frac{p_1}{1 - p_0 + p_1} ,

    which minimizes the regret of the log-loss over the two outcomes.

    Let o be the outcome of the new row, which is unknown at prediction. If the calibration rows and
    the new row are exchangeable, :math:`p_o` is perfectly calibrated for any distribution. The pair
    is not a confidence interval, because it contains the true probability less often with more
    rows. `calibrant.inference.calibration_band` returns a confidence band.

    Both fits are exact for every new score. The fit costs O(n log n), a prediction O(log n). A
    score between two calibration scores gets :math:`p_0` of the lower and :math:`p_1` of the upper
    calibration score. The new row has weight 1.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, UAI, arXiv:1211.0025.
    Vovk, Petej & Fedorova (2015), Large-scale probabilistic predictors with and without guarantees
    of validity, NeurIPS, arXiv:1511.00213.

    Examples
    --------
    >>> VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1]).predict_pair([0.3, 0.8])
    (array([0.        , 0.66666667]), array([0.5, 1. ]))
    """

    def __init__(self, *, inputs: Inputs = "proba", classes: LabelsLike | None = None) -> None:
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("inductive Venn-Abers prediction", (VOVK_PETEJ_2014,))

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "scores_": SCORES,
        "p0_": RATES,
        "p1_": RATES,
    }

    def _fit(self, claim: Claim) -> None:
        self.scores_, total, hits = distinct_sums(claim.score, claim.hits, claim.weight)
        if total.sum() > _MOST_ROWS:
            raise ValueError(
                f"The weights sum to {total.sum():g}, so the row of weight 1 that VennAbers adds "
                "would have no effect. Pass sample_weight=w * len(w) / w.sum()."
            )
        self.p1_ = _fits_with_a_hit(hits, total)
        # Adding a negative outcome is equivalent to adding a positive outcome after flipping all
        # outcomes and reversing the scores.
        self.p0_ = 1.0 - _fits_with_a_hit((total - hits)[::-1], total[::-1])[::-1]

    def predict_pair(self, X: ScoresLike) -> tuple[FloatArray, FloatArray]:
        """Return the two probabilities (p0, p1) of outcome 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, 2) or (n_samples,)
            Scores. One-dimensional scores are those of class 1.

        Returns
        -------
        p0, p1 : ndarray of shape (n_samples,)
            The lower and the upper probability, in float32 for float32 scores.
        """
        scores = check_new_scores(self, X)
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        low, high = self._pair(self._transform(scores))
        return low.astype(dtype, copy=False), high.astype(dtype, copy=False)

    def _predict(self, score: FloatArray) -> FloatArray:
        if score.size == 1:  # for a single score, bisection in Python is faster than NumPy calls
            return np.array([self._predict_one(score.item())])
        low, high = self._pair(score)
        return high / (1.0 - low + high)

    def _predict_one(self, score: float) -> float:
        below, above = bisect_right(self.scores_, score) - 1, bisect_left(self.scores_, score)
        low = 0.0 if below < 0 else self.p0_.item(below)
        high = 1.0 if above == len(self.p1_) else self.p1_.item(above)
        return high / (1.0 - low + high)

    def _pair(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        # An added negative outcome is pooled with the scores below it, and an added positive
        # outcome with the scores above it. Beyond the ends there are no scores to pool with, so the
        # probability is 0 or 1.
        below = np.searchsorted(self.scores_, score, side="right") - 1
        above = np.searchsorted(self.scores_, score, side="left")
        low = self.p0_.take(below, mode="clip")
        low[below < 0] = 0.0
        high = self.p1_.take(above, mode="clip")
        high[above == len(self.p1_)] = 1.0
        return low, high


def _fits_with_a_hit(hits: FloatArray, total: FloatArray) -> FloatArray:
    r"""Isotonic fit at each group after one row of outcome 1 is added to that group.

    Isotonic fits are slopes of the greatest convex minorant of the points :math:`P_j = (W_j, S_j)`,
    cumulative weights and hits. A row added to group i moves :math:`P_i, P_{i+1}, \dots` by (1, 1).
    This change is equivalent to moving all earlier points by (-1, -1). The fit is then the slope of
    the edge that spans the gap. ``corners`` contains the left end of this edge (last) and all
    corners to its right. For the next i, point :math:`P_i` moves to the left side. If this point
    lies below the edge, it is the new left end. Otherwise the point has no effect. Each point is
    added and removed once, so the cost is linear.
    """
    find = kernel("fits_with_a_hit", _LOOP_COST * len(total))
    return np.minimum(find(np.cumsum(total), np.cumsum(hits)), 1.0)
