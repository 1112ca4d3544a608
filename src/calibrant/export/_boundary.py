"""Validation inside exported programs, with the rules of `check_scores`.

Every target writes the program that `guarded` returns. This program replaces invalid rows by equal
scores, so no engine fails, and returns NaN or NULL for these rows.
"""

from __future__ import annotations

import math
from dataclasses import replace

from calibrant._validation import LARGEST_LOGIT
from calibrant.export._program import Builder, Program
from calibrant.export._values import Value

_SIGN_SLACK = 1e-6
"""Tolerance for entries outside [0, 1]. Rounding may cause such entries."""

_SUM_SLACK = 0.05
"""Largest difference from one of the sum of a row. Rounding does not explain larger differences."""

_LOG_SUM_SLACK = math.log(1.01)
"""Largest absolute logarithm of the sum of a row, for rows of log-probabilities."""

_EXACT_SUM = {"float64": 1e-6, "float32": 1e-3}
"""A row whose sum differs from one by less than this value is not divided by its sum."""

DESCRIPTIONS = {
    "proba": "probabilities between 0 and 1 that sum to 1",
    "logits": "logits, below 1e30, without NaN, not all -infinity",
    "log_proba": "log-probabilities whose exponentials sum to 1",
}
"""Description of valid rows, by the kind of scores."""

OUTPUTS = ("proba", "log_proba", "logits")


def guarded(program: Program, dtype: str = "float64", output: str = "proba") -> Program:
    """Return a program that accepts every row and returns missing values for invalid rows.

    ``dtype`` is the type of the scores. ``output`` is the kind of the result: probabilities, their
    logarithms, or logits.
    """
    scores = Value(Builder(program.n_classes), 0)
    if program.inputs == "proba":
        rows, valid = _admit_proba(scores, _EXACT_SUM[dtype])
    else:
        rows, valid = _admit_logits(scores, program.inputs)
    numbers = _replay(program, rows)
    result = _output(Value(rows.build, numbers[-1]), output) * valid
    outputs = [
        replace(entry, value=(Value(rows.build, numbers[entry.value]) * valid).number)
        for entry in program.outputs
    ]
    result.build.last(result.number)
    return result.build.program(program.inputs, program.classes, program.source, outputs)


def _admit_proba(scores: Value, exact: float) -> tuple[Value, Value]:
    """Return rows that sum to one, and a column with 1 for valid rows and NaN for other rows."""
    entries = scores.admit(0.0, 1.0, _SIGN_SLACK)
    total = entries.sum()
    valid = total.admit(1.0, 1.0, _SUM_SLACK)
    rows = (entries * valid).coalesce(scores.fill(1.0 / scores.width))
    # Dividing by a sum of 1 + 2e-16 would move scores across the edges of bins.
    return rows / total.admit(1.0, 1.0, exact).coalesce(rows.sum()), valid


def _admit_logits(scores: Value, inputs: str) -> tuple[Value, Value]:
    """Return rows with a finite logit, and a column with 1 for valid and NaN for invalid rows."""
    total = scores.apply("log_sum_exp")
    if inputs == "log_proba":
        total = total.admit(0.0, 0.0, _LOG_SUM_SLACK)
    valid = total.admit(1.0, 1.0, LARGEST_LOGIT)
    return (scores * valid).coalesce(scores.fill(0.0)), valid


def _replay(program: Program, rows: Value) -> list[int]:
    """Append the operations of a program to the program of ``rows``, and return their values."""
    numbers = [rows.number]
    for node in program.nodes:
        args = [numbers[arg] for arg in node.args]
        numbers.append(rows.build.append(node.op, args, node.constants))
    return numbers


def _output(proba: Value, output: str) -> Value:
    """Convert probabilities to the kind ``output``."""
    if output == "proba":
        return proba
    # Use the logits of a last softmax, because small probabilities may underflow to zero.
    node = proba.build.nodes[proba.number - 1]
    if node.op != "softmax":
        return proba.apply("log")
    logits = Value(proba.build, node.args[0])
    return logits if output == "logits" else logits.apply("log_softmax")
