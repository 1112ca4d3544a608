"""Writers of calibrated scores next to the columns of the input, block by block."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from calibrant._data.top_scores import TopScores
from calibrant._output.files import written_aside
from calibrant._typing import FloatArray
from calibrant.io._array_reader import ArrayReader
from calibrant.io._readers import FileBlock
from calibrant.io._roles import TAIL_COLUMN
from calibrant.io._score_file import ScoreFile

TEXT_ENDINGS = (".csv", ".tsv")
ARRAY_ENDINGS = (".npz", ".npy")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet", ".pq")
ENDINGS = (*TABLE_ENDINGS, *ARRAY_ENDINGS)

Scored = tuple[FileBlock, Any]
"""A block of the input and its calibrated scores: probabilities, or top scores."""


def check_ending(path: Path, file: ScoreFile) -> None:
    """Raise if scores of a file cannot be written in the format of a path."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(
            f"{path} has an unknown file extension. Use one of the file extensions "
            f"{', '.join(ENDINGS)}."
        )
    if path.suffix.lower() in ARRAY_ENDINGS and file.has_top_scores:
        raise ValueError(
            f"{path} is a file of arrays, but top scores need a table with named columns. Write a "
            ".csv or .parquet file."
        )


def write_scores(path: Path, file: ScoreFile, rows: Iterable[Scored]) -> None:
    """Write all rows in the format of the extension of ``path``, or no file if an error occurs."""
    check_ending(path, file)
    columns_of = _top_columns if file.has_top_scores else _proba_columns
    tables = (add_columns(block.table, columns_of(scores, file, block)) for block, scores in rows)
    ending = path.suffix.lower()
    with written_aside(path) as aside:
        if ending in ARRAY_ENDINGS:
            _write_arrays(aside, file, rows, ending)
        else:
            _write_tables(aside, ending, tables)


def write_columns(path: Path, rows: Iterable[tuple[FileBlock, dict[str, Any]]]) -> None:
    """Write all rows with new columns as a table, or no file if an error occurs."""
    ending = path.suffix.lower()
    if ending not in TABLE_ENDINGS:
        raise ValueError(
            f"{path} must be a table. Use one of the file extensions {', '.join(TABLE_ENDINGS)}."
        )
    tables = (
        add_columns(block.table, {name: pa.array(values) for name, values in columns.items()})
        for block, columns in rows
    )
    with written_aside(path) as aside:
        _write_tables(aside, ending, tables)


def _write_tables(path: Path, ending: str, tables: Iterator[Any]) -> None:
    if ending in TEXT_ENDINGS:
        _write_csv(path, tables, "\t" if ending == ".tsv" else ",")
    else:
        _write_parquet(path, tables)


def add_columns(batch: Any, new: dict[str, Any]) -> Any:
    """A table with new columns.

    An existing column with the name of a new column is renamed to ``raw_...``. If the table already
    has a ``raw_...`` column of this name, the table keeps that column, and the new column replaces
    the existing column.
    """
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if name not in new:
            columns[name] = table.column(name)
        elif f"raw_{name}" not in table.column_names:
            columns[f"raw_{name}"] = table.column(name)
    return pa.table(columns | new)


def _proba_columns(proba: FloatArray, file: ScoreFile, block: FileBlock) -> dict[str, Any]:
    columns = np.asfortranarray(proba).T
    pairs = zip(file.classes.tolist(), columns, strict=True)
    return {f"p_{label}": pa.array(column) for label, column in pairs}


def _top_columns(top: TopScores, file: ScoreFile, block: FileBlock) -> dict[str, Any]:
    """Return the columns of top scores, with the tail mass if the input has it."""
    columns: dict[str, Any] = {}
    for k in range(top.n_known):
        columns[f"top{k + 1}_label"] = pa.array(top.classes[top.labels[:, k]])
        columns[f"top{k + 1}_logprob"] = pa.array(top.log_proba[:, k])
    has_tail = TAIL_COLUMN in block.table.schema.names
    return columns | ({TAIL_COLUMN: pa.array(top.log_rest)} if has_tail else {})


def _write_parquet(path: Path, tables: Iterator[Any]) -> None:
    first = next(tables)
    import pyarrow.parquet as pa_parquet  # imported late, because the import is slow

    with pa_parquet.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _write_csv(path: Path, tables: Iterator[Any], separator: str) -> None:
    """Write tables as text, with quotes only in blocks that need them.

    Arrow itself quotes either all strings of a file or no string.
    """
    with path.open("wb") as file:
        for table in tables:
            if not file.tell():
                file.write(_header(table.column_names, separator))
            style = "needed" if _has_special(table, separator) else "none"
            options = pa_csv.WriteOptions(
                include_header=False, delimiter=separator, quoting_style=style
            )
            pa_csv.write_csv(table, file, options)


def _header(names: list[str], separator: str) -> bytes:
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def _has_special(table: Any, separator: str) -> bool:
    special = f'["\\r\\n{separator}]'
    texts = (column for column in table.columns if pa.types.is_string(column.type))
    return any(pc.any(pc.match_substring_regex(column, special)).as_py() for column in texts)


def _write_arrays(path: Path, file: ScoreFile, rows: Iterable[Scored], ending: str) -> None:
    proba = np.concatenate([scores for _, scores in rows])
    with path.open("wb") as out:
        if ending == ".npy":
            np.save(out, proba)
            return
        arrays = file.reader.arrays if isinstance(file.reader, ArrayReader) else {}
        # Write arrays one by one, because all of them together may not fit in memory.
        with zipfile.ZipFile(out, "w") as archive:
            for name in arrays:
                _add_array(archive, "raw_probs" if name == "probs" else name, arrays[name])
            _add_array(archive, "probs", proba)


def _add_array(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, np.asarray(array[()]), allow_pickle=False)
