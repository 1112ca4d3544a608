"""Tables of sums per bin, which can be added, and their calibration errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._output.results import ShortRepr
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import check_option
from calibrant.binning._rules import BinRule, have_same_edges

AGGREGATES = ("mean", "sum", "bin")


@dataclass(frozen=True, eq=False, repr=False)
class BinTable(ShortRepr):
    """Sums of weights, scores and outcomes per claim and bin, returned by `calibration_curve`.

    Attributes
    ----------
    weight, score, outcome : arrays of shape (n_claims, n_bins)
        Sums of weights, weighted scores and weighted outcomes. Sums are 0 for empty cells.
    n_quantities, n_labels : int
        Number of score columns, and of claims per column. The product of both numbers is the number
        of claims.
    bins : UniformBins or Bins
        The bins.

    See Also
    --------
    calibrant.metrics.calibration_curve : Compute the table.
    """

    weight: FloatArray
    score: FloatArray
    outcome: FloatArray
    n_quantities: int
    n_labels: int
    bins: BinRule = field(repr=False)

    @property
    def n_claims(self) -> int:
        return self.weight.shape[0]

    @property
    def n_bins(self) -> int:
        return self.weight.shape[1]

    @property
    def mean_score(self) -> FloatArray:
        """Mean score per cell, NaN for empty cells."""
        return _ratio(self.score, self.weight)

    @property
    def mean_outcome(self) -> FloatArray:
        """Observed frequency per cell, NaN for empty cells."""
        return _ratio(self.outcome, self.weight)

    @property
    def gap(self) -> FloatArray:
        """``|mean outcome - mean score|`` per cell, 0 for empty cells."""
        return np.abs(_ratio(self.outcome - self.score, self.weight, empty=0.0))

    @property
    def claim_weight(self) -> FloatArray:
        """Sum of weights per claim, (n_claims,)."""
        return self.weight.sum(axis=1)

    @property
    def quantity_weight(self) -> FloatArray:
        """Sum of weights of the score column of each claim, (n_claims,)."""
        per_quantity = self.claim_weight.reshape(self.n_quantities, self.n_labels).sum(axis=1)
        return np.repeat(per_quantity, self.n_labels)

    @property
    def share(self) -> FloatArray:
        """Weight of each cell as a share of all score columns, ``v_c w_cb``.

        The shares of all cells sum to one.
        """
        return self.weight / self.quantity_weight[:, None] / self.n_quantities

    @property
    def claim_errors(self) -> FloatArray:
        """Mean gap of each claim over its own rows, (n_claims,), 0 without rows."""
        return _ratio(self._claim_gaps, self.claim_weight, empty=0.0)

    @property
    def worst_first(self) -> IntArray:
        """Claims sorted by their contribution to the error, largest first."""
        return np.argsort(-self._claim_gaps, kind="stable")

    @property
    def pooled_gap(self) -> FloatArray:
        """Mean gap of each bin over its claims, weighted by rows, (n_bins,), NaN for empty bins."""
        return _ratio((self.weight * self.gap).sum(axis=0), self.weight.sum(axis=0))

    @property
    def debiased_square(self) -> FloatArray:
        """Sum over bins of rows times (squared gap - variance of the mean outcome), per claim.

        Bins with fewer than two rows are excluded (Kumar et al. 2019, arXiv:1909.10155).
        """
        has_rows = self.weight >= 2
        rate = np.where(has_rows, self.mean_outcome, 0.0)
        variance = rate * (1 - rate) / np.where(has_rows, self.weight - 1, 1.0)
        return np.where(has_rows, self.weight * (self.gap**2 - variance), 0.0).sum(axis=1)

    @property
    def counted_weight(self) -> FloatArray:
        """Rows of each claim in bins with at least two rows, as debiasing requires, (n_claims,)."""
        return np.where(self.weight >= 2, self.weight, 0.0).sum(axis=1)

    @property
    def _claim_gaps(self) -> FloatArray:
        return (self.weight * self.gap).sum(axis=1)

    def error(self, *, norm: float = 1, debias: bool = False, aggregate: str = "mean") -> float:
        """Return the calibration error.

        `calibrant.metrics.expected_calibration_error` describes the options.

        >>> from calibrant.binning import UniformBins
        >>> sums = np.array([[4.0]]), np.array([[3.2]]), np.array([[3.0]])
        >>> round(BinTable(*sums, 1, 1, UniformBins(1)).error(), 3)
        0.05
        """
        _check_error(norm, debias, aggregate)
        if debias:
            return self._debiased_error(aggregate)
        if aggregate == "bin":
            return self._error_of_bins(norm)
        if np.isinf(norm):
            return float(self.gap.max())
        power = (self.weight * self.gap**norm).sum(axis=1)
        # v_c times 1 / (rows of the claim) is 1 / (rows of the quantity), whether or not the
        # quantity is split by label.
        total = float((power / self.quantity_weight).sum())
        return float((total if aggregate == "sum" else total / self.n_quantities) ** (1 / norm))

    def errors(self, outcomes: AnyArray, **options: Any) -> FloatArray:
        """Return `error` for each of many sums of outcomes, (m, n_claims, n_bins)."""
        aggregate = options.get("aggregate", "mean")
        if options.get("norm", 1) != 1 or options.get("debias") or aggregate == "bin":
            tables = (replace(self, outcome=outcome) for outcome in outcomes)
            return np.array([table.error(**options) for table in tables])
        _check_error(1, False, aggregate)
        # The weight of a cell cancels in weight * |gap|, and empty cells have sums of zero.
        gaps = np.abs(outcomes - self.score).sum(axis=2) @ (1.0 / self.quantity_weight)
        return gaps if aggregate == "sum" else gaps / self.n_quantities

    def _debiased_error(self, aggregate: str) -> float:
        """Square root of the debiased squares per row, NaN if no bin has two rows."""
        shape = self.n_quantities, self.n_labels
        square = np.maximum(self.debiased_square, 0.0).reshape(shape).sum(axis=1)
        rows = self.counted_weight.reshape(shape).sum(axis=1)
        errors = square[rows > 0] / rows[rows > 0]
        if not errors.size:
            return float("nan")
        return float(errors.sum() if aggregate == "sum" else errors.mean()) ** 0.5

    def _error_of_bins(self, norm: float) -> float:
        rows, gap = self.weight.sum(axis=0), np.nan_to_num(self.pooled_gap)
        if np.isinf(norm):
            return float(gap.max())
        return float((rows / rows.sum() @ gap**norm) ** (1 / norm))

    def select(self, claims: IntArray) -> BinTable:
        """Return the table of some claims, in which each claim is a separate score column.

        All claims must have the same bins.
        """
        sums = (self.weight[claims], self.score[claims], self.outcome[claims])
        return BinTable(*sums, len(claims), 1, self.bins)

    def __add__(self, other: BinTable) -> BinTable:
        if not isinstance(other, BinTable):
            return NotImplemented
        if self.weight.shape != other.weight.shape or not have_same_edges(self.bins, other.bins):
            raise ValueError(
                f"Only tables with the same claims and the same bins can be added, got tables of "
                f"shape {self.weight.shape} and {other.weight.shape}. Compute both tables "
                "with the same value of bins."
            )
        return replace(
            self,
            weight=self.weight + other.weight,
            score=self.score + other.score,
            outcome=self.outcome + other.outcome,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists for JSON. Empty cells are None."""
        return {
            "n_claims": self.n_claims,
            "n_bins": self.n_bins,
            "weight": self.weight.tolist(),
            "mean_score": _none_for_nan(self.mean_score),
            "mean_outcome": _none_for_nan(self.mean_outcome),
        }


def _check_error(norm: float, debias: bool, aggregate: str) -> None:
    check_option(aggregate, "aggregate", AGGREGATES)
    if isinstance(norm, str) or not norm >= 1:
        raise ValueError(
            f"norm must be a number of at least 1, or inf, got {norm!r}. Pass norm=1 for l1, "
            f"norm=2 for l2, or norm=np.inf for the maximum calibration error."
        )
    if debias and (norm != 2 or aggregate == "bin"):
        raise ValueError(
            f"debias=True is only defined for norm=2 with aggregate='mean' or 'sum', got "
            f"norm={norm}, aggregate={aggregate!r}. Pass norm=2 or debias=False."
        )


def _ratio(a: FloatArray, b: FloatArray, empty: float = np.nan) -> FloatArray:
    return np.divide(a, b, out=np.full_like(b, empty), where=b > 0)


def _none_for_nan(values: FloatArray) -> list[list[float | None]]:
    return [[None if np.isnan(v) else float(v) for v in row] for row in values]
