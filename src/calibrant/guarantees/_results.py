"""Results: guaranteed bounds and intervals, with a description in sentences."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, IntArray

_ASSUMPTIONS = (
    "for new cases from the same distribution as the calibration rows. The calibration rows must "
    "be independent of each other, and the model must not have been trained or selected on these "
    "rows"
)


@dataclass(frozen=True)
class BinInterval:
    """Guaranteed interval of the true frequency in a bin.

    Attributes
    ----------
    claim : str
        The binary event, such as a predicted class.
    value : float
        Reported probability.
    count : float
        Number of calibration rows.
    low, high : float
        Interval that is valid for all bins jointly.
    low_single, high_single : float
        Narrower interval that is valid for a single bin, chosen in advance.

    See Also
    --------
    Guarantee : Contains the intervals of all bins.
    """

    claim: str
    value: float
    count: float
    low: float
    high: float
    low_single: float
    high_single: float

    @property
    def gap(self) -> float:
        """Largest distance of the interval from the reported value."""
        return max(self.value - self.low, self.high - self.value)


@dataclass(frozen=True)
class QuantityBounds:
    """Guaranteed bounds of one score column, such as a class of a class-wise guarantee.

    Attributes
    ----------
    name : str
        Name of the score column.
    n_bins : int
        Number of bins that the guarantee covers.
    points_per_bin : float
        Number of calibration rows per bin in the bounds.
    alpha : float
        Share of the total ``alpha`` that this score column uses.
    marginal, conditional, expected_ece : float
        Bounds as in `Guarantee`, for all score columns jointly.
    marginal_single, conditional_single : float
        Bounds for this score column alone, with the total ``alpha``.

    See Also
    --------
    Guarantee : Contains the bounds of all score columns.
    """

    name: str
    n_bins: int
    points_per_bin: float
    alpha: float
    marginal: float
    conditional: float
    expected_ece: float
    marginal_single: float
    conditional_single: float


@dataclass(frozen=True, repr=False)
class Guarantee(ShortRepr, AsText):
    """Distribution-free guarantee of histogram binning.

    Call ``print`` to read the guarantee in sentences.

    Attributes
    ----------
    alpha : float
        Maximum probability, over the draw of the calibration data, that the guarantee fails.
    marginal : float
        Bound of the distance between the reported probability of a new case and its true frequency.
        The bound holds with probability ``1 - alpha`` over calibration data and case (epsilon 1 of
        the theorems).
    conditional : float
        Bound of the distances of all reported probabilities jointly (epsilon 2). This value also
        bounds the expected and the maximum calibration error.
    expected_ece : float
        Bound of the expected calibration error, on average over calibration data.
    intervals : tuple of BinInterval
        Exact interval of each bin, never wider than ``conditional`` allows.
    quantities : tuple of QuantityBounds
        Bounds per class (class-wise) or rank. The bounds of the guarantee are the largest of these
        bounds.
    not_covered : tuple of str
        Cases that the guarantee does not cover.
    not_proved : tuple of str
        Cases that the guarantee covers in simulations, but not by proof.
    covers : tuple of str
        Methods whose probabilities are covered: ``predict_claims``, and ``predict_top`` for types
        of calibration that concern ranks.

    See Also
    --------
    CanonicalGuarantee : Guarantee of whole probability vectors.
    calibrant.HistogramBinning : Binary calibrator with a guarantee.
    calibrant.MulticlassToBinary : Guarantee for multiclass problems.

    Notes
    -----
    A guarantee does not cover rows that were normalized or completed to sum to 1. A guarantee does
    not cover ``predict_top`` of class-wise calibration, because the predicted class is a selection.
    Several score columns share alpha evenly (union bound).
    """

    alpha: float
    marginal: float
    conditional: float
    expected_ece: float
    intervals: tuple[BinInterval, ...]
    quantities: tuple[QuantityBounds, ...]
    not_covered: tuple[str, ...] = ()
    not_proved: tuple[str, ...] = ()
    covers: tuple[str, ...] = ("predict_claims",)

    @property
    def n_bins(self) -> int:
        """Number of bins that the guarantee covers."""
        return len(self.intervals)

    @property
    def widest(self) -> BinInterval:
        """The bin with the largest gap."""
        return max(self.intervals, key=lambda interval: interval.gap)

    @property
    def typical(self) -> BinInterval:
        """The bin with the median gap."""
        return sorted(self.intervals, key=lambda interval: interval.gap)[(self.n_bins - 1) // 2]

    def __str__(self) -> str:
        typical = self.typical
        text = (
            f"The following bounds hold with {format_percent(1 - self.alpha)} confidence, "
            f"{_for_all(self.n_bins)}. When the reported probability of {typical.claim} is "
            f"{typical.value:.2f}, the true frequency is between {_down(typical.low):.2f} and "
            f"{_up(typical.high):.2f}. No reported probability differs from its true frequency by "
            f"more than {_up(self.widest.gap):.2f}."
        )
        scope = f" The bounds apply to {' and '.join(self.covers)} {_ASSUMPTIONS}."
        return text + scope + _small_print(self.not_covered, self.not_proved)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON."""
        return {**asdict(self), "n_bins": self.n_bins, "text": str(self)}


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalGuarantee(ShortRepr, AsText):
    """Distribution-free guarantee of `CanonicalBinning`.

    Call ``print`` to read the guarantee in sentences. Distances are sums over classes of absolute
    differences between reported and true probabilities. Half of a distance bounds the error for any
    class and any set of classes.

    Attributes
    ----------
    alpha : float
        Maximum probability, over the draw of the calibration data, that the guarantee fails.
    marginal, conditional : float
        Bound of the distance for a new case, and for all bins jointly.
    bins, counts : arrays
        Bins with calibration rows, and their numbers of rows.
    radius, radius_single : arrays
        Bound of the distance per bin, for all bins jointly and for a single bin chosen in advance.
    not_covered : tuple of str
        Cases that the guarantee does not cover.
    not_proved : tuple of str
        Cases that the guarantee covers, but not by proof.

    See Also
    --------
    Guarantee : Guarantee of binary events.
    calibrant.CanonicalBinning : Calibrator with this guarantee.
    """

    alpha: float
    marginal: float
    conditional: float
    bins: IntArray
    counts: FloatArray
    radius: FloatArray
    radius_single: FloatArray
    not_covered: tuple[str, ...] = ()
    not_proved: tuple[str, ...] = ()

    def __str__(self) -> str:
        fullest, emptiest = int(self.counts.argmax()), int(self.counts.argmin())
        text = (
            f"The following bounds hold with {format_percent(1 - self.alpha)} confidence, "
            f"{_for_all(len(self.bins))}. The true probability of any class, or set of classes, is "
            f"within {self._half(fullest)} of the reported probability in the largest bin "
            f"({self.counts[fullest]:g} rows), and within {self._half(emptiest)} in the smallest "
            f"bin ({self.counts[emptiest]:g} rows). The bounds hold {_ASSUMPTIONS}."
        )
        return text + _small_print(self.not_covered, self.not_proved)

    def _half(self, place: int) -> str:
        return f"{min(_up(self.radius[place] / 2), 1.0):.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON."""
        fields = {name: np.asarray(value).tolist() for name, value in vars(self).items()}
        return {**fields, "text": str(self)}


def _for_all(n_bins: int) -> str:
    return f"for all {n_bins} bins jointly" if n_bins > 1 else "for the only bin"


def _small_print(not_covered: tuple[str, ...], not_proved: tuple[str, ...]) -> str:
    return "".join(f" Not covered: {reason}." for reason in not_covered) + "".join(
        f" Not proved for {reason}." for reason in not_proved
    )


# Bounds are rounded outward, so rounding does not break the guarantee.
def _down(value: float) -> float:
    return math.floor(100 * value) / 100


def _up(value: float) -> float:
    return math.ceil(100 * value) / 100
