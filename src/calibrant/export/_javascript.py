"""JavaScript: an ES module without imports."""

from __future__ import annotations

import json
from typing import Any

from calibrant.export._program import Program
from calibrant.export._source import SLACK, body, functions, module_values, read_functions

FUNCTIONS = read_functions("functions.js", "function")

_CHECKS = {
    "proba": ("x >= 0 && x <= 1", "probabilities between 0 and 1"),
    "logits": ("x < Infinity", "logits, without NaN and Infinity, not all -Infinity"),
    "log_proba": (f"x <= {SLACK}", "log-probabilities, not above 0 and not all -Infinity"),
}

_MODULE = """// A calibrator ({source}), written by calibrant {version}.
//
// calibrate(row) gives the calibrated probabilities of a row of {n_classes} {what},
// in the order of CLASSES; predict(row) the class of the highest.

export const CLASSES = {classes};
{constants}

{functions}

export function calibrate(row) {{
  const v0 = Array.from(row, Number);
  const isRow = v0.length === CLASSES.length && v0.every(x => {check});
  if (!isRow || Math.max(...v0) === -Infinity) {{
    throw new RangeError(`a row must hold ${{CLASSES.length}} {what}`);
  }}
{lines}
  return v{last};
}}

export function predict(row) {{
  const proba = calibrate(row);
  return CLASSES[proba.indexOf(Math.max(...proba))];
}}
"""


def as_javascript(program: Program) -> str:
    """The text of an ES module."""
    constants, lines = body(program, _literal, "  const {name} = {value};")
    return _MODULE.format(
        **module_values(program, _CHECKS, _literal),
        constants="\n".join(f"const {line};" for line in constants),
        functions="\n\n".join(functions(program, FUNCTIONS)),
        lines="\n".join(lines),
    )


def _literal(value: Any) -> str:
    """JSON, in which ``<`` is written so that no text ends a script of a page."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
