"""Validity curves, which show the share of the data whose error is at most epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF, sum_blocks
from calibrant._output.results import ShortRepr
from calibrant._typing import (
    AnyArray,
    FloatArray,
    Inputs,
    IntArray,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import as_array, check_same_length
from calibrant.binning import bin_table
from calibrant.notions import Notion, as_notion, claims_of, predictions_for


@runtime_checkable
class HasVectorBins(Protocol):
    """A fitted calibrator that assigns whole vectors to bins."""

    def bins(self, X: ScoresLike) -> IntArray: ...


@dataclass(frozen=True, eq=False, repr=False)
class ValidityCurve(ShortRepr):
    """Validity curve, returned by `validity_curve`.

    The curve is the share V(eps) of the data whose estimated error is at most eps. V is a step
    function, and higher is better. Call the object with eps to evaluate V.

    Attributes
    ----------
    notion : str
        Type of calibration.
    epsilon : array of shape (m,)
        Zero and all distinct errors in increasing order, or the values that you passed.
    validity : array of shape (m,)
        Values of V at ``epsilon``.
    gap, share : arrays of shape (n_claims, n_bins)
        Error of each cell (claim and bin), and its share of the data. The shares sum to one. For
        "canonical", there is one row of cells.

    See Also
    --------
    validity_curve : Compute the curve.
    """

    notion: str
    epsilon: FloatArray
    validity: FloatArray
    gap: FloatArray
    share: FloatArray

    def __call__(self, epsilon: Any, claim: int | None = None) -> Any:
        """Return V at one or several values, for all claims or for a single claim.

        For a claim without rows, V is NaN.
        """
        gap, share = (
            (self.gap, self.share) if claim is None else (self.gap[claim], self.share[claim])
        )
        values = _validity(np.asarray(epsilon, dtype=np.float64), gap, share)
        return float(values) if values.ndim == 0 else values

    def to_dict(self) -> dict[str, Any]:
        """Return type of calibration, epsilon and validity as plain lists."""
        return {
            "notion": self.notion,
            "epsilon": self.epsilon.tolist(),
            "validity": self.validity.tolist(),
        }

    def __str__(self) -> str:
        values = ", ".join(f"V({e:g}) = {self(e):.3f}" for e in (0.01, 0.02, 0.05, 0.1))
        return f"validity, {self.notion}: {values}"


def validity_curve(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "top-label",
    n_bins: int = 15,
    strategy: str = "uniform",
    bins: Any = None,
    epsilon: Any = None,
    y_pred: LabelsLike | None = None,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> ValidityCurve:
    r"""Compute the share of the data whose calibration error is at most epsilon.

    Higher is better. Without sampling noise, the curve of a calibrated model is 1 everywhere.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "top-label"
        A binary type of calibration, see `calibrant.notions`, or "canonical".
    n_bins, strategy
        As in `expected_calibration_error`. These arguments are not used for "canonical".
    bins : optional
        A fitted binning calibrator or a `Bins` object, to evaluate a model on the bins of its
        recalibration (Gupta & Ramdas, appendix F). For "canonical", pass a fitted calibrator with
        ``bins(X)``, or an array of shape (n,) with the bin of each row. Pass ``calibrator.bins(X)``
        to evaluate ``calibrator.predict_proba(X)`` and X on the same bins. By default, there is one
        bin per distinct vector.
    epsilon : float or array-like, optional
        Values at which V is computed. By default, V is computed at zero and at each distinct error.
    y_pred : array-like of shape (n,), optional
        Reported labels, as in `expected_calibration_error`.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    ValidityCurve
        The curve, which is a function of epsilon.

    See Also
    --------
    calibrant.metrics.expected_calibration_error : Compute the area above the curve.
    calibrant.plots.ValidityDisplay : Plot validity curves.

    Notes
    -----
    Let :math:`g_{cb}` be the gap and :math:`v_c w_{cb}` the share of the cell of claim c and bin b,
    as in `expected_calibration_error`. For a binary type of calibration,

    .. math:: V(\epsilon) = \sum_{cb} v_c w_{cb}\, 1[g_{cb} \le \epsilon] \approx
        P(|P(\text{outcome} \mid f) - f| \le \epsilon) .

    For ``notion="canonical"``, the gap of a bin is the distance :math:`\| \bar e_y - \bar p \|_1`
    of mean label vector and mean prediction. The area above the curve is the calibration error.

    The curve is an estimate. Gaps of bins with few rows are mostly sampling noise, so V is biased
    downward. Compare models on the same bins.

    References
    ----------
    Gupta & Ramdas (2021), Distribution-free calibration guarantees for histogram binning without
    sample splitting, arXiv:2105.04656; Gupta & Ramdas (2022), appendices B.2, F and G.4,
    arXiv:2107.08353.

    Examples
    --------
    >>> from calibrant.datasets import two_label_example
    >>> data = two_label_example()  # both predicted classes are off by 0.4
    >>> curve = validity_curve(data.labels, data.proba, notion="top-label")
    >>> curve(0.3), curve(0.4)
    (0.0, 1.0)
    """
    kind = as_notion(notion, vectors=True)
    if kind.is_binary:
        claims, _ = claims_of(
            kind, y_true, y_prob, sample_weight, classes, y_pred=y_pred, inputs=inputs
        )
        table = bin_table(claims, n_bins=n_bins, strategy=strategy, bins=bins)
        gap, share = table.gap, table.share
    elif y_pred is None:
        gap, share = _vector_gaps(y_true, y_prob, bins, sample_weight, classes, inputs)
    else:
        raise ValueError(
            "y_pred is only allowed for binary types of calibration, but notion='canonical' "
            "concerns whole probability vectors. Remove y_pred, or pass notion='top-label'."
        )
    epsilons = _steps(gap, share) if epsilon is None else np.array(epsilon, np.float64, ndmin=1)
    return ValidityCurve(kind.name, epsilons, _validity(epsilons, gap, share), gap, share)


def _steps(gap: FloatArray, share: FloatArray) -> FloatArray:
    return np.unique(np.append(gap[share > 0], 0.0))


def _validity(epsilon: FloatArray, gap: FloatArray, share: FloatArray) -> FloatArray:
    """Compute the share of the data in cells whose gap is at most epsilon."""
    order = np.argsort(gap, axis=None)
    cumulative_share = np.concatenate([[0.0], np.cumsum(share.ravel()[order])])
    # A gap that equals epsilon up to round-off counts as at most epsilon.
    place = np.searchsorted(gap.ravel()[order], epsilon + ROUND_OFF, side="right")
    empty = np.full(place.shape, np.nan)
    return np.divide(
        cumulative_share[place], cumulative_share[-1], out=empty, where=cumulative_share[-1] > 0
    )


def _vector_gaps(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    bins: Any,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: Inputs,
) -> tuple[FloatArray, FloatArray]:
    """Return the L1 distance of mean label and mean prediction per bin, and the shares of bins."""
    proba, y, weight, _ = predictions_for(
        as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    place = _vector_bins(proba, y_prob, bins)
    shape = (int(place.max()) + 1, proba.shape[1])

    def sums(rows: slice) -> FloatArray:
        residual = -weight[rows, None] * proba[rows]
        residual[np.arange(len(residual)), y[rows]] += weight[rows]
        total = np.zeros(shape)
        np.add.at(total, place[rows], residual)
        return total

    counts = np.bincount(place, weight, shape[0])
    distance = np.abs(sum_blocks(sums, *proba.shape)).sum(axis=1)
    gap = np.divide(distance, counts, out=np.zeros_like(counts), where=counts > 0)
    return gap[None], (counts / counts.sum())[None]


def _vector_bins(proba: FloatArray, y_prob: ScoresLike, bins: Any) -> IntArray:
    """Return the bin of each row, numbered from 0."""
    if bins is None:
        place: AnyArray = np.unique(proba, axis=0, return_inverse=True)[1]
        return place.reshape(-1)  # some versions of NumPy return a column
    place = as_array(bins.bins(y_prob) if isinstance(bins, HasVectorBins) else bins)
    check_same_length(bins=place, y_prob=proba)
    if place.ndim != 1 or place.dtype.kind not in "ui" or place.min() < 0:
        raise ValueError(
            f"For notion='canonical', bins must contain the bin number of every row (0, 1, ...), "
            f"got an array of shape {place.shape} and dtype {place.dtype}. Pass bins=calibrator, "
            f"or bins=calibrator.bins(X)."
        )
    return place.astype(np.intp)
