"""Canonical binning, which estimates the label distribution in bins of the probability simplex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant._data.sample import Sample
from calibrant._kernels.blocks import map_blocks
from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike, Rng, ScoresLike
from calibrant._validation import as_seed, check_count, check_fitted, check_option
from calibrant.base import Calibrator, Citation
from calibrant.base.fitted import COUNTS, FittedValue
from calibrant.base.new_scores import check_new_scores
from calibrant.base.references import GUPTA_RAMDAS_2022
from calibrant.guarantees import (
    CanonicalGuarantee,
    canonical_guarantee,
    check_deployed,
    check_unweighted,
)
from calibrant.multiclass._partitions import (
    GridPartition,
    Partition,
    ProjectionPartition,
    SierpinskiPartition,
    fit_projections,
)

__all__ = ["CanonicalBinning"]

PARTITIONS = ("projection", "sierpinski", "grid")
POINTS_PER_BIN = 50
"""Rows per bin of the projection partition, used if ``n_bins`` is None."""

MOST_BINS = 2**62
"""Bin numbers are 64-bit integers, and one bit is reserved for sums."""

MOST_DEPTH = 61
"""Maximum depth. Two classes have 2^(depth + 1) - 1 bins, and more classes have more. A larger
depth would exceed MOST_BINS."""

MOST_RESOLUTION = 2**20
"""Maximum resolution. A finer grid would exceed the precision of single-precision scores."""


class CanonicalBinning(Calibrator):
    r"""Calibrate whole probability vectors by the frequencies of the labels in bins of the simplex.

    Use `CanonicalBinning` with three or four classes and many rows, because the number of bins
    grows exponentially with the number of classes.

    Parameters
    ----------
    partition : {"projection", "sierpinski", "grid"}, default "projection"
        Rule that divides the simplex. "projection" cuts off one bin after another along cyclic,
        random or given directions. "sierpinski" descends repeatedly to the corner of the class with
        more than half of the probability. "grid" is a grid of triangles for three classes, and the
        analogous grid for other numbers of classes.
    n_bins : int, optional
        Number of bins of "projection". If None, there is one bin per 50 rows, and at least one bin.
    depth : int
        Depth q of "sierpinski", which has :math:`(L^{q+1} - 1)/(L - 1)` bins for L classes.
    resolution : int
        Resolution of "grid". Bins have the width 1 / resolution in every coordinate.
    directions : {"cyclic", "random"} or array of shape (m, L)
        Directions of "projection". "cyclic" uses :math:`-e_1, \dots, -e_L` in turn, so each cut
        removes the rows with the highest probability of a class. If you pass an array, its rows are
        scaled to length one and used in turn.
    random_state : int or Generator, optional
        Seed for random directions. None means a fixed seed. A Generator is copied, so its state
        does not change.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Attributes
    ----------
    n_bins_ : int
        Number of bins, including empty bins.
    occupied_ : array of int
        Bins with calibration rows, in increasing order.
    values_ : array of shape (n_occupied, L)
        Frequencies of the labels in the occupied bins.
    counts_ : array of shape (n_occupied,)
        Total weight of the rows in the occupied bins.
    directions_, thresholds_ : arrays of shape (n_bins - 1, L) and (n_bins - 1,)
        Unit vectors :math:`q_b` and thresholds :math:`T_b` of "projection". Bin b contains the
        vectors with :math:`s \cdot q_b < T_b` that are in no earlier bin.
    n_tied_ : int
        Number of rows that tie with other rows at a threshold of "projection".
    is_weighted_ : bool
        Whether some rows had weights other than 0 and 1.

    See Also
    --------
    HistogramBinning : Calibrate a single probability by the frequencies in bins.

    Notes
    -----
    With the bin :math:`\mathcal B(s)` of vector s, the calibrated probabilities are

    .. math:: h_l(s) = \frac{\sum_{i: \mathcal B(s_i) = \mathcal B(s)} w_i\, 1[y_i = l]}
        {\sum_{i: \mathcal B(s_i) = \mathcal B(s)} w_i} , \qquad l = 1, \dots, L,

    and 1/L in a bin without calibration rows. "projection" is Algorithm 10 of the paper. Bin b
    contains the :math:`\lfloor (n+1)/B \rfloor` remaining rows with the smallest :math:`s \cdot
    q_b`.

    Rows at a threshold of a projection do not count in the frequencies (line 13 of the algorithm).
    If several rows are at the threshold, their total weight decreases by their mean weight, so the
    order of rows does not matter. Because one row per threshold is excluded, a weight of 2 is not
    equivalent to duplicating a row. The other partitions do not depend on the data, and their
    frequencies use all rows.

    A fit takes O(n L depth) time for "sierpinski", O(n L) for "grid" and O(n n_bins) for
    "projection". "projection" needs all rows in memory.

    References
    ----------
    Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, appendix G,
    arXiv:2107.08353.

    Examples
    --------
    >>> P, y = [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3]], [0, 1, 1, 2]
    >>> calibrator = CanonicalBinning(partition="sierpinski", depth=1).fit(P, y)
    >>> proba = calibrator.predict_proba([[0.9, 0.0, 0.1], [0.1, 0.1, 0.8]])
    >>> calibrator.n_bins_, proba.round(2).tolist()
    (4, [[0.5, 0.5, 0.0], [0.33, 0.33, 0.33]])
    """

    def __init__(
        self,
        partition: str = "projection",
        n_bins: int | None = None,
        depth: int = 3,
        resolution: int = 5,
        directions: Any = "cyclic",
        random_state: Rng = None,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.partition = partition
        self.n_bins = n_bins
        self.depth = depth
        self.resolution = resolution
        self.directions = directions
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("binning of probability vectors", (GUPTA_RAMDAS_2022,))

    def _check_parameters(self, n_classes: int) -> None:
        check_option(self.partition, "partition", PARTITIONS)
        as_seed(self.random_state)
        if self.n_bins is not None:
            check_count(self.n_bins, "n_bins")
        check_count(self.depth, "depth")
        check_count(self.resolution, "resolution")
        _check_directions(self.directions, n_classes)
        if self.partition != "projection" and self._has_too_many_bins(n_classes):
            raise ValueError(
                f"The {self.partition} partition of {n_classes} classes has too many bins. Use a "
                "smaller depth or resolution, or partition='projection'."
            )

    def _has_too_many_bins(self, n_classes: int) -> bool:
        # Check depth and resolution first, because computing the number of bins takes a very
        # long time if they are large.
        size, most = (
            (self.depth, MOST_DEPTH)
            if self.partition == "sierpinski"
            else (self.resolution, MOST_RESOLUTION)
        )
        return size > most or self._fixed_partition(n_classes).n_bins >= MOST_BINS

    @property
    def counts_rows(self) -> bool:
        """Whether weights differ from duplicated rows, because each threshold excludes a row."""
        return self.partition == "projection"

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "occupied_": FittedValue(("B",), 0),
        "counts_": COUNTS,
        "values_": FittedValue(("B", "K"), 0.0, 1.0),
        "directions_": FittedValue(("C", "K")),
        "thresholds_": FittedValue(("C",), is_finite=False),
    }

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        n_bins, occupied = fitted.get("n_bins_"), fitted.get("occupied_")
        cuts = fitted.get("thresholds_")
        is_whole = type(n_bins) is int and n_bins >= 1
        if not is_whole or (cuts is not None and n_bins != len(cuts) + 1):
            raise ValueError("CanonicalBinning.n_bins_ differs from the number of bins")
        if isinstance(occupied, np.ndarray) and occupied.size and occupied.max() >= n_bins:
            raise ValueError("CanonicalBinning.occupied_ contains bins that do not exist")

    form: ClassVar[str] = "proba"
    needs_rows = True

    def _fit(self, sample: Sample) -> None:
        rows = sample.rows(type(self).__name__)
        u, y, weight = rows.u, rows.y, rows.weight
        remaining_weight = np.array(weight, dtype=np.float64)
        if self.partition == "projection":
            remaining_weight = self._fit_projections(u[:], remaining_weight)
        partition = self._partition
        self.n_bins_ = partition.n_bins
        place = np.concatenate(list(map_blocks(lambda rows: partition.assign(u[rows]), *u.shape)))
        self.is_weighted_ = sample.is_weighted
        is_counted = remaining_weight > 0
        self.n_tied_ = int((is_counted & (remaining_weight < weight)).sum())
        self._estimate(place[is_counted], y[is_counted], remaining_weight[is_counted])

    def _fit_projections(self, u: FloatArray, weight: FloatArray) -> FloatArray:
        """Set the projections, and return the remaining weight of each row.

        A projection reduces the weight of each row that becomes a threshold, because this row must
        not count in a bin.
        """
        # Large weights cannot make more bins than there are rows.
        n_bins = self.n_bins or max(1, int(min(weight.sum() // POINTS_PER_BIN, len(weight))))
        cuts, remaining_weight = fit_projections(u, weight, self._unit_directions(n_bins - 1))
        self.directions_, self.thresholds_ = cuts.directions, cuts.thresholds
        return remaining_weight

    def _estimate(self, place: IntArray, y: IntArray, weight: FloatArray) -> None:
        self.occupied_, cell = np.unique(place, return_inverse=True)
        shape = (self.occupied_.size, self.n_classes_)
        sums = np.bincount(cell * shape[1] + y, weight, minlength=shape[0] * shape[1]).reshape(
            shape
        )
        self.counts_ = sums.sum(axis=1)
        self.values_ = sums / self.counts_[:, None]

    def _unit_directions(self, count: int) -> FloatArray:
        """Return unit vectors to project on, shape (count, L)."""
        if isinstance(self.directions, str) and self.directions == "random":
            rng = np.random.default_rng(as_seed(self.random_state) or 0)
            rows = rng.standard_normal((count, self.n_classes_))
        else:
            directions = (
                -np.eye(self.n_classes_)
                if isinstance(self.directions, str)
                else np.asarray(self.directions, dtype=float)
            )
            rows = directions[np.arange(count) % len(directions)]
        unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def _fixed_partition(self, n_classes: int) -> Partition:
        if self.partition == "sierpinski":
            return SierpinskiPartition(n_classes, self.depth)
        return GridPartition(n_classes, self.resolution)

    @property
    def _partition(self) -> Partition:
        if self.partition == "projection":
            cached: ProjectionPartition | None = vars(self).get("_projections")
            if cached is None or cached.thresholds is not self.thresholds_:
                cached = ProjectionPartition(self.directions_, self.thresholds_)
                self._projections = cached
            return cached
        return self._fixed_partition(self.n_classes_)

    def _description(self) -> str:
        return (
            f"{len(self.occupied_)} of {self.n_bins_} bins of the simplex contain calibration "
            "rows. Each bin returns the class frequencies of its rows."
        )

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        place = self._partition.assign(self._transform(scores))
        is_occupied = np.isin(place, self.occupied_)
        proba = np.full(scores.shape, 1.0 / self.n_classes_)
        proba[is_occupied] = self.values_[np.searchsorted(self.occupied_, place[is_occupied])]
        return proba

    def bins(self, X: ScoresLike) -> IntArray:
        """Return the bin of each row, a number from 0 to ``n_bins_ - 1``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes)
            Scores of the same type as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = check_new_scores(self, X)
        parts = map_blocks(
            lambda rows: self._partition.assign(self._transform(scores[rows])), *scores.shape
        )
        return np.concatenate(list(parts))

    def guarantee(self, alpha: float = 0.05) -> CanonicalGuarantee:
        r"""Bound the distance between the frequencies of a bin and its true distribution.

        The bound holds for any distribution of the data. The bounds of all B bins with calibration
        rows hold jointly with probability :math:`1 - \alpha`. By the inequality of Bretagnolle,
        Huber and Carol and a union bound, the bounds are

        .. math:: \|h - \pi\|_1 \le \sqrt{2 (L \log 2 + \log(B / \alpha)) / n_b} .

        Parameters
        ----------
        alpha : float
            Maximum probability that at least one of the bounds fails.

        Returns
        -------
        CanonicalGuarantee

        Raises
        ------
        ValueError
            If rows were weighted, or if no bin has a row. The error is also raised if
            `CalibratedClassifier` fitted the calibrator to scores of models other than the model
            that predicts.

        See Also
        --------
        HistogramBinning.guarantee : Bounds for a binary problem.
        """
        check_fitted(self)
        check_deployed(self.out_of_fold_)
        check_unweighted(self.is_weighted_)
        is_reliable = self.counts_ >= 1
        if not is_reliable.any():
            raise ValueError(
                "A guarantee needs a bin with at least one calibration row, but all bins are "
                "empty. Fit on more rows, or use fewer bins."
            )
        bins, counts = self.occupied_[is_reliable], self.counts_[is_reliable]
        empty, tied = _empty_bins(self.n_bins_ - counts.size), _tied_edges(self.n_tied_)
        return canonical_guarantee(bins, counts, self.n_classes_, alpha, empty, tied)


def _empty_bins(n_empty: int) -> tuple[str, ...]:
    """Describe bins that the guarantee does not cover."""
    noun, verb = ("bin", "returns") if n_empty == 1 else ("bins", "return")
    empty = f"{n_empty} {noun} without rows, which {verb} equal probabilities"
    return (empty,) if n_empty else ()


def _tied_edges(n_tied: int) -> tuple[str, ...]:
    """Describe bins to which the proof does not apply."""
    tied = f"bins with tied edges (ties of {n_tied} rows; the proof assumes distinct scores)"
    return (tied,) if n_tied else ()


def _check_directions(directions: Any, n_classes: int) -> None:
    if isinstance(directions, str):
        check_option(directions, "directions", ("cyclic", "random"))
        return
    rows = np.asarray(directions, dtype=np.float64)
    if (
        rows.ndim != 2
        or rows.shape[1] != n_classes
        or not (np.isfinite(rows).all() and rows.any(axis=1).all())
    ):
        raise ValueError(
            f"directions must be 'cyclic', 'random' or an array of shape (m, {n_classes}) without "
            f"zero rows, got {directions!r}."
        )
