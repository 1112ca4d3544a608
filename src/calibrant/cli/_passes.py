"""Fits to files that are read once for each pass, so that nothing of them is kept: for methods that
are made of sums over rows, or of cells of scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from calibrant._crossfit.members import proba_of
from calibrant._data.chunked_sample import ChunkReader, reader_for
from calibrant._data.chunks import Chunk
from calibrant._data.sample import ArraySample
from calibrant._output.files import check_writable
from calibrant._typing import AnyArray, FloatArray
from calibrant.base import Calibrator
from calibrant.cli._commands import (
    BYTES_OF_SCORE,
    Fitted,
    Say,
    check_scores_of,
    make_calibrator,
    on_simplex,
    open_labelled,
)
from calibrant.cli._spool import KEEP_BYTES
from calibrant.evaluation import MetricAccumulator
from calibrant.io import RowBlocks, save
from calibrant.io._columns import FileOptions
from calibrant.io._labels import LabelRule
from calibrant.io._sources import Notes, Source, open_source
from calibrant.selection import method


class PassedFile(NamedTuple):
    """A file that is read at every pass: its blocks, what its columns are called and hold."""

    rows: RowBlocks
    classes: AnyArray
    inputs: str

    @property
    def scores(self) -> Any:
        """Stand for the scores of all rows."""
        return self.rows.scores

    @property
    def labels(self) -> Any:
        """Stand for the labels of all rows."""
        return self.rows.labels

    @property
    def weight(self) -> Any:
        """Stand for the weights of all rows, or None."""
        return self.rows.weight


class BlockReader:
    """Blocks of a file at each call: checked, until all were seen as they are in the file. What is
    to be said is said once.
    """

    def __init__(self, source: Source, rule: LabelRule, options: FileOptions, say: Say) -> None:
        self.source, self.rule, self.options, self._tell = source, rule, options, say
        self._said: set[str] = set()
        self._is_plain = False

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        notes, is_plain = Notes(), True
        for block in self.source.blocks():
            scores = block.scores
            if not self._is_plain:
                scores = check_scores_of(block, self.source, self.options, self._say, notes)
                is_plain = is_plain and scores is block.scores
            labels = self.rule.classes[self.rule.codes(block.labels, block.start)]
            yield scores, labels, block.weight
        self._is_plain = is_plain
        notes.tell(self._say)

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._tell(line)


def is_passed(options: FileOptions, name: str, notion: str | None) -> bool:
    """Whether a method is fitted to a file pass by pass: it can be, and the scores are too many to
    be kept in memory.
    """
    return takes_parts(method(name, notion=notion)) and _is_large(options)


def is_reported_by_passes(options: FileOptions, name: str, notion: str | None) -> bool:
    """Whether the report of a file is made pass by pass: the same, but not of rows with weights."""
    return options.weight is None and is_passed(options, name, notion)


def is_compared_by_passes(options: FileOptions, names: Iterable[str]) -> bool:
    """Whether methods are compared on a file pass by pass: all of them can be."""
    return all(takes_parts(method(name)) for name in names) and _is_large(options)


def _is_large(options: FileOptions) -> bool:
    source = open_source(options, needs_label=True)
    if source.n_rows is None:
        return source.path.stat().st_size > KEEP_BYTES
    return source.n_rows * source.n_classes * BYTES_OF_SCORE > KEEP_BYTES


def takes_parts(calibrator: Any) -> bool:
    """Whether a calibrator is fitted to parts of the rows, by what it says itself."""
    if not isinstance(calibrator, Calibrator):
        return False
    return not calibrator.needs_rows


def open_passes(options: FileOptions, say: Say, *, progress: bool) -> PassedFile:
    """A file to be read at every pass, with a bar each."""
    source, rule = open_labelled(options, say)
    rows = RowBlocks(
        BlockReader(source, rule, options, say),
        n_rows=source.n_rows,
        classes=rule.classes,
        progress=progress,
    )
    return PassedFile(rows, rule.classes, source.inputs)


def fit_passes(file: PassedFile, name: str, notion: str | None, seed: int, output: Path) -> Fitted:
    """Fit a method to a file pass by pass, and save it."""
    model = make_calibrator(name, notion, file, seed)
    check_writable(output)
    model.fit(file.rows.scores, file.rows.labels, sample_weight=file.rows.weight)
    parts = file.rows.scores.source(file.rows.labels, file.rows.weight)
    reader = reader_for(parts, file.classes, file.inputs)
    before, after = parts.add_up(partial(_judge, model, reader), _merge)
    save(model, output)
    return Fitted(name, model, before.compute(), after.compute(), model._chunked_note())


_Pair = tuple[MetricAccumulator, MetricAccumulator]


def _judge(model: Any, reader: ChunkReader, part: Chunk) -> _Pair:
    """A block before and after calibration."""
    rows = reader.read(part)
    scores: FloatArray = rows.u[:]
    before = MetricAccumulator(inputs=model.inputs)._update_checked(
        ArraySample(scores, rows.y, rows.weight)
    )
    proba = on_simplex(proba_of(model, scores, model.inputs))
    return before, MetricAccumulator()._update_checked(ArraySample(proba, rows.y, rows.weight))


def _merge(a: _Pair, b: _Pair) -> _Pair:
    return a[0].merge(b[0]), a[1].merge(b[1])
