"""What the claims of a notion are called, in titles and on axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._typing import AnyArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import as_array, check_classes, check_predictions
from calibrant.notions import Claims, ClassNotion, Notion, RankNotion, WithinTopNotion


def claims_of(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
) -> tuple[Claims, AnyArray]:
    """The claims about checked predictions, and the names of the classes."""
    sum_to_one = not isinstance(notion, ClassNotion)
    proba, y, weight, names = check_predictions(
        y_true, y_prob, sample_weight, classes, sum_to_one=sum_to_one
    )
    return notion.claims(proba, y, weight), names


def class_names(y_true: LabelsLike, n_classes: int, classes: LabelsLike | None) -> AnyArray:
    """Names of the columns as the metrics match them."""
    if classes is not None:
        return check_classes(classes, n_classes)
    y = as_array(y_true)
    return np.arange(n_classes) if y.dtype.kind in "bui" else np.unique(y)


def claim_names(notion: Notion, names: Sequence[Any]) -> tuple[str, ...]:
    """A short name for every claim, in the order of their index."""
    if isinstance(notion, ClassNotion):
        return tuple(
            f"class {n}" for n in (names if notion.column is None else [names[notion.column]])
        )
    if isinstance(notion, RankNotion):
        if not notion.by_label:
            return tuple(f"rank {r}" if r > 1 else "top score" for r in notion.ranks)
        return tuple(f"{_rank(r)}predicted {n}" for r in notion.ranks for n in names)
    return (notion.name,)


def _rank(rank: int) -> str:
    return f"rank {rank}, " if rank > 1 else ""


def axis_labels(notion: Notion) -> tuple[str, str]:
    """What the score and the frequency of the outcome are, for the axes of a reliability
    diagram.
    """
    if isinstance(notion, ClassNotion):
        return "predicted probability of the class", "frequency of the class"
    if isinstance(notion, WithinTopNotion):
        return (
            f"sum of the {notion.rank} highest probabilities",
            f"share of rows with the truth among the {notion.rank}",
        )
    if isinstance(notion, RankNotion) and notion.ranks == (1,):
        return "confidence (highest probability)", "accuracy"
    return "predicted probability at the rank", "share of rows where that class is true"
