"""Validation inside exported programs, with the rules of `check_scores`.

Every target writes the program that `guarded` returns. Rows that the library rejects are replaced
by equal scores, so no engine fails, and their result is missing (NaN or NULL).
"""

from __future__ import annotations

import math

from calibrant._validation import LARGEST_LOGIT
from calibrant.export._program import Builder, Program
from calibrant.export._values import Value

_SIGN_SLACK = 1e-6
"""Tolerance for entries outside [0, 1], which rounding may cause."""

_SUM_SLACK = 0.05
"""Rows whose sum is further from one are not rounded probabilities."""

_LOG_SUM_SLACK = math.log(1.01)
"""The same for the sum of exponentials of log-probabilities."""

_EXACT_SUM = {"float64": 1e-6, "float32": 1e-3}
"""Rows whose sum is closer to one are not divided by it."""

DESCRIPTIONS = {
    "proba": "probabilities between 0 and 1 that sum to 1",
    "logits": "logits, below 1e30, without NaN, not all -infinity",
    "log_proba": "log-probabilities whose exponentials sum to 1",
}
"""Valid rows in words, by the kind of scores."""

OUTPUTS = ("proba", "log_proba", "logits")


def guarded(program: Program, dtype: str = "float64", output: str = "proba") -> Program:
    """A program that accepts every row, and returns a missing result for invalid rows.

    ``dtype`` is that of the scores. ``output`` is the kind of the result: probabilities, their
    logarithms, or logits.
    """
    scores = Value(Builder(program.n_classes), 0)
    if program.inputs == "proba":
        rows, valid = _admit_proba(scores, _EXACT_SUM[dtype])
    else:
        rows, valid = _admit_logits(scores, program.inputs)
    result = _output(_replay(program, rows), output) * valid
    result.build.last(result.number)
    return result.build.program(program.inputs, program.classes, program.source)


def _admit_proba(scores: Value, exact: float) -> tuple[Value, Value]:
    """Rows that sum to one, and 1 for valid rows, missing for others."""
    entries = scores.admit(0.0, 1.0, _SIGN_SLACK)
    total = entries.sum()
    valid = total.admit(1.0, 1.0, _SUM_SLACK)
    rows = (entries * valid).coalesce(scores.fill(1.0 / scores.width))
    # Dividing by a sum of 1 + 2e-16 would move scores across the edges of bins.
    return rows / total.admit(1.0, 1.0, exact).coalesce(rows.sum()), valid


def _admit_logits(scores: Value, inputs: str) -> tuple[Value, Value]:
    """Rows with a possible class, and 1 for valid rows, missing for others."""
    total = scores.apply("log_sum_exp")
    if inputs == "log_proba":
        total = total.admit(0.0, 0.0, _LOG_SUM_SLACK)
    valid = total.admit(1.0, 1.0, LARGEST_LOGIT)
    return (scores * valid).coalesce(scores.fill(0.0)), valid


def _replay(program: Program, rows: Value) -> Value:
    """The result of a program for the rows of another."""
    numbers = [rows.number]
    for node in program.nodes:
        args = [numbers[arg] for arg in node.args]
        numbers.append(rows.build.append(node.op, args, node.constants))
    return Value(rows.build, numbers[-1])


def _output(proba: Value, output: str) -> Value:
    """Probabilities in another form; the logits of a softmax keep the digits of small values."""
    if output == "proba":
        return proba
    node = proba.build.nodes[proba.number - 1]
    if node.op != "softmax":
        return proba.apply("log")
    logits = Value(proba.build, node.args[0])
    return logits if output == "logits" else logits.apply("log_softmax")
