"""Scores of the options of questions that have different numbers of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._kernels.simplex import ABSENT, LOG_ZERO, log_softmax
from calibrant._typing import AnyArray, BoolArray, FloatArray, IntArray
from calibrant._validation.arrays import as_array

_MOST_OPTIONS = 10_000
"""Maximum number of options. An array with more columns is probably transposed."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class OptionScores:
    r"""Log-probabilities of the answer options of questions with different numbers of options.

    Pass `OptionScores` in place of an (n, K) array to metrics, plots, `AutoCalibration`,
    `MulticlassToBinary` and the other calibrators. An option that a question does not have has
    probability exactly 0, before and after calibration.

    Parameters
    ----------
    log_proba : array-like of shape (n, K)
        Log-probabilities of the options, or logits. Each row is normalized over its own options.
        Columns with an index of at least ``n_options`` are ignored.
    n_options : array-like of shape (n,), optional
        Number of options of each question. By default, all questions have K options.

    Attributes
    ----------
    log_proba : ndarray of shape (n, K)
        Normalized log-probabilities, with -inf for absent options.
    n_options : ndarray of shape (n,)
        Number of options of each question.

    See Also
    --------
    TopScores : The top m of many classes.
    calibrant.llm.read : Read option scores from evaluation logs.

    Notes
    -----
    Labels are option positions from 0 to K - 1. Some types of calibration, such as "class-wise",
    have one binary problem per position. The fits and metrics of these binary problems count an
    absent option as a correct prediction of 0, which adds no error.

    Calibrators need ``inputs="log_proba"``. Fits treat an absent option like a class with the score
    -inf. The calibrated probabilities of the other options are then divided by their sum.

    Examples
    --------
    >>> scores = OptionScores.from_rows([[-1.0, -2.0, -3.0], [-0.5, -1.5]])
    >>> scores.n_options.tolist(), scores.proba[1].round(3).tolist()
    ([3, 2], [0.731, 0.269, 0.0])
    >>> from calibrant import evaluate
    >>> evaluate([0, 1], scores).accuracy
    0.5
    """

    log_proba: FloatArray
    n_options: IntArray

    def __init__(self, log_proba: Any, n_options: Any = None) -> None:
        scores = np.array(as_array(log_proba), dtype=np.float64)
        _check_shape(scores)
        counts = _check_counts(n_options, *scores.shape)
        is_present = np.arange(scores.shape[1]) < counts[:, None]
        _check_values(scores, is_present)
        scores[~is_present] = ABSENT
        # A finite floor distinguishes present options with probability zero from absent options.
        normalized = np.maximum(log_softmax(scores), LOG_ZERO)
        self._set(np.where(is_present, normalized, -np.inf), counts)

    def _set(self, log_proba: FloatArray, n_options: IntArray) -> None:
        object.__setattr__(self, "log_proba", log_proba)
        object.__setattr__(self, "n_options", n_options)

    @classmethod
    def from_rows(cls, rows: Sequence[Any]) -> OptionScores:
        """Create scores from one sequence of log-probabilities per question.

        Parameters
        ----------
        rows : sequence of sequences of float
            Log-probabilities of the options of each question.

        Returns
        -------
        OptionScores
        """
        counts = np.array([len(row) for row in rows], dtype=np.intp)
        scores = np.full((len(counts), int(counts.max(initial=0))), -np.inf)
        scores[np.arange(scores.shape[1]) < counts[:, None]] = np.concatenate(
            [np.asarray(row, dtype=np.float64) for row in rows] or [np.empty(0)]
        )
        return cls(scores, counts)

    def __len__(self) -> int:
        return len(self.log_proba)

    def __getitem__(self, rows: Any) -> OptionScores:
        """Select rows by a slice, a mask or row numbers."""
        new = object.__new__(OptionScores)
        new._set(self.log_proba[rows], self.n_options[rows])
        return new

    def __repr__(self) -> str:
        least, most = int(self.n_options.min()), int(self.n_options.max())
        options = f"{most}" if least == most else f"{least} to {most}"
        return f"OptionScores({len(self)} rows, {options} options)"

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        raise TypeError(
            "This operation needs the same number of classes in all rows, but got OptionScores. "
            "Pass scores.proba, in which absent options have probability 0."
        )

    @property
    def n_classes(self) -> int:
        """Largest number of options (K)."""
        return self.log_proba.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and largest number of options."""
        return (len(self), self.n_classes)

    @property
    def proba(self) -> FloatArray:
        """Probabilities, (n, K), with exactly 0 for absent options."""
        return np.exp(self.log_proba)

    @property
    def is_present(self) -> BoolArray:
        """Whether a question has an option, (n, K)."""
        return np.arange(self.n_classes) < self.n_options[:, None]

    def check_labels(self, y: IntArray) -> None:
        """Raise if the label of a row is an option that its question does not have."""
        is_wrong = y >= self.n_options
        if is_wrong.any():
            row = int(np.flatnonzero(is_wrong)[0])
            raise ValueError(
                f"The label of row {row} is {y[row]}, but its question has {self.n_options[row]} "
                f"options, numbered from 0. Remove the row, or correct the label."
            )

    def as_scores(self, inputs: str) -> FloatArray:
        """Return checked scores of the type ``inputs``, with absent options marked in log space."""
        if inputs == "proba":
            return self.proba
        return np.where(np.isneginf(self.log_proba), ABSENT, self.log_proba)


def check_option_inputs(scores: Any, inputs: str, owner: str) -> None:
    """Raise if option scores are passed to a calibrator of probabilities."""
    if isinstance(scores, OptionScores) and inputs == "proba":
        raise ValueError(
            f"OptionScores contain log-probabilities, but {owner} has inputs='proba'. "
            f"Pass {owner}(..., inputs='log_proba')."
        )


def _check_shape(scores: FloatArray) -> None:
    if scores.ndim != 2 or not scores.size:
        raise ValueError(
            f"log_proba must have shape (n, K) for n questions of up to K options, got shape "
            f"{scores.shape}. Pass OptionScores.from_rows(rows) for lists of different lengths."
        )
    if scores.shape[1] < 2 or scores.shape[1] > _MOST_OPTIONS:
        raise ValueError(
            f"log_proba must have 2 to {_MOST_OPTIONS:,} columns, one per option, got shape "
            f"{scores.shape}. Pass one row per question and one column per option."
        )


def _check_counts(n_options: Any, n_rows: int, n_columns: int) -> IntArray:
    counts = as_array(np.full(n_rows, n_columns) if n_options is None else n_options)
    if counts.shape != (n_rows,) or counts.dtype.kind not in "iu":
        raise ValueError(
            f"n_options must be {n_rows} integers, one per row, got {counts.dtype} of shape "
            f"{counts.shape}."
        )
    wrong = np.flatnonzero((counts < 1) | (counts > n_columns))
    if wrong.size:
        raise ValueError(
            f"n_options[{wrong[0]}] is {counts[wrong[0]]}, but must be between 1 and {n_columns}, "
            "the number of columns. Pass the number of options of each row."
        )
    return counts.astype(np.intp)


def raise_if_not_log(log_proba: FloatArray) -> None:
    """Raise if a log-probability is NaN or +inf."""
    wrong = np.argwhere(np.isnan(log_proba) | np.isposinf(log_proba))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"log_proba[{row}, {column}] is {log_proba[row, column]}, but NaN and +inf are not "
            "allowed. Remove such rows."
        )


def _check_values(scores: FloatArray, is_present: BoolArray) -> None:
    raise_if_not_log(np.where(is_present, scores, -np.inf))
    is_lost = ~(is_present & ~np.isneginf(scores)).any(axis=1)
    if is_lost.any():
        raise ValueError(
            f"All options of row {int(np.flatnonzero(is_lost)[0])} have the log-probability -inf. "
            "Remove such rows."
        )
