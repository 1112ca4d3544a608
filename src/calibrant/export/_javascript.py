"""Export to a JavaScript (ES) module without imports."""

from __future__ import annotations

import json
from typing import Any

from calibrant.export._boundary import guarded
from calibrant.export._program import Program
from calibrant.export._source import body, functions, module_values, read_functions

FUNCTIONS = read_functions("functions.js", "function")

_LARGEST_INTEGER = 2**53 - 1

_MODULE = """// A calibrator ({source}), written by calibrant {version}.
//
// calibrate(row) gives the calibrated probabilities of a row of {n_classes} {what},
// in the order of CLASSES; predict(row) the class of the highest.

export const CLASSES = {classes};
{constants}

{functions}

export function calibrate(row) {{
  // Not Number(x): that of null and of empty text is 0.
  const v0 = Array.from(row, x => typeof x === "number" ? x : NaN);
{lines}
  if (v0.length !== CLASSES.length || v{last}.some(Number.isNaN)) {{
    throw new RangeError(`a row must hold ${{CLASSES.length}} {what}`);
  }}
  return v{last};
}}

export function predict(row) {{
  const proba = calibrate(row);
  return CLASSES[proba.indexOf(Math.max(...proba))];
}}
"""


def as_javascript(program: Program) -> str:
    """The text of an ES module."""
    if any(type(label) is int and abs(label) > _LARGEST_INTEGER for label in program.classes):
        raise ValueError(
            f"JavaScript rounds integers beyond {_LARGEST_INTEGER:,}, which would change the "
            "labels. Fit with text labels, classes=[...]."
        )
    program = guarded(program)
    constants, lines = body(program, _literal, "  const {name} = {value};")
    return _MODULE.format(
        **module_values(program, _literal),
        constants="\n".join(f"const {line};" for line in constants),
        functions="\n\n".join(functions(program, FUNCTIONS)),
        lines="\n".join(lines),
    )


def _literal(value: Any) -> str:
    """JSON with ``<`` escaped, so no text can end the script element of a page."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
