"""Chunked data: every chunk is checked and summed where it is stored.

A `ChunkSource` holds rows as the user has them: the chunks of a dask array, the blocks of a file or
of an iterator. A `ChunkedSample` holds what a fit needs: checked scores, column codes and weights
of every chunk, of which only sums are returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibrant._blocks import added, sum_in_pairs
from calibrant._data.sample import ArraySample, LazyRows, Sample
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike
from calibrant._validation import check_weight
from calibrant._validation._labels import as_labels, check_classes, encode_labels
from calibrant._validation._scores import LOGITS_HINT, check_inputs, check_scores
from calibrant._validation._text import shortened


class Chunk(NamedTuple):
    """Consecutive rows as the user has them.

    ``weight`` is None if rows have no weights. ``start`` is the number of the first row, and
    ``groups`` holds group columns if they were asked for.
    """

    scores: Any
    y: Any
    weight: Any
    start: int
    groups: tuple[Any, ...] = ()


class ChunkSource(ABC):
    """Rows with labels that can be read chunk by chunk, any number of times."""

    classes: AnyArray | None = None
    """Labels of the columns, if the source knows them."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of classes; 2 if there is one score per row."""

    @abstractmethod
    def map_chunks(self, function: Callable[[Chunk], Any]) -> Iterable[Any]:
        """``function`` of each chunk, in row order: one pass.

        The function may run in other processes and more than once, so it and its results must be
        picklable and must not depend on other state.
        """

    def add_up(
        self, function: Callable[[Chunk], Any], add: Callable[[Any, Any], Any] = added
    ) -> Any:
        """Sum of ``function(chunk)``, added in pairs in row order: one pass."""
        return sum_in_pairs(self.map_chunks(function), add)

    def distinct_labels(self) -> AnyArray | None:
        """Sorted distinct labels; None if labels are integers, which name columns by number."""
        return None


class ChunkedScores(ABC):
    """Scores that are passed in place of an array and read chunk by chunk."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of classes; 2 if there is one score per row."""

    @abstractmethod
    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> ChunkSource:
        """The chunks with their labels, weights and group columns."""

    def map(self, function: Callable[[Any], Any], n_columns: int) -> Any:
        """``function`` of the scores of each chunk, computed when the chunks are read."""
        return MappedScores(self, function, n_columns)

    def __iter__(self) -> Iterator[Any]:
        """The scores of each chunk, in row order: one pass."""
        return iter(self.source(None).map_chunks(_scores_of))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "This operation needs all rows in memory, but the scores are read in chunks. Load them "
            "with np.concatenate(list(scores)), or process each chunk."
        )


class MappedScores(ChunkedScores):
    """Chunked scores to which a function is applied when they are read."""

    def __init__(
        self, scores: ChunkedScores, function: Callable[[Any], Any], n_columns: int
    ) -> None:
        self._scores, self._function, self._n_columns = scores, function, n_columns

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> ChunkSource:
        return _MappedSource(self._scores.source(y, weight, groups), self._function, self.n_columns)

    def __repr__(self) -> str:
        return f"<{self._function!r} of {self._scores!r}>"


class _MappedSource(ChunkSource):
    def __init__(self, source: ChunkSource, function: Callable[[Any], Any], n_columns: int) -> None:
        self._source, self._function, self._n_columns = source, function, n_columns
        self.classes = source.classes

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def map_chunks(self, function: Callable[[Chunk], Any]) -> Iterable[Any]:
        return self._source.map_chunks(partial(_apply_to_scores, self._function, function))

    def distinct_labels(self) -> AnyArray | None:
        return self._source.distinct_labels()


def _scores_of(chunk: Chunk) -> Any:
    return chunk.scores


def _apply_to_scores(
    change: Callable[[Any], Any], function: Callable[[Chunk], Any], chunk: Chunk
) -> Any:
    return function(chunk._replace(scores=change(chunk.scores)))


class ChunkReader(NamedTuple):
    """How a part becomes checked scores, column codes and weights.

    ``is_trusted`` after a pass has checked all rows and found nothing to repair.
    """

    inputs: str = "proba"
    classes: AnyArray | None = None
    n_classes: int = 2
    sum_to_one: bool = True
    hint: str = LOGITS_HINT
    renormalize: bool = False
    is_trusted: bool = False

    def read(self, part: Chunk) -> ArraySample:
        """Rows of a part, checked."""
        scores = np.asarray(part.scores) if self.is_trusted else self._checked(part)
        try:
            y, _ = encode_labels(as_labels(part.y), self.n_classes, self.classes)
            weight = check_chunk_weight(part.weight, len(scores), part.start)
            if len(y) != len(scores):
                raise ValueError(f"rows do not match: {len(y)} labels, {len(scores)} scores")
        except (TypeError, ValueError) as error:
            raise type(error)(f"in the part that begins with row {part.start}: {error}") from None
        return ArraySample(scores, y, weight, part.start)

    def _checked(self, part: Chunk) -> FloatArray:
        return check_scores(
            part.scores,
            inputs=self.inputs,
            sum_to_one=self.sum_to_one,
            hint=self.hint,
            first_row=part.start,
            renormalize=self.renormalize,
        )


def reader_for(
    parts: ChunkSource, classes: LabelsLike | None, inputs: str, **how: Any
) -> ChunkReader:
    """How parts are read: labels that are no integers are looked at first, unless ``classes`` are
    given, so that every part is encoded alike.
    """
    n_classes, names = parts.n_columns, parts.classes
    if names is not None:
        _check_own(names, classes, n_classes)
    elif classes is None:
        labels = parts.distinct_labels()
        names = None if labels is None else encode_labels(labels, n_classes)[1]
    else:
        names = check_classes(classes, n_classes)
    return ChunkReader(check_inputs(inputs), names, n_classes, **how)


def _check_own(own: AnyArray, classes: LabelsLike | None, n_classes: int) -> None:
    """Raise where other classes are asked for than the columns are named after."""
    if classes is not None and not np.array_equal(check_classes(classes, n_classes), own):
        raise ValueError(
            f"classes are {shortened(check_classes(classes, n_classes))}, and the columns are "
            f"named after {shortened(own)}"
        )


class SampleCounts(NamedTuple):
    """What is known of parted rows after they were checked."""

    n_rows: int
    class_weights: FloatArray
    is_plain: bool
    """Whether the scores were taken as they are, so that later passes need not check them."""
    class_rows: list[tuple[int, IntArray]]
    """The first row of each part, and its rows of each class with a weight above zero, (K,)."""
    is_unit: bool = False
    """Whether all weights are one."""


def _counts_of(reader: ChunkReader, part: Chunk) -> tuple[Any, ...]:
    found = reader.read(part)
    is_other = not (isinstance(part.scores, np.ndarray) and part.scores is found.u)
    n_weighted = 0 if part.weight is None else int((found.weight != 1).sum())
    return found.shape[0], found.class_weights, int(is_other), found.class_rows, n_weighted


class Passes:
    """How often the data were read."""

    n = 0


class ChunkedSample(Sample):
    """A sample whose parts are read at every pass; nothing but sums comes back.

    ``prepare`` makes checked rows of a part, ``change`` what is asked of them: lifted, with other
    weights.
    """

    def __init__(
        self,
        parts: ChunkSource,
        prepare: Callable[[Chunk], ArraySample],
        counts: SampleCounts,
        passes: Passes,
    ) -> None:
        self.parts, self.prepare, self.counts, self.passes = parts, prepare, counts, passes
        self.shape = (counts.n_rows, len(counts.class_weights))
        self._class_weights: FloatArray | None = counts.class_weights
        self._class_rows: list[tuple[int, IntArray]] | None = counts.class_rows

    @property
    def class_weights(self) -> FloatArray:
        if self._class_weights is None:
            self._class_weights = self.sum_chunks(_class_weights_of)
        return self._class_weights

    @property
    def class_rows(self) -> list[tuple[int, IntArray]]:
        if self._class_rows is None:
            self._class_rows = self.sum_chunks(_class_rows_of)
        return self._class_rows

    @property
    def weight(self) -> FloatArray:
        """Something that sums to the weight of all rows: ones that take no memory, or their sum."""
        if self.counts.is_unit and self._class_rows is self.counts.class_rows:
            return np.broadcast_to(np.float64(1.0), (self.shape[0],))
        return np.array([self.total])

    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        self.passes.n += 1
        return self.parts.add_up(partial(_apply_to, self.prepare, function))

    def map(self, function: Callable[[ArraySample], ArraySample]) -> ChunkedSample:
        changed = ChunkedSample(
            self.parts, partial(_apply_to, self.prepare, function), self.counts, self.passes
        )
        changed._class_weights = changed._class_rows = None
        return changed

    def lifted(self, lift: Callable[[FloatArray], FloatArray]) -> ChunkedSample:
        return self.rescored(partial(_transform_chunk, lift))

    def rescored(self, function: Callable[[ArraySample], ArraySample]) -> ChunkedSample:
        """``function`` of each part, which changes nothing but the scores of its rows."""
        other = self.map(function)
        other._class_weights, other._class_rows = self._class_weights, self._class_rows
        return other


def check_chunks(parts: ChunkSource, reader: ChunkReader) -> ChunkedSample:
    """Check all rows of a source, which is one pass."""
    passes = Passes()
    passes.n = 1
    found = parts.add_up(partial(_counts_of, reader))
    n_rows, class_weights, n_others, rows, n_weighted = found
    if not class_weights.sum() > 0:
        raise ValueError("all sample weights are zero: at least one row must count")
    counts = SampleCounts(int(n_rows), class_weights, not n_others, rows, not n_weighted)
    trusting = reader._replace(is_trusted=counts.is_plain)
    return ChunkedSample(parts, trusting.read, counts, passes)


def check_chunk_weight(weight: Any, n_rows: int, start: int) -> FloatArray:
    """Weights of a part, all of which may be zero."""
    if weight is None or np.any(weight):
        return check_weight(weight, n_rows)
    return np.zeros(n_rows)


def _apply_to(prepare: Callable[[Any], Any], function: Callable[[Any], Any], part: Any) -> Any:
    return function(prepare(part))


def _class_rows_of(part: ArraySample) -> list[tuple[int, IntArray]]:
    return part.class_rows


def _class_weights_of(part: ArraySample) -> FloatArray:
    return part.class_weights


def _transform_chunk(lift: Callable[[FloatArray], FloatArray], part: ArraySample) -> ArraySample:
    # By blocks, when they are asked for: a pass asks once.
    u = LazyRows(part.u, lift) if isinstance(part.u, np.ndarray) else part.u.map(lift)
    return ArraySample(u, part.y, part.weight, part.start)
