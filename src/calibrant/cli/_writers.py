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

from calibrant._output.files import written_aside
from calibrant._typing import FloatArray
from calibrant.io._arrays import ArraySource
from calibrant.io._sources import Block, Source

ENDINGS = (".csv", ".tsv", ".parquet", ".pq", ".npz", ".npy")


class Writer(ABC):
    """Takes blocks with their calibrated probabilities."""

    @abstractmethod
    def write(self, block: Block, proba: FloatArray) -> None:
        """Add rows."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left, after the last block."""

    @abstractmethod
    def release(self) -> None:
        """Close the file, whether all went well or not."""


@contextmanager
def open_writer(path: Path, source: Source, names: Sequence[str]) -> Iterator[Writer]:
    """A writer of the format that the ending of ``path`` says; the file is whole or not there."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{path} has an ending that is not known: {', '.join(ENDINGS)} are written"
        )
    with written_aside(path) as aside:
        writer = _make_writer(aside, ending, source, [f"p_{name}" for name in names])
        try:
            yield writer
            writer.finish()
        finally:
            writer.release()


def _make_writer(path: Path, ending: str, source: Source, names: Sequence[str]) -> Writer:
    if ending in (".npz", ".npy"):
        return _ArrayWriter(path, source, ending)
    if ending in (".parquet", ".pq"):
        return _ParquetWriter(path, names)
    return _CsvWriter(path, names, "\t" if ending == ".tsv" else ",")


def extended(batch: Any, proba: FloatArray, names: Sequence[str]) -> Any:
    """A table with the calibrated columns ``names`` added; columns that are called so are kept as
    ``raw_...``, or replaced where such a one is kept already.
    """
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    own = set(table.column_names)
    kept = [n for n in table.column_names if n not in names or f"raw_{n}" not in own]
    columns = [(f"raw_{n}" if n in names else n, table.column(n)) for n in kept]
    added = zip(names, map(pa.array, np.asfortranarray(proba).T), strict=True)
    names_and_columns = [*columns, *added]
    return pa.table(
        [column for _, column in names_and_columns], names=[name for name, _ in names_and_columns]
    )


class _ParquetWriter(Writer):
    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, names
        self._writer: Any = None

    def write(self, block: Block, proba: FloatArray) -> None:
        table = extended(block.table, proba, self.names)
        if self._writer is None:
            self._writer = pa_parquet.ParquetWriter(self.path, table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        pass

    def release(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _CsvWriter(Writer):
    """Text is put in quotes only where it must be: Arrow alone would quote all text of a file, or
    none.
    """

    def __init__(self, path: Path, names: Sequence[str], separator: str) -> None:
        self.names, self.separator = names, separator
        self._file = path.open("wb")
        self._is_new = True

    def write(self, block: Block, proba: FloatArray) -> None:
        table = extended(block.table, proba, self.names)
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


class _ArrayWriter(Writer):
    """Arrays are written at the end: they are held until then."""

    def __init__(self, path: Path, source: Source, ending: str) -> None:
        self.path, self.source, self.ending = path, source, ending
        self.parts: list[FloatArray] = []

    def write(self, block: Block, proba: FloatArray) -> None:
        self.parts.append(proba)

    def finish(self) -> None:
        proba = np.concatenate(self.parts)
        with self.path.open("wb") as file:
            if self.ending == ".npy":
                np.save(file, proba)
                return
            held = self.source.arrays if isinstance(self.source, ArraySource) else {}
            arrays: dict[str, Any] = {
                ("raw_probs" if name == "probs" else name): array for name, array in held.items()
            }
            np.savez(file, **arrays, probs=proba)

    def release(self) -> None:
        self.parts.clear()
