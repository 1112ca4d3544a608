"""Guarantees: bounds and intervals that explain themselves."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, IntArray

_ASSUMPTIONS = (
    "for new cases drawn like the calibration rows, if these are independent of each other and the "
    "model was neither trained nor selected on them"
)


@dataclass(frozen=True)
class BinInterval:
    """Interval of the true frequency of a bin.

    ``low`` and ``high`` hold for all bins at once, ``low_single`` and ``high_single`` for this bin
    if it was chosen beforehand. ``count`` is the number of draws.
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
    """Bounds of one quantity: a class of a class-wise guarantee, a rank, or all there is.

    ``marginal`` and ``conditional`` hold with probability ``1 - alpha``, the quantity's part of the
    total; the pair ``marginal_single``, ``conditional_single`` with that of the whole, for this
    quantity alone.
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
    """Guarantee about the claims of a histogram binning; ``str()`` gives it as a sentence.

    Attributes
    ----------
    alpha : float
        Probability, over the draw of the calibration data, that a statement fails.
    marginal : float
        A new case is reported with a probability that is at most this far from its true frequency,
        with probability ``1 - alpha`` over calibration data and case (epsilon 1 of the theorems).
    conditional : float
        The same for every reported probability at once; also bounds the calibration error and the
        largest error of any bin (epsilon 2).
    expected_ece : float
        Bound of the calibration error, on average over calibration data.
    intervals : tuple of BinInterval
        Exact intervals, never wider than ``conditional`` says.
    quantities : tuple of QuantityBounds
        The bounds per class (class-wise) or rank; those above are the largest of them.
    not_covered : tuple of str
        What this guarantee does not cover.
    not_proved : tuple of str
        What it covers according to simulations, but not to the proofs.
    covers : tuple of str
        The methods whose probabilities it covers: ``predict_claims``, and ``predict_top`` for
        notions of ranks only.

    Notes
    -----
    A guarantee does not cover rows that were normalized or completed to sum to one. It does not
    cover ``predict_top`` if claims are about given classes, because to be the top class is a
    selection. With several score columns, alpha is split evenly between them (union bound).
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
        """Bins that are covered."""
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
            f"With {_percent(self.alpha)} confidence, {_for_all(self.n_bins)}: when the model says "
            f"{typical.claim} with "
            f"{typical.value:.2f}, the true frequency is between {_down(typical.low):.2f} and "
            f"{_up(typical.high):.2f}. "
            f"No reported probability is farther than {_up(self.widest.gap):.2f} from its true "
            f"frequency."
        )
        scope = f" This holds for {' and '.join(self.covers)}, {_ASSUMPTIONS}."
        return text + scope + _small_print(self.not_covered, self.not_proved)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        return {**asdict(self), "n_bins": self.n_bins, "text": str(self)}


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalGuarantee(ShortRepr, AsText):
    """Guarantee about the vectors of a `CanonicalBinning`; ``str()`` gives it as a sentence.

    Distances are sums over classes of absolute differences between reported and true probabilities;
    half of it bounds the error for any class and any set of classes.

    Attributes
    ----------
    alpha : float
        Probability, over the draw of the calibration data, that a statement fails.
    marginal, conditional : float
        The largest distance of a new case, and of all bins at once.
    bins, counts : arrays
        The bins that hold calibration rows, and how many each estimate rests on.
    radius, radius_single : arrays
        Distance per bin, for all bins at once and for a bin picked beforehand.
    not_covered : tuple of str
        What this guarantee does not cover.
    not_proved : tuple of str
        What it covers, but the proof does not.
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
            f"With {_percent(self.alpha)} confidence, {_for_all(len(self.bins))}: the true "
            f"probability of any class, or set of "
            f"classes, is within {self._half(fullest)} of the reported one in the fullest bin "
            f"({self.counts[fullest]:g} rows) and within {self._half(emptiest)} in the emptiest "
            f"({self.counts[emptiest]:g} rows). This holds {_ASSUMPTIONS}."
        )
        return text + _small_print(self.not_covered, self.not_proved)

    def _half(self, place: int) -> str:
        return f"{min(_up(self.radius[place] / 2), 1.0):.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        plain = {name: np.asarray(value).tolist() for name, value in vars(self).items()}
        return {**plain, "text": str(self)}


def _percent(alpha: float) -> str:
    return f"{100 * (1 - alpha):.4g} %"


def _for_all(n_bins: int) -> str:
    return f"for all {n_bins} bins at once" if n_bins > 1 else "for the one bin"


def _small_print(not_covered: tuple[str, ...], not_proved: tuple[str, ...]) -> str:
    return "".join(f" Not covered: {reason}." for reason in not_covered) + "".join(
        f" Not proved for {reason}." for reason in not_proved
    )


def _down(value: float) -> float:
    return math.floor(100 * value) / 100


def _up(value: float) -> float:
    return math.ceil(100 * value) / 100
