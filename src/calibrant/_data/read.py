"""Conversion of user input to a sample, with validation."""

from __future__ import annotations

from typing import Any

from calibrant._data.chunked_sample import as_chunked_sample, reader_for
from calibrant._data.chunks import ChunkedScores
from calibrant._data.dask_arrays import DaskScores, is_dask
from calibrant._data.folds import check_groups
from calibrant._data.multilabel import as_multilabel_sample, is_multilabel, raise_multilabel
from calibrant._data.sample import ArraySample, Sample
from calibrant._data.top_scores import TopScores, as_top_sample
from calibrant._typing import AnyArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, ScoreHints, check_classes, check_predictions


def as_chunked(scores: Any) -> ChunkedScores | None:
    """Return scores that are read chunk by chunk, or None if the scores are in memory."""
    if isinstance(scores, ChunkedScores):
        return scores
    return DaskScores(scores) if is_dask(scores) else None


def as_sample(
    scores: ScoresLike,
    y: LabelsLike,
    sample_weight: WeightsLike | None = None,
    groups: LabelsLike | None = None,
    *,
    classes: LabelsLike | None = None,
    inputs: str = "proba",
    sum_to_one: bool = True,
    hint: ScoreHints = LOGITS_HINT,
    renormalize: bool = False,
    columns: tuple[Any, ...] = (),
    multilabel: bool = False,
) -> tuple[Sample, AnyArray]:
    """Make a sample of scores, labels and weights of the same rows.

    Arrays are checked immediately, and chunks are checked when they are first read. Every fit and
    every metric calls this function first. ``columns`` contains additional columns of the same
    rows, which the sample stores. Labels of shape (n, K) are accepted if ``multilabel`` is true.
    """
    if isinstance(scores, TopScores):
        return as_top_sample(y, scores, sample_weight, classes), scores.names_with(classes)
    options: dict[str, Any] = {"sum_to_one": sum_to_one, "hint": hint, "renormalize": renormalize}
    chunked = as_chunked(scores)
    if chunked is not None:
        if groups is not None:
            raise TypeError(
                "groups= works on scores in memory, but these scores are read in chunks. Load the "
                "scores first, for example with X.compute()."
            )
        source = chunked.source(y, sample_weight, columns)
        reader = reader_for(source, classes, inputs, **options)
        return as_chunked_sample(source, reader), check_classes(reader.classes, reader.n_classes)
    if is_multilabel(y, scores):
        if not multilabel or columns or groups is not None:
            raise_multilabel()
        return as_multilabel_sample(scores, y, sample_weight, classes, inputs)
    rows = check_predictions(y, scores, sample_weight, classes, inputs=inputs, **options)
    sample = ArraySample(rows.scores, rows.y, rows.weight, groups=check_groups(groups, len(rows.y)))
    sample.columns = columns
    return sample, rows.classes
