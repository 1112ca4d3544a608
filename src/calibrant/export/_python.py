"""Plain Python: a module that needs nothing but ``math``."""

from __future__ import annotations

from typing import Any

from calibrant import __version__
from calibrant.export._program import Program
from calibrant.export._source import SLACK, body, functions

NEEDS = {"step": "place", "interpolate": "place", "softmax": "exponentials"}
NEEDS |= {"log_softmax": "exponentials", "finite": "exponentials"}

FUNCTIONS: dict[str, str] = {
    "place": """
def place(edges, x, right):
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) // 2
        if edges[middle] < x or (right and edges[middle] == x):
            low = middle + 1
        else:
            high = middle
    return low
""",
    "exponentials": """
def exponentials(row):
    largest = max(row)
    shifted = [x - largest for x in row]
    return shifted, [math.exp(x) for x in shifted]
""",
    "finite": """
def finite(row, eps):
    if -math.inf not in row:
        return row
    shifted, powers = exponentials(row)
    floor = max(row) + math.log(math.fsum(powers)) + math.log(eps)
    floor = min([floor] + [x for x in row if x > -math.inf])
    return [floor if x == -math.inf else x for x in row]
""",
    "clip": """
def clip(row, low, high):
    return [min(max(x, low), high) for x in row]
""",
    "log": """
def log(row):
    return [math.log(x) for x in row]
""",
    "log_odds": """
def log_odds(row):
    return [math.log(x) - math.log1p(-x) for x in row]
""",
    "log_expit": """
def log_expit(row):
    return [min(x, 0.0) - math.log1p(math.exp(-abs(x))) for x in row]
""",
    "expit": """
def expit(row):
    small = [math.exp(-abs(x)) for x in row]
    return [(1.0 if x >= 0 else e) / (1.0 + e) for x, e in zip(row, small)]
""",
    "divide": """
def divide(row, by):
    return [x / by for x in row]
""",
    "scale": """
def scale(row, factor, offset):
    factor = factor * len(row) if len(factor) == 1 else factor
    offset = offset * len(row) if len(offset) == 1 else offset
    return [x * f + o for x, f, o in zip(row, factor, offset)]
""",
    "affine": """
def affine(row, coef, offset):
    return [math.fsum(c * x for c, x in zip(line, row)) + o for line, o in zip(coef, offset)]
""",
    "center": """
def center(row):
    mean = math.fsum(row) / len(row)
    return [x - mean for x in row]
""",
    "softmax": """
def softmax(row):
    shifted, powers = exponentials(row)
    total = math.fsum(powers)
    return [x / total for x in powers]
""",
    "log_softmax": """
def log_softmax(row):
    shifted, powers = exponentials(row)
    log_total = math.log(math.fsum(powers))
    return [x - log_total for x in shifted]
""",
    "sum": """
def sum(row):
    return [math.fsum(row)]
""",
    "normalize": """
def normalize(row, empty):
    total = math.fsum(row)
    return [x / total if total > 0 else empty for x in row]
""",
    "add": """
def add(row, other):
    return [x + y for x, y in zip(row, other * len(row) if len(other) == 1 else other)]
""",
    "multiply": """
def multiply(row, other):
    return [x * y for x, y in zip(row, other * len(row) if len(other) == 1 else other)]
""",
    "quotient": """
def quotient(row, other):
    return [x / y for x, y in zip(row, other * len(row) if len(other) == 1 else other)]
""",
    "mix": """
def mix(rows, weights, constant):
    total = [constant] * len(rows[0])
    for row, weight in zip(rows, weights):
        total = [t + weight * x for t, x in zip(total, row)]
    return total
""",
    "step": """
def step(row, edges, values, right):
    return [values[place(edges, x, right)] for x in row]
""",
    "interpolate": """
def interpolate(row, points, starts, heights, slopes):
    out = []
    for x in row:
        j = place(points, x, True)
        out.append(slopes[j] * (x - starts[j]) + heights[j])
    return out
""",
    "bumps": """
def bumps(row, centers, heights, width):
    out = []
    for x in row:
        far = [(x - c) / width for c in centers]
        out.append(math.fsum(h * math.exp(-0.5 * d * d) for h, d in zip(heights, far)))
    return out
""",
    "top": """
def top(row, count):
    return sorted(range(len(row)), key=lambda k: -row[k])[:count]
""",
    "columns": """
def columns(row, chosen):
    return [row[k] for k in chosen]
""",
    "stack": """
def stack(rows):
    return [x for row in rows for x in row]
""",
    "constant": """
def constant(row, values):
    return list(values)
""",
    "take": """
def take(row, label):
    return [row[int(k)] for k in label]
""",
    "put": """
def put(row, label, values):
    out = list(row)
    for place_, k in enumerate(label):
        out[int(k)] = values[0 if len(values) == 1 else place_]
    return out
""",
}

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
    constants, lines = body(program, _literal, "    {name} = {value}")
    check, what = _CHECKS[program.inputs]
    return _MODULE.format(
        source=program.source,
        version=__version__,
        n_classes=program.n_classes,
        what=what,
        classes=_literal(list(program.classes)),
        constants="\n".join(constants),
        functions="\n\n\n".join(functions(program, FUNCTIONS, NEEDS)),
        check=check,
        lines="\n".join(lines),
        last=len(program.nodes),
    )


def _literal(value: Any) -> str:
    """Numbers with all their digits; text is quoted, so that nothing in it is run."""
    return ascii(value)
