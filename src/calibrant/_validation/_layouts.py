"""Scores of images, volumes and sequences: arrays of more than two axes, one of which holds the
classes. Which one is declared, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike
from calibrant._validation._arrays import as_array


class FlatPredictions(NamedTuple):
    """One row a case: labels of shape (n,) and scores of shape (n, K), in the order of the
    flattened labels.
    """

    y_true: AnyArray
    y_prob: FloatArray


def flatten_predictions(
    y_true: LabelsLike, y_prob: ScoresLike, *, class_axis: int = 1, ignore_label: Any = None
) -> FlatPredictions:
    """Predictions of pixels, voxels or tokens as one row a case, which metrics and fits take.

    Parameters
    ----------
    y_true : labels of the shape of ``y_prob`` without its class axis
    y_prob : scores of two or more axes, such as (N, C, H, W) or (N, T, C)
    class_axis : int
        The axis of ``y_prob`` that holds the classes: 1 for PyTorch's layout, -1 for the last.
    ignore_label : optional
        Cases with this label are left out: padding, borders (-100 and 255 in PyTorch).

    Returns
    -------
    FlatPredictions
        ``y_true`` of shape (n,) and ``y_prob`` of shape (n, C).

    Notes
    -----
    Pixels of an image and tokens of a text depend on each other: intervals and tests that count
    them as independent rows are too sure. Give what belongs together as ``groups=``, or take a few
    cases of each. Weights and groups of the cases are ``weight[y_true != ignore_label]``. Copies
    the scores.

    Examples
    --------
    >>> import calibrant
    >>> images = np.full((2, 3, 4, 4), 1 / 3)  # two of 4 x 4 pixels, three classes
    >>> labels = np.zeros((2, 4, 4), dtype=int)
    >>> calibrant.evaluate(*calibrant.flatten_predictions(labels, images)).n_samples
    32
    """
    labels, last = as_array(y_true), _classes_last(as_array(y_prob), class_axis)
    if labels.shape != last.shape[:-1]:
        raise ValueError(
            f"y_true must have the shape of y_prob without its class axis, {last.shape[:-1]} for "
            f"class_axis={class_axis}; got shape {labels.shape}{_axis_hint(labels, y_prob)}"
        )
    flat, rows = labels.reshape(-1), last.reshape(-1, last.shape[-1])
    if ignore_label is None:
        return FlatPredictions(flat, rows)
    kept = np.flatnonzero(flat != ignore_label)
    if not kept.size:
        raise ValueError(f"every label is {ignore_label!r}, the ignore_label: nothing is left")
    return FlatPredictions(flat[kept], rows[kept])


def map_scores(
    function: Callable[[FloatArray], Any], scores: ScoresLike, *, class_axis: int = 1
) -> FloatArray:
    """Apply a function of rows, such as ``model.predict_proba``, to scores of more than two axes.

    Parameters
    ----------
    function : callable from (n, C) to (n, C)
    scores : array of two or more axes
    class_axis : int
        The axis that holds the classes.

    Returns
    -------
    array of the shape of ``scores``

    Examples
    --------
    >>> import calibrant
    >>> logits = np.zeros((2, 3, 4, 4))
    >>> model = calibrant.Identity(inputs="logits").fit(np.eye(3), [0, 1, 2])
    >>> calibrant.map_scores(model.predict_proba, logits).shape
    (2, 3, 4, 4)
    """
    last = _classes_last(as_array(scores), class_axis)
    rows = last.reshape(-1, last.shape[-1])
    made = as_array(function(rows))
    if made.shape != rows.shape:
        raise ValueError(
            f"the function must give rows of the shape that it is given, {rows.shape}; got shape "
            f"{made.shape}"
        )
    return np.moveaxis(made.reshape(last.shape), -1, class_axis)


def _classes_last(scores: AnyArray, class_axis: int) -> AnyArray:
    if scores.ndim < 2:
        raise ValueError(f"scores need an axis of cases and one of classes, got {scores.shape}")
    return np.moveaxis(scores, class_axis, -1)


def _axis_hint(labels: AnyArray, scores: ScoresLike) -> str:
    fitting = class_axes(labels.shape, np.shape(scores))
    return f"; did you mean class_axis={fitting[0]}?" if fitting else ""


def class_axes(labels: tuple[int, ...], scores: tuple[int, ...]) -> list[int]:
    """The axes of scores that may hold the classes: without them the shape is that of the
    labels.
    """
    return [axis for axis in range(1, len(scores)) if scores[:axis] + scores[axis + 1 :] == labels]


def raise_if_deep(labels: AnyArray, scores: AnyArray) -> None:
    """Raise where scores have more than two axes and labels one fewer, with the line that makes
    rows of them.
    """
    axes = class_axes(labels.shape, scores.shape)
    if scores.ndim < 3 or not axes:
        return
    which = " or ".join(f"class_axis={axis}" for axis in axes)
    raise ValueError(
        f"scores of shape {scores.shape} with labels of shape {labels.shape} are not one row a "
        f"case: write flat = calibrant.flatten_predictions(labels, scores, {which}) and pass "
        "flat.y_true and flat.y_prob"
    )
