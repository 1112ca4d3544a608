"""Calibrated probabilities beside the columns of the input, block by block."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from calibrant._data.top_scores import TopScores
from calibrant._output.files import written_aside
from calibrant._typing import FloatArray
from calibrant.io._array_reader import ArrayReader
from calibrant.io._readers import FileBlock, FileReader
from calibrant.io._roles import TAIL_COLUMN
from calibrant.io._score_file import ScoreFile

ARRAY_ENDINGS = (".npz", ".npy")
ENDINGS = (".csv", ".tsv", ".parquet", ".pq", *ARRAY_ENDINGS)


class ScoreWriter(ABC):
    """Writes blocks with their calibrated scores: probabilities, or top scores."""

    @abstractmethod
    def write(self, block: FileBlock, scores: Any) -> None:
        """Add rows."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left, after the last block."""

    @abstractmethod
    def release(self) -> None:
        """Close the file, whether all went well or not."""


@contextmanager
def open_writer(path: Path, file: ScoreFile) -> Iterator[ScoreWriter]:
    """A writer of the format that the ending of ``path`` says; the file is whole or not there."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{path} has an ending that is not known: {', '.join(ENDINGS)} are written"
        )
    if ending in ARRAY_ENDINGS and file.has_top_scores:
        raise ValueError(
            f"{path} would hold arrays, and top scores are columns of a table. Write a .csv or "
            ".parquet file."
        )
    with written_aside(path) as aside:
        writer = _make_writer(aside, ending, file)
        try:
            yield writer
            writer.finish()
        finally:
            writer.release()


def _make_writer(path: Path, ending: str, file: ScoreFile) -> ScoreWriter:
    if ending in ARRAY_ENDINGS:
        return _ArrayWriter(path, file.reader, ending)
    names = [f"p_{label}" for label in file.classes.tolist()]
    if ending in (".parquet", ".pq"):
        return _ParquetWriter(path, names)
    return _CsvWriter(path, names, "\t" if ending == ".tsv" else ",")


def add_scores(batch: Any, scores: Any, names: Sequence[str]) -> Any:
    """A table with columns of calibrated scores, called ``names`` unless they are top scores.

    A column of the table that is called so is kept as ``raw_...``, or replaced if such a column is
    there already.
    """
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    if isinstance(scores, TopScores):
        new = _top_columns(scores, table.column_names)
    else:
        columns = np.asfortranarray(scores).T
        new = {name: pa.array(column) for name, column in zip(names, columns, strict=True)}
    kept: dict[str, Any] = {}
    for name in table.column_names:
        if name not in new:
            kept[name] = table.column(name)
        elif f"raw_{name}" not in table.column_names:
            kept[f"raw_{name}"] = table.column(name)
    return pa.table(kept | new)


def _top_columns(top: TopScores, names: Sequence[str]) -> dict[str, Any]:
    """The columns of top scores; the tail mass is written if the input has it."""
    columns: dict[str, Any] = {}
    for k in range(top.n_known):
        columns[f"top{k + 1}_label"] = pa.array(top.classes[top.labels[:, k]])
        columns[f"top{k + 1}_logprob"] = pa.array(top.log_proba[:, k])
    return columns | ({TAIL_COLUMN: pa.array(top.log_rest)} if TAIL_COLUMN in names else {})


class _ParquetWriter(ScoreWriter):
    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, names
        self._writer: Any = None

    def write(self, block: FileBlock, scores: Any) -> None:
        table = add_scores(block.table, scores, self.names)
        if self._writer is None:
            self._writer = pa_parquet.ParquetWriter(self.path, table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        pass

    def release(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _CsvWriter(ScoreWriter):
    """Text is put in quotes only where it must be: Arrow alone would quote all text of a file, or
    none.
    """

    def __init__(self, path: Path, names: Sequence[str], separator: str) -> None:
        self.names, self.separator = names, separator
        self._file = path.open("wb")
        self._is_new = True

    def write(self, block: FileBlock, scores: Any) -> None:
        table = add_scores(block.table, scores, self.names)
        if self._is_new:
            line = io.StringIO()
            csv.writer(line, delimiter=self.separator, lineterminator="\n").writerow(
                table.column_names
            )
            self._file.write(line.getvalue().encode())
            self._is_new = False
        style = "needed" if self._has_special(table) else "none"
        options = pa_csv.WriteOptions(
            include_header=False, delimiter=self.separator, quoting_style=style
        )
        pa_csv.write_csv(table, self._file, options)

    def _has_special(self, table: Any) -> bool:
        special = f'["\\r\\n{self.separator}]'
        texts = (column for column in table.columns if pa.types.is_string(column.type))
        return any(pc.any(pc.match_substring_regex(column, special)).as_py() for column in texts)

    def finish(self) -> None:
        pass

    def release(self) -> None:
        self._file.close()


class _ArrayWriter(ScoreWriter):
    """Arrays are written at the end: they are held until then."""

    def __init__(self, path: Path, reader: FileReader, ending: str) -> None:
        self.path, self.reader, self.ending = path, reader, ending
        self.blocks: list[FloatArray] = []

    def write(self, block: FileBlock, scores: Any) -> None:
        self.blocks.append(scores)

    def finish(self) -> None:
        proba = np.concatenate(self.blocks)
        with self.path.open("wb") as file:
            if self.ending == ".npy":
                np.save(file, proba)
                return
            kept = self.reader.arrays if isinstance(self.reader, ArrayReader) else {}
            arrays: dict[str, Any] = {
                ("raw_probs" if name == "probs" else name): array for name, array in kept.items()
            }
            np.savez(file, **arrays, probs=proba)

    def release(self) -> None:
        self.blocks.clear()
