"""Histogram binning: the frequency of the outcome in bins of the score."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._kernels import ordered_pairs
from calibrant._kernels.blocks import CACHE_BLOCK, ROUND_OFF, sum_blocks
from calibrant._kernels.simplex import is_unit
from calibrant._typing import AnyArray, FloatArray, Inputs, IntArray, LabelsLike, Rng
from calibrant._validation import as_seed, check_count, check_fitted, check_option
from calibrant.base import BaseBinaryCalibrator, Citation
from calibrant.base.fitted import COUNTS, RATES, SCORES, FittedValue
from calibrant.base.references import GUPTA_RAMDAS_2021, ZADROZNY_ELKAN_2001
from calibrant.binning import (
    Bins,
    UniformBins,
    distinct_sums,
    pair_sums,
    place_scores,
    sum_steps,
)
from calibrant.guarantees import (
    BinnedClaim,
    BinnedQuantity,
    Guarantee,
    binning_guarantee,
    check_deployed,
    check_unweighted,
    tied_edges,
)
from calibrant.notions import Claim, as_notion

STRATEGIES = ("quantile", "uniform")
BOUNDARIES = ("exclude", "include")


_MOST_BINS = 1000
"""Maximum number of bins per distinct score. More bins would not change the result noticeably."""


class HistogramBinning(BaseBinaryCalibrator):
    r"""Calibrate by the frequency of the outcome in bins of scores.

    Use this method if you need a guarantee that holds for every distribution. Call `guarantee`
    after `fit`.

    Parameters
    ----------
    n_bins : int, optional
        Number of bins. If None, ``floor(n / points_per_bin)``, at least one.
    points_per_bin : int, default 50
        Rows per bin, used to choose the number of bins if ``n_bins`` is None. Inside
        `MulticlassToBinary`, this parameter may be one number per class.
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins with equal numbers of rows, or of equal width.
    boundary : {"exclude", "include"}, default "exclude"
        Whether the row whose score is the edge between two bins counts in the frequency of its bin.
        The guarantees need "exclude", because this row is not an independent draw from its bin.
        The edges of bins of equal width do not depend on the rows, so every row counts in its bin.
    delta : float, default 1e-10
        Maximum change of values to make equal values of two bins different. 0 means no change.
    random_state : int or Generator, optional
        Seed for the order of bins with equal values. If ``random_state`` is None, the bin of higher
        scores gets the higher value. A Generator is copied, so its state does not change.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.

    Attributes
    ----------
    edges_ : array of shape (B,)
        Upper edges of the bins. Equal edges form one bin, so B can be smaller than ``n_bins``.
    values_ : array of shape (B,)
        Calibrated probability of each bin. The probability is 0.5 if no row counts in the bin.
    counts_, hits_ : arrays of shape (B,)
        Weight of the rows, and of the rows with outcome 1, in each bin. The value of a bin with the
        count 0 is unreliable.
    n_tied_edges_ : int
        Number of edges between two bins whose score belongs to several rows.
    is_weighted_ : bool
        Whether some rows had weights other than 0 and 1.
    bins_ : Bins
        The bins. Pass the calibrator as ``bins=`` to evaluate other predictions in the same bins.

    See Also
    --------
    guarantee : Bounds on the calibrated probabilities, for every distribution.
    BayesianBinning : An average over numbers of bins.

    Notes
    -----
    With upper edges :math:`e_1 < \dots < e_B`, score s belongs to the bin b with :math:`e_{b-1} < s
    \le e_b`. The first bin has no lower limit and the last bin has no upper limit. The calibrated
    probability is

    .. math:: h(s) = \frac{\sum_{i \in b} w_i\, o_i}{\sum_{i \in b} w_i} .

    Quantile bins are the groups of ``np.array_split(sorted scores, B)``, and the edge is the
    largest score of a group. Bins of equal width are those of the metrics,
    ``min(int(s * B), B - 1)``.

    Equal scores share a bin. If several rows have the score of an edge, "exclude" reduces their
    total weight by one row and keeps their frequency. The order of rows therefore does not matter.
    Weighted rows are split at equal steps of cumulative weight. A weight of 2 is equivalent to
    duplicating the row with ``boundary="include"``, but not with "exclude", because the excluded
    row is then heavier.

    If rows are drawn independently and all scores differ, the outcomes of a bin are independent
    given the edges. The fit costs O(n log n).

    References
    ----------
    Zadrozny & Elkan (2001), Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers, ICML. Gupta & Ramdas (2021), Distribution-free calibration
    guarantees for histogram binning without sample splitting, arXiv:2105.04656.

    Examples
    --------
    >>> score, outcome = [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], [0, 0, 1, 1, 0, 1]
    >>> calibrator = HistogramBinning(n_bins=2, boundary="include").fit(score, outcome)
    >>> calibrator.edges_.tolist(), calibrator.values_.round(2).tolist()
    ([0.3, 0.9], [0.33, 0.67])
    """

    is_weighted_: bool = False  # the default for files without this attribute

    def __init__(
        self,
        n_bins: int | None = None,
        points_per_bin: Any = 50,
        strategy: str = "quantile",
        boundary: str = "exclude",
        delta: float = 1e-10,
        random_state: Rng = None,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.n_bins = n_bins
        self.points_per_bin = points_per_bin
        self.strategy = strategy
        self.boundary = boundary
        self.delta = delta
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation(
        "histogram binning", (ZADROZNY_ELKAN_2001, GUPTA_RAMDAS_2021)
    )

    def _check_parameters(self, n_classes: int) -> None:
        super()._check_parameters(n_classes)
        self._check_number_of_bins()
        as_seed(self.random_state)
        check_option(self.strategy, "strategy", STRATEGIES)
        check_option(self.boundary, "boundary", BOUNDARIES)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta!r}.")

    def _check_number_of_bins(self) -> None:
        if self.n_bins is not None:
            check_count(self.n_bins, "n_bins")
        elif np.ndim(self.points_per_bin):
            raise ValueError(
                f"points_per_bin must be one number for a binary problem, got "
                f"{self.points_per_bin!r}. For one number per class, use "
                "MulticlassToBinary(HistogramBinning(points_per_bin=[...]), notion='class-wise')."
            )
        else:
            check_count(self.points_per_bin, "points_per_bin")

    def _check_for_claims(self, n_classes: int, *, by_class: bool) -> None:
        if not np.ndim(self.points_per_bin):
            super()._check_for_claims(n_classes, by_class=by_class)
            return
        if not by_class:
            raise ValueError(
                "points_per_bin must be one number, because this type of calibration has no binary "
                f"problem per class, got {self.points_per_bin!r}. Use notion='class-wise' for one "
                "number per class."
            )
        if np.shape(self.points_per_bin) != (n_classes,):
            raise ValueError(
                f"points_per_bin must be one number, or one for each of the {n_classes} classes, "
                f"got {self.points_per_bin!r}."
            )
        for label in range(n_classes):
            self._for_claim(label, label)._check_parameters(2)

    def _for_claim(self, label: int | None, index: int) -> Self:
        """Return a copy with the ``points_per_bin`` of its class, or the maximum over classes."""
        calibrator = super()._for_claim(label, index)
        points = np.asarray(self.points_per_bin)
        if points.ndim:
            number = points.max() if label is None else points[label]
            calibrator.set_params(points_per_bin=number.item())
        return calibrator

    def _rows_needed(self) -> int:
        return int(self.points_per_bin) if self.n_bins is None else max(2, self.n_bins)

    @property
    def counts_rows(self) -> bool:
        """Whether each edge excludes a row, in which case a weight of 2 differs from two rows."""
        return self.boundary == "exclude" and self.strategy == "quantile"

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "edges_": SCORES,
        "counts_": COUNTS,
        "hits_": COUNTS,
        "values_": RATES,
    }

    def _fit(self, claim: Claim) -> None:
        self.is_weighted_ = claim.is_weighted
        if claim.ends is not None or not is_unit(claim.weight):
            scores = claim.score if claim.ends is None else claim.ends
            values, total, hits = distinct_sums(scores, claim.hits, claim.weight)
            self._fit_distinct(values, total, hits, self._rows_of_values(claim, total))
        elif self.strategy == "uniform":
            self._fit_even(claim.score, claim.outcome)
        else:
            self._fit_ordered(*ordered_pairs(claim.score, claim.outcome))

    def _rows_of_values(self, claim: Claim, total: FloatArray) -> FloatArray:
        """Return the number of rows per distinct score. ``total`` contains the weight per score."""
        if claim.ends is None:
            return _row_counts(claim.score, claim.weight) if self.counts_rows else total
        if claim.cell_rows is None:
            return total
        return claim.cell_rows[np.unique(claim.ends, return_index=True)[1]]

    def _fit_ordered(self, score: FloatArray, hit: IntArray) -> None:
        """Fit on sorted rows with weight one. If no edge is tied, bins are slices of the rows."""
        n_bins = self._n_bins(float(score.size))
        starts, last = _row_groups(score.size, n_bins)
        inner = last[:-1]
        if n_bins > score.size or _are_tied(score, inner):
            values, total, hits = pair_sums(score, hit)
            self._fit_distinct(values, total, hits, total)
            return
        counts, hits = last + 1 - starts, np.add.reduceat(hit, starts)
        if self.boundary == "exclude":
            counts[:-1] -= 1
            hits[:-1] -= hit[inner]
        self.edges_, self.n_tied_edges_ = score[last], 0
        self._keep_rates(counts.astype(np.float64), hits.astype(np.float64))

    def _cuts(self, total: float) -> FloatArray | None:
        if self.strategy != "uniform" or np.ndim(self.points_per_bin):
            return None
        return uniform_edges(self._n_bins(total))

    def _fit_distinct(
        self, values: FloatArray, total: FloatArray, hits: FloatArray, rows: FloatArray
    ) -> None:
        """Fit on distinct scores with their weights, hits and numbers of rows."""
        self.edges_ = self._edges_of(values, total)
        kept_share = np.ones(values.size)
        if self.counts_rows:
            # Exclude one of the rows at each edge between two bins. Rows with the same score share
            # the loss equally, so the order of rows does not matter.
            at_edge = np.searchsorted(values, self.edges_[:-1])
            kept_share[at_edge] -= 1.0 / rows[at_edge]
        self.n_tied_edges_ = int(((kept_share > 0) & (kept_share < 1)).sum())
        counts = sum_steps(kept_share * total, values, self.edges_)
        self._keep_rates(counts, sum_steps(kept_share * hits, values, self.edges_))

    def _edges_of(self, values: FloatArray, total: FloatArray) -> FloatArray:
        n_bins = self._n_bins(float(total.sum()))
        if self.strategy == "uniform":
            return uniform_edges(n_bins)
        # Large weights may give more bins than fit into memory, so limit the number of bins by the
        # number of distinct scores.
        return _quantile_edges(values, total, min(n_bins, _MOST_BINS * values.size))

    def _fit_even(self, score: FloatArray, outcome: AnyArray) -> None:
        """Fit bins of equal width by counting rows block by block, without sorting."""
        self.edges_ = uniform_edges(self._n_bins(float(len(score))))
        size, self.n_tied_edges_ = self.edges_.size, 0

        def count_rows(rows: slice) -> FloatArray:
            place = place_scores(score[rows], self.edges_)
            count = np.bincount(place, minlength=size)
            hits = np.bincount(place, outcome[rows], size)
            return np.array([count, hits], dtype=np.float64)

        sums = sum_blocks(count_rows, len(score), 1, elements=max(CACHE_BLOCK, 8 * size))
        self._keep_rates(*sums)

    def _keep_rates(self, counts: FloatArray, hits: FloatArray) -> None:
        self.counts_, self.hits_ = counts, hits
        rate = np.divide(hits, counts, out=np.full(counts.size, 0.5), where=counts > 0)
        self.values_ = _separated(rate, self.delta, as_seed(self.random_state))

    def _n_bins(self, total: float) -> int:
        return self.n_bins or max(1, int(total // self.points_per_bin))

    def _predict(self, score: FloatArray) -> FloatArray:
        return self.values_[place_scores(score, self.edges_)]

    @property
    def bins_(self) -> Bins:
        return Bins((self.edges_,))

    def guarantee(self, alpha: float = 0.05) -> Guarantee:
        """Return finite-sample bounds on the probability of class 1 in each bin.

        The bounds hold for new data from any distribution. See `MulticlassToBinary.guarantee` for
        the bounds and the conditions.

        Parameters
        ----------
        alpha : float
            Maximum probability that the bounds fail.

        Returns
        -------
        Guarantee

        See Also
        --------
        MulticlassToBinary.guarantee : Bounds for several classes.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(1000)
        >>> fitted = HistogramBinning(n_bins=2).fit(score, rng.random(1000) < score)
        >>> fitted.guarantee().widest.gap < 0.06
        True
        """
        check_fitted(self)
        check_deployed(self.out_of_fold_)
        self._check_guaranteed(is_weighted=self.is_weighted_)
        rows = int(self.class_weights_.sum())
        claim = self._binned_claim(as_notion("class-1").claim_text(0, self.classes_), rows)
        quantity = BinnedQuantity(claim.name, rows, [claim] if claim.is_covered else [])
        empty = (empty_bins(claim.n_empty),) if claim.n_empty else ()
        tied = tied_edges(self.n_tied_edges_)
        return binning_guarantee([quantity], alpha, self.delta, empty, tied, ("predict_proba",))

    def _check_guaranteed(self, *, is_weighted: bool) -> None:
        """Raise if these bins have no guarantee, with the reason."""
        if self.boundary != "exclude":
            raise ValueError(
                "boundary='include' has no guarantee, because the rows at bin edges are not "
                "independent draws from their bins. Use boundary='exclude'."
            )
        check_unweighted(is_weighted)

    def _binned_claim(self, name: str, rows: float) -> BinnedClaim:
        """Return the fitted bins in the form that a guarantee needs.

        ``rows`` is the number of rows.
        """
        points = self.points_per_bin if self.n_bins is None else rows // self.n_bins
        return BinnedClaim(name, int(points), self.values_, self.counts_, self.hits_)


def empty_bins(n_empty: int) -> str:
    """A note about bins without rows, which the guarantee does not cover."""
    bins, verb = ("bin", "returns") if n_empty == 1 else ("bins", "return")
    return f"{n_empty} {bins} without rows, which {verb} 0.5"


def _are_tied(score: FloatArray, places: IntArray) -> bool:
    """Return whether any of the sorted scores at these positions equals an adjacent score.

    The last position must not be among these positions.
    """
    at = score[places]
    return bool((at == score[places + 1]).any() or (at == score[places - 1]).any())


def _quantile_edges(values: FloatArray, total: FloatArray, n_bins: int) -> FloatArray:
    """Return the edges of quantile bins: the largest value of each group of equal weight.

    ``values`` are distinct and have the weights ``total``.
    """
    sums = np.cumsum(total)
    ends = _group_ends(float(sums[-1]), n_bins, is_integer=bool((total == np.floor(total)).all()))
    last = np.searchsorted(sums, ends - ROUND_OFF * sums[-1])
    edges = values[np.minimum(last, values.size - 1)]  # the values increase
    return edges[np.append(True, edges[1:] != edges[:-1])]


def _group_ends(total: float, n_bins: int, *, is_integer: bool) -> FloatArray:
    """Cumulative weight at which each group ends.

    Integer weights are split as ``np.array_split`` splits rows, other weights evenly.
    """
    group = np.arange(1, n_bins + 1)
    if not is_integer:
        return group * (total / n_bins)
    size, extra = divmod(total, n_bins)
    return group * size + np.minimum(group, extra)


@lru_cache(maxsize=8)
def _row_groups(n_rows: int, n_bins: int) -> tuple[IntArray, IntArray]:
    """Return the first and the last row of each group.

    The result is cached, because all classes share it.
    """
    ends = _group_ends(float(n_rows), n_bins, is_integer=True).astype(np.intp)
    return np.append(0, ends[:-1]), ends - 1


def uniform_edges(n_bins: int) -> FloatArray:
    """Return the largest float of each equal-width bin of `UniformBins`."""
    group = np.arange(n_bins)
    # Start slightly above the edge, because the quotient may be rounded down. Then step down to the
    # largest float that `UniformBins` assigns to the bin.
    edges = (group + 1) / n_bins * (1.0 + 4.0 * np.finfo(np.float64).eps)
    while (too_far := UniformBins(n_bins).assign(edges) > group).any():
        edges[too_far] = np.nextafter(edges[too_far], 0.0)
    return np.minimum(edges, 1.0)


def _row_counts(score: FloatArray, weight: FloatArray) -> FloatArray:
    """Number of rows with positive weight at each distinct score."""
    present_scores = score[weight > 0]
    return distinct_sums(
        present_scores, np.zeros(present_scores.size), np.ones(present_scores.size)
    )[1]


def _separated(values: FloatArray, delta: float, seed: int | None) -> FloatArray:
    """Make equal values in [0, 1] different by changes of at most ``delta``.

    The guarantee needs bins with different values.
    """
    order = np.argsort(values)
    ordered = values[order]
    is_next = ordered[1:] == ordered[:-1]
    if not is_next.any():
        return values
    size = values.size
    is_shared = np.zeros(size, dtype=bool)
    is_shared[order[1:]] = is_next
    is_shared[order[:-1]] |= is_next
    step = np.arange(size) / size if seed is None else np.random.default_rng(seed).random(size)
    return np.where(is_shared, (values + delta * step) / (1.0 + delta), values)
