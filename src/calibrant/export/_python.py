"""Export to a Python module that imports only ``math``."""

from __future__ import annotations

from calibrant.export._boundary import guarded
from calibrant.export._program import Program
from calibrant.export._source import body, functions, module_values, read_functions

FUNCTIONS = read_functions("functions.py.txt", "def")

_MODULE = '''"""A calibrator ({source}), written by calibrant {version}.

``calibrate(row)`` gives the calibrated probabilities of a row of {n_classes} {what}, in the order
of ``CLASSES``; ``predict(row)`` the class of the highest.
"""

import math

CLASSES = {classes}
{constants}


{functions}


def calibrate(row):
    v0 = [float(x) for x in row]
    if len(v0) != len(CLASSES):
        raise ValueError("a row must hold %d {what}" % len(CLASSES))
{lines}
    if any(p != p for p in v{last}):
        raise ValueError("a row must hold %d {what}" % len(CLASSES))
    return v{last}


def predict(row):
    proba = calibrate(row)
    return CLASSES[proba.index(max(proba))]
'''


def as_python(program: Program) -> str:
    """The text of a Python module."""
    # Numbers have all their digits. Text is quoted, so none of it can run as code.
    program = guarded(program)
    constants, lines = body(program, ascii, "    {name} = {value}")
    return _MODULE.format(
        **module_values(program, ascii),
        constants="\n".join(constants),
        functions="\n\n\n".join(functions(program, FUNCTIONS)),
        lines="\n".join(lines),
    )
