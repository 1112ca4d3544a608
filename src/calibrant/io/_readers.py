"""Tables of predictions, read as blocks of rows: scores, and if asked for labels, weights and all
columns.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.ipc
import pyarrow.parquet as pa_parquet

from calibrant._kernels.blocks import WORK_MEMORY
from calibrant._typing import AnyArray, FloatArray
from calibrant.io._roles import FileOptions, ModelScores, choose_columns

_CSV_BYTES = 2**23
"""Bytes of a block of a text file: about as many scores as a block of other files has."""

_QUOTE_BYTES = 2**20
"""Bytes of a text file in which quotes are looked for."""

_MAX_CLASSES = 10_000
"""Different labels beyond which a column is something else, such as an identifier."""

_MAX_BYTES = 2**28
"""Bytes that a file may announce whatever its size."""

_MAX_COMPRESSION = 500
"""Times its own size that a larger file may announce: predictions that differ from row to row do
not compress so well."""


def check_size(path: Path, n_bytes: int) -> None:
    """Raise if a file announces far more bytes than it can hold, before memory is taken for
    them.
    """
    size = path.stat().st_size
    if n_bytes > max(_MAX_BYTES, _MAX_COMPRESSION * size):
        raise ValueError(
            f"{path} has {size:,} bytes and says that it holds {n_bytes:,}: it is damaged, or "
            f"packed so well that its rows must be all alike; unpack it first if you trust it"
        )


class FileBlock(NamedTuple):
    """Rows of a file from ``start`` on: scores, labels as an Arrow array, weights, and a table of
    the columns that were read.
    """

    start: int
    scores: Any
    labels: Any = None
    weight: FloatArray | None = None
    table: Any = None


class FileReader(ABC):
    """Reads a file of predictions block by block.

    ``names`` are the classes that the score columns are named after, ``kinds`` the types of all
    columns, ``top_labels`` the columns of the labels of top scores. ``note`` says what was guessed.
    """

    path: Path
    names: tuple[str, ...]
    inputs: str
    kinds: Mapping[str, str] = MappingProxyType({})
    top_labels: tuple[str, ...] = ()
    n_rows: int | None = None
    has_text_labels = False
    note: str | None = None

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of score columns; 2 if one column is the probability of class 1."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of score columns in the file."""

    @abstractmethod
    def blocks(self, *, all_columns: bool = False) -> Iterator[FileBlock]:
        """The rows, with a table of all columns if asked for."""

    def distinct_labels(self) -> set[str]:
        """The different labels of the file as text, in a pass over its label column alone."""
        labels: set[str] = set()
        for column in self._label_blocks():
            labels.update(as_text(column).unique().drop_null().to_pylist())
            if len(labels) > _MAX_CLASSES:
                raise ValueError(
                    f"the label column holds more than {_MAX_CLASSES:,} different values: is it "
                    f"the label?"
                )
        return labels

    @abstractmethod
    def _label_blocks(self) -> Iterator[Any]: ...

    def text_column(self, name: str) -> list[str | None]:
        """One of ``kinds`` as text, for all rows."""
        raise NotImplementedError


def open_reader(
    options: FileOptions,
    *,
    needs_label: bool,
    model: ModelScores | None = None,
    keeps_text: bool = False,
) -> FileReader:
    """The reader of a file; ``keeps_text`` leaves the columns of a CSV file as they are written."""
    path = options.path
    if path.is_dir():
        raise ValueError(f"{path} is a directory: give a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    ending = path.suffix.lower()
    if ending in (".npz", ".npy"):
        from calibrant.io._array_reader import ArrayReader

        return ArrayReader(options, needs_label=needs_label, model=model)
    if ending in (".csv", ".tsv", ".txt"):
        reader = CsvReader(options, needs_label=needs_label, model=model)
        reader.keeps_text = keeps_text
        return reader
    if ending in (".parquet", ".pq"):
        return ParquetReader(options, needs_label=needs_label, model=model)
    if ending in (".arrow", ".feather"):
        return ArrowReader(options, needs_label=needs_label, model=model)
    raise ValueError(
        f"{path} has an ending that is not known: CSV, Parquet, Arrow, .npz and .npy files are read"
    )


@contextmanager
def _named_errors(path: Path, names: list[str] | None = None) -> Iterator[None]:
    """Arrow's errors with the name of the file, and of the column where they give its number."""
    try:
        yield
    except pa.ArrowException as error:
        text = " ".join(str(error).split())
        column = re.search(r"CSV column #(\d+)", text)
        if column and names and int(column[1]) < len(names):
            text = text.replace(column[0], f"column {names[int(column[1])]!r}")
        raise ValueError(f"{path} cannot be read: {text}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read: it is not valid UTF-8 ({error})") from None


def as_text(labels: Any) -> Any:
    """Labels as an array of text; whole numbers without a decimal point, booleans as 0 and 1."""
    if isinstance(labels, pa.ChunkedArray):
        labels = labels.combine_chunks()
    if pa.types.is_dictionary(labels.type):
        labels = labels.cast(labels.type.value_type)
    if pa.types.is_boolean(labels.type):
        labels = labels.cast(pa.int8())
    if pa.types.is_floating(labels.type):
        try:
            labels = labels.cast(pa.int64())
        except pa.ArrowInvalid:
            raise ValueError(
                "labels must be names or whole numbers, and the label column holds fractions"
            ) from None
    if pa.types.is_nested(labels.type):
        raise ValueError(f"labels must be names or whole numbers, not of type {labels.type}")
    return labels.cast(pa.string())


def _has_padding(column: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, r"^\s*([+]|-?0\d)")).as_py())


def _kind(dtype: Any) -> str:
    if pa.types.is_floating(dtype) or pa.types.is_decimal(dtype) or pa.types.is_null(dtype):
        return "float"
    if pa.types.is_integer(dtype) or pa.types.is_boolean(dtype):
        return "int"
    if pa.types.is_dictionary(dtype):
        return _kind(dtype.value_type)
    if pa.types.is_temporal(dtype):
        return "time"
    is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return "text" if any(is_kind(dtype) for is_kind in is_text) else "other"


class TableReader(FileReader):
    """Reads a file of named columns; a format says how its schema and its batches are read."""

    def __init__(
        self, options: FileOptions, *, needs_label: bool, model: ModelScores | None
    ) -> None:
        self.path = options.path
        with _named_errors(self.path):
            self.schema = self._read_schema()
        repeated = [name for name, times in Counter(self.schema.names).items() if times > 1]
        if repeated:
            raise ValueError(
                f"{self.path} has several columns {sorted(repeated)[0]!r}: names must be different"
            )
        self.kinds = {field.name: _kind(field.type) for field in self.schema}
        self.columns = choose_columns(self.kinds, options, needs_label=needs_label, model=model)
        self.inputs, self.top_labels = self.columns.inputs, self.columns.top_labels
        self.names = self.columns.names if len(self.columns.scores) > 1 else ("0", "1")
        self.has_text_labels = self.kinds.get(self.columns.label or "") in ("text", "time")
        self.note = self.columns.summary() if self.columns.was_guessed else None

    @property
    def n_classes(self) -> int:
        return len(self.names)

    @property
    def n_features(self) -> int:
        return len(self.columns.scores)

    @abstractmethod
    def _read_schema(self) -> Any: ...

    @abstractmethod
    def _batches(self, names: list[str], rows: int) -> Iterator[Any]: ...

    def blocks(self, *, all_columns: bool = False) -> Iterator[FileBlock]:
        start, names = 0, self.schema.names if all_columns else self.columns.all_names()
        n_rows = max(1, WORK_MEMORY // 2 // len(self.columns.scores))
        for batch in self._read_batches(names, n_rows):
            with _named_errors(self.path):
                block = self._block(batch, start)
            yield block
            start += batch.num_rows
        if start == 0:
            raise ValueError(f"{self.path} has no rows")

    def _read_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with _named_errors(self.path, self.schema.names):
            yield from (batch for batch in self._batches(names, rows) if batch.num_rows)

    def text_column(self, name: str) -> list[str | None]:
        batches = self._read_batches([name], WORK_MEMORY // 2)
        return [value for batch in batches for value in as_text(batch.column(0)).to_pylist()]

    def _block(self, batch: Any, start: int) -> FileBlock:
        columns = self.columns
        scores = np.stack([self._numbers(batch, name) for name in columns.scores], axis=1)
        weight = (
            None
            if columns.weight is None
            else self._numbers(batch, columns.weight).astype(np.float64)
        )
        labels = None if columns.label is None else batch.column(columns.label)
        scores = scores if scores.shape[1] > 1 else scores[:, 0]
        return FileBlock(start, scores, labels, weight, batch)

    def _numbers(self, batch: Any, name: str) -> AnyArray:
        column = batch.column(name)
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _label_blocks(self) -> Iterator[Any]:
        assert self.columns.label is not None
        for batch in self._read_batches([self.columns.label], WORK_MEMORY // 2):
            yield batch.column(0)


class ParquetReader(TableReader):
    """Reads a Parquet file."""

    def _read_schema(self) -> Any:
        with self._open() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _open(self) -> Any:
        return pa_parquet.ParquetFile(self.path, pre_buffer=False)

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open() as file:
            yield from file.iter_batches(batch_size=rows, columns=names)


class ArrowReader(TableReader):
    """Reads an Arrow file (version 2 of Feather) by a memory map, in the batches that it holds."""

    def _read_schema(self) -> Any:
        with self._open() as file:
            return file.schema

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with pa.memory_map(str(self.path)) as mapped, pa.ipc.open_file(mapped) as file:
            yield file

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open() as file:
            for place in range(file.num_record_batches):
                batch = file.get_batch(place).select(names)
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


class CsvReader(TableReader):
    """Reads a text file with a line of names; ``.tsv`` is separated by tabs."""

    keeps_text = False

    def _open(self, **convert: Any) -> Any:
        return pa_csv.open_csv(
            self.path,
            read_options=pa_csv.ReadOptions(block_size=_CSV_BYTES),
            parse_options=pa_csv.ParseOptions(
                delimiter="\t" if self.path.suffix.lower() == ".tsv" else ",",
                newlines_in_values=self._has_quotes,
            ),
            convert_options=pa_csv.ConvertOptions(**convert),
        )

    @cached_property
    def _has_quotes(self) -> bool:
        """Whether text may hold line ends: looking for them is slower."""
        with self.path.open("rb") as file:
            return b'"' in file.read(_QUOTE_BYTES)

    @cached_property
    def _padded(self) -> list[str]:
        """Columns of digits that are text, because some are written as no number is ("00007"): all
        rows are looked at before any is written.
        """
        integers = [name for name, kind in self.kinds.items() if kind == "int"]
        padded: set[str] = set()
        if not integers:
            return []
        types = dict.fromkeys(integers, pa.string())
        with self._open(column_types=types, include_columns=integers) as reader:
            for batch in reader:
                columns = zip(batch.schema.names, batch.columns, strict=True)
                padded.update(name for name, column in columns if _has_padding(column))
        return sorted(padded)

    def _read_schema(self) -> Any:
        with self._open() as reader:
            schema = reader.schema
        if len(schema.names) == 1 and ";" in schema.names[0]:
            raise ValueError(
                f"{self.path} is separated by semicolons: commas are read, and tabs in .tsv files"
            )
        return schema

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open(column_types=self._types_of(names), include_columns=names) as reader:
            yield from reader

    def _types_of(self, names: list[str]) -> dict[str, Any]:
        """Types of columns that are not left to Arrow."""
        columns = self.columns
        if self.keeps_text:
            return dict.fromkeys(names, pa.string())
        text = [*columns.top_labels, *([columns.label] if columns.label else [])]
        numbers = [*columns.scores, *([columns.weight] if columns.weight else [])]
        types = dict.fromkeys(text, pa.string()) | dict.fromkeys(numbers, pa.float64())
        if len(names) == len(self.schema.names):
            types = dict.fromkeys(self._padded, pa.string()) | types
        return {name: type_ for name, type_ in types.items() if name in names}
