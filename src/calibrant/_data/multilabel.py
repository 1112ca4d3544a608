"""Multilabel data: any number of the labels of a row may be true.

Every label is a binary problem, so rows of probabilities need not sum to one.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from calibrant._data.sample import ArraySample
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import (
    as_array,
    check_classes,
    check_same_length,
    check_scores,
    check_weight,
    column_names,
    match_columns,
    order_of,
    warn_other_order,
)
from calibrant._validation.labels import is_one_hot


class MultilabelSample(ArraySample):
    """Probabilities (n, K) and true labels (n, K) as zeros and ones, in memory."""

    is_multilabel: ClassVar[bool] = True

    @cached_property
    def class_weights(self) -> FloatArray:
        """Sum of the weights of the rows that have each label, (K,)."""
        weights: FloatArray = self.weight @ self.y.astype(np.float64)
        return weights

    @property
    def class_rows(self) -> list[tuple[int, IntArray]]:
        return [(self.start, self.y[self.weight > 0].sum(axis=0).astype(np.intp))]

    def count_impossible(self, inputs: str) -> int:
        return 0

    def summary_rows(self) -> None:  # type: ignore[override]  # log-losses are those of classes
        return None


def is_multilabel(y: LabelsLike, scores: ScoresLike) -> bool:
    """Return whether labels are a table of zeros and ones with the shape of the scores.

    The result is False for one-hot labels, because the validation asks for class numbers instead.
    """
    labels = as_array(y)
    if labels.ndim != 2 or labels.shape[1] < 2 or labels.dtype.kind not in "buif":
        return False
    if as_array(scores).shape != labels.shape or not np.isin(labels, (0, 1)).all():
        return False
    return not is_one_hot(labels)


def as_multilabel_sample(
    scores: ScoresLike,
    y: LabelsLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: str,
) -> tuple[MultilabelSample, AnyArray]:
    """Check multilabel data, and return the sample and the names of the labels."""
    if inputs != "proba":
        raise ValueError(
            f"Multilabel scores must be probabilities, but inputs is {inputs!r}. Pass the "
            "probability of each label, for example scipy.special.expit(logits)."
        )
    warn_other_order(y, scores, sample_weight)
    names = column_names(scores) if classes is None else classes
    labels, arranged = _in_order(y, names), _in_order(scores, names)
    options: dict[str, Any] = {"inputs": "proba", "sum_to_one": False}
    table = check_scores(arranged, **options)
    check_same_length(y_true=labels, y_prob=table)
    weight = check_weight(sample_weight, len(labels))
    sample = MultilabelSample(table, labels.astype(np.int8), weight)
    return sample, check_classes(names, table.shape[1])


def _in_order(table: Any, names: Any) -> AnyArray:
    """Return a table with its columns in the order of the labels, if the columns have names."""
    array, columns = as_array(table), column_names(table)
    if columns is None or names is None:
        return array
    order = order_of(columns, names)
    if order is not None:
        return array[:, order]
    # The columns of scores may have a prefix, such as p_red for the label red.
    places = match_columns(list(names), columns)
    return array if places is None else array[:, np.argsort(places)]


def raise_multilabel() -> None:
    """Raise for an operation that needs one class per row."""
    raise ValueError(
        "y has one column of zeros and ones per label (multilabel), but this operation needs one "
        "class per row. Evaluate each label with notion='class-wise', calibrate with "
        "MulticlassToBinary(PlattScaling(), notion='class-wise'), or pass y[:, k] and "
        "scores[:, k] for a single label."
    )
