"""Reader of prediction files in text format with a header line."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from calibrant._validation import ParameterError
from calibrant.io._readers import TableReader
from calibrant.io._roles import FileOptions, ModelScores

_CSV_BYTES = 2**23
"""Number of bytes of a block of a text file. It has about as many scores as a block of other
files."""

_HEADER_BYTES = 2**16
"""Number of bytes of a text file that are searched for its separator."""


class CsvReader(TableReader):
    """Read a text file with a header line. ``.tsv`` files are separated by tabs."""

    keeps_text = False
    keeps_spelling = True

    def __init__(
        self, options: FileOptions, *, needs_label: bool, model: ModelScores | None
    ) -> None:
        is_tsv = options.path.suffix.lower() == ".tsv"
        # A shell passes '\t' as two characters.
        self._separator = {"\\t": "\t"}.get(options.sep or "", options.sep) or "\t,"[not is_tsv]
        self._decimal = options.decimal or "."
        for name, sign in (("sep", self._separator), ("decimal", self._decimal)):
            if len(sign) != 1 or not sign.isascii() or sign in '"\r\n':
                raise ParameterError(
                    f"{{{name}}} must be one character, got {{sign!r}}.", {"sign": sign}
                )
        super().__init__(options, needs_label=needs_label, model=model)

    def _open(self, **convert: Any) -> Any:
        return pa_csv.open_csv(
            self.path,
            read_options=pa_csv.ReadOptions(block_size=_CSV_BYTES),
            parse_options=pa_csv.ParseOptions(
                # Quoted text may contain line ends anywhere in a file.
                delimiter=self._separator,
                newlines_in_values=True,
            ),
            convert_options=pa_csv.ConvertOptions(decimal_point=self._decimal, **convert),
        )

    @cached_property
    def _padded(self) -> list[str]:
        """Return columns of digits that must stay text, because some have leading zeros ("00007").

        All rows are inspected before the first row is written.
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
        self._check_separator()
        with self._open() as reader:
            return reader.schema

    def _check_separator(self) -> None:
        with self.path.open("rb") as file:
            start = file.read(_HEADER_BYTES)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise ValueError(f"{self.path} is encoded as UTF-16. Save the file as UTF-8.")
        head = start.decode("utf-8", "replace").lstrip()
        first = re.split(r"[\r\n]", head, maxsplit=1)[0]
        others = [sign for sign in ";\t|," if sign in first]
        if others and self._separator not in first:
            shown = others[0].replace("\t", "\\t")  # a tab is not visible in a message
            raise ParameterError(
                f"The first line of {{path}} does not contain {{current!r}}. Pass "
                f"{{sep:{shown!r}}} for columns that are separated by {{other!r}}.",
                {"path": self.path, "current": self._separator, "other": others[0]},
            )

    def _batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open(column_types=self._types_of(names), include_columns=names) as reader:
            yield from reader

    def _types_of(self, names: list[str]) -> dict[str, Any]:
        """Types of the columns that Arrow must not infer."""
        columns = self.columns
        if self.keeps_text:
            return dict.fromkeys(names, pa.string())
        text = [*columns.top_labels, *([columns.label] if columns.label else [])]
        text += [name for name in columns.scores if self.kinds[name] == "text"]  # "95%"
        numbers = [*columns.scores, *([columns.weight] if columns.weight else [])]
        types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(text, pa.string())
        if set(names) - set(columns.all_names()):  # columns that are copied, or define groups
            types = dict.fromkeys(self._padded, pa.string()) | types
        wanted = set(names)
        return {name: type_ for name, type_ in types.items() if name in wanted}

    def locate(self, message: str) -> str:
        def with_line(match: re.Match[str]) -> str:
            line = self._line_of(int(match[1]))
            return match[0] if line is None else f"{match[0]} (line {line})"

        return re.sub(r"\b[Rr]ow (\d+)", with_line, super().locate(message), count=1)

    def _line_of(self, row: int) -> int | None:
        """Return the line on which a row ends.

        Because of blank lines and quoted line breaks, the line number can differ from the row
        number.
        """
        with self.path.open(encoding="utf-8", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=self._separator)
            try:
                next(islice((cells for cells in reader if cells), row + 1, None), None)
            except csv.Error:
                return None
            return reader.line_num


def _has_padding(column: Any) -> bool:
    import pyarrow.compute as pc  # imported late, because the import is slow

    return bool(pc.any(pc.match_substring_regex(column, r"^\s*([+]|-?0\d)")).as_py())
