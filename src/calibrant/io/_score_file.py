"""Files of predictions, opened and not read: the reader of the command line for Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._typing import Inputs
from calibrant._validation import check_inputs
from calibrant.io._row_blocks import Block, RowBlocks


class ScoreFile(RowBlocks):
    """A file of predictions, of which blocks are read: `RowBlocks` that know more.

    Attributes
    ----------
    scores, labels, weight
        Stand for all rows; ``weight`` is None where no column of weights was named.
    inputs : {"proba", "logits", "log_proba"}
        What the scores are, as was said or as the names of the columns say.
    classes : ndarray of shape (K,)
        Labels of the columns.
    n_rows : int or None
        None of text files, whose rows are not counted beforehand.
    n_classes : int
    path : Path
    """

    def __init__(self, source: Any, rule: Any, *, renormalize: bool, progress: bool) -> None:
        self.source, self.rule, self.renormalize = source, rule, renormalize
        self.path: Path = source.path
        self.inputs: Inputs = check_inputs(source.inputs)
        super().__init__(self._read, n_rows=source.n_rows, classes=rule.classes, progress=progress)

    def _read(self) -> Iterator[Block]:
        for block in self.source.blocks():
            scores = _divided(block.scores) if self.renormalize else block.scores
            labels = self.rule.classes[self.rule.codes(block.labels, block.start)]
            yield scores, labels, block.weight


def open_scores(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    proba: str | Sequence[str] | None = None,
    logits: str | Sequence[str] | None = None,
    log_proba: str | Sequence[str] | None = None,
    weight: str | None = None,
    classes: Iterable[Any] | None = None,
    labels: str | os.PathLike[str] | None = None,
    split: str | None = None,
    renormalize: bool = False,
    progress: bool = False,
) -> ScoreFile:
    """A file of scores and labels, larger than memory or not, to fit and to evaluate block by
    block.

    Parameters
    ----------
    path : path
        Parquet, Arrow (``.arrow``, ``.feather``), CSV (``.tsv`` is separated by tabs), ``.npz``
        with arrays ``probs`` or ``logits`` and ``labels``, or ``.npy`` with ``labels``.
    label : str, optional
        The column of labels; the one that is called so (label, y, target, ...) unless said.
    proba, logits, log_proba : str or list of str, optional
        The columns of scores and what they hold: a pattern (``"p_*"``) or names. Columns that begin
        with ``p_``, ``z_`` or ``lp_`` are found by themselves.
    weight : str, optional
        The column of weights.
    classes : labels of the columns, optional
        In their order, where the columns are not called after the classes.
    labels : path, optional
        An ``.npy`` file of labels beside one of scores.
    split : str, optional
        Of an ``.npz`` file with arrays such as ``test_logits``, ``test_labels``.
    renormalize : bool
        Divide rows of probabilities by their sum, however far from one it is.
    progress : bool
        Show a bar for each pass over the file, where there is a terminal.

    Returns
    -------
    ScoreFile

    Notes
    -----
    Needs pyarrow (``pip install "calibrant[cli]"``). A fit reads the file once for each pass,
    temperature scaling about five times; a block holds 16 MB of scores.

    Examples
    --------
    >>> from calibrant import TemperatureScaling, evaluate
    >>> file = open_scores("predictions.parquet")  # doctest: +SKIP
    >>> model = TemperatureScaling(inputs=file.inputs)  # doctest: +SKIP
    >>> model.fit(file.scores, file.labels)  # doctest: +SKIP
    >>> evaluate(file.labels, file.scores, inputs=file.inputs)  # doctest: +SKIP
    """
    try:
        from calibrant.io._labels import label_rule
        from calibrant.io._roles import FileOptions
        from calibrant.io._sources import open_source
    except ImportError as error:
        raise ImportError(
            f'open_scores reads files with pyarrow: pip install "calibrant[cli]" ({error})'
        ) from error
    options = FileOptions(
        Path(path),
        label=label,
        proba=_listed(proba),
        logits=_listed(logits),
        log_proba=_listed(log_proba),
        weight=weight,
        classes=None if classes is None else tuple(map(str, classes)),
        labels=None if labels is None else Path(labels),
        split=split,
        renormalize=renormalize,
    )
    source = open_source(options, needs_label=True)
    rule = label_rule(source, options)
    return ScoreFile(source, rule, renormalize=renormalize, progress=progress)


def _listed(columns: str | Sequence[str] | None) -> str | None:
    return columns if columns is None or isinstance(columns, str) else ",".join(columns)


def _divided(scores: Any) -> Any:
    if scores.ndim == 1:
        return scores
    return scores / np.sum(scores, axis=1, keepdims=True, dtype=np.float64)
