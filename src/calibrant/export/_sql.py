"""Export to an SQL query of common table expressions, without user-defined functions.

Each operation is one expression per column, or a few expressions in sequence. Each table expression
selects from the previous table expression, so the query computes no value twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant._validation import unknown_name
from calibrant.export._boundary import guarded
from calibrant.export._program import NamedOutput, Program
from calibrant.export._sql_ops import DIALECTS, EXPRESSIONS, FREE, Columns, Sql, Write, steps_of

_PREFIX = "calibrant_"
"""Prefix of the names of intermediate columns."""

_EXPERIMENTAL = "-- Experimental: no engine of this dialect executes such queries in the tests.\n"
"""First line of queries in dialects that the tests cannot run."""


_LARGEST = float(np.finfo(np.float64).max)


class _Query:
    """The table expressions of a query under construction."""

    def __init__(self, sql: Sql, keep: Sequence[str]) -> None:
        self.sql = sql
        self.keep = [sql.name(column) for column in keep]
        self.tables: list[str] = []
        self.source = ""
        self.n_columns = 0

    def add(self, expressions: Columns, live: Sequence[str]) -> Columns:
        """Append a table with new columns and the columns in ``live``; return the new names."""
        names = [f"{_PREFIX}{self.n_columns + k}" for k in range(len(expressions))]
        self.n_columns += len(expressions)
        carried = dict.fromkeys([*self.keep, *live])
        new = [f"{text} AS {name}" for text, name in zip(expressions, names, strict=True)]
        table = f"{_PREFIX}step_{len(self.tables)}"
        columns = ",\n  ".join([*carried, *new])
        select = f"SELECT {columns}\n  FROM {self.source}"
        self.tables.append(f"{table} AS {self.sql.dialect.materialized}(\n  {select})")
        self.source = table
        return names


def as_sql(
    program: Program, table: str, columns: Sequence[str], dialect: str, keep: Sequence[str]
) -> str:
    """Return a SQL query that computes the probabilities of a program."""
    if dialect not in DIALECTS:
        raise ValueError(unknown_name("dialect", dialect, DIALECTS))
    _check_columns(program, columns)
    _check_outputs(program, keep)
    sql = Sql(DIALECTS[dialect])
    query = _Query(sql, keep)
    query.source = ".".join(map(sql.name, table.split(".")))
    writer = _Writer(query, guarded(program), columns)
    text = _finish(query, program, writer.run(), writer.outputs())
    return _EXPERIMENTAL + text if sql.dialect.is_experimental else text


def _check_columns(program: Program, columns: Sequence[str]) -> None:
    if len(columns) != program.n_classes or _repeated(columns):
        raise ValueError(
            f"columns must be {program.n_classes} different names of score columns, got "
            f"{len(columns)} names. Pass one name per class, in the order of the classes."
        )


def _repeated(names: Sequence[str]) -> list[str]:
    """Return duplicate names, regardless of case, because engines ignore case."""
    folded = [name.casefold() for name in names]
    return [name for i, name in enumerate(names) if folded[i] in folded[:i]]


def _check_outputs(program: Program, keep: Sequence[str]) -> None:
    """Raise if two columns of the result have the same name."""
    if any(column.casefold().startswith(_PREFIX) for column in keep):
        raise ValueError(
            f"The names of columns in keep= must not begin with {_PREFIX!r}. Rename these columns "
            "in the table."
        )
    repeated = _repeated([*_outputs(program), *keep])
    if repeated:
        raise ValueError(
            f"Two columns of the result would have the name {repeated[0]!r}, regardless of case. "
            "Pass each column in keep= only once, or pass classes=[...] with other names and fit "
            "again."
        )


def _outputs(program: Program) -> list[str]:
    """The columns of the result: the label, one per class, and the columns of named outputs."""
    names = ["calibrated_label", *(f"calibrated_{label}" for label in program.classes)]
    return [*names, *(name for output in program.outputs for name in _columns_of(program, output))]


def _columns_of(program: Program, output: NamedOutput) -> list[str]:
    """The column of a named output, or one per class."""
    width = 1 if output.value == 0 else program.nodes[output.value - 1].width
    if width == 1:
        return [output.name]
    return [f"{output.name}_{label}" for label in program.classes]


class _Writer:
    """Write the table expressions of a program.

    Independent values share tables, so the calibrators of a hundred classes need a few wide tables
    instead of hundreds of tables. A value starts at the step after its last argument is finished. A
    value takes as many steps as it has table expressions.
    """

    def __init__(self, query: _Query, program: Program, columns: Sequence[str]) -> None:
        self.query, self.nodes = query, dict(enumerate(program.nodes, start=1))
        self.kept = [output.value for output in program.outputs]
        self.begin, self.ready = [0], [0]
        for node in program.nodes:
            self.begin.append(max(self.ready[arg] for arg in node.args))
            self.ready.append(self.begin[-1] + len(steps_of(node)))
        self.needed = self._last_reads()
        self.partial: dict[int, list[Columns]] = {number: [] for number in self.nodes}
        self.values = {0: query.add([query.sql.name(name) for name in columns], [])}

    def _last_reads(self) -> list[int]:
        """Return the last step that reads each value."""
        needed = [0] * len(self.ready)
        for number in (-1, *self.kept):
            needed[number] = max(self.ready) + 1
        for number in reversed(self.nodes):
            node = self.nodes[number]
            end = needed[number] if node.op in FREE else self.ready[number]
            for arg in node.args if node.op != "constant" else ():  # a constant reads no value
                needed[arg] = max(needed[arg], end)
        return needed

    def run(self) -> Columns:
        """Write all steps and return the columns of the last value."""
        self._rename(0)
        for step in range(1, max(self.ready) + 1):
            self._write(step)
            self._rename(step)
        return self.values[len(self.nodes)]

    def outputs(self) -> list[Columns]:
        """The columns of the named outputs."""
        return [self.values[number] for number in self.kept]

    def _rename(self, step: int) -> None:
        """Finish the values that only rename columns of finished values."""
        for number, node in self.nodes.items():
            if node.op in FREE and self.ready[number] == step:
                self.values[number] = self._call(EXPRESSIONS[node.op], number)

    def _call(self, write: Write, number: int) -> Columns:
        node = self.nodes[number]
        return write(self.query.sql, [self.values[arg] for arg in node.args], node.constants)

    def _write(self, step: int) -> None:
        """Append one table with the next step of every unfinished value."""
        busy = [n for n in self.nodes if self.begin[n] < step <= self.ready[n]]
        texts = [self._texts(number, step) for number in busy]
        new = iter(self.query.add([text for group in texts for text in group], self._live(step)))
        for number, group in zip(busy, texts, strict=True):
            names = [next(new) for _ in group]
            self.partial[number].append(names)
            if self.ready[number] == step:
                self.values[number] = names

    def _texts(self, number: int, step: int) -> Columns:
        node, steps = self.nodes[number], steps_of(self.nodes[number])
        if len(steps) == 1:
            return self._call(steps[0], number)
        args = [column for arg in node.args for column in self.values[arg]]
        inputs = [args, *self.partial[number]]
        return steps[step - self.begin[number] - 1](self.query.sql, inputs, node.constants)

    def _live(self, step: int) -> list[str]:
        """Return the columns that a later step reads."""
        values = [names for v, names in self.values.items() if self.needed[v] > step]
        partial = [names for n in self.nodes if self.ready[n] > step for names in self.partial[n]]
        return _names([*values, *partial])


def _names(columns: Sequence[Columns]) -> list[str]:
    """Return the names of columns among expressions. Constants have no name."""
    return [name for group in columns for name in group if name.startswith(_PREFIX)]


def _case_of_largest(sql: Sql, value: Columns, largest: str, program: Program) -> str:
    """Return an expression for the label of the class with the largest value."""
    pairs = zip(value, program.classes, strict=True)
    cases = " ".join(f"WHEN {name} = {largest} THEN {sql.text(label)}" for name, label in pairs)
    # In some engines, NaN equals NaN. Without this condition, a row with an overflow would get the
    # label of the first class.
    return f"CASE WHEN NOT {largest} <= {sql.number(_LARGEST)} THEN NULL {cases} END"


def _finish(query: _Query, program: Program, value: Columns, outputs: Sequence[Columns]) -> str:
    sql = query.sql
    largest = query.add([sql.largest(value)], _names([value, *outputs]))[0]
    predicted = _case_of_largest(sql, value, largest, program)
    named = zip(program.outputs, outputs, strict=True)
    decided = [text for pair in named for text in _decided(sql, *pair)]
    label, *names = map(sql.name, _outputs(program))
    aliases = [
        f"{column} AS {name}" for column, name in zip([*value, *decided], names, strict=True)
    ]
    columns = ",\n  ".join([*query.keep, *aliases, f"{predicted} AS {label}"])
    tables = ",\n".join(query.tables)
    return f"WITH {tables}\nSELECT {columns}\nFROM {query.source}\n"


def _decided(sql: Sql, output: NamedOutput, columns: Columns) -> Columns:
    """The columns of a named output, with labels in place of label indices."""
    if not output.labels:
        return columns
    cases = " ".join(
        f"WHEN {columns[0]} = {place} THEN {sql.text(label)}"
        for place, label in enumerate(output.labels)
    )
    return [f"CASE {cases} END"]
