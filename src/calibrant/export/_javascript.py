"""Export to a JavaScript (ES) module without imports."""

from __future__ import annotations

import json
from typing import Any

from calibrant.export._boundary import guarded
from calibrant.export._program import NamedOutput, Program
from calibrant.export._source import body, functions, module_values, read_functions

FUNCTIONS = read_functions("functions.js", "function")

_LARGEST_INTEGER = 2**53 - 1

_MODULE = """// A calibrator ({source}), written by calibrant {version}.
//
// A row contains {n_classes} {what}.
// calibrate(row) returns calibrated probabilities in the order of CLASSES.
// predict(row) returns the class with the highest calibrated probability.

export const CLASSES = {classes};
{constants}

{functions}

function values(row) {{
  // Number(x) is not used, because it converts null and empty text to 0.
  const v0 = Array.from(row, x => typeof x === "number" ? x : NaN);
{lines}
  if (v0.length !== CLASSES.length || v{last}.some(Number.isNaN)) {{
    throw new RangeError(`A row must contain ${{CLASSES.length}} {what}.`);
  }}
  return {{{kept}}};
}}

export function calibrate(row) {{
  return values(row)[{last}];
}}

export function predict(row) {{
  const proba = calibrate(row);
  return CLASSES[proba.indexOf(Math.max(...proba))];
}}
{decision}"""

_DECIDE = """
// The results of the decision by name: {names}.
export function decide(row) {{
  const v = values(row);
  return {{
{entries}
  }};
}}
"""


def _decision(program: Program) -> str:
    """Return the function of the named outputs, or an empty string without named outputs."""
    entries = [f"    {entry.name}: {_entry(entry)}," for entry in program.outputs]
    names = ", ".join(entry.name for entry in program.outputs)
    return _DECIDE.format(names=names, entries="\n".join(entries)) if entries else ""


def _entry(output: NamedOutput) -> str:
    value = f"v[{output.value}]"
    if output.labels:
        return f"{_literal(list(output.labels))}[{value}[0]]"
    return f"{value}.length === 1 ? {value}[0] : {value}"


def _check_labels(program: Program) -> None:
    labels = [*program.classes, *(x for entry in program.outputs for x in entry.labels)]
    if any(type(label) is int and abs(label) > _LARGEST_INTEGER for label in labels):
        raise ValueError(
            f"JavaScript rounds integers beyond {_LARGEST_INTEGER:,}, which would change class "
            "labels. Fit the calibrator with strings as labels, such as classes=['no', 'yes']."
        )


def as_javascript(program: Program) -> str:
    """Return the text of an ES module."""
    _check_labels(program)
    program = guarded(program)
    constants, lines = body(program, _literal, "  const {name} = {value};")
    return _MODULE.format(
        **module_values(program, _literal),
        constants="\n".join(f"const {line};" for line in constants),
        functions="\n\n".join(functions(program, FUNCTIONS)),
        lines="\n".join(lines),
        decision=_decision(program),
    )


def _literal(value: Any) -> str:
    """Return JSON with ``<`` escaped, so no label can end the script element of a page."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
