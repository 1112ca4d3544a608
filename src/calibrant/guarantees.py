r"""Guarantees of binning calibrators: what holds for new data, without any assumption on their
distribution.

A bin whose outcomes are independent draws is a coin that was thrown: its true frequency can be
bounded from the throws alone. The functions here are the formulas; `Guarantee` and
`CanonicalGuarantee` are what ``calibrator.guarantee(alpha)`` returns. All of it assumes that new
cases are drawn like the calibration rows, that these are independent of each other, and that the
model was neither trained nor selected on them: the last two nobody can check for you. A row that is
there twice, or a model that has seen the rows, makes every number here too good.

References
----------
Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, Theorems 1 and 2,
arXiv:2107.08353. Clopper & Pearson (1934), The use of confidence or fiducial limits,
doi:10.1093/biomet/26.4.404. Podkopaev & Ramdas (2021), Distribution-free uncertainty quantification
under label shift, Theorem 3, arXiv:2103.03323.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, IntArray
from calibrant.exceptions import TooFewRowsError

__all__ = ["BinInterval", "CanonicalGuarantee", "Guarantee", "QuantityBounds"]


def marginal_bound(points_per_bin: float, alpha: float, delta: float) -> float:
    r"""Error of a new case: :math:`\sqrt{\log(2/\alpha) / (2(k-1))} + \delta` (eq. 10 and 15)."""
    return math.sqrt(math.log(2 / alpha) / (2 * (points_per_bin - 1))) + delta


def conditional_bound(n_bins: float, points_per_bin: float, alpha: float, delta: float) -> float:
    r"""Error of every bin at once: :math:`\sqrt{\log(2B/\alpha) / (2(k-1))} + \delta`; eq. 10 and
    15 have :math:`B = n/k`.
    """
    return marginal_bound(points_per_bin, alpha / n_bins, delta)


def expected_bound(points_per_bin: float, delta: float) -> float:
    r"""Calibration error to expect: :math:`\sqrt{1/(2k)} + \delta`."""
    return math.sqrt(1 / (2 * points_per_bin)) + delta


def clopper_pearson(
    hits: FloatArray, counts: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Exact interval of the probability of a hit, of level ``1 - alpha``: (low, high).

    >>> low, high = clopper_pearson(np.array([0.0, 9.0]), np.array([10.0, 10.0]), 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.555], [0.308, 0.997])
    """
    misses = counts - hits
    low, high = np.zeros(hits.shape), np.ones(hits.shape)
    some_hits, some_misses = hits > 0, misses > 0
    low[some_hits] = betaincinv(hits[some_hits], misses[some_hits] + 1, alpha / 2)
    high[some_misses] = betaincinv(hits[some_misses] + 1, misses[some_misses], 1 - alpha / 2)
    return low, high


def multinomial_radius(counts: FloatArray, n_classes: int, alpha: float) -> FloatArray:
    r"""Bretagnolle-Huber-Carol: with probability :math:`1 - \alpha` the frequencies of a bin of
    ``counts`` draws are within

    .. math:: \sqrt{2 (L \log 2 + \log(1/\alpha)) / n}

    of its true distribution, in the sum of absolute differences.
    """
    return np.sqrt(2 * (n_classes * math.log(2) + math.log(1 / alpha)) / counts)


@dataclass(frozen=True, eq=False)
class BinnedClaim:
    """The fitted bins of a claim: what is said, rows asked of a bin, values reported, and the draws
    behind them.
    """

    name: str
    points_per_bin: int
    values: FloatArray
    counts: FloatArray
    hits: FloatArray

    @cached_property
    def reliable(self) -> IntArray:
        """Bins with at least one row behind their value."""
        return np.flatnonzero(self.counts >= 1)

    @property
    def n_empty(self) -> int:
        """Bins without a row."""
        return self.values.size - self.reliable.size

    @property
    def is_covered(self) -> bool:
        """Whether bins have the two points that the theorems ask for."""
        return self.points_per_bin > 1 and self.reliable.size > 0


class BinnedQuantity(NamedTuple):
    """The covered claims of a quantity (one, or one per label), and the rows that all of its claims
    share.
    """

    name: str
    n_samples: int
    claims: Sequence[BinnedClaim]


@dataclass(frozen=True)
class BinInterval:
    """Where the true frequency of a bin lies.

    ``low`` and ``high`` hold for all bins at once, ``low_single`` and ``high_single`` for this bin
    if it was picked beforehand. ``count`` are the draws that they rest on.
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
        """The farthest that the true frequency can be from the reported value."""
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
    """What is guaranteed about the claims of a histogram binning; ``str()`` says it in a sentence.

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
        What this guarantee does not speak of.
    not_proved : tuple of str
        What it speaks of, and simulations bear out, but the proofs do not.
    covers : tuple of str
        The methods whose probabilities it speaks of: ``predict_claims``, and ``predict_top`` for
        notions of ranks alone.

    Notes
    -----
    A guarantee never speaks of rows that were normalised or filled up to sum to one, nor of
    ``predict_top`` where claims are about given classes: to be the top class is a selection that
    such claims know nothing of. With several quantities, alpha is split evenly between them (union
    bound).
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
        """The bin whose true frequency can be farthest from what is reported."""
        return max(self.intervals, key=lambda interval: interval.gap)

    @property
    def typical(self) -> BinInterval:
        """A bin in the middle: half of the bins can be farther off."""
        return sorted(self.intervals, key=lambda interval: interval.gap)[(self.n_bins - 1) // 2]

    def __str__(self) -> str:
        shown = self.typical
        said = (
            f"With {_percent(self.alpha)} confidence, {_for_all(self.n_bins)}: when the model says "
            f"{shown.claim} with "
            f"{shown.value:.2f}, the true frequency is between {_down(shown.low):.2f} and "
            f"{_up(shown.high):.2f}. "
            f"No reported probability is farther than {_up(self.widest.gap):.2f} from its true "
            f"frequency."
        )
        covered = f" This holds for {' and '.join(self.covers)}, {_ASSUMPTIONS}."
        return said + covered + _small_print(self.not_covered, self.not_proved)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        return {**asdict(self), "n_bins": self.n_bins, "text": str(self)}


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalGuarantee(ShortRepr, AsText):
    """What is guaranteed about the vectors of a `CanonicalBinning`; ``str()`` says it in a
    sentence.

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
        What this guarantee does not speak of.
    not_proved : tuple of str
        What it speaks of, but the proof does not.
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
        said = (
            f"With {_percent(self.alpha)} confidence, {_for_all(len(self.bins))}: the true "
            f"probability of any class, or set of "
            f"classes, is within {self._half(fullest)} of the reported one in the fullest bin "
            f"({self.counts[fullest]:g} rows) and within {self._half(emptiest)} in the emptiest "
            f"({self.counts[emptiest]:g} rows). This holds {_ASSUMPTIONS}."
        )
        return said + _small_print(self.not_covered, self.not_proved)

    def _half(self, place: int) -> str:
        return f"{min(_up(self.radius[place] / 2), 1.0):.2f}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        arrays = {
            name: getattr(self, name).tolist()
            for name in ("bins", "counts", "radius", "radius_single")
        }
        numbers = {"alpha": self.alpha, "marginal": self.marginal, "conditional": self.conditional}
        reasons = {
            "not_covered": list(self.not_covered),
            "not_proved": list(self.not_proved),
        }
        return {**numbers, **arrays, **reasons, "text": str(self)}


def tied_edges(n_tied: int) -> tuple[str, ...]:
    """What is not proved where several rows share the score of an edge."""
    if not n_tied:
        return ()
    shared = "an edge" if n_tied == 1 else f"{n_tied} edges"
    return (
        f"bins with tied edges ({shared} that several rows share; the proofs assume distinct "
        f"scores)",
    )


def check_deployed(is_out_of_fold: bool) -> None:
    """Refuse a guarantee to bins that hold the scores of other models than the one that
    predicts.
    """
    if is_out_of_fold:
        raise ValueError(
            "there is no guarantee here: this calibrator was fitted inside CalibratedClassifier on "
            "scores of the models of the folds, and new cases get scores of another model, or of "
            "several averaged; fit the model first and calibrate it on rows that it has not seen, "
            "CalibratedClassifier(FrozenEstimator(model), calibrator).fit(X_held_out, y_held_out)"
        )


def check_unweighted(is_weighted: bool) -> None:
    """Refuse a guarantee to weighted rows, which are no independent draws."""
    if is_weighted:
        raise ValueError(
            "there is no guarantee for weighted rows: fit without sample_weight, or with weights "
            "of one"
        )


def check_alpha(alpha: Any, n_quantities: int) -> FloatArray:
    """A probability of failure: one number, or one for each of several quantities."""
    given = np.asarray(alpha, dtype=np.float64)
    if given.ndim and given.shape != (n_quantities,):
        raise ValueError(
            f"alpha must be one number, or one for each of the {n_quantities} claims; got {alpha!r}"
        )
    if not ((given > 0).all() and given.sum() < 1):
        raise ValueError(
            f"alpha must lie between 0 and 1, and so must the sum of several; got {alpha!r}"
        )
    return given


def binning_guarantee(
    quantities: Sequence[BinnedQuantity],
    alpha: Any,
    delta: float,
    not_covered: tuple[str, ...] = (),
    not_proved: tuple[str, ...] = (),
    covers: tuple[str, ...] = ("predict_claims",),
) -> Guarantee:
    """The guarantee of fitted bins; raises where no quantity has a claim that is covered.

    One ``alpha`` is split evenly between the quantities that have one.
    """
    given = check_alpha(alpha, len(quantities))
    is_kept = np.array([bool(quantity.claims) for quantity in quantities])
    kept = [quantity for quantity in quantities if quantity.claims]
    if not kept:
        raise TooFewRowsError(
            "too few points for a guarantee: no claim has bins of its own with two calibration "
            "rows or more; "
            "use more data, or fewer bins"
        )
    single = given[is_kept] if given.ndim else np.full(len(kept), given)
    part = single if given.ndim else single / len(kept)
    bounds = [
        _bounds(q, float(a), float(s), delta) for q, a, s in zip(kept, part, single, strict=True)
    ]
    return Guarantee(
        alpha=float(single.sum() if given.ndim else given),
        marginal=max(b.marginal for b in bounds),
        conditional=max(b.conditional for b in bounds),
        expected_ece=max(b.expected_ece for b in bounds),
        intervals=tuple(
            interval
            for q, b, s in zip(kept, bounds, single, strict=True)
            for interval in _intervals(q, b, float(s))
        ),
        quantities=tuple(bounds),
        not_covered=not_covered,
        not_proved=not_proved,
        covers=covers,
    )


def _bounds(quantity: BinnedQuantity, alpha: float, single: float, delta: float) -> QuantityBounds:
    counts = np.concatenate([claim.counts[claim.reliable] for claim in quantity.claims])
    # Bins of equal mass hold k - 1 rows beside their edge; ties and bins of equal width may leave
    # fewer.
    k = float(min(counts.min() + 1, *(claim.points_per_bin for claim in quantity.claims)))
    n_bins = max(quantity.n_samples / k, counts.size)
    return QuantityBounds(
        name=quantity.name,
        n_bins=counts.size,
        points_per_bin=k,
        alpha=alpha,
        marginal=marginal_bound(k, alpha, delta),
        conditional=conditional_bound(n_bins, k, alpha, delta),
        expected_ece=expected_bound(k, delta),
        marginal_single=marginal_bound(k, single, delta),
        conditional_single=conditional_bound(n_bins, k, single, delta),
    )


def _intervals(
    quantity: BinnedQuantity, bounds: QuantityBounds, single: float
) -> list[BinInterval]:
    intervals = []
    for claim in quantity.claims:
        bins = claim.reliable
        values, counts, hits = claim.values[bins], claim.counts[bins], claim.hits[bins]
        low, high = clopper_pearson(hits, counts, bounds.alpha / bounds.n_bins)
        columns = (values, counts, low, high, *clopper_pearson(hits, counts, single))
        intervals += [BinInterval(claim.name, *row) for row in np.column_stack(columns).tolist()]
    return intervals


def canonical_guarantee(
    bins: IntArray,
    counts: FloatArray,
    n_classes: int,
    alpha: float,
    not_covered: tuple[str, ...] = (),
    not_proved: tuple[str, ...] = (),
) -> CanonicalGuarantee:
    """The guarantee of multinomial frequencies in bins that hold ``counts`` draws, by a union bound
    over the bins.
    """
    check_alpha(alpha, 1)
    radius = multinomial_radius(counts, n_classes, alpha / counts.size)
    single = multinomial_radius(counts, n_classes, alpha)
    return CanonicalGuarantee(
        alpha,
        float(single.max()),
        float(radius.max()),
        bins,
        counts,
        radius,
        single,
        not_covered=not_covered,
        not_proved=not_proved,
    )


def _percent(alpha: float) -> str:
    return f"{100 * (1 - alpha):.4g} %"


def _for_all(n_bins: int) -> str:
    return f"for all {n_bins} bins at once" if n_bins > 1 else "for the one bin"


_ASSUMPTIONS = (
    "for new cases drawn like the calibration rows, if these are independent of each other and the "
    "model was neither trained nor selected on them"
)


def _small_print(not_covered: tuple[str, ...], not_proved: tuple[str, ...]) -> str:
    return "".join(f" Not covered: {reason}." for reason in not_covered) + "".join(
        f" Not proved for {reason}." for reason in not_proved
    )


# Rounded outwards, so that what is printed holds.
def _down(value: float) -> float:
    return math.floor(100 * value) / 100


def _up(value: float) -> float:
    return math.ceil(100 * value) / 100


def __dir__() -> list[str]:
    return __all__
