"""SQL: one query of common table expressions, without user-defined functions.

Every operation is one expression a column, or a few in a row, and tables follow one another, so
that no value is written twice. Names and text are quoted, numbers have 17 digits and an exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._validation import unknown_name
from calibrant.export._ops import segments
from calibrant.export._program import Label, Node, Program

_SMALLEST_POWER = -700.0
"""Below, an exponential is zero: some engines raise where it underflows."""

_MOST_ARGUMENTS = 50
"""Arguments of one call of greatest or max."""

_PREFIX = "calibrant_"
"""Begins the names of columns that are computed on the way."""

_MOST_TERMS = 2_000_000
"""Products of an affine map that are written down: beyond, no engine reads the query."""


@dataclass(frozen=True)
class Dialect:
    """How an engine wants things written."""

    quote: str = '"'
    greatest: str = "greatest"
    least: str = "least"
    cast: str = ""
    """What follows a number to make it a double."""

    materialized: str = ""
    """What keeps the engine from copying a table expression into those that use it."""

    text_escape: str = "'"
    """What stands before a quote in text; a backslash stands before itself, too."""

    name_escape: str = ""
    """Likewise in names, where it is not the quote itself."""


DIALECTS = {
    "duckdb": Dialect(),
    "sqlite": Dialect(greatest="max", least="min", materialized="MATERIALIZED "),
    "postgres": Dialect(cast="::float8", materialized="MATERIALIZED "),
    "bigquery": Dialect(quote="`", text_escape="\\", name_escape="\\"),
    "snowflake": Dialect(text_escape="\\"),
    "spark": Dialect(quote="`", text_escape="\\"),
}

Columns = list[str]


class _Sql:
    """Expressions in a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def number(self, value: Any) -> str:
        text = f"{float(value):.17e}{self.dialect.cast}"
        return f"({text})" if text.startswith("-") else text

    def name(self, name: str) -> str:
        """A quoted name: of a column or a table."""
        return _quoted(name, self.dialect.quote, self.dialect.name_escape or self.dialect.quote)

    def text(self, label: Label) -> str:
        """A label as a value."""
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        if isinstance(label, int):
            return str(label)
        if isinstance(label, float):
            return self.number(label)
        return _quoted(label, "'", self.dialect.text_escape)

    def exp(self, x: str) -> str:
        low = self.number(_SMALLEST_POWER)
        return f"CASE WHEN {x} < {low} THEN {self.number(0)} ELSE exp({x}) END"

    def total(self, terms: Sequence[str]) -> str:
        """A sum as a balanced tree: engines limit the depth of expressions."""
        if len(terms) == 1:
            return terms[0]
        middle = len(terms) // 2
        return f"({self.total(terms[:middle])} + {self.total(terms[middle:])})"

    def largest(self, terms: Sequence[str]) -> str:
        return self._extreme(self.dialect.greatest, terms)

    def smallest(self, terms: Sequence[str]) -> str:
        return self._extreme(self.dialect.least, terms)

    def _extreme(self, function: str, terms: Sequence[str]) -> str:
        if len(terms) == 1:
            return terms[0]
        cut = range(0, len(terms), _MOST_ARGUMENTS)
        parts = [terms[i : i + _MOST_ARGUMENTS] for i in cut]
        calls = [f"{function}({', '.join(p)})" if len(p) > 1 else p[0] for p in parts]
        return self._extreme(function, calls)

    def choice(self, x: str, edges: Any, values: Sequence[str], side: str) -> str:
        """The value of the piece in which x lies, by halving."""
        if len(values) == 1:
            return values[0]
        middle = len(edges) // 2
        sign = ">" if side == "left" else ">="
        above = self.choice(x, edges[middle + 1 :], values[middle + 1 :], side)
        below = self.choice(x, edges[:middle], values[: middle + 1], side)
        return f"CASE WHEN {x} {sign} {self.number(edges[middle])} THEN {above} ELSE {below} END"

    def of_label(self, label: str, values: Sequence[str]) -> str:
        cases = " ".join(f"WHEN {label} = {k} THEN {value}" for k, value in enumerate(values))
        return f"CASE {cases} END"


def _quoted(text: str, quote: str, escape: str) -> str:
    if "\0" in text or (not text and quote != "'"):
        raise ValueError(f"{text!r} cannot be written in SQL")
    kept = text.replace("\\", "\\\\") if escape == "\\" else text
    return quote + kept.replace(quote, escape + quote) + quote


Write = Callable[[_Sql, list[Columns], Any], Columns]


def _each(expression: Callable[[_Sql, str, Any], str]) -> Write:
    """An operation of single entries."""
    return lambda q, x, c: [expression(q, column, c) for column in x[0]]


def _pairs(sign: str) -> Write:
    def write(q: _Sql, x: list[Columns], c: Any) -> Columns:
        other = x[1] * len(x[0]) if len(x[1]) == 1 else x[1]
        return [f"{a} {sign} {b}" for a, b in zip(x[0], other, strict=True)]

    return write


def _clip(q: _Sql, x: str, c: Any) -> str:
    least, greatest = q.dialect.least, q.dialect.greatest
    return f"{least}({greatest}({x}, {q.number(c['low'])}), {q.number(c['high'])})"


def _when_impossible(q: _Sql, x: str, value: str) -> str:
    """A logit, or a value where it is -inf."""
    lowest = q.number(-np.finfo(np.float64).max)
    return f"CASE WHEN {x} < {lowest} THEN {value} ELSE {x} END"


def _log_expit(q: _Sql, x: str, c: Any) -> str:
    least = f"{q.dialect.least}({x}, {q.number(0)})"
    return f"{least} - ln({q.number(1)} + ({q.exp(f'(-abs({x}))')}))"


def _expit(q: _Sql, x: str, c: Any) -> str:
    one = q.number(1)
    above = f"{one} / ({one} + ({q.exp(f'(-{x})')}))"
    below = f"({q.exp(x)}) / ({one} + ({q.exp(x)}))"
    return f"CASE WHEN {x} >= {q.number(0)} THEN {above} ELSE {below} END"


def _scale(q: _Sql, x: list[Columns], c: Any) -> Columns:
    factor, offset = (np.broadcast_to(c[name], len(x[0])) for name in ("factor", "offset"))
    return [
        f"{column} * {q.number(f)} + {q.number(o)}"
        for column, f, o in zip(x[0], factor, offset, strict=True)
    ]


def _affine(q: _Sql, x: list[Columns], c: Any) -> Columns:
    if c["coef"].size > _MOST_TERMS:
        raise ValueError(
            f"a map with {c['coef'].size:,} coefficients is too long for a query: calibrate by "
            f'StructuredScaling("vector"), or export to ONNX'
        )
    rows = []
    for line, offset in zip(c["coef"], c["offset"], strict=True):
        terms = [f"{q.number(w)} * {column}" for w, column in zip(line, x[0], strict=True)]
        rows.append(f"{q.total(terms)} + {q.number(offset)}")
    return rows


def _mix(q: _Sql, x: list[Columns], c: Any) -> Columns:
    def entry(values: tuple[str, ...]) -> str:
        terms = [f"{q.number(w)} * {v}" for w, v in zip(c["weights"], values, strict=True)]
        return " + ".join([q.number(c["constant"]), *terms])

    return [entry(values) for values in zip(*x, strict=True)]


def _bumps(q: _Sql, x: str, c: Any) -> str:
    terms = []
    for center, height in zip(c["centers"], c["heights"], strict=True):
        far = f"(({x} - {q.number(center)}) / {q.number(c['width'])})"
        terms.append(f"{q.number(height)} * ({q.exp(f'({q.number(-0.5)} * {far} * {far})')})")
    return q.total(terms)


def _interpolate(q: _Sql, x: str, c: Any) -> str:
    pieces = [
        f"{q.number(slope)} * ({x} - {q.number(start)}) + {q.number(height)}"
        if slope
        else q.number(height)
        for start, height, slope in zip(*segments(c["x"], c["y"]), strict=True)
    ]
    return q.choice(x, c["x"], pieces, "right")


def _put(q: _Sql, x: list[Columns], c: Any) -> Columns:
    values = x[2] * len(x[1]) if len(x[2]) == 1 else x[2]

    def entry(k: int, column: str) -> str:
        pairs = zip(x[1], values, strict=True)
        cases = " ".join(f"WHEN {label} = {k} THEN {value}" for label, value in pairs)
        return f"CASE {cases} ELSE {column} END"

    return [entry(k, column) for k, column in enumerate(x[0])]


# Operations of several steps: each step is a table expression, and sees the columns of those
# before it, by the number of the step; 0 are the columns of the arguments, one after the other.
Steps = list[Write]


def _largest(q: _Sql, x: list[Columns], c: Any) -> Columns:
    return [q.largest(x[0])]


def _powers(q: _Sql, x: list[Columns]) -> Columns:
    """Exponentials of entries minus the largest; written again where they are needed, so that
    tables are not twice as wide.
    """
    return [f"({q.exp(f'({column} - {x[1][0]})')})" for column in x[0]]


def _sum_of_powers(q: _Sql, x: list[Columns], c: Any) -> Columns:
    return [q.total(_powers(q, x))]


def _sum(q: _Sql, x: list[Columns], c: Any) -> Columns:
    return [q.total(x[0])]


def _shares(q: _Sql, x: list[Columns], c: Any) -> Columns:
    return [f"{power} / {x[2][0]}" for power in _powers(q, x)]


def _log_shares(q: _Sql, x: list[Columns], c: Any) -> Columns:
    largest, total = x[1][0], x[2][0]
    return [f"({column} - {largest}) - ln({total})" for column in x[0]]


def _floor(q: _Sql, x: list[Columns], c: Any) -> Columns:
    largest, total = x[1][0], x[2][0]
    floor = f"{largest} + ln({total}) + {q.number(np.log(c['eps']))}"
    return [q.smallest([floor, *(_when_impossible(q, column, largest) for column in x[0])])]


def _finite(q: _Sql, x: list[Columns], c: Any) -> Columns:
    return [_when_impossible(q, column, x[3][0]) for column in x[0]]


def _normalized(q: _Sql, x: list[Columns], c: Any) -> Columns:
    empty, total = q.number(c["empty"]), x[-1][0]
    return [f"CASE WHEN {total} > 0 THEN {column} / {total} ELSE {empty} END" for column in x[0]]


def _centred(q: _Sql, x: list[Columns], c: Any) -> Columns:
    return [f"{column} - {x[-1][0]} / {q.number(len(x[0]))}" for column in x[0]]


def _top_steps(count: int) -> Steps:
    """The highest entry, its column, the rest; as often as there are ranks."""
    steps: Steps = []
    for rank in range(count):

        def largest(q: _Sql, x: list[Columns], c: Any, rank: int = rank) -> Columns:
            return [q.largest(x[3 * rank])]

        def label(q: _Sql, x: list[Columns], c: Any, rank: int = rank) -> Columns:
            cases = " ".join(
                f"WHEN {column} = {x[3 * rank + 1][0]} THEN {k}"
                for k, column in enumerate(x[3 * rank])
            )
            return [f"CASE {cases} END"]

        def rest(q: _Sql, x: list[Columns], c: Any, rank: int = rank) -> Columns:
            found, low = x[3 * rank + 2][0], q.number(-1)
            return [
                f"CASE WHEN {found} = {k} THEN {low} ELSE {column} END"
                for k, column in enumerate(x[3 * rank])
            ]

        steps += [largest, label, rest]
    steps[-1] = lambda q, x, c: [x[3 * rank + 2][0] for rank in range(count)]
    return steps


FREE = ("columns", "stack", "constant")
"""Operations that only rename: they need no table expression."""


def steps_of(node: Node) -> Steps:
    """The table expressions of a node, the last of which is its value."""
    if node.op in FREE:
        return []
    if node.op == "top":
        return _top_steps(node.constants["count"])
    return STEPS[node.op] if node.op in STEPS else [EXPRESSIONS[node.op]]


STEPS: dict[str, Steps] = {
    "finite": [_largest, _sum_of_powers, _floor, _finite],
    "softmax": [_largest, _sum_of_powers, _shares],
    "log_softmax": [_largest, _sum_of_powers, _log_shares],
    "normalize": [_sum, _normalized],
    "center": [_sum, _centred],
}

EXPRESSIONS: dict[str, Write] = {
    "clip": _each(_clip),
    "log": _each(lambda q, x, c: f"ln({x})"),
    "log_odds": _each(lambda q, x, c: f"ln({x}) - ln({q.number(1)} - {x})"),
    "log_expit": _each(_log_expit),
    "expit": _each(_expit),
    "divide": _each(lambda q, x, c: f"{x} / {q.number(c['by'])}"),
    "scale": _scale,
    "affine": _affine,
    "sum": _sum,
    "add": _pairs("+"),
    "multiply": _pairs("*"),
    "quotient": _pairs("/"),
    "mix": _mix,
    "step": _each(
        lambda q, x, c: q.choice(x, c["edges"], [q.number(v) for v in c["values"]], c["side"])
    ),
    "interpolate": _each(_interpolate),
    "bumps": _each(_bumps),
    "columns": lambda q, x, c: [x[0][k] for k in c["columns"]],
    "stack": lambda q, x, c: [column for columns in x for column in columns],
    "constant": lambda q, x, c: [q.number(value) for value in c["values"]],
    "take": lambda q, x, c: [q.of_label(label, x[0]) for label in x[1]],
    "put": _put,
}


class _Query:
    """Table expressions as they are written down."""

    def __init__(self, sql: _Sql, keep: Sequence[str]) -> None:
        self.sql = sql
        if any(column.startswith(_PREFIX) for column in keep):
            raise ValueError(f"columns to keep must not begin with {_PREFIX!r}")
        self.keep = [sql.name(column) for column in keep]
        self.tables: list[str] = []
        self.source = ""
        self.n_columns = 0

    def add(self, expressions: Columns, live: Sequence[str]) -> Columns:
        """Append a table with new columns and those that are still needed; the new names."""
        names = [f"{_PREFIX}{self.n_columns + k}" for k in range(len(expressions))]
        self.n_columns += len(expressions)
        kept = dict.fromkeys([*self.keep, *live])
        new = [f"{text} AS {name}" for text, name in zip(expressions, names, strict=True)]
        table = f"{_PREFIX}step_{len(self.tables)}"
        chosen = ",\n  ".join([*kept, *new])
        self.tables.append(
            f"{table} AS {self.sql.dialect.materialized}(\n  SELECT {chosen}\n  FROM {self.source})"
        )
        self.source = table
        return names


def as_sql(
    program: Program, table: str, columns: Sequence[str], dialect: str, keep: Sequence[str]
) -> str:
    """The text of a query."""
    if dialect not in DIALECTS:
        raise ValueError(unknown_name("dialect", dialect, DIALECTS))
    if len(columns) != program.n_classes or len(set(columns)) != len(columns):
        raise ValueError(
            f"columns must name the {program.n_classes} columns of scores, each once and in the "
            f"order of the classes; got {len(columns)}"
        )
    sql = _Sql(DIALECTS[dialect])
    query = _Query(sql, keep)
    query.source = ".".join(map(sql.name, table.split(".")))
    return _finish(query, program, _Writer(query, program, columns).run())


class _Writer:
    """Writes the table expressions of a program, those that do not wait for one another side by
    side: a hundred curves of a hundred classes are a few wide tables, not hundreds of tables.

    Values begin at the step at which the last of their arguments is ready, and take as many steps
    as they have table expressions.
    """

    def __init__(self, query: _Query, program: Program, columns: Sequence[str]) -> None:
        self.query, self.nodes = query, dict(enumerate(program.nodes, start=1))
        self.begin, self.ready = [0], [0]
        for node in program.nodes:
            self.begin.append(max(self.ready[arg] for arg in node.args))
            self.ready.append(self.begin[-1] + len(steps_of(node)))
        self.needed = self._needed()
        self.partial: dict[int, list[Columns]] = {number: [] for number in self.nodes}
        self.values = {0: query.add([query.sql.name(name) for name in columns], [])}

    def _needed(self) -> list[int]:
        """The last step that reads each value."""
        needed = [0] * len(self.ready)
        needed[-1] = max(self.ready) + 1
        for number in reversed(self.nodes):
            node = self.nodes[number]
            end = needed[number] if node.op in FREE else self.ready[number]
            for arg in node.args:
                needed[arg] = max(needed[arg], end)
        return needed

    def run(self) -> Columns:
        """Write all steps; the columns of the last value."""
        self._rename(0)
        for step in range(1, max(self.ready) + 1):
            self._write(step)
            self._rename(step)
        return self.values[len(self.nodes)]

    def _rename(self, step: int) -> None:
        """Values that only rename those that are ready."""
        for number, node in self.nodes.items():
            if node.op in FREE and self.ready[number] == step:
                self.values[number] = self._call(EXPRESSIONS[node.op], number)

    def _call(self, write: Write, number: int) -> Columns:
        node = self.nodes[number]
        return write(self.query.sql, [self.values[arg] for arg in node.args], node.constants)

    def _write(self, step: int) -> None:
        """Append one table: a step of every value that is under way."""
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
        known = [args, *self.partial[number]]
        return steps[step - self.begin[number] - 1](self.query.sql, known, node.constants)

    def _live(self, step: int) -> list[str]:
        """Columns that a later step reads."""
        values = [names for v, names in self.values.items() if self.needed[v] > step]
        begun = [names for n in self.nodes if self.ready[n] > step for names in self.partial[n]]
        return _names([*values, *begun])


def _names(columns: Sequence[Columns]) -> list[str]:
    """The columns among expressions; constants have no name."""
    return [name for group in columns for name in group if name.startswith(_PREFIX)]


def _finish(query: _Query, program: Program, value: Columns) -> str:
    sql = query.sql
    largest = query.add([sql.largest(value)], _names([value]))[0]
    pairs = list(zip(value, program.classes, strict=True))
    cases = " ".join(f"WHEN {name} = {largest} THEN {sql.text(label)}" for name, label in pairs)
    named = [f"{name} AS {sql.name(f'calibrated_{label}')}" for name, label in pairs]
    chosen = ",\n  ".join([*query.keep, *named, f"CASE {cases} END AS calibrated_label"])
    tables = ",\n".join(query.tables)
    return f"WITH {tables}\nSELECT {chosen}\nFROM {query.source}\n"
