"""The top classes of each row, which APIs of language models return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calibrant._data.sample import ArraySample, Sample, Transform
from calibrant._kernels.simplex import LOG_ZERO, row_max, row_sum
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, WeightsLike
from calibrant._validation import check_same_length, check_weight, raise_if_not_log
from calibrant._validation.arrays import as_array
from calibrant._validation.labels import as_labels, check_classes, encode_labels, raise_if_missing

RESTS = ("complement", "unknown")

_SUM_TOLERANCE = 1e-3
"""Tolerance for sums of the top m probabilities that exceed one because of rounding."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TopScores:
    r"""Log-probabilities of the top m of K classes of each row, for example of tokens.

    Pass `TopScores` in place of an (n, K) array to `TemperatureScaling`, `evaluate` and
    `metrics.log_loss_bounds`. `MulticlassToBinary` and metrics accept `TopScores` if their
    ``notion`` depends only on the top classes, such as "confidence".

    Parameters
    ----------
    labels : array-like of shape (n, m)
        The top m classes of each row, without duplicates. Labels are column numbers from 0
        to K - 1, or names if you pass ``classes``. Each row is sorted by decreasing
        log-probability, and ties by column.
    log_proba : array-like of shape (n, m)
        Log-probabilities of the top m classes.
    n_classes : int, optional
        Number of all classes K, such as the size of the vocabulary. This argument is not needed if
        you pass ``classes``.
    rest : "complement", "unknown" or array-like of shape (n,)
        Tail mass, which is the total probability of the other K - m classes. ``"complement"`` means
        one minus the sum of the top m. Pass an array with the logarithm of the tail mass if
        subtraction from one would lose digits. ``"unknown"`` means that ``log_proba`` is known only
        up to a constant per row, as for logits or for probabilities of the m classes alone.
    classes : array-like of shape (K,), optional
        Names of all classes.

    Attributes
    ----------
    labels : ndarray of shape (n, m)
        Column numbers of the top m classes, most probable first.
    log_proba : ndarray of shape (n, m)
        Log-probabilities of the top m classes, in the order of ``labels``.
    log_rest : ndarray of shape (n,) or None
        Logarithm of the tail mass, or None if the tail mass is unknown.
    n_classes : int
        Number of all classes.
    classes : ndarray of shape (K,)
        Names of all classes.

    See Also
    --------
    TemperatureScaling : A calibrator that accepts top scores.
    evaluate : Accuracy, proper scores and calibration errors, also of top scores.

    Notes
    -----
    Methods and metrics that need the scores of all classes raise a ``TypeError``.

    Examples
    --------
    >>> top = TopScores([[2, 0], [1, 2]], np.log([[0.6, 0.3], [0.5, 0.2]]), n_classes=4)
    >>> top.rest.round(3).tolist(), len(top), top.n_known
    ([0.1, 0.3], 2, 2)
    """

    labels: IntArray
    log_proba: FloatArray
    log_rest: FloatArray | None
    n_classes: int
    classes: AnyArray

    def __init__(
        self,
        labels: Any,
        log_proba: Any,
        n_classes: int | None = None,
        *,
        rest: Any = "complement",
        classes: LabelsLike | None = None,
    ) -> None:
        names = _class_names(n_classes, classes)
        log_p = _check_log_proba(log_proba)
        codes = _check_codes(as_array(labels), log_p.shape, names)
        order = np.lexsort((codes, -log_p), axis=1)
        log_p, codes = (np.take_along_axis(array, order, axis=1) for array in (log_p, codes))
        self._set(codes, *_with_rest(log_p, rest, len(names)), names)

    def _set(
        self, codes: IntArray, log_p: FloatArray, log_rest: FloatArray | None, names: AnyArray
    ) -> None:
        values = (codes, log_p, log_rest, len(names), names)
        for entry, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, entry.name, value)

    def replaced(self, log_proba: FloatArray, log_rest: FloatArray | None) -> TopScores:
        """Return the same classes with other log-probabilities in the same order."""
        new = object.__new__(TopScores)
        new._set(self.labels, log_proba, log_rest, self.classes)
        return new

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Any) -> TopScores:
        """Select rows by a slice, a mask or row numbers."""
        new = object.__new__(TopScores)
        rest = None if self.log_rest is None else self.log_rest[rows]
        new._set(self.labels[rows], self.log_proba[rows], rest, self.classes)
        return new

    def __repr__(self) -> str:
        top = f"top {self.n_known} of {self.n_classes} classes"
        tail = "unknown" if self.log_rest is None else "known"
        return f"TopScores({len(self)} rows, {top}, tail mass {tail})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        raise TypeError(self.needs_all_classes())

    def needs_all_classes(self) -> str:
        """Return the error message for operations that need whole rows."""
        return (
            f"This operation needs the scores of all {self.n_classes} classes, but TopScores "
            f"contain only the top {self.n_known} classes. Use TemperatureScaling, "
            "MulticlassToBinary, evaluate, metrics.log_loss_bounds, or a metric with "
            "notion='confidence', 'top-label', 'rank-<r>' or 'within-top-<r>'."
        )

    @property
    def n_known(self) -> int:
        """Number of classes per row whose scores are known (m)."""
        return self.labels.shape[1]

    @property
    def proba(self) -> FloatArray:
        """Probabilities of the top m classes, (n, m). An unknown tail mass raises an error."""
        self.require_rest("Probabilities")
        return np.exp(self.log_proba)

    @property
    def rest(self) -> FloatArray:
        """Tail mass (total probability of the other K - m classes), (n,)."""
        return np.exp(self.require_rest("The tail mass"))

    def names_with(self, classes: LabelsLike | None) -> AnyArray:
        """Return the names of the classes, from the scores or from a metric or calibrator."""
        if classes is None:
            return self.classes
        names = check_classes(classes, self.n_classes)
        if not _is_numbered(self.classes) and not np.array_equal(names, self.classes):
            raise ValueError(
                "classes= differs from the classes of the TopScores. Pass classes only to "
                "TopScores."
            )
        return names

    def require_rest(self, what: str) -> FloatArray:
        """Return the logarithm of the tail mass.

        Raise an error that names ``what`` if the tail mass is unknown.
        """
        if self.log_rest is None:
            raise ValueError(
                f"{what[0].upper()}{what[1:]} cannot be computed, because the tail mass is "
                "unknown. Pass TopScores(..., rest='complement') if log_proba are "
                "log-probabilities of the whole vocabulary, or pass the logarithm of the tail mass "
                "as rest."
            )
        return self.log_rest


class TopSample(Sample):
    """Checked top scores with column codes, weights, and the rank of the true class in each row.

    Only binary problems about the ranks of classes are possible. Sums over whole rows raise an
    error.
    """

    def __init__(self, top: TopScores, y: IntArray, weight: FloatArray) -> None:
        self.top, self.y, self.weight = top, y, weight
        self.shape = (len(top), top.n_classes)
        is_true = top.labels == y[:, None]
        self.is_inside = is_true.any(axis=1)
        self.place = is_true.argmax(axis=1)
        """Column of the true class, or 0 if the true class is not among the top m classes."""

    @property
    def class_weights(self) -> FloatArray:
        return np.bincount(self.y, self.weight, minlength=self.shape[1])

    @property
    def class_rows(self) -> list[tuple[int, IntArray]]:
        return [(0, np.bincount(self.y[self.weight > 0], minlength=self.shape[1]))]

    @property
    def is_weighted(self) -> bool:
        return bool((self.weight[self.weight > 0] != 1).any())

    def count_impossible(self, inputs: str) -> int:
        return 0

    def rows(self, reason: str, remedy: str = "") -> ArraySample:
        return self.sum_chunks(lambda rows: rows)

    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        raise TypeError(self.top.needs_all_classes())

    def map(self, function: Callable[[ArraySample], ArraySample]) -> Sample:
        return self

    def transformed(self, function: Transform) -> TopSample:
        return self

    def rescored(self, function: Callable[[ArraySample], ArraySample]) -> TopSample:
        return self

    def claims(self, notion: Any, cuts: FloatArray | None = None) -> Any:
        return notion.top_claims(self)

    def dispatch(self, of_rows: Callable[[Sample], Any], of_top: Callable[[TopSample], Any]) -> Any:
        return of_top(self)

    def summary_rows(self) -> None:
        return None


def as_top_sample(
    y_true: LabelsLike,
    top: TopScores,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> TopSample:
    """Check true labels and top scores of the same rows, and return a sample."""
    labels = as_labels(y_true)
    raise_if_missing(y_true, labels)
    names = top.names_with(classes)
    check_same_length(y_true=labels, y_prob=top.labels)
    y, _ = encode_labels(labels, len(names), None if _is_numbered(names) else names)
    return TopSample(top, y, check_weight(sample_weight, len(y)))


def _is_numbered(names: AnyArray) -> bool:
    return np.array_equal(names, np.arange(len(names)))


def _class_names(n_classes: int | None, classes: LabelsLike | None) -> AnyArray:
    if n_classes is None and classes is None:
        raise ValueError(
            "The number of classes is unknown. Pass n_classes=, such as the size of the "
            "vocabulary, or classes=."
        )
    size = len(as_array(classes)) if n_classes is None else n_classes
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
        raise ValueError(f"n_classes must be an integer of at least 2, got {size!r}.")
    return check_classes(classes, int(size))


def _check_log_proba(log_proba: Any) -> FloatArray:
    array = np.array(as_array(log_proba), dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            f"log_proba must have shape (n, m) for the top m classes of n rows, got shape "
            f"{array.shape}."
        )
    raise_if_not_log(array)
    empty = np.flatnonzero(np.isneginf(array).all(axis=1))
    if empty.size:
        raise ValueError(
            f"Row {empty[0]} of log_proba is all -inf, but at least one entry must be finite. "
            "Remove such rows."
        )
    return np.maximum(array, LOG_ZERO)


def _check_codes(labels: AnyArray, shape: tuple[int, ...], names: AnyArray) -> IntArray:
    if labels.shape != shape:
        raise ValueError(
            f"labels and log_proba must have the same shape, got {labels.shape} and {shape}."
        )
    if shape[1] > len(names):
        raise ValueError(
            f"labels have {shape[1]} classes per row, but there are only {len(names)} classes. "
            "Pass the number of all classes as n_classes=."
        )
    codes, _ = encode_labels(labels.ravel(), len(names), None if _is_numbered(names) else names)
    _raise_if_repeated(codes.reshape(shape))
    return codes.reshape(shape)


def _raise_if_repeated(codes: IntArray) -> None:
    """Raise if a row contains a class twice."""
    ordered = np.sort(codes, axis=1)
    rows = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(rows):
        raise ValueError(
            f"Row {rows[0]} of labels contains a class twice. Add up the probabilities of "
            "duplicate classes first."
        )


def _with_rest(
    log_p: FloatArray, rest: Any, n_classes: int
) -> tuple[FloatArray, FloatArray | None]:
    """Return log-probabilities, and the logarithm of the tail mass that ``rest`` declares."""
    if isinstance(rest, str) and rest == "unknown":
        return log_p, None
    if isinstance(rest, str) and rest != "complement":
        raise ValueError(f"rest must be 'complement', 'unknown' or an array, got {rest!r}.")
    top = row_max(log_p)
    total = top + np.log(row_sum(np.exp(log_p - top[:, None])))
    if isinstance(rest, str):
        if total.max() > _SUM_TOLERANCE:
            row = int(total.argmax())
            raise ValueError(
                f"The probabilities of row {row} sum to {np.exp(total[row]):.6g}, which is more "
                "than 1. Pass rest='unknown' if the scores are logits or are known only up to a "
                "constant."
            )
        # expm1 keeps the digits of a small tail mass.
        tail_mass = -np.expm1(np.minimum(total, 0.0))
        log_rest = np.log(np.maximum(tail_mass, np.exp(LOG_ZERO)))
    else:
        log_rest = _check_rest(rest, total)
    if log_p.shape[1] == n_classes:
        return log_p - total[:, None], np.full(len(log_p), LOG_ZERO)
    # No other class is more probable than the m-th class. So the probability of the m-th class
    # limits the tail mass.
    most = log_p[:, -1] + np.log(n_classes - log_p.shape[1])
    return log_p, np.minimum(log_rest, most)


def _check_rest(rest: Any, total: FloatArray) -> FloatArray:
    array = np.asarray(as_array(rest), dtype=np.float64)
    if array.shape != total.shape:
        raise ValueError(
            f"rest must have shape {total.shape}, one number per row, got shape {array.shape}."
        )
    off = np.abs(np.logaddexp(total, array))
    if not (off <= _SUM_TOLERANCE).all():  # also catches NaN
        row = int(np.flatnonzero(~(off <= _SUM_TOLERANCE))[0])
        raise ValueError(
            f"The top probabilities of row {row} sum to {np.exp(total[row]):.6g}, so rest[{row}] "
            f"must be log(1 - {np.exp(total[row]):.6g}), got {array[row]:.6g}. Pass the logarithm "
            "of the tail mass, or rest='complement'."
        )
    return np.maximum(array, LOG_ZERO)
