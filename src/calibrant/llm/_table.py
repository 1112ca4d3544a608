"""CSV, JSON-lines and Parquet tables with the columns ``confidence`` and ``correct``.

If there is a column ``task``, each task becomes one run. Other numeric columns become features.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.llm._batch import Target, Targets
from calibrant.llm._collect import AnswerRows
from calibrant.llm._files import MOST_BYTES, read_records
from calibrant.llm._run import Run
from calibrant.llm._stated import parse_confidence

SUFFIXES = (".csv", ".parquet")

_OUTCOMES = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "correct", "c"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "wrong", "incorrect", "i"), False),
}
_MISSING = frozenset({"", "none", "null", "nan", "na", "n/a"})
_RESERVED = frozenset({"confidence", "correct", "task", "custom_id", "target"})


def column_names(path: Path) -> list[str]:
    """Read the column names of a table."""
    if path.suffix == ".parquet":
        return list(_parquet(path).schema_arrow.names)
    with path.open("rb") as file:
        head = file.readline(MOST_BYTES)
    try:
        text = head.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line 1 is not valid UTF-8 (byte {error.start}). Write the file again as "
            "UTF-8."
        ) from None
    return next(csv.reader([text]), []) if text else []


def is_answers(names: list[str]) -> bool:
    """Return whether a table contains confidences and outcomes."""
    return "confidence" in names and "correct" in names


def is_targets(names: list[str]) -> bool:
    """Return whether a table contains the correct answers of a batch."""
    return "custom_id" in names and "target" in names


def read_targets(path: Path) -> Targets:
    """Read the correct answers of a batch by custom_id."""
    targets: dict[str, Target] = {}
    for place, row in _rows(path, Counter()):
        count = str(row.get("n_options") or "").strip()
        if count and not count.isdigit():
            raise ValueError(f"{place}: n_options is {count!r}, but must be an integer.")
        target = Target(str(row["target"]).strip(), int(count) if count else None, _task(row, None))
        if targets.setdefault(str(row["custom_id"]), target) != target:
            raise ValueError(
                f"{place}: the custom_id {row['custom_id']!r} has another target in an earlier "
                "row. Remove one of the rows."
            )
    return targets


def _task(row: Mapping[str, Any], default: str | None) -> Any:
    task = row.get("task")
    return default if task is None or task == "" else str(task)


def read_answers(path: Path, *, percent: bool = False) -> list[Run]:
    """Read a table of answers, and return one run per task."""
    skipped: Counter[str] = Counter()
    tasks: dict[str, AnswerRows] = {}
    for place, row in _rows(path, skipped):
        task = _task(row, path.stem)
        features = {name: _as_number(value) for name, value in row.items()}
        rows = tasks.setdefault(task, AnswerRows([n for n in row if n not in _RESERVED]))
        rows.add(
            _outcome(row.get("correct"), place),
            _confidence(row.get("confidence"), place, percent=percent),
            features,
        )
    for rows in tasks.values():
        rows.skipped.update(skipped)
    return [rows.build(task, "stated", str(path)) for task, rows in tasks.items()]


def _rows(path: Path, skipped: Counter[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix == ".jsonl":
        for number, record in read_records(path, skipped):
            yield f"{path}, line {number}", record
    elif path.suffix == ".parquet":
        number = 0
        for batch in _parquet(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row
    else:
        yield from _csv_rows(path)


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        try:
            for row in reader:
                yield f"{path}, line {reader.line_num}", row
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not valid UTF-8 (byte {error.start}). Write the file again as UTF-8."
            ) from None
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}.") from None


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ImportError(
            f"{path} is a Parquet file. Reading this file needs the package pyarrow, which is not "
            'installed. Run pip install "calibrant[parquet]".'
        ) from None
    try:
        return parquet.ParquetFile(path)
    except (ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}.") from None


def _outcome(value: Any, place: str) -> bool:
    text = str(value).strip().lower()
    if text not in _OUTCOMES:
        raise ValueError(
            f"{place}: 'correct' is {value!r}. Use 1, true, yes or correct for correct answers, "
            "and 0, false, no or wrong for wrong answers."
        )
    return _OUTCOMES[text]


def _confidence(value: Any, place: str, *, percent: bool) -> float | None:
    """Parse a confidence.

    Return None for a missing confidence, and raise if it is not a probability.
    """
    text = "" if value is None else str(value).strip()
    if text.lower() in _MISSING:
        return None
    confidence = parse_confidence(text, percent=percent)
    if confidence is None:
        hint = "Pass percent=True for percentages" if _as_number(text) > 1 else "Write 0.9 or 90%"
        raise ValueError(
            f"{place}: 'confidence' is {text!r}, which is not a probability. {hint}, or leave the "
            "field empty if the confidence is missing."
        )
    return confidence


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
