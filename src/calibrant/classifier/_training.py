"""Training data of a classifier: fits on some rows, and scores of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import clone

from calibrant._data.sample import ArraySample
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import check_scores, check_weight
from calibrant.classifier._responses import SLACK, Response, Scorer
from calibrant.classifier._rows import params_of_rows, take_rows

Split = tuple[IntArray, IntArray]
"""Rows to fit a classifier on, and rows that it scores."""


class ScoredRows(NamedTuple):
    """A fitted classifier with the scores of held-out rows."""

    response: Scorer
    rows: IntArray
    scores: FloatArray


class CalibrationRows(NamedTuple):
    """Rows on which a calibrator is fitted: scores, column codes, weights, and groups or None.

    ``by`` are columns whose groups the calibrator distinguishes.
    """

    scores: FloatArray
    codes: IntArray
    weight: FloatArray
    groups: IntArray | None
    by: tuple[AnyArray, ...]

    def sample(self) -> ArraySample:
        """Return the rows as a sample whose weights are equivalent to duplicated rows."""
        rows = ArraySample(self.scores, self.codes, self.weight, groups=self.groups)
        rows.columns = self.by
        return cast(ArraySample, rows.countable())  # the same rows in memory


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Features and labels with column codes, weights or None, column labels, and groups or None.

    ``by`` are columns whose groups the calibrator distinguishes.
    """

    X: Any
    y: AnyArray
    codes: IntArray
    weight: FloatArray | None
    classes: AnyArray
    groups: IntArray | None
    by: tuple[AnyArray, ...] = ()

    @property
    def all_rows(self) -> IntArray:
        return np.arange(len(self.y))

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return len(self.y) if self.weight is None else float(self.weight.sum())

    @property
    def class_prior(self) -> FloatArray:
        """Class frequencies of the rows."""
        return np.bincount(self.codes, self.weight, minlength=len(self.classes)) / self.n_rows

    def fit(self, estimator: Any, rows: IntArray, params: dict[str, Any]) -> Response:
        """Fit a clone of a classifier on some rows."""
        row_params = params_of_rows(params, len(self.y), rows)
        classifier = clone(estimator).fit(take_rows(self.X, rows), self.y[rows], **row_params)
        n_rows = len(rows) if self.weight is None else float(self.weight[rows].sum())
        return Response(classifier, self.classes, n_rows)

    def score(self, response: Scorer, rows: IntArray) -> ScoredRows:
        """Score rows with a fitted classifier."""
        return ScoredRows(response, rows, response.scores(take_rows(self.X, rows)))

    def fit_and_score(self, estimator: Any, split: Split, params: dict[str, Any]) -> ScoredRows:
        """Fit a clone on the first rows of a split and score the other rows of the split."""
        train, test = split
        return self.score(self.fit(estimator, train, params), test)

    def calibration_rows(self, part: ScoredRows) -> CalibrationRows:
        """Return the rows of a part, with scores checked like those of a user."""
        rows = part.rows
        weight = check_weight(None, len(rows)) if self.weight is None else self.weight[rows]
        if not weight.any():
            raise ValueError(
                "All rows of a fold have weight zero. Pass fewer folds, for example cv=2, or drop "
                "the rows with weight zero."
            )
        scores = check_scores(part.scores, inputs=part.response.inputs, slack=SLACK)
        groups = None if self.groups is None else self.groups[rows]
        return CalibrationRows(scores, self.codes[rows], weight, groups, self.by_of(rows))

    def by_of(self, rows: IntArray) -> tuple[AnyArray, ...]:
        """Group columns of some rows."""
        return tuple(column[rows] for column in self.by)


def pool_parts(response: Response, parts: Sequence[ScoredRows]) -> ScoredRows:
    """Join the out-of-fold scores of all parts, for the classifier that was fitted on all rows."""
    rows, scores = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "scores")
    )
    order = np.argsort(rows, kind="stable")
    return ScoredRows(response, rows[order], scores[order])


def concatenate_parts(parts: Sequence[CalibrationRows]) -> CalibrationRows:
    """Concatenate the rows of all parts."""
    columns = list(zip(*parts, strict=True))
    scores, codes, weight = (np.concatenate(column) for column in columns[:3])
    groups = None if parts[0].groups is None else np.concatenate(columns[3])
    by = tuple(np.concatenate(column) for column in zip(*columns[4], strict=True))
    return CalibrationRows(scores, codes, weight, groups, by)
