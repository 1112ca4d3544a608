"""Checks of scores that a fitted calibrator is asked to transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._data.top_scores import TopScores
from calibrant._typing import AnyArray, FloatArray, ScoresLike
from calibrant._validation import (
    arrange_as_fitted,
    check_fitted,
    check_scores,
    column_names,
    remark,
    shortened,
)


def check_new_scores(calibrator: Any, X: ScoresLike) -> FloatArray:
    """Scores in memory, checked against those of the fit."""
    check_fitted(calibrator)
    owner, n_classes = type(calibrator).__name__, calibrator.n_classes_
    _check_names(calibrator._reordered_columns, calibrator.classes_, X)
    names = getattr(calibrator, "feature_names_in_", None)
    table = arrange_as_fitted(X, names, calibrator.classes_)
    _check_dimensions(owner, table, n_classes, calibrator.n_features_in_)
    scores = check_scores(table, inputs=calibrator.inputs)
    if scores.shape[1] != n_classes:
        raise ValueError(
            f"X has {scores.shape[1]} columns, but {owner} was fitted with {n_classes} classes"
        )
    return scores


def check_new_top_scores(calibrator: Any, top: TopScores) -> TopScores:
    """Top scores, checked against those of the fit."""
    check_fitted(calibrator)
    if top.n_classes != calibrator.n_classes_:
        raise ValueError(
            f"X speaks of {top.n_classes} classes, but {type(calibrator).__name__} was fitted with "
            f"{calibrator.n_classes_}"
        )
    top.names_with(calibrator.classes_)
    return top


def _check_names(reordered: Sequence[Any] | None, classes: AnyArray, X: ScoresLike) -> None:
    """Raise if columns have no names although their order at the fit was that of a data frame."""
    if reordered is not None and len(np.shape(X)) == 2 and column_names(X) is None:
        raise ValueError(
            f"X has columns without names, and those of the frame of the fit "
            f"({shortened(reordered)}) stood in another order than classes_ "
            f"({shortened(classes)}): pass a frame with these names, "
            "pandas.DataFrame(X, columns=[...])"
        )


def _check_dimensions(owner: str, table: AnyArray, n_classes: int, n_features: int) -> None:
    """One score per row is for two classes; several scores may be meant as a single row."""
    if table.ndim == 1 and n_classes > 2:
        raise ValueError(
            f"X has shape {table.shape}, one score a row of a binary problem, but "
            f"{owner} was fitted with {n_classes} classes: for one row "
            f"pass X[None], of shape (1, {n_classes})"
        )
    if table.shape == (2,) and n_features == 2:
        remark(
            "X has shape (2,) and is taken for the scores of class 1 of two rows; for one row "
            "of two classes pass X[None]"
        )
