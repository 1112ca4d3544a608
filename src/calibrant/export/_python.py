"""Plain Python: a module that needs nothing but ``math``."""

from __future__ import annotations

from calibrant.export._program import Program
from calibrant.export._source import SLACK, body, functions, module_values, read_functions

FUNCTIONS = read_functions("functions.py.txt", "def")

_CHECKS = {
    "proba": ("0.0 <= x <= 1.0", "probabilities between 0 and 1"),
    "logits": ("x < math.inf", "logits, without NaN and inf, not all -inf"),
    "log_proba": (f"x <= {SLACK}", "log-probabilities, not above 0 and not all -inf"),
}

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
    if len(v0) != len(CLASSES) or not all({check} for x in v0) or max(v0) == -math.inf:
        raise ValueError("a row must hold %d {what}" % len(CLASSES))
{lines}
    return v{last}


def predict(row):
    proba = calibrate(row)
    return CLASSES[proba.index(max(proba))]
'''


def as_python(program: Program) -> str:
    """The text of a Python module."""
    # Numbers have all their digits; text is quoted, so nothing in it is run.
    constants, lines = body(program, ascii, "    {name} = {value}")
    return _MODULE.format(
        **module_values(program, _CHECKS, ascii),
        constants="\n".join(constants),
        functions="\n\n\n".join(functions(program, FUNCTIONS)),
        lines="\n".join(lines),
    )
