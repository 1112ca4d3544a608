"""Export to a Python module that imports only ``math``."""

from __future__ import annotations

from calibrant.export._boundary import guarded
from calibrant.export._program import NamedOutput, Program
from calibrant.export._source import body, functions, module_values, read_functions

FUNCTIONS = read_functions("functions.py.txt", "def")

_MODULE = '''"""A calibrator ({source}), written by calibrant {version}.

A row contains {n_classes} {what}. ``calibrate(row)`` returns calibrated probabilities in the order
of ``CLASSES``. ``predict(row)`` returns the class with the highest calibrated probability.
"""

import math

CLASSES = {classes}
{constants}


{functions}


def _values(row):
    v0 = [float(x) for x in row]
    if len(v0) != len(CLASSES):
        raise ValueError("A row must contain %d {what}." % len(CLASSES))
{lines}
    if any(p != p for p in v{last}):
        raise ValueError("A row must contain %d {what}." % len(CLASSES))
    return {{{kept}}}


def calibrate(row):
    return _values(row)[{last}]


def predict(row):
    proba = calibrate(row)
    return CLASSES[proba.index(max(proba))]
{decision}'''


_DECIDE = '''

def decide(row):
    """Return the results of the decision by name: {names}."""
    v = _values(row)
    return {{
{entries}
    }}
'''


def _decision(program: Program) -> str:
    """Return the function of the named outputs, or an empty string without named outputs."""
    entries = [f"        {entry.name!a}: {_entry(entry)}," for entry in program.outputs]
    names = ", ".join(entry.name for entry in program.outputs)
    return _DECIDE.format(names=names, entries="\n".join(entries)) if entries else ""


def _entry(output: NamedOutput) -> str:
    value = f"v[{output.value}]"
    if output.labels:
        return f"{list(output.labels)!a}[int({value}[0])]"
    return f"{value}[0] if len({value}) == 1 else {value}"


def as_python(program: Program) -> str:
    """Return the text of a Python module."""
    # Numbers are written with all their digits. Text is quoted, so it cannot run as code.
    program = guarded(program)
    constants, lines = body(program, ascii, "    {name} = {value}")
    return _MODULE.format(
        **module_values(program, ascii),
        constants="\n".join(constants),
        functions="\n\n\n".join(functions(program, FUNCTIONS)),
        lines="\n".join(lines),
        decision=_decision(program),
    )
