"""The best few classes of each row, as services of language models return them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calibrant._data.sample import ArraySample, Sample, Transform
from calibrant._kernels.simplex import LOG_ZERO, row_max, row_sum
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, WeightsLike
from calibrant._validation import check_same_length, check_weight
from calibrant._validation._arrays import as_array
from calibrant._validation._labels import as_labels, check_classes, encode_labels, raise_if_missing

RESTS = ("complement", "unknown")

_SUM_TOLERANCE = 1e-3
"""How far above one the known probabilities of a row may add up, by rounding."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TopScores:
    r"""The m best of K classes and their log-probabilities; of the others at most their mass.

    Parameters
    ----------
    labels : array of shape (n, m)
        Classes: column numbers 0 .. K - 1, or names, which need ``classes``. All classes of a row
        differ. They are brought into the order of falling log-probability, ties into that of the
        columns.
    log_proba : array of shape (n, m)
        Their log-probabilities.
    n_classes : int
        K, the size of the vocabulary; may be left out with ``classes``.
    rest : "complement", "unknown" or array of shape (n,)
        Mass of the K - m other classes. ``"complement"``: what is left to one. An array: its
        logarithm, where subtracting from one would lose it. ``"unknown"``: ``log_proba`` are known
        up to a constant in each row, such as logits, or probabilities of the m classes alone.
    classes : names of the K classes, optional

    Attributes
    ----------
    labels : array of shape (n, m)
        Column numbers, best first.
    log_proba : array of shape (n, m)
    log_rest : array of shape (n,), or None where it is not known

    Notes
    -----
    `TemperatureScaling`, `MulticlassToBinary` of rank and within-top notions, the metrics of these
    notions, `metrics.log_loss_bounds` and `evaluate` take it in the place of an (n, K) array. What
    needs whole rows is refused, with the reason.

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
        """The same classes with other log-probabilities, in the same order."""
        new = object.__new__(TopScores)
        new._set(self.labels, log_proba, log_rest, self.classes)
        return new

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Any) -> TopScores:
        """Some of the rows: a slice, a mask or row numbers."""
        new = object.__new__(TopScores)
        rest = None if self.log_rest is None else self.log_rest[rows]
        new._set(self.labels[rows], self.log_proba[rows], rest, self.classes)
        return new

    def __repr__(self) -> str:
        known = f"{self.n_known} of {self.n_classes} classes"
        said = "unknown" if self.log_rest is None else "known"
        return f"TopScores({len(self)} rows, {known}, rest {said})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        raise TypeError(self.needs_all_classes())

    def needs_all_classes(self) -> str:
        """Why an operation on whole rows is rejected, and what accepts top scores."""
        return (
            f"this needs the scores of all {self.n_classes} classes of a row, and TopScores hold "
            f"the best {self.n_known}. They are taken by TemperatureScaling and MulticlassToBinary "
            "(notions of ranks), by metrics of 'confidence', 'top-label', 'rank-<r>' and "
            "'within-top-<r>', by metrics.log_loss_bounds and by evaluate"
        )

    @property
    def n_known(self) -> int:
        """Classes a row whose scores are known (m)."""
        return self.labels.shape[1]

    @property
    def proba(self) -> FloatArray:
        """Probabilities of the known classes, (n, m); an error where the rest is unknown."""
        self.require_rest("probabilities")
        return np.exp(self.log_proba)

    @property
    def rest(self) -> FloatArray:
        """Mass of the other classes, (n,)."""
        return np.exp(self.require_rest("the mass of the rest"))

    def names_with(self, classes: LabelsLike | None) -> AnyArray:
        """The names of the classes: of the scores, or as given to a metric or a calibrator."""
        if classes is None:
            return self.classes
        names = check_classes(classes, self.n_classes)
        if not _is_numbered(self.classes) and not np.array_equal(names, self.classes):
            raise ValueError("classes differ from those of the TopScores: give them in one place")
        return names

    def require_rest(self, what: str) -> FloatArray:
        """The logarithm of the rest's mass, or an error that says what needs it."""
        if self.log_rest is None:
            raise ValueError(
                f"{what}: the scores are known up to a constant in each row, because the mass of "
                "the classes that were cut off is unknown; pass TopScores(..., rest='complement') "
                "for log-probabilities of the whole vocabulary, or their mass"
            )
        return self.log_rest


class TopSample(Sample):
    """Checked top scores with column codes, weights, and the place of the true class in each row.

    Only binary problems about ranks can be formed: sums over whole rows raise an error.
    """

    def __init__(self, top: TopScores, y: IntArray, weight: FloatArray) -> None:
        self.top, self.y, self.weight = top, y, weight
        self.shape = (len(top), top.n_classes)
        is_true = top.labels == y[:, None]
        self.is_inside = is_true.any(axis=1)
        self.place = is_true.argmax(axis=1)
        """Column of the true class; 0 if it is not among the top m classes."""

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
    """True labels and top scores of the same rows, checked together."""
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
            "how many classes are there? Pass n_classes, the size of the vocabulary, or classes"
        )
    size = len(as_array(classes)) if n_classes is None else n_classes
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
        raise ValueError(f"n_classes must be an integer of at least 2, got {size!r}")
    return check_classes(classes, int(size))


def _check_log_proba(log_proba: Any) -> FloatArray:
    array = np.array(as_array(log_proba), dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            f"log_proba must have shape (n, m), the m best classes of n rows; got {array.shape}"
        )
    is_wrong = np.isnan(array) | np.isposinf(array)
    if is_wrong.any():
        row, place = np.argwhere(is_wrong)[0]
        raise ValueError(f"log_proba[{row}, {place}] is {array[row, place]}")
    if np.isneginf(array).all(axis=1).any():
        row = int(np.flatnonzero(np.isneginf(array).all(axis=1))[0])
        raise ValueError(f"row {row} of log_proba is all -inf: one class must be possible")
    return np.maximum(array, LOG_ZERO)


def _check_codes(labels: AnyArray, shape: tuple[int, ...], names: AnyArray) -> IntArray:
    if labels.shape != shape:
        raise ValueError(f"labels have shape {labels.shape} and log_proba {shape}: they must agree")
    if shape[1] > len(names):
        raise ValueError(f"there are {shape[1]} classes in a row and only {len(names)} in all")
    codes, _ = encode_labels(labels.ravel(), len(names), None if _is_numbered(names) else names)
    codes = codes.reshape(shape)
    ordered = np.sort(codes, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        raise ValueError(f"row {twice[0]} names a class twice: add its probabilities up first")
    return codes


def _with_rest(
    log_p: FloatArray, rest: Any, n_classes: int
) -> tuple[FloatArray, FloatArray | None]:
    """Log-probabilities and the logarithm of what is left, as ``rest`` says."""
    if isinstance(rest, str) and rest == "unknown":
        return log_p, None
    if isinstance(rest, str) and rest != "complement":
        raise ValueError(f"rest must be one of {RESTS} or an array, got {rest!r}")
    top = row_max(log_p)
    total = top + np.log(row_sum(np.exp(log_p - top[:, None])))
    if isinstance(rest, str):
        if total.max() > _SUM_TOLERANCE:
            row = int(total.argmax())
            raise ValueError(
                f"the probabilities of row {row} add up to {np.exp(total[row]):.6g}: if these are "
                "logits, or known up to a constant, pass rest='unknown'"
            )
        left = -np.expm1(np.minimum(total, 0.0))
        log_rest = np.log(np.maximum(left, np.exp(LOG_ZERO)))
    else:
        log_rest = _check_rest(rest, total)
    if log_p.shape[1] == n_classes:
        return log_p - total[:, None], np.full(len(log_p), LOG_ZERO)
    most = log_p[:, -1] + np.log(n_classes - log_p.shape[1])  # none of the rest is above the m-th
    return log_p, np.minimum(log_rest, most)


def _check_rest(rest: Any, total: FloatArray) -> FloatArray:
    array = np.asarray(as_array(rest), dtype=np.float64)
    if array.shape != total.shape:
        raise ValueError(f"rest must have shape {total.shape}, one a row; got {array.shape}")
    off = np.abs(np.logaddexp(total, array))
    if not (off <= _SUM_TOLERANCE).all():  # false for NaN too
        row = int(np.flatnonzero(~(off <= _SUM_TOLERANCE))[0])
        raise ValueError(
            f"rest[{row}] is the logarithm {array[row]:.6g}, and with the known probabilities "
            f"({np.exp(total[row]):.6g}) it must make one"
        )
    return np.maximum(array, LOG_ZERO)
