"""Dialects of SQL, and the operations of programs as SQL expressions.

Names and strings are quoted. Numbers are written with 17 digits and an exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.export._ops import segments
from calibrant.export._program import Label, Node

_SMALLEST_POWER = -700.0
"""Exponentials of smaller numbers are replaced by 0, because some engines raise an error for
underflow."""

_MOST_ARGUMENTS = 50
"""Maximum number of arguments in one call of greatest or max."""

_MOST_TERMS = 2_000_000
"""Maximum number of coefficients of an affine function, because engines reject longer queries."""


@dataclass(frozen=True)
class Dialect:
    """The syntax of an engine."""

    quote: str = '"'
    greatest: str = "greatest"
    least: str = "least"
    cast: str = ""
    """Suffix that converts a number to double precision."""

    materialized: str = ""
    """Keyword that makes the engine evaluate a table expression once."""

    text_escape: str = "'"
    """Escape character before a quote in text. A backslash also escapes itself."""

    name_escape: str = ""
    """Escape character before a quote in names. If empty, the quote is doubled."""

    is_experimental: bool = False
    """Whether the tests only parse its queries, because no engine is available to execute them."""


DIALECTS = {
    "duckdb": Dialect(),
    "sqlite": Dialect(greatest="max", least="min", materialized="MATERIALIZED "),
    "postgres": Dialect(cast="::float8", materialized="MATERIALIZED ", is_experimental=True),
    "bigquery": Dialect(quote="`", text_escape="\\", name_escape="\\", is_experimental=True),
    "snowflake": Dialect(text_escape="\\", is_experimental=True),
    "spark": Dialect(quote="`", text_escape="\\", is_experimental=True),
}

Columns = list[str]


class Sql:
    """Write expressions in a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def number(self, value: Any) -> str:
        text = f"{float(value):.17e}{self.dialect.cast}"
        return f"({text})" if text.startswith("-") else text

    def name(self, name: str) -> str:
        """Quote the name of a column or a table."""
        return _quote(name, self.dialect.quote, self.dialect.name_escape or self.dialect.quote)

    def text(self, label: Label) -> str:
        """Write a label as a literal."""
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        if isinstance(label, int):
            return str(label)
        if isinstance(label, float):
            return self.number(label)
        return _quote(label, "'", self.dialect.text_escape)

    def exp(self, x: str) -> str:
        low = self.number(_SMALLEST_POWER)
        return f"CASE WHEN {x} < {low} THEN {self.number(0)} ELSE exp({x}) END"

    def total(self, terms: Sequence[str]) -> str:
        """Write a sum as a balanced tree, because engines limit the depth of expressions."""
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
        """Select the value of the piece that contains x by nested bisection."""
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


def _quote(text: str, quote: str, escape: str) -> str:
    if "\0" in text or (not text and quote != "'"):
        raise ValueError(
            f"{text!r} cannot be written in SQL. Use nonempty names, and labels without NUL "
            "characters."
        )
    escaped = text.replace("\\", "\\\\") if escape == "\\" else text
    return quote + escaped.replace(quote, escape + quote) + quote


Write = Callable[[Sql, list[Columns], Any], Columns]


def _by_entry(expression: Callable[[Sql, str, Any], str]) -> Write:
    """Make an operation from an expression of a single entry."""
    return lambda q, x, c: [expression(q, column, c) for column in x[0]]


def _by_pair(sign: str) -> Write:
    def write(q: Sql, x: list[Columns], c: Any) -> Columns:
        other = x[1] * len(x[0]) if len(x[1]) == 1 else x[1]
        return [f"{a} {sign} {b}" for a, b in zip(x[0], other, strict=True)]

    return write


def _clip(q: Sql, x: str, c: Any) -> str:
    least, greatest = q.dialect.least, q.dialect.greatest
    return f"{least}({greatest}({x}, {q.number(c['low'])}), {q.number(c['high'])})"


def _admit(q: Sql, x: str, c: Any) -> str:
    # Engines treat comparisons with NaN as false, or NaN as the largest number. In both cases,
    # the condition is false.
    low, high = q.number(c["low"] - c["slack"]), q.number(c["high"] + c["slack"])
    return f"CASE WHEN {x} >= {low} AND {x} <= {high} THEN {_clip(q, x, c)} END"


def _coalesce(q: Sql, x: list[Columns], c: Any) -> Columns:
    other = x[1] * len(x[0]) if len(x[1]) == 1 else x[1]
    return [f"coalesce({a}, {b})" for a, b in zip(x[0], other, strict=True)]


def _when_impossible(q: Sql, x: str, value: str) -> str:
    """Replace a logit of -inf by a value."""
    lowest = q.number(-np.finfo(np.float64).max)
    return f"CASE WHEN {x} < {lowest} THEN {value} ELSE {x} END"


def _log_expit(q: Sql, x: str, c: Any) -> str:
    least = f"{q.dialect.least}({x}, {q.number(0)})"
    return f"{least} - ln({q.number(1)} + ({q.exp(f'(-abs({x}))')}))"


def _expit(q: Sql, x: str, c: Any) -> str:
    one = q.number(1)
    above = f"{one} / ({one} + ({q.exp(f'(-{x})')}))"
    below = f"({q.exp(x)}) / ({one} + ({q.exp(x)}))"
    return f"CASE WHEN {x} >= {q.number(0)} THEN {above} ELSE {below} END"


def _scale(q: Sql, x: list[Columns], c: Any) -> Columns:
    factor, offset = (np.broadcast_to(c[name], len(x[0])) for name in ("factor", "offset"))
    return [
        f"{column} * {q.number(f)} + {q.number(o)}"
        for column, f, o in zip(x[0], factor, offset, strict=True)
    ]


def _affine(q: Sql, x: list[Columns], c: Any) -> Columns:
    if c["coef"].size > _MOST_TERMS:
        raise ValueError(
            f"A calibrator with {c['coef'].size:,} coefficients is too large for a query, which "
            f"can have at most {_MOST_TERMS:,} coefficients. "
            'Fit StructuredScaling("vector"), or use to_onnx.'
        )
    rows = []
    for line, offset in zip(c["coef"], c["offset"], strict=True):
        terms = [f"{q.number(w)} * {column}" for w, column in zip(line, x[0], strict=True)]
        rows.append(f"{q.total(terms)} + {q.number(offset)}")
    return rows


def _mix(q: Sql, x: list[Columns], c: Any) -> Columns:
    def entry(values: tuple[str, ...]) -> str:
        terms = [f"{q.number(w)} * {v}" for w, v in zip(c["weights"], values, strict=True)]
        return " + ".join([q.number(c["constant"]), *terms])

    return [entry(values) for values in zip(*x, strict=True)]


def _bumps(q: Sql, x: str, c: Any) -> str:
    terms = []
    for center, height in zip(c["centers"], c["heights"], strict=True):
        far = f"(({x} - {q.number(center)}) / {q.number(c['width'])})"
        terms.append(f"{q.number(height)} * ({q.exp(f'({q.number(-0.5)} * {far} * {far})')})")
    return q.total(terms)


def _interpolate(q: Sql, x: str, c: Any) -> str:
    pieces = [
        f"{q.number(slope)} * ({x} - {q.number(start)}) + {q.number(height)}"
        if slope
        else q.number(height)
        for start, height, slope in zip(*segments(c["x"], c["y"]), strict=True)
    ]
    return q.choice(x, c["x"], pieces, "right")


def _put(q: Sql, x: list[Columns], c: Any) -> Columns:
    values = x[2] * len(x[1]) if len(x[2]) == 1 else x[2]

    def entry(k: int, column: str) -> str:
        pairs = zip(x[1], values, strict=True)
        cases = " ".join(f"WHEN {label} = {k} THEN {value}" for label, value in pairs)
        return f"CASE {cases} ELSE {column} END"

    return [entry(k, column) for k, column in enumerate(x[0])]


# Operations with several steps. Each step is a table expression. The argument x of a step contains
# the columns of earlier steps. x[0] contains the columns of the arguments, and x[i] contains the
# columns of step i.
Steps = list[Write]


def _largest(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [q.largest(x[0])]


def _powers(q: Sql, x: list[Columns]) -> Columns:
    """Write the exponentials of entries minus the largest entry.

    The exponentials are repeated in all expressions that need them, because extra columns would
    double the width of tables.
    """
    return [f"({q.exp(f'({column} - {x[1][0]})')})" for column in x[0]]


def _sum_of_powers(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [q.total(_powers(q, x))]


def _sum(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [q.total(x[0])]


def _shares(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [f"{power} / {x[2][0]}" for power in _powers(q, x)]


def _log_shares(q: Sql, x: list[Columns], c: Any) -> Columns:
    largest, total = x[1][0], x[2][0]
    return [f"({column} - {largest}) - ln({total})" for column in x[0]]


def _log_total(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [f"{x[1][0]} + ln({x[2][0]})"]


def _floor(q: Sql, x: list[Columns], c: Any) -> Columns:
    floor = f"{_log_total(q, x, c)[0]} + {q.number(np.log(c['eps']))}"
    return [q.smallest([floor, *(_when_impossible(q, column, x[1][0]) for column in x[0])])]


def _finite(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [_when_impossible(q, column, x[3][0]) for column in x[0]]


def _normalize(q: Sql, x: list[Columns], c: Any) -> Columns:
    empty, total = q.number(c["empty"]), x[-1][0]
    return [f"CASE WHEN {total} > 0 THEN {column} / {total} ELSE {empty} END" for column in x[0]]


def _center(q: Sql, x: list[Columns], c: Any) -> Columns:
    return [f"{column} - {x[-1][0]} / {q.number(len(x[0]))}" for column in x[0]]


def _top_steps(count: int) -> Steps:
    """Find the largest entry and its column, exclude it, and repeat this for each rank."""
    steps: Steps = []
    for rank in range(count):

        def largest(q: Sql, x: list[Columns], c: Any, rank: int = rank) -> Columns:
            return [q.largest(x[3 * rank])]

        def label(q: Sql, x: list[Columns], c: Any, rank: int = rank) -> Columns:
            cases = " ".join(
                f"WHEN {column} = {x[3 * rank + 1][0]} THEN {k}"
                for k, column in enumerate(x[3 * rank])
            )
            return [f"CASE {cases} END"]

        def rest(q: Sql, x: list[Columns], c: Any, rank: int = rank) -> Columns:
            top, low = x[3 * rank + 2][0], q.number(-1)
            return [
                f"CASE WHEN {top} = {k} THEN {low} ELSE {column} END"
                for k, column in enumerate(x[3 * rank])
            ]

        steps += [largest, label, rest]
    steps[-1] = lambda q, x, c: [x[3 * rank + 2][0] for rank in range(count)]
    return steps


FREE = ("columns", "stack", "constant")
"""Operations that only rename columns and need no table expression."""


def steps_of(node: Node) -> Steps:
    """Return the table expressions of a node.

    The last table expression contains the value of the node.
    """
    if node.op in FREE:
        return []
    if node.op == "top":
        return _top_steps(node.constants["count"])
    return STEPS[node.op] if node.op in STEPS else [EXPRESSIONS[node.op]]


STEPS: dict[str, Steps] = {
    "finite": [_largest, _sum_of_powers, _floor, _finite],
    "softmax": [_largest, _sum_of_powers, _shares],
    "log_softmax": [_largest, _sum_of_powers, _log_shares],
    "log_sum_exp": [_largest, _sum_of_powers, _log_total],
    "normalize": [_sum, _normalize],
    "center": [_sum, _center],
}

EXPRESSIONS: dict[str, Write] = {
    "clip": _by_entry(_clip),
    "admit": _by_entry(_admit),
    "coalesce": _coalesce,
    "log": _by_entry(lambda q, x, c: f"ln({x})"),
    "log_odds": _by_entry(lambda q, x, c: f"ln({x}) - ln({q.number(1)} - {x})"),
    "log_expit": _by_entry(_log_expit),
    "expit": _by_entry(_expit),
    "divide": _by_entry(lambda q, x, c: f"{x} / {q.number(c['by'])}"),
    "scale": _scale,
    "affine": _affine,
    "sum": _sum,
    "add": _by_pair("+"),
    "multiply": _by_pair("*"),
    "quotient": _by_pair("/"),
    "mix": _mix,
    "step": _by_entry(
        lambda q, x, c: q.choice(x, c["edges"], [q.number(v) for v in c["values"]], c["side"])
    ),
    "interpolate": _by_entry(_interpolate),
    "bumps": _by_entry(_bumps),
    "columns": lambda q, x, c: [x[0][k] for k in c["columns"]],
    "stack": lambda q, x, c: [column for columns in x for column in columns],
    "constant": lambda q, x, c: [q.number(value) for value in c["values"]],
    "take": lambda q, x, c: [q.of_label(label, x[0]) for label in x[1]],
    "put": _put,
}
