"""Readers of prediction tables, block by block: scores, labels, weights and other columns."""

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
import pyarrow.ipc

from calibrant._kernels.blocks import WORK_MEMORY
from calibrant._typing import AnyArray, FloatArray
from calibrant.io._roles import FileOptions, ModelScores, choose_columns

_MAX_CLASSES = 10_000
"""Maximum number of different labels. A column with more values is probably an identifier."""

_MAX_BYTES = 2**28
"""Number of uncompressed bytes that a file of any size may declare."""

_MAX_COMPRESSION = 500
"""Largest accepted compression ratio of larger files. Predictions that differ from row to row
compress less."""


def check_size(path: Path, n_bytes: int) -> None:
    """Raise, before memory is allocated, if a file declares far more bytes than its size allows."""
    size = path.stat().st_size
    if n_bytes > max(_MAX_BYTES, _MAX_COMPRESSION * size):
        raise ValueError(
            f"{path} has {size:,} bytes, but declares {n_bytes:,} bytes of data, so it is probably "
            "damaged. If you trust the file, decompress it first."
        )


class FileBlock(NamedTuple):
    """Rows of a file, starting at row ``start``.

    The fields are the scores, the labels as an Arrow array, the weights, and a table of all columns
    that were read.
    """

    start: int
    scores: Any
    labels: Any = None
    weight: FloatArray | None = None
    table: Any = None


class FileReader(ABC):
    """Reader that returns a prediction file block by block.

    ``names`` are the classes in the names of the score columns. ``kinds`` are the types of all
    columns. ``top_labels`` are the columns of the labels of top scores. ``label_kind`` is the type
    of the labels, which may also be "bool". If ``keeps_spelling`` is set, "01" and "1" are
    different labels. ``note`` describes the roles of columns that were guessed.
    """

    path: Path
    names: tuple[str, ...]
    inputs: str
    kinds: Mapping[str, str] = MappingProxyType({})
    top_labels: tuple[str, ...] = ()
    n_rows: int | None = None
    label_kind = ""
    keeps_spelling = False
    note: str | None = None

    @property
    def has_text_labels(self) -> bool:
        """Whether labels are strings or dates, not numbers or booleans."""
        return self.label_kind in ("text", "time")

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of score columns, or 2 if one column is the probability of class 1."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of score columns in the file."""

    @abstractmethod
    def blocks(self, *, all_columns: bool = False) -> Iterator[FileBlock]:
        """Yield the rows, with a table of all columns if ``all_columns`` is set."""

    def distinct_labels(self) -> set[str]:
        """Return the different labels of the file as text.

        The method reads the label column once.
        """
        return self._distinct_labels

    @cached_property
    def _distinct_labels(self) -> set[str]:
        labels: set[str] = set()
        for column in self._label_blocks():
            labels.update(as_text(column).unique().drop_null().to_pylist())
            if len(labels) > _MAX_CLASSES:
                raise ValueError(
                    f"The label column has more than {_MAX_CLASSES:,} different values. Check that "
                    "this column contains the labels."
                )
        return labels

    @abstractmethod
    def _label_blocks(self) -> Iterator[Any]: ...

    def text_column(self, name: str) -> list[str | None]:
        """The column ``name`` of all rows, as text."""
        raise NotImplementedError

    def locate(self, message: str) -> str:
        """An error message, with the line of its row and the name of its column in the file."""
        return message


def open_reader(
    options: FileOptions,
    *,
    needs_label: bool,
    model: ModelScores | None = None,
    keeps_text: bool = False,
) -> FileReader:
    """Open a reader. ``keeps_text`` returns the columns of a CSV file as unchanged text."""
    path = options.path
    if path.is_dir():
        raise ValueError(f"{path} is a directory. Pass a file.")
    if not path.exists():
        raise FileNotFoundError(f"File {path} does not exist.")
    if not path.is_file():  # files are read several times, which a pipe does not allow
        raise ValueError(f"{path} is a pipe or a device. Copy the data to a regular file.")
    ending = path.suffix.lower()
    if ending in (".npz", ".npy"):
        from calibrant.io._array_reader import ArrayReader

        return ArrayReader(options, needs_label=needs_label, model=model)
    if ending in (".csv", ".tsv", ".txt"):
        from calibrant.io._csv_reader import CsvReader

        reader = CsvReader(options, needs_label=needs_label, model=model)
        reader.keeps_text = keeps_text
        return reader
    if ending in (".parquet", ".pq"):
        return ParquetReader(options, needs_label=needs_label, model=model)
    if ending in (".arrow", ".feather"):
        return ArrowReader(options, needs_label=needs_label, model=model)
    raise ValueError(
        f"{path} has an unknown file extension. Pass a file with the extension .csv, .tsv, .txt, "
        ".parquet, .pq, .arrow, .feather, .npz or .npy."
    )


@contextmanager
def _named_errors(path: Path, names: list[str] | None = None) -> Iterator[None]:
    """Add the name of the file to Arrow's errors, and replace column numbers by names."""
    try:
        yield
    except pa.ArrowException as error:
        text = " ".join(str(error).split())
        column = re.search(r"CSV column #(\d+)", text)
        if column and names and int(column[1]) < len(names):
            text = text.replace(column[0], f"column {names[int(column[1])]!r}")
        raise ValueError(f"{path} cannot be read: {text}") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} cannot be read, because it is not valid UTF-8 ({error}). Save the file as "
            "UTF-8."
        ) from None


def as_text(labels: Any) -> Any:
    """Labels as strings, with integers without a decimal point, and booleans as 0 and 1."""
    if isinstance(labels, pa.ChunkedArray):
        labels = labels.combine_chunks()
    if pa.types.is_dictionary(labels.type):
        labels = labels.cast(labels.type.value_type)
    if pa.types.is_boolean(labels.type):
        labels = labels.cast(pa.int8())
    if pa.types.is_floating(labels.type):
        labels = _as_integers(labels)
    if pa.types.is_nested(labels.type):
        raise ValueError(f"Labels must be strings or integers, got values of type {labels.type}.")
    return labels.cast(pa.string())


def _as_integers(labels: Any) -> Any:
    try:
        return labels.cast(pa.int64())
    except pa.ArrowInvalid:
        raise ValueError(
            "Labels must be strings or integers, but the label column contains other numbers. "
            "Check that this column contains the labels."
        ) from None


def _group_text(values: Any) -> Any:
    """Return groups as text. Dates are spelled as in `group_name`, whatever their type is."""
    text = as_text(values)
    if not pa.types.is_timestamp(values.type):
        return text
    import pyarrow.compute as pc  # imported late, because the import is slow

    text = pc.replace_substring(pc.replace_substring_regex(text, r"\.0+$", ""), " ", "T")
    return pc.replace_substring_regex(text, "T00:00:00$", "")


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
    """Read a file of named columns. Subclasses read the schema and batches of their format."""

    _decimal = "."

    def __init__(
        self, options: FileOptions, *, needs_label: bool, model: ModelScores | None
    ) -> None:
        self.path = options.path
        with _named_errors(self.path):
            self.schema = self._read_schema()
            names = self.schema.names  # decodes the names
        self._raise_if_repeated(names)
        self.kinds = {field.name: _kind(field.type) for field in self.schema}
        self.columns = choose_columns(self.kinds, options, needs_label=needs_label, model=model)
        self.inputs, self.top_labels = self.columns.inputs, self.columns.top_labels
        self.names = self.columns.names if len(self.columns.scores) > 1 else ("0", "1")
        self.label_kind = self._label_kind()
        self.note = self.columns.summary() if self.columns.was_guessed else None

    def _raise_if_repeated(self, names: list[str]) -> None:
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise ValueError(
                f"{self.path} has several columns {min(repeated)!r}. Rename or remove duplicate "
                "columns."
            )

    def _label_kind(self) -> str:
        name = self.columns.label
        if name is None:
            return ""
        is_boolean = pa.types.is_boolean(self.schema.field(name).type)
        return "bool" if is_boolean else self.kinds[name]

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
            raise ValueError(f"{self.path} has no rows.")

    def _read_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with _named_errors(self.path, self.schema.names):
            yield from (batch for batch in self._batches(names, rows) if batch.num_rows)

    def text_column(self, name: str) -> list[str | None]:
        batches = self._read_batches([name], WORK_MEMORY // 2)
        return [value for batch in batches for value in _group_text(batch.column(0)).to_pylist()]

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

    def locate(self, message: str) -> str:
        scores = self.columns.scores

        def named(match: re.Match[str]) -> str:
            place = int(match[1])
            if place >= len(scores):
                return match[0]
            # Messages are templates in which braces are parameters, so escape braces in names.
            return f"column {scores[place]!r}".replace("{", "{{").replace("}", "}}")

        return re.sub(r"\bcolumn (\d+)", named, message, count=1)

    def _numbers(self, batch: Any, name: str) -> AnyArray:
        column = batch.column(name)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if is_text or self.kinds[name] == "text":
            import pyarrow.compute as pc  # imported late, because the import is slow

            column = pc.utf8_rtrim(column.cast(pa.string()), "% ")
            column = pc.replace_substring(column, self._decimal, ".")
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _label_blocks(self) -> Iterator[Any]:
        assert self.columns.label is not None
        for batch in self._read_batches([self.columns.label], WORK_MEMORY // 2):
            yield batch.column(0)


class ParquetReader(TableReader):
    """Reader of a Parquet file."""

    def _read_schema(self) -> Any:
        with self._open() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _open(self) -> Any:
        import pyarrow.parquet as pa_parquet  # imported late, because the import is slow

        return pa_parquet.ParquetFile(self.path, pre_buffer=False)

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open() as file:
            yield from file.iter_batches(batch_size=rows, columns=names)


class ArrowReader(TableReader):
    """Read an Arrow file (version 2 of Feather) in its own batches.

    The file is not memory-mapped, because a file that shrinks while it is read would crash the
    process.
    """

    def _read_schema(self) -> Any:
        with self._open() as file:
            return file.schema

    @contextmanager
    def _open(self, columns: list[int] | None = None) -> Iterator[Any]:
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        with pa.OSFile(str(self.path)) as raw, pa.ipc.open_file(raw, options=options) as file:
            yield file

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        place_of = {name: place for place, name in enumerate(self.schema.names)}
        with self._open([place_of[name] for name in names]) as file:
            for place in range(file.num_record_batches):
                batch = file.get_batch(place)
                # In a damaged file, offsets may point outside the buffers.
                batch.validate(full=True)
                batch = batch.select(names)
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)
