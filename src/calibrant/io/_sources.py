"""Files of predictions as blocks of rows: scores, and where they are asked for labels, weights and
all columns.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.ipc
import pyarrow.parquet as pa_parquet

from calibrant._blocks import FILE_ELEMENTS
from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import Message, ParameterError, check_scores
from calibrant.io._roles import Columns, FileOptions, ModelScores, choose_columns

_CSV_BYTES = 2**23
"""Of a block of a text file: about as many scores as those of other files, at eight letters each
and some."""

_LOOKED_AT = 2**20
"""Bytes of a text file that are looked at for quotes."""

_MOST_CLASSES = 10_000
"""Different labels beyond which a column is taken for something else, such as an identifier."""

_MOST_PROMISED = 2**28
"""Bytes that a file may promise whatever its own size."""

_MOST_PACKED = 500
"""Times its own size that a file may promise beyond: predictions that differ from row to row do not
pack so well."""


def check_promise(path: Path, promised: int) -> None:
    """Raise where a file says that it holds far more bytes than it can, before memory is taken for
    them.
    """
    held = path.stat().st_size
    if promised > max(_MOST_PROMISED, _MOST_PACKED * held):
        raise ValueError(
            f"{path} has {held:,} bytes and says that it holds {promised:,}: it is damaged, or "
            f"packed so well that its rows must be all alike; unpack it first if you trust it"
        )


class Block(NamedTuple):
    """Rows of a file from ``start`` on: raw scores, labels as an Arrow array, weights, and a table
    of all columns.
    """

    start: int
    scores: FloatArray
    labels: Any = None
    weight: FloatArray | None = None
    table: Any = None


class Source(ABC):
    """A file of predictions: what its columns are, and its rows block by block."""

    path: Path
    names: tuple[str, ...]
    inputs: str
    n_rows: int | None = None
    has_text_labels = False
    note: str | None = None

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Columns of scores; 2 where one column is the probability of class 1."""

    @abstractmethod
    def blocks(self, *, whole: bool = False) -> Iterator[Block]:
        """The rows; ``whole`` asks for all columns."""

    def distinct_labels(self) -> set[str]:
        """The different labels of the file as text, in a pass over its label column alone."""
        seen: set[str] = set()
        for column in self._label_parts():
            seen.update(as_text(column).unique().drop_null().to_pylist())
            if len(seen) > _MOST_CLASSES:
                raise ValueError(
                    f"the label column holds more than {_MOST_CLASSES:,} different values: is it "
                    f"the label?"
                )
        return seen

    @abstractmethod
    def _label_parts(self) -> Iterator[Any]: ...


def open_source(
    options: FileOptions,
    *,
    needs_label: bool,
    model: ModelScores | None = None,
    as_text: bool = False,
) -> Source:
    """The file that the options are about; ``as_text`` keeps the columns of a CSV file letter by
    letter.
    """
    path = options.path
    if path.is_dir():
        raise ValueError(f"{path} is a directory: give a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    ending = path.suffix.lower()
    if ending in (".npz", ".npy"):
        from calibrant.io._arrays import ArraySource

        return ArraySource(options, needs_label=needs_label, model=model)
    if ending in (".csv", ".tsv", ".txt"):
        return CsvSource(options, needs_label=needs_label, model=model, as_text=as_text)
    if ending in (".parquet", ".pq"):
        return ParquetSource(options, needs_label=needs_label, model=model)
    if ending in (".arrow", ".feather"):
        return ArrowSource(options, needs_label=needs_label, model=model)
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
        raise ValueError(f"{path} cannot be read: it is no text in UTF-8 ({error})") from None


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


def _is_spelt(column: Any) -> bool:
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


class TableSource(Source):
    """A file of named columns; a format says how its schema and its batches are read."""

    def __init__(
        self,
        options: FileOptions,
        *,
        needs_label: bool,
        model: ModelScores | None,
        chosen: Columns | None = None,
    ) -> None:
        self.path = options.path
        self.options = options
        with _named_errors(self.path):
            self.schema = self._read_schema()
        repeated = [name for name, times in Counter(self.schema.names).items() if times > 1]
        if repeated:
            raise ValueError(
                f"{self.path} has several columns {sorted(repeated)[0]!r}: names must be different"
            )
        self.kinds = {field.name: _kind(field.type) for field in self.schema}
        self.columns = chosen or choose_columns(
            self.kinds, options, needs_label=needs_label, model=model
        )
        self.inputs = self.columns.inputs
        self.names = self.columns.names if len(self.columns.scores) > 1 else ("0", "1")
        self.has_text_labels = self.columns.label is not None and self.kinds[
            self.columns.label
        ] in ("text", "time")
        self.note = self.columns.summary() if self.columns.was_guessed else None

    @property
    def n_classes(self) -> int:
        return len(self.names)

    @abstractmethod
    def _read_schema(self) -> Any: ...

    @abstractmethod
    def _batches(self, names: list[str], rows: int) -> Iterator[Any]: ...

    def blocks(self, *, whole: bool = False) -> Iterator[Block]:
        """The rows; ``whole`` asks for all columns."""
        own = [*self.columns.scores, *(c for c in (self.columns.label, self.columns.weight) if c)]
        start = 0
        for batch in self._read_batches(
            self.schema.names if whole else own, max(1, FILE_ELEMENTS // len(self.columns.scores))
        ):
            with _named_errors(self.path):
                block = self._block(batch, start)
            yield block
            start += batch.num_rows
        if start == 0:
            raise ValueError(f"{self.path} has no rows")

    def _read_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with _named_errors(self.path, self.schema.names):
            yield from (batch for batch in self._batches(names, rows) if batch.num_rows)

    def _block(self, batch: Any, start: int) -> Block:
        columns = self.columns
        scores = np.stack([self._numbers(batch, name) for name in columns.scores], axis=1)
        weight = (
            None
            if columns.weight is None
            else self._numbers(batch, columns.weight).astype(np.float64)
        )
        labels = None if columns.label is None else batch.column(columns.label)
        return Block(start, scores if scores.shape[1] > 1 else scores[:, 0], labels, weight, batch)

    def _numbers(self, batch: Any, name: str) -> AnyArray:
        column = batch.column(name)
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _label_parts(self) -> Iterator[Any]:
        assert self.columns.label is not None
        for batch in self._read_batches([self.columns.label], FILE_ELEMENTS):
            yield batch.column(0)


class ParquetSource(TableSource):
    """A Parquet file."""

    def _read_schema(self) -> Any:
        with self._open() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _open(self) -> Any:
        return pa_parquet.ParquetFile(self.path, pre_buffer=False)

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open() as file:
            yield from file.iter_batches(batch_size=rows, columns=names)


class ArrowSource(TableSource):
    """An Arrow file (version 2 of Feather), mapped: its batches are those that were written."""

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


class CsvSource(TableSource):
    """A text file with a line of names; ``.tsv`` is separated by tabs."""

    def __init__(
        self,
        options: FileOptions,
        *,
        needs_label: bool,
        model: ModelScores | None,
        as_text: bool,
        chosen: Columns | None = None,
    ) -> None:
        self.as_text = as_text
        super().__init__(options, needs_label=needs_label, model=model, chosen=chosen)

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
            return b'"' in file.read(_LOOKED_AT)

    @cached_property
    def _spelt(self) -> list[str]:
        """Columns of whole numbers that are written as no number is ("00007"), and so are text:
        looked for in all rows before any is written.
        """
        whole = [name for name, kind in self.kinds.items() if kind == "int"]
        spelt: set[str] = set()
        if not whole:
            return []
        kinds = dict.fromkeys(whole, pa.string())
        with self._open(column_types=kinds, include_columns=whole) as reader:
            for batch in reader:
                columns = zip(batch.schema.names, batch.columns, strict=True)
                spelt.update(name for name, column in columns if _is_spelt(column))
        return sorted(spelt)

    def _read_schema(self) -> Any:
        with self._open() as reader:
            schema = reader.schema
        if len(schema.names) == 1 and ";" in schema.names[0]:
            raise ValueError(
                f"{self.path} is separated by semicolons: commas are read, and tabs in .tsv files"
            )
        return schema

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        columns = self.columns
        numbers = [*columns.scores, *([columns.weight] if columns.weight else [])]
        if self.as_text:
            kinds = dict.fromkeys(names, pa.string())
        else:
            kinds = dict.fromkeys([c for c in numbers if c in names], pa.float64())
            kinds |= {columns.label: pa.string()} if columns.label in names else {}
            if len(names) == len(self.schema.names):
                kinds |= {name: pa.string() for name in self._spelt if name not in kinds}
        with self._open(column_types=kinds, include_columns=names) as reader:
            yield from reader


class Notes:
    """What was repaired in the blocks of a file; the note of the first such block is shown."""

    def __init__(self) -> None:
        self._of_blocks: dict[int, str] = {}

    def of(self, block: Block) -> Callable[[str], None]:
        """What takes the notes of a block, from any thread."""
        return lambda line: self._of_blocks.__setitem__(block.start, line)

    def first(self) -> Message | None:
        """The note of the first block that has one."""
        if not self._of_blocks:
            return None
        return Message(
            "note: {repair}; {renormalize:True} says so",
            {"repair": self._of_blocks[min(self._of_blocks)]},
        )


def check_block(block: Block, source: Source, renormalize: bool, notes: Notes) -> FloatArray:
    """Scores of a block, checked; errors name rows of the file and parameters, and ``notes`` keeps
    what was repaired.
    """
    try:
        return check_scores(
            block.scores,
            inputs=source.inputs,
            hint="say {logits} for raw scores",
            sum_hint="or {renormalize:True} for rounded rows",
            first_row=block.start,
            renormalize=renormalize,
            note=notes.of(block),
        )
    except ValueError as error:
        # The hints are the only braces in a message of numbers.
        raise ParameterError(str(error)) from None
