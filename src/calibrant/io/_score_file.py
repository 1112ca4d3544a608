"""Prediction files, for the Python interface and the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant._data.read import as_sample
from calibrant._data.sample import ArraySample, Sample
from calibrant._data.top_scores import TopScores
from calibrant._output.progress import tracked
from calibrant._typing import AnyArray, FloatArray, Inputs
from calibrant._validation import (
    Message,
    ParameterError,
    ScoreHints,
    check_inputs,
    check_scores,
    check_weight,
    encode_labels,
    look_like_proba,
    warn_data,
)
from calibrant.io._loading import load_blocks
from calibrant.io._roles import KINDS, FileOptions, ModelScores
from calibrant.io._row_blocks import RowBlocks

if TYPE_CHECKING:  # needs pyarrow
    from calibrant.io._labels import LabelRule
    from calibrant.io._readers import FileBlock, FileReader

_SCORE_BYTES = 8
"""Bytes of a score in memory."""

_FILE_HINTS = ScoreHints(
    logits="{logits}",
    log_odds="{logits}",
    log_proba="{log_proba}",
    percent="{percent:True}",
    divide="{renormalize:True}",
)
"""Fixes for scores of files, as templates of parameters."""


class LoadedRows(NamedTuple):
    """All rows of a file: checked scores, labels, and weights or None."""

    scores: Any
    labels: AnyArray
    weight: FloatArray | None

    def sample(self, classes: AnyArray, columns: tuple[AnyArray, ...] = ()) -> Sample:
        """The rows as a sample with additional columns.

        The scores of these rows are not checked again.
        """
        y, _ = encode_labels(self.labels, len(classes), classes)
        rows = ArraySample(self.scores, y, check_weight(self.weight, len(y)))
        rows.columns = columns
        return rows


class ScoreFile:
    """A prediction file, which `open_scores` opens.

    Most calibrators, `evaluate` and the metrics accept ``scores``, ``labels`` and ``weight`` in
    place of arrays. Calibrators and metrics read the file block by block, once per pass over the
    data. For other functions, call `load`.

    Attributes
    ----------
    scores, labels, weight
        Placeholders for the columns of all rows. ``weight`` is None if no column of weights was
        passed. A file of top scores is loaded into memory, and its ``scores`` are
        `calibrant.TopScores`.
    inputs : {"proba", "logits", "log_proba"}
        The type of scores, declared by the user or by the names of the columns.
    classes : ndarray of shape (K,)
        Labels of the columns.
    n_rows : int or None
        Number of rows. The value is None for text files, because their rows are not counted in
        advance.
    n_classes : int
        Number of classes.
    has_top_scores : bool
        Whether the file contains only the top classes of each row.
    guesses : tuple of str
        Sentences about the guessed roles of columns and labels.
    path : Path
        The file.

    See Also
    --------
    open_scores : Open a file of predictions.
    """

    def __init__(
        self,
        options: FileOptions,
        *,
        model: ModelScores | None = None,
        needs_label: bool = True,
        keeps_text: bool = False,
        note: Callable[[Message], None] = lambda message: warn_data(str(message)),
        progress: bool = False,
    ) -> None:
        self.options, self.path, self.progress = options, options.path, progress
        self.reader = _open_reader(options, model, needs_label=needs_label, keeps_text=keeps_text)
        self._model, self._needs_label = model, needs_label
        self._note = note
        self._notes: set[str] = set()
        self._is_checked = False

    @cached_property
    def _rule(self) -> LabelRule:
        from calibrant.io._labels import label_rule, top_label_rule

        if self.has_top_scores:
            return top_label_rule(self.options, self._model)
        return label_rule(self.reader, self.options, self._model)

    def check_labels(self) -> None:
        """Raise if the labels cannot be matched to the score columns."""
        _ = self._rule

    @property
    def inputs(self) -> Inputs:
        return check_inputs(self.reader.inputs)

    @property
    def classes(self) -> AnyArray:
        return self._rule.classes if self._model is None else self._model.classes

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_rows(self) -> int | None:
        return self.reader.n_rows

    @property
    def has_top_scores(self) -> bool:
        return bool(self.reader.top_labels)

    @property
    def guesses(self) -> tuple[str, ...]:
        notes = (self.reader.note, self._rule.note if self._needs_label else None)
        return tuple(note for note in notes if note)

    @property
    def score_columns(self) -> tuple[str, ...]:
        """Names of the columns of scores in the file. Empty for arrays and top scores."""
        columns = () if self.has_top_scores else getattr(self.reader, "columns", ())
        return columns.scores if columns else ()

    @property
    def label_column(self) -> str | None:
        """Name of the column of labels, or None for arrays."""
        columns = getattr(self.reader, "columns", None)
        return columns.label if columns else None

    @property
    def n_bytes(self) -> int:
        """Number of bytes of all scores in memory. For a text file, the value is the file size."""
        if self.n_rows is None:
            return self.path.stat().st_size
        return self.n_rows * self.n_classes * _SCORE_BYTES

    @property
    def scores(self) -> Any:
        return self._rows.scores

    @property
    def labels(self) -> Any:
        return self._rows.labels

    @property
    def weight(self) -> Any:
        return self._rows.weight

    @cached_property
    def _rows(self) -> RowBlocks | LoadedRows:
        if self.has_top_scores:
            return self.load()
        blocks = RowBlocks(
            self._read, n_rows=self.n_rows, classes=self.classes, progress=self.progress
        )
        # One score per row is one column in the file, but two columns in a checked block.
        blocks.n_features = self.reader.n_features
        return blocks

    def load(self) -> LoadedRows:
        """Load all rows: ``scores, labels, weight = file.load()``.

        Scores beyond 256 MB are copied to a memory-mapped temporary file (in ``TMPDIR``).
        """
        from calibrant.io._readers import check_size

        if self.has_top_scores:
            return self._load_top_scores()
        check_size(self.path, (self.n_rows or 0) * self.n_classes * _SCORE_BYTES)
        columns: list[tuple[Any, Any]] = []

        def read() -> Iterator[FloatArray]:
            n_bytes = 0
            for block in self._tracked(self._read_codes(), lambda block: len(block[0])):
                n_bytes += block[0].nbytes
                check_size(self.path, n_bytes)  # not every format declares its size
                columns.append(block[1:])
                yield block[0]

        scores = load_blocks(read())
        codes, weights = zip(*columns, strict=True)
        weight = None if weights[0] is None else np.concatenate(weights)
        return LoadedRows(scores, self.classes[np.concatenate(codes)], weight)

    def _load_top_scores(self) -> LoadedRows:
        rule = self._rule
        blocks = list(self._tracked(self.reader.blocks(), lambda block: len(block.scores)))
        labels = [rule.classes[rule.codes(block.labels, block.start)] for block in blocks]
        weights = [block.weight for block in blocks if block.weight is not None]
        weight = np.concatenate(weights) if weights else None
        return LoadedRows(self._top_scores(blocks), np.concatenate(labels), weight)

    def blocks(self, *, all_columns: bool = False) -> Iterator[FileBlock]:
        """Yield checked rows block by block. ``all_columns`` adds the other columns.

        If one pass accepted all scores unchanged, later passes do not check them again.
        """
        repairs: list[str] = []
        is_plain = True
        for block in self.reader.blocks(all_columns=all_columns):
            if block.weight is not None and block.weight.any():
                check_weight(block.weight, len(block.weight), first_row=block.start)
            scores = block.scores if self._is_checked else self._check(block, repairs)
            is_plain = is_plain and scores is block.scores
            yield block._replace(scores=scores)
        self._is_checked = is_plain
        if repairs:
            self._note_once(
                "{repair} To avoid this warning, pass {renormalize:True}.", {"repair": repairs[0]}
            )

    def sample(self, classes: AnyArray, columns: tuple[AnyArray, ...] = ()) -> Sample:
        """The rows as a sample that is read in blocks, with the classes of the file.

        ``columns`` contains additional columns of all rows, such as groups.
        """
        # Labels as column numbers avoid a lookup of names.
        rows = RowBlocks(self._read_codes, n_rows=self.n_rows, progress=self.progress)
        options: dict[str, Any] = {"inputs": self.inputs, "columns": columns}
        return as_sample(rows.scores, rows.labels, rows.weight, **options)[0]

    def _read_codes(self) -> Iterator[tuple[Any, ...]]:
        for block in self.blocks():
            yield block.scores, self._rule.codes(block.labels, block.start), block.weight

    def _read(self) -> Iterator[tuple[Any, ...]]:
        for scores, codes, weight in self._read_codes():
            yield scores, self.classes[codes], weight

    def _check(self, block: FileBlock, repairs: list[str]) -> Any:
        if self.has_top_scores:
            return self._top_scores([block])
        values = block.scores / 100.0 if self.options.percent else block.scores
        try:
            # Scores near the largest float may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                scores = check_scores(
                    values,
                    inputs=self.inputs,
                    hint=_FILE_HINTS,
                    first_row=block.start,
                    renormalize=self.options.renormalize,
                    note=repairs.append,
                )
        except ValueError as error:
            # The message is used as a template. Braces in the message come only from the hints,
            # because the message quotes only numbers, and `locate` escapes braces in column names.
            raise ParameterError(self.reader.locate(str(error))) from None
        if block.start == 0 and self.inputs == "logits" and look_like_proba(scores):
            self._note_once(
                "The logits are between 0 and 1 and every row sums to one. If they are "
                "probabilities, pass {proba} instead of {logits}."
            )
        return scores

    def _top_scores(self, blocks: Sequence[FileBlock]) -> TopScores:
        """The top classes of the rows of some blocks."""
        rule, names = self._rule, self.reader.top_labels
        codes = [
            [rule.codes(block.table.column(name), block.start) for name in names]
            for block in blocks
        ]
        n_top = len(names)
        labels = rule.classes[np.concatenate([np.column_stack(columns) for columns in codes])]
        values = np.concatenate([block.scores.reshape(len(block.table), -1) for block in blocks])
        tail = values[:, n_top] if values.shape[1] > n_top else "complement"
        return TopScores(labels, values[:, :n_top], rest=tail, classes=rule.classes)

    def _tracked(self, blocks: Iterable[Any], size: Callable[[Any], int]) -> Iterator[Any]:
        return tracked(
            blocks, total=self.n_rows, description="Reading", progress=self.progress, size=size
        )

    def _note_once(self, template: str, values: dict[str, object] | None = None) -> None:
        message = Message(template, values or {})
        if str(message) not in self._notes:
            self._notes.add(str(message))
            self._note(message)

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        return f"<ScoreFile {self.path.name}: {rows} of {KINDS[self.inputs]}>"


def _open_reader(
    options: FileOptions, model: ModelScores | None, *, needs_label: bool, keeps_text: bool
) -> FileReader:
    try:
        from calibrant.io._readers import open_reader
    except ImportError as error:
        raise ImportError(
            "open_scores needs the package pyarrow, which is not installed. Run pip install "
            '"calibrant[parquet]".'
        ) from error
    reader = open_reader(options, needs_label=needs_label, model=model, keeps_text=keeps_text)
    if model is not None and not reader.top_labels:
        _check_model(reader, model)
    return reader


def _check_model(reader: FileReader, model: ModelScores) -> None:
    """Raise if a model cannot be applied to the scores of a file."""
    if reader.inputs != model.inputs:
        raise ValueError(
            f"The model was fitted on {KINDS[model.inputs]}, but the file contains "
            f"{KINDS[reader.inputs]}. Pass a file with {KINDS[model.inputs]}."
        )
    if reader.n_classes != len(model.classes):
        raise ValueError(
            f"The model has {len(model.classes)} classes, but the file has {reader.n_classes} "
            "score columns. Pass a file with one score column per class."
        )


def open_scores(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    proba: str | Sequence[str] | None = None,
    logits: str | Sequence[str] | None = None,
    log_proba: str | Sequence[str] | None = None,
    weight: str | None = None,
    classes: Iterable[Any] | None = None,
    n_classes: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    split: str | None = None,
    renormalize: bool = False,
    sep: str | None = None,
    decimal: str | None = None,
    percent: bool = False,
    progress: bool = False,
) -> ScoreFile:
    """Open a file of scores and labels, which may be larger than memory.

    Parameters
    ----------
    path : path-like
        A Parquet, Arrow (``.arrow``, ``.feather``) or CSV file (``.tsv`` is separated by tabs), an
        ``.npz`` file with arrays ``probs`` or ``logits`` and ``labels``, or an ``.npy`` file with
        ``labels``.
    label : str, optional
        The column of labels. By default, the column with a usual name (label, y, target, ...) is
        used.
    proba, logits, log_proba : str or list of str, optional
        The columns of scores, as a pattern (``"p_*"``) or a list of names. The parameter that you
        use declares the type of scores. By default, columns that begin with ``p_``, ``z_`` or
        ``lp_`` and columns of top scores (``top1_label``, ``top1_logprob``, ``top2_label``, ...)
        are used.
    weight : str, optional
        The column of weights.
    classes : array-like, optional
        Labels of the columns in the order of the columns, if the columns are not named after the
        classes.
    n_classes : int, optional
        Number of all classes, for top scores whose labels are numbers from 0.
    labels : path-like, optional
        An ``.npy`` file of labels, for an ``.npy`` file of scores.
    split : str, optional
        Prefix of arrays in an ``.npz`` file: "test" for ``test_logits`` and ``test_labels``.
    renormalize : bool
        Whether to divide rows of probabilities by their sum, even if the sum is far from one.
    sep : str, optional
        Separator of a text file. The default is a comma, or a tab for ``.tsv`` files.
    decimal : str, optional
        Decimal point of a text file.
    percent : bool
        Whether to divide the probabilities by 100.
    progress : bool
        Whether to show a progress bar for each pass over the file if standard error is a terminal.

    Returns
    -------
    ScoreFile
        The open file, with ``scores``, ``labels`` and ``weight`` to pass to other functions.

    See Also
    --------
    RowBlocks : Predictions that a function returns block by block.

    Notes
    -----
    This function requires pyarrow (``pip install "calibrant[parquet]"``). A fit passes over the
    data several times and reads the file in each pass. Temperature scaling needs about five passes.
    A block contains 16 MB of scores.

    Examples
    --------
    >>> from calibrant import TemperatureScaling, evaluate
    >>> file = open_scores("predictions.parquet")  # doctest: +SKIP
    >>> model = TemperatureScaling(inputs=file.inputs)  # doctest: +SKIP
    >>> model.fit(file.scores, file.labels)  # doctest: +SKIP
    >>> evaluate(file.labels, file.scores, inputs=file.inputs)  # doctest: +SKIP
    """
    options = FileOptions(
        Path(path),
        label=label,
        proba=_join(proba),
        logits=_join(logits),
        log_proba=_join(log_proba),
        weight=weight,
        classes=None if classes is None else tuple(map(str, classes)),
        labels=None if labels is None else Path(labels),
        split=split,
        renormalize=renormalize,
        n_classes=n_classes,
        sep=sep,
        decimal=decimal,
        percent=percent,
    )
    file = ScoreFile(options, progress=progress)
    file.check_labels()
    return file


def _join(columns: str | Sequence[str] | None) -> str | None:
    return columns if columns is None or isinstance(columns, str) else ",".join(columns)
