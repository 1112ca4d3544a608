"""Samples of chunked data: every chunk is checked and summed where it is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant._data.chunks import Chunk, ChunkSource
from calibrant._data.sample import (
    ArraySample,
    LazyRows,
    Sample,
    Transform,
    join_rows,
    summary_places,
)
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike
from calibrant._validation import (
    as_array,
    check_inputs,
    check_scores,
    check_weight,
    shortened,
    warn_data,
)
from calibrant._validation.labels import as_labels, check_classes, encode_labels
from calibrant._validation.score_hints import LOGITS_HINT, ScoreHints

Change = Callable[[ArraySample], ArraySample]
"""A function of the rows of a chunk."""


class ChunkReader(NamedTuple):
    """Converter of chunks of user data to checked scores, column codes and weights.

    ``is_trusted`` is set after a pass that checked all rows and changed none of them.
    """

    inputs: str = "proba"
    classes: AnyArray | None = None
    n_classes: int = 2
    sum_to_one: bool = True
    hint: ScoreHints = LOGITS_HINT
    renormalize: bool = False
    is_trusted: bool = False
    note: Callable[[str], None] = warn_data
    """Called with a message if scores were repaired."""

    def read(self, chunk: Chunk) -> ArraySample:
        """Return the checked rows of a chunk."""
        scores = np.asarray(chunk.scores) if self.is_trusted else self._check_scores(chunk)
        try:
            y, _ = encode_labels(
                as_labels(chunk.y), self.n_classes, self.classes, first_row=chunk.start
            )
            weight = _check_chunk_weight(chunk.weight, len(scores), chunk.start)
            if len(y) != len(scores):
                raise ValueError(
                    f"The labels have {len(y)} rows, but the scores have {len(scores)} rows."
                )
        except (TypeError, ValueError) as error:
            message = f"In the chunk that starts at row {chunk.start}: {error}"
            raise type(error)(message) from None
        rows = ArraySample(scores, y, weight, chunk.start)
        rows.columns = tuple(map(as_array, chunk.groups))
        return rows

    def _check_scores(self, chunk: Chunk) -> FloatArray:
        return check_scores(
            chunk.scores,
            inputs=self.inputs,
            sum_to_one=self.sum_to_one,
            hint=self.hint,
            first_row=chunk.start,
            renormalize=self.renormalize,
            note=self.note,
        )


def reader_for(
    source: ChunkSource, classes: LabelsLike | None, inputs: str, **options: Any
) -> ChunkReader:
    """Return the reader of a source, which encodes the labels of all chunks in the same way.

    If the classes are unknown and labels are not integers, a first pass collects the labels.
    """
    n_classes, names = source.n_columns, source.classes
    if names is not None:
        _check_same_classes(names, classes, n_classes)
    elif classes is None:
        labels = source.distinct_labels()
        names = None if labels is None else encode_labels(labels, n_classes)[1]
    else:
        names = check_classes(classes, n_classes)
    return ChunkReader(check_inputs(inputs), names, n_classes, **options)


def _check_same_classes(names: AnyArray, classes: LabelsLike | None, n_classes: int) -> None:
    """Raise if the classes that the user passed differ from the names of the columns."""
    if classes is not None and not np.array_equal(check_classes(classes, n_classes), names):
        raise ValueError(
            f"classes has the labels {shortened(check_classes(classes, n_classes))}, but the "
            f"columns have the names {shortened(names)}. Remove classes=, or pass the names of the "
            "columns."
        )


def _check_chunk_weight(weight: Any, n_rows: int, start: int) -> FloatArray:
    """Return the weights of a chunk. A chunk may have only zero weights."""
    if weight is None or np.any(weight):
        return check_weight(weight, n_rows, first_row=start)
    return np.zeros(n_rows)


class _Counts(NamedTuple):
    """Results of the first pass over all rows."""

    n_rows: int
    class_weights: FloatArray
    class_rows: list[tuple[int, IntArray]]
    n_weighted: int
    """Number of rows with a weight other than 0 and 1."""
    n_impossible: int
    """Number of rows with positive weight whose true class has probability zero."""
    n_changed: int
    """Number of chunks whose scores were repaired. Every pass must repair these chunks again."""
    summary: list[tuple[AnyArray, ...]]
    """Rows for a summary, if the number of rows was known before the pass."""
    notes: list[str]
    """Messages about repaired scores, chunk by chunk."""


def _count_chunk(reader: ChunkReader, places: IntArray, chunk: Chunk) -> tuple[Any, ...]:
    notes: list[str] = []
    rows = reader._replace(note=notes.append).read(chunk)
    is_changed = not (isinstance(chunk.scores, np.ndarray) and chunk.scores is rows.u)
    n_weighted = int(((rows.weight != 0) & (rows.weight != 1)).sum()) if rows.is_weighted else 0
    counts = n_weighted, rows.count_impossible(reader.inputs), int(is_changed)
    first, stop = np.searchsorted(places, [chunk.start, chunk.start + rows.shape[0]])
    summary = [rows.columns_of(places[first:stop] - chunk.start)]
    return rows.shape[0], rows.class_weights, rows.class_rows, *counts, summary, notes


def _ignore(note: str) -> None:
    """Do nothing, because the first pass has already warned about repaired rows."""


class _CheckedSource:
    """A source with its reader, the number of passes, and the results of the first pass."""

    def __init__(self, source: ChunkSource, reader: ChunkReader) -> None:
        self.source, self.reader, self.n_passes = source, reader, 0

    def add_up(self, function: Callable[[Chunk], Any]) -> Any:
        self.n_passes += 1
        return self.source.add_up(function)

    @cached_property
    def counts(self) -> _Counts:
        """Sum over all rows in one pass. Later passes do not check rows again."""
        places = summary_places(self.source.n_rows or 0, self.reader.n_classes)
        counts = _Counts(*self.add_up(partial(_count_chunk, self.reader, places)))
        if not counts.class_weights.sum() > 0:
            raise ValueError(
                "All sample weights are zero. Pass a positive weight for at least one row."
            )
        # Issue only the first warning of all chunks. Later passes issue no warnings.
        for note in counts.notes[:1]:
            warn_data(note)
        self.reader = self.reader._replace(is_trusted=not counts.n_changed, note=_ignore)
        return counts


class ChunkedSample(Sample):
    """A sample whose chunks are read at every pass. Passes return only sums.

    ``changes`` are applied to the checked rows of each chunk, one after the other.
    """

    is_chunked: ClassVar[bool] = True
    pass_cost: ClassVar[float] = np.inf

    def __init__(
        self,
        source: _CheckedSource,
        changes: tuple[Change, ...] = (),
        origin: ChunkedSample | None = None,
    ) -> None:
        self._source, self._changes = source, changes
        self._origin = origin
        """A sample with the same labels and weights, which are counted once for both samples."""

    @property
    def n_columns(self) -> int:
        return self._source.reader.n_classes

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self._source.counts.n_rows, self.n_columns

    @property
    def n_passes(self) -> int:
        return self._source.n_passes

    @property
    def n_chunks(self) -> int:
        return len(self._source.counts.class_rows)

    @cached_property
    def class_weights(self) -> FloatArray:
        if self._origin is not None:
            return self._origin.class_weights
        if not self._changes:
            return self._source.counts.class_weights
        weights: FloatArray = self.sum_chunks(_class_weights_of)
        return weights

    @cached_property
    def class_rows(self) -> list[tuple[int, IntArray]]:
        if self._origin is not None:
            return self._origin.class_rows
        if not self._changes:
            return self._source.counts.class_rows
        rows: list[tuple[int, IntArray]] = self.sum_chunks(_class_rows_of)
        return rows

    @property
    def is_weighted(self) -> bool:
        return self._source.counts.n_weighted > 0

    def count_impossible(self, inputs: str) -> int:
        return self._source.counts.n_impossible

    def note_on(self, calibrator: Any) -> str:
        note: str = calibrator._chunked_note()
        return note

    def kept_rows(self, most: int | None) -> int:
        return 0

    def block_store(self) -> None:
        return None  # other processes that read chunks have no access to a store in this process

    def summary_rows(self) -> ArraySample | None:
        counts = self._source.counts
        # The first pass over the data has already read the summary rows. If rows have weight zero,
        # the first pass used other row numbers.
        if not self._changes and self.n_rows == counts.n_rows == self._source.source.n_rows:
            return join_rows(counts.summary)
        return super().summary_rows()

    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        reader = self._source.reader
        return self._source.add_up(partial(_apply_to_rows, reader, self._changes, function))

    def map(self, function: Change) -> ChunkedSample:
        return ChunkedSample(self._source, (*self._changes, function))

    def transformed(self, function: Transform) -> ChunkedSample:
        return self.rescored(partial(_transform_chunk, function))

    def rescored(self, function: Change) -> ChunkedSample:
        """Apply to each chunk a ``function`` that changes only the scores of rows."""
        return ChunkedSample(self._source, (*self._changes, function), self._origin or self)

    def claims(self, notion: Any, cuts: FloatArray | None = None) -> Any:
        return notion.chunked_claims(self, cuts)


def as_chunked_sample(source: ChunkSource, reader: ChunkReader) -> ChunkedSample:
    """Return a sample of the rows of a source, which are checked when they are first read."""
    return ChunkedSample(_CheckedSource(source, reader))


def _apply_to_rows(
    reader: ChunkReader, changes: tuple[Change, ...], function: Callable[[Any], Any], chunk: Chunk
) -> Any:
    rows = reader.read(chunk)
    for change in changes:
        rows = change(rows)
    return function(rows)


def _class_rows_of(chunk: ArraySample) -> list[tuple[int, IntArray]]:
    return chunk.class_rows


def _class_weights_of(chunk: ArraySample) -> FloatArray:
    return chunk.class_weights


def _transform_chunk(function: Transform, chunk: ArraySample) -> ArraySample:
    # Convert rows block by block when they are read, because a pass needs each row once.
    u = LazyRows(chunk.u, function) if isinstance(chunk.u, np.ndarray) else chunk.u.map(function)
    return chunk.with_scores(u)
