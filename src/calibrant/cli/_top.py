"""Files of the best few classes of each row: columns ``top1_label, top1_logprob, top2_label, ...``,
and ``rest_logprob`` where the mass of the others was written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.top_scores import TopScores
from calibrant._output.files import check_writable
from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import shortened
from calibrant.cli._commands import Fitted
from calibrant.evaluation import TopEvaluation, evaluate
from calibrant.io import save
from calibrant.io._labels import LabelRule, class_values
from calibrant.io._roles import Columns, FileOptions, choose_label
from calibrant.io._sources import CsvSource, ParquetSource, TableSource
from calibrant.multiclass import TemperatureScaling

REST = "rest_logprob"
_FIRST = {"top1_label", "top1_logprob"}
_LABEL = re.compile(r"top(\d+)_label")
_SOURCES: dict[str, type[TableSource]] = {".csv": CsvSource, ".tsv": CsvSource, ".txt": CsvSource}
_SOURCES |= {".parquet": ParquetSource, ".pq": ParquetSource}


class TopFile(NamedTuple):
    """All rows of a file of top scores."""

    labels: AnyArray
    scores: TopScores
    weight: FloatArray | None


def is_top_file(options: FileOptions) -> bool:
    """Whether a table has the columns of the best classes."""
    if not options.path.is_file() or options.path.suffix.lower() not in _SOURCES:
        return False
    return set(_open(options, [], None).schema.names) >= _FIRST


def read_top(options: FileOptions) -> TopFile:
    """The rows of a file of top scores, which are small: m of K classes."""
    schema = _open(options, [], None)
    n_known = _count_known(schema.kinds)
    label = choose_label(_without_top(schema.kinds), options)
    scores = [f"top{rank}_logprob" for rank in range(1, n_known + 1)]
    extra = [REST] if REST in schema.kinds else []
    source, rule = _open(options, [*scores, *extra], options.weight), _rule(options)
    codes = [*(f"top{rank}_label" for rank in range(1, n_known + 1)), label]
    parts = []
    for block in source.blocks(whole=True):
        read = [rule.codes(block.table.column(name), block.start) for name in codes]
        parts.append((block.scores.reshape(len(read[0]), -1), np.column_stack(read), block.weight))
    values, found = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    weight = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
    rest = values[:, n_known] if extra else "complement"
    top = TopScores(
        rule.classes[found[:, :-1]], values[:, :n_known], rest=rest, classes=rule.classes
    )
    return TopFile(rule.classes[found[:, -1]], top, weight)


def evaluate_top_file(options: FileOptions, n_bins: int) -> TopEvaluation:
    """The evaluation of a file of top scores."""
    labels, scores, weight = read_top(options)
    return evaluate(labels, scores, n_bins=n_bins, sample_weight=weight)


def fit_top_file(options: FileOptions, name: str, output: Path) -> Fitted:
    """Fit temperature scaling to a file of top scores and save it."""
    if name != "temperature":
        raise ValueError(
            f"the file holds the best classes of each row, of which 'temperature' is fitted and "
            f"not {name!r}: say -m temperature"
        )
    check_writable(output)
    labels, scores, weight = read_top(options)
    model = TemperatureScaling(inputs="log_proba", classes=scores.classes)
    model.fit(scores, labels, sample_weight=weight)
    before, after = (
        evaluate(labels, rows, sample_weight=weight)
        for rows in (scores, model.predict_proba(scores))
    )
    save(model, output)
    return Fitted(name, model, before, after)


def _open(options: FileOptions, scores: list[str], weight: str | None) -> TableSource:
    """The table, read for these columns of numbers."""
    chosen = Columns(tuple(scores), (), "log_proba", None, weight, was_guessed=False)
    kind: Any = _SOURCES[options.path.suffix.lower()]
    more = {"as_text": False} if kind is CsvSource else {}
    return kind(options, needs_label=False, model=None, chosen=chosen, **more)


def _count_known(kinds: Any) -> int:
    """How many classes a row has: their columns are numbered from 1 without a gap."""
    ranks = sorted(int(match[1]) for name in kinds if (match := _LABEL.fullmatch(name)))
    missing = [f"top{r}_logprob" for r in ranks if f"top{r}_logprob" not in kinds]
    if ranks != list(range(1, len(ranks) + 1)) or missing:
        raise ValueError(
            "columns top1_label, top1_logprob, top2_label, ... must be there for every rank; the "
            f"file has {shortened(list(kinds))}"
        )
    return len(ranks)


def _without_top(kinds: Any) -> dict[str, str]:
    return {name: kind for name, kind in kinds.items() if not re.match(r"top\d+_|rest_", name)}


def _rule(options: FileOptions) -> LabelRule:
    if options.classes is not None:
        return LabelRule(options.classes, class_values(options.classes))
    if options.n_classes is None:
        raise ValueError(
            "the file holds the best classes of each row: say how many there are in all by "
            "--n-classes where they are numbers from 0 on, or name them by --classes"
        )
    return LabelRule(tuple(map(str, range(options.n_classes))), np.arange(options.n_classes))
