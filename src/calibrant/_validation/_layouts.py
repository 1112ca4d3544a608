"""Scores of images, volumes and sequences, which have more than two axes.

The user must declare the axis of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike
from calibrant._validation.arrays import as_array


class FlatPredictions(NamedTuple):
    """Labels of shape (n,) and scores of shape (n, K), in the order of the flattened labels."""

    y_true: AnyArray
    y_prob: FloatArray


def flatten_predictions(
    y_true: LabelsLike, y_prob: ScoresLike, *, class_axis: int = 1, ignore_label: Any = None
) -> FlatPredictions:
    """Flatten predictions of pixels, voxels or tokens to one row per case.

    Use the result with metrics and with the ``fit`` method of calibrators.

    Parameters
    ----------
    y_true : array-like
        Labels, in the shape of ``y_prob`` without the class axis.
    y_prob : array-like
        Scores with two or more axes, such as (N, C, H, W) or (N, T, C).
    class_axis : int
        The axis of the classes in ``y_prob``: 1 for the layout of PyTorch, -1 for the last axis.
    ignore_label : optional
        Remove cases with this label, such as padding and borders (-100 and 255 in PyTorch).

    Returns
    -------
    FlatPredictions
        ``y_true`` of shape (n,) and ``y_prob`` of shape (n, C).

    See Also
    --------
    map_scores : Apply a calibrator to scores with more than two axes.

    Notes
    -----
    Pixels of an image and tokens of a text are not independent. Intervals that treat pixels or
    tokens as independent rows are too narrow, and tests reject too often. Pass the image or text of
    each case as ``groups=``, or use a few cases per image or text. If you use weights or groups,
    remove the ignored cases by ``weight[y_true != ignore_label]``. The result is a copy of the
    scores.

    Examples
    --------
    >>> import calibrant
    >>> images = np.full((2, 3, 4, 4), 1 / 3)  # two images, three classes, 4 x 4 pixels
    >>> labels = np.zeros((2, 4, 4), dtype=int)
    >>> calibrant.evaluate(*calibrant.flatten_predictions(labels, images)).n_samples
    32
    """
    labels, table = as_array(y_true), _classes_last(as_array(y_prob), class_axis)
    _check_layout(labels, table, class_axis)
    flat, rows = labels.reshape(-1), table.reshape(-1, table.shape[-1])
    if ignore_label is None:
        return FlatPredictions(flat, rows)
    selected = np.flatnonzero(flat != ignore_label)
    if not selected.size:
        raise ValueError(
            f"Every label is ignored, because it equals ignore_label={ignore_label!r}. Pass "
            "another ignore_label, or pass at least one other label."
        )
    return FlatPredictions(flat[selected], rows[selected])


def map_scores(
    function: Callable[[FloatArray], Any], scores: ScoresLike, *, class_axis: int = 1
) -> FloatArray:
    """Apply a function of rows, such as ``model.predict_proba``, to scores with more than two axes.

    Parameters
    ----------
    function : callable
        Function that takes and returns an array of shape (n, C).
    scores : array-like
        Scores with two or more axes.
    class_axis : int
        The axis of the classes.

    Returns
    -------
    ndarray
        The results, in the shape of ``scores``.

    See Also
    --------
    flatten_predictions : Flatten labels and scores to one row per case, for a fit.

    Examples
    --------
    >>> import calibrant
    >>> logits = np.zeros((2, 3, 4, 4))
    >>> model = calibrant.Identity(inputs="logits").fit(np.eye(3), [0, 1, 2])
    >>> calibrant.map_scores(model.predict_proba, logits).shape
    (2, 3, 4, 4)
    """
    table = _classes_last(as_array(scores), class_axis)
    rows = table.reshape(-1, table.shape[-1])
    result = as_array(function(rows))
    if result.shape != rows.shape:
        raise ValueError(
            f"The function must return an array with the shape of its argument, {rows.shape}, got "
            f"shape {result.shape}."
        )
    return np.moveaxis(result.reshape(table.shape), -1, class_axis)


def _classes_last(scores: AnyArray, class_axis: int) -> AnyArray:
    if scores.ndim < 2:
        raise ValueError(
            "Scores must have at least two axes, one for cases and one for classes, got shape "
            f"{scores.shape}."
        )
    return np.moveaxis(scores, class_axis, -1)


def _check_layout(labels: AnyArray, table: AnyArray, class_axis: int) -> None:
    if labels.shape != table.shape[:-1]:
        axes = class_axes(labels.shape, np.moveaxis(table, -1, class_axis).shape)
        hint = f" Did you mean class_axis={axes[0]}?" if axes else ""
        raise ValueError(
            f"y_true must have the shape of y_prob without its class axis, {table.shape[:-1]} for "
            f"class_axis={class_axis}, got shape {labels.shape}.{hint}"
        )


def class_axes(labels: tuple[int, ...], scores: tuple[int, ...]) -> list[int]:
    """Return the axes that may be the class axis.

    Without the class axis, scores have the shape of labels.
    """
    return [axis for axis in range(1, len(scores)) if scores[:axis] + scores[axis + 1 :] == labels]


def raise_if_deep(labels: AnyArray, scores: AnyArray) -> None:
    """Raise if scores have more than two axes and labels have one axis less, and suggest a fix."""
    axes = class_axes(labels.shape, scores.shape)
    if scores.ndim < 3 or not axes:
        return
    options = " or ".join(f"class_axis={axis}" for axis in axes)
    raise ValueError(
        f"Scores of shape {scores.shape} and labels of shape {labels.shape} do not have one row "
        f"per case. Write flat = calibrant.flatten_predictions(labels, scores, {options}) and pass "
        "flat.y_true and flat.y_prob."
    )
