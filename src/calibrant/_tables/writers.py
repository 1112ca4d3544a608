"""Calibrated probabilities beside the columns of the input, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from calibrant._files import written_aside
from calibrant._tables.sources import ArraySource, Block, Source
from calibrant._typing import FloatArray

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
        raise ValueError(f"{path} has an ending that is not known: {', '.join(ENDINGS)} are written")
    with written_aside(path) as aside:
        if ending in (".npz", ".npy"):
            writer: Writer = _ArrayWriter(aside, source, ending)
        else:
            writer = _TableWriter(aside, ending, names)
        try:
            yield writer
            writer.finish()
        finally:
            writer.release()


def renamed(table: Any, names: Sequence[str]) -> Any:
    """The table with columns that are called like new ones kept under ``raw_...``."""
    new = set(names)
    return table.rename_columns([f"raw_{name}" if name in new else name for name in table.column_names])


class _TableWriter(Writer):
    def __init__(self, path: Path, ending: str, names: Sequence[str]) -> None:
        self.path, self.ending, self.names = path, ending, [f"p_{name}" for name in names]
        self._writer: Any = None

    def write(self, block: Block, proba: FloatArray) -> None:
        table = block.table if isinstance(block.table, pa.Table) else pa.Table.from_batches([block.table])
        table = renamed(table, self.names)
        for name, column in zip(self.names, np.asfortranarray(proba).T, strict=True):
            table = table.append_column(name, pa.array(column))
        if self._writer is None:
            self._writer = self._opened(table.schema)
        self._writer.write_table(table)

    def _opened(self, schema: Any) -> Any:
        if self.ending in (".parquet", ".pq"):
            return pa_parquet.ParquetWriter(self.path, schema)
        separator = "\t" if self.ending == ".tsv" else ","
        return pa_csv.CSVWriter(
            self.path, schema, write_options=pa_csv.WriteOptions(delimiter=separator, quoting_style="needed")
        )

    def finish(self) -> None:
        pass

    def release(self) -> None:
        if self._writer is not None:
            self._writer.close()


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
            arrays: dict[str, Any] = {("raw_probs" if name == "probs" else name): array for name, array in held.items()}
            np.savez(file, **arrays, probs=proba)

    def release(self) -> None:
        self.parts.clear()
