"""Isotonic calibration: the best increasing function, by pooling adjacent violators."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import ClassVar

import numpy as np
import scipy

from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike
from calibrant._validation import check_option
from calibrant.base import BaseBinaryCalibrator, Citation
from calibrant.base.fitted import RATES, SCORES, FittedValue
from calibrant.base.references import ZADROZNY_ELKAN_2002
from calibrant.binning import distinct_sums, interpolated
from calibrant.notions import Claim


class IsotonicCalibration(BaseBinaryCalibrator):
    r"""Calibrate by isotonic regression: the increasing function with the smallest squared error.

    Use this method for binary problems with about a thousand rows or more. Set ``smoothing=1`` if
    you evaluate by log-loss, because the plain method often predicts exactly 0 and 1.

    Parameters
    ----------
    interpolation : {"step", "linear"}, default "step"
        "step" returns the value of the block of a score. "linear" interpolates between the mean
        scores of the blocks.
    smoothing : float, optional
        A pseudo-count s > 0 of rows with the base rate, added to every block, so values stay
        strictly between 0 and 1. See Notes.
    clip : bool, default False
        Whether to clip all values to :math:`[1/(W+2), 1 - 1/(W+2)]` for a total weight W (the rule
        of succession).
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.

    Attributes
    ----------
    edges_ : array of shape (n_blocks,)
        Highest score of each block.
    centers_ : array of shape (n_blocks,)
        Mean score of each block.
    values_ : array of shape (n_blocks,)
        Calibrated probability of each block, in increasing order.

    See Also
    --------
    VennAbers : Two isotonic fits that bound the calibrated probability.
    SplineCalibration : A smooth function, for fewer rows.

    Notes
    -----
    Rows with equal scores form a group. Neighboring groups whose frequencies decrease are merged
    into blocks until the means :math:`q_b = S_b / W_b` increase. :math:`W_b` and :math:`S_b` are
    the weights of all rows and of outcome 1. Blocks are right-closed, so a score between two blocks
    belongs to the upper block.

    With smoothing, :math:`q_b = (S_b + s\,r) / (W_b + s)` and :math:`r = (S + s/2) / (W + s)`.
    Blocks that lose their order by smoothing are merged again.

    The fit costs O(n log n). With the default parameters, neither the squared error nor the
    log-loss of the calibration rows exceeds that of the uncalibrated scores.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates, doi:10.1145/775047.775151. Ayer et al. (1955), doi:10.1214/aoms/1177728423.

    Examples
    --------
    >>> isotonic = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.9], [0, 1, 0, 1])
    >>> isotonic.edges_, isotonic.values_
    (array([0.1, 0.4, 0.9]), array([0. , 0.5, 1. ]))
    """

    def __init__(
        self,
        interpolation: str = "step",
        smoothing: float | None = None,
        clip: bool = False,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.interpolation = interpolation
        self.smoothing = smoothing
        self.clip = clip
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("isotonic regression", (ZADROZNY_ELKAN_2002,))

    def _check_parameters(self, n_classes: int) -> None:
        super()._check_parameters(n_classes)
        check_option(self.interpolation, "interpolation", ("step", "linear"))
        s = self.smoothing
        if s is not None and not (isinstance(s, Real) and 0.0 < s < np.inf):
            raise ValueError(f"smoothing must be None or a positive pseudo-count, got {s!r}.")

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "edges_": SCORES,
        "centers_": SCORES,
        "values_": RATES,
    }

    def _fit(self, claim: Claim) -> None:
        values, total, hits = distinct_sums(claim.score, claim.hits, claim.weight)
        starts = _block_starts(hits, total)
        mass, moment = total, total * values
        if self.smoothing is not None:
            hits, total = _with_prior(hits, total, starts, self.smoothing)
            starts = starts[
                _block_starts(np.add.reduceat(hits, starts), np.add.reduceat(total, starts))
            ]
        self.edges_ = values[np.append(starts[1:], len(values)) - 1]
        self.centers_ = np.add.reduceat(moment, starts) / np.add.reduceat(mass, starts)
        self.values_ = np.add.reduceat(hits, starts) / np.add.reduceat(total, starts)
        if self.clip:
            edge = 1.0 / (float(mass.sum()) + 2.0)
            self.values_ = np.clip(self.values_, edge, 1.0 - edge)

    def _predict(self, score: FloatArray) -> FloatArray:
        if self.interpolation == "linear":
            return interpolated(score, self.centers_, self.values_)
        return self.values_[np.searchsorted(self.edges_[:-1], score, side="left")]


def _block_starts(hits: FloatArray, total: FloatArray) -> IntArray:
    """First group of each block of the isotonic regression of ``hits / total``."""
    return scipy.optimize.isotonic_regression(hits / total, weights=total).blocks[:-1]


def _with_prior(
    hits: FloatArray, total: FloatArray, starts: IntArray, strength: float
) -> tuple[FloatArray, FloatArray]:
    """Return the groups after adding ``strength`` rows of the base rate to each block."""
    rate = (hits.sum() + strength / 2.0) / (total.sum() + strength)
    pseudo_counts = np.zeros_like(total)
    pseudo_counts[starts] = strength
    return hits + rate * pseudo_counts, total + pseudo_counts
