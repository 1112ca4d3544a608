"""Check the scores that a user passes to a fitted calibrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._data.top_scores import TopScores
from calibrant._kernels.simplex import ABSENT, zero_absent
from calibrant._typing import AnyArray, FloatArray, ScoresLike
from calibrant._validation import (
    NEW_SCORE_HINTS,
    OptionScores,
    arrange_as_fitted,
    as_array,
    check_fitted,
    check_option_inputs,
    check_scores,
    column_names,
    shortened,
    warn_data,
    warn_proba_as_logits,
)


def check_new_scores(calibrator: Any, X: ScoresLike) -> FloatArray:
    """Check scores in memory against those of the fit."""
    check_fitted(calibrator)
    if isinstance(X, OptionScores):
        return _check_new_options(calibrator, X)
    _check_names(calibrator._reordered_columns, calibrator.classes_, X)
    # Check the shape before the values. If a column is missing, no row sums to one, and an error
    # about sums would hide the cause.
    check_n_columns(calibrator, as_array(X).shape)
    names = getattr(calibrator, "feature_names_in_", None)
    table = arrange_as_fitted(X, names, calibrator.classes_)
    # The type of the scores is fixed by the fit, so the hints suggest how to convert the scores.
    scores = check_scores(
        table,
        inputs=calibrator.inputs,
        hint=NEW_SCORE_HINTS[calibrator.inputs],
        sum_to_one=not calibrator.is_multilabel_,
    )
    if calibrator.inputs == "logits":
        warn_proba_as_logits(scores, fix="np.log(p)")
    return scores


def _check_new_options(calibrator: Any, X: OptionScores) -> FloatArray:
    """Option scores with as many columns as those of the fit."""
    check_option_inputs(X, calibrator.inputs, type(calibrator).__name__)
    n_missing = calibrator.n_classes_ - X.n_classes
    if n_missing < 0:
        raise ValueError(
            f"X has questions with up to {X.n_classes} options, but {type(calibrator).__name__} "
            f"was fitted with at most {calibrator.n_classes_}. Fit the calibrator on questions "
            f"with up to {X.n_classes} options."
        )
    # If all questions have fewer options than in the fit, mark the missing options as absent.
    scores = X.as_scores(calibrator.inputs)
    return np.pad(scores, ((0, 0), (0, n_missing)), constant_values=ABSENT)


def check_new_top_scores(calibrator: Any, top: TopScores) -> TopScores:
    """Check top scores against those of the fit."""
    check_fitted(calibrator)
    if top.n_classes != calibrator.n_classes_:
        raise ValueError(
            f"X has top scores of {top.n_classes} classes, but {type(calibrator).__name__} was "
            f"fitted with {calibrator.n_classes_} classes. Pass top scores of these "
            f"{calibrator.n_classes_} classes."
        )
    top.names_with(calibrator.classes_)
    return top


def check_n_columns(calibrator: Any, shape: tuple[int, ...]) -> None:
    """Raise if scores of this shape do not have a column for each class of the fit."""
    owner, n_classes = type(calibrator).__name__, calibrator.n_classes_
    if len(shape) == 1 and n_classes > 2:
        is_row = shape[0] == n_classes
        fix = "X[None] for a single row" if is_row else "one column per class"
        raise ValueError(
            f"X has shape {shape}, so it has one score per row (a binary problem), but {owner} was "
            f"fitted with {n_classes} classes. Pass {fix}."
        )
    if shape == (2,) and calibrator.n_features_in_ == 2:
        warn_data(
            "X has shape (2,) and is treated as the scores of class 1 of two rows. For one row of "
            "two classes, pass X[None]."
        )
    # A single column of a binary problem gets its own message from `check_scores`.
    if len(shape) == 2 and shape[1] != n_classes and (shape[1] > 1 or n_classes > 2):
        columns = f"{shape[1]} column{'s' * (shape[1] != 1)}"
        is_transposed = shape[0] == n_classes
        fix = "X.T" if is_transposed else "one column per class, in the order of classes_"
        raise ValueError(
            f"X has {columns}, but {owner} was fitted with {n_classes} classes. Pass {fix}."
        )


def _check_names(reordered: Sequence[Any] | None, classes: AnyArray, X: ScoresLike) -> None:
    """Raise if unnamed columns follow a fit to columns that were not in the class order."""
    if reordered is not None and len(np.shape(X)) == 2 and column_names(X) is None:
        raise ValueError(
            "X has no column names, and the columns of the data frame in fit "
            f"({shortened(reordered)}) were not in the order of classes_ ({shortened(classes)}). "
            "Pass pandas.DataFrame(X, columns=[...]) with the names of the columns."
        )


def proba_of_present(calibrator: Any, scores: FloatArray, *columns: AnyArray) -> FloatArray:
    """Calibrated probabilities of a block, with exactly 0 for options marked as absent.

    ``columns`` contains additional columns of the same rows, for calibrators that use them.
    """
    return zero_absent(calibrator._proba_of(scores, *columns), scores)
