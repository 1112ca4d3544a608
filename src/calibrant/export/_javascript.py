"""JavaScript: an ES module without imports."""

from __future__ import annotations

import json
from typing import Any

from calibrant import __version__
from calibrant.export._program import Program
from calibrant.export._source import SLACK, body, functions

NEEDS = {"step": "place", "interpolate": "place", "softmax": "total", "log_softmax": "total"}
NEEDS |= {"affine": "total", "center": "total", "sum": "total", "normalize": "total"}
NEEDS |= {"bumps": "total", "finite": "total"}
NEEDS |= {"scale": "entry", "add": "entry", "multiply": "entry", "quotient": "entry"}
NEEDS |= {"put": "entry"}

FUNCTIONS: dict[str, str] = {
    # A compensated sum (Neumaier): JavaScript has none.
    "total": """
function total(row) {
  let sum = 0, lost = 0;
  for (const x of row) {
    const next = sum + x;
    lost += Math.abs(sum) >= Math.abs(x) ? (sum - next) + x : (x - next) + sum;
    sum = next;
  }
  return sum + lost;
}
""",
    "place": """
function place(edges, x, right) {
  let low = 0, high = edges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] < x || (right && edges[middle] === x)) low = middle + 1;
    else high = middle;
  }
  return low;
}
""",
    "entry": """
function entry(row, k) {
  return row.length === 1 ? row[0] : row[k];
}
""",
    "finite": """
function finite(row, eps) {
  if (!row.includes(-Infinity)) return row;
  const largest = Math.max(...row);
  const sum = total(row.map(x => Math.exp(x - largest)));
  const floor = largest + Math.log(sum) + Math.log(eps);
  const least = Math.min(floor, ...row.filter(x => x > -Infinity));
  return row.map(x => x === -Infinity ? least : x);
}
""",
    "clip": """
function clip(row, low, high) {
  return row.map(x => Math.min(Math.max(x, low), high));
}
""",
    "log": """
function log(row) {
  return row.map(Math.log);
}
""",
    "log_odds": """
function log_odds(row) {
  return row.map(x => Math.log(x) - Math.log1p(-x));
}
""",
    "log_expit": """
function log_expit(row) {
  return row.map(x => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))));
}
""",
    "expit": """
function expit(row) {
  return row.map(x => {
    const small = Math.exp(-Math.abs(x));
    return (x >= 0 ? 1 : small) / (1 + small);
  });
}
""",
    "divide": """
function divide(row, by) {
  return row.map(x => x / by);
}
""",
    "scale": """
function scale(row, factor, offset) {
  return row.map((x, k) => x * entry(factor, k) + entry(offset, k));
}
""",
    "affine": """
function affine(row, coef, offset) {
  return coef.map((line, j) => total(line.map((c, k) => c * row[k])) + offset[j]);
}
""",
    "center": """
function center(row) {
  const mean = total(row) / row.length;
  return row.map(x => x - mean);
}
""",
    "softmax": """
function softmax(row) {
  const largest = Math.max(...row);
  const powers = row.map(x => Math.exp(x - largest));
  const sum = total(powers);
  return powers.map(x => x / sum);
}
""",
    "log_softmax": """
function log_softmax(row) {
  const largest = Math.max(...row);
  const shifted = row.map(x => x - largest);
  const sum = Math.log(total(shifted.map(Math.exp)));
  return shifted.map(x => x - sum);
}
""",
    "sum": """
function sum(row) {
  return [total(row)];
}
""",
    "normalize": """
function normalize(row, empty) {
  const all = total(row);
  return row.map(x => all > 0 ? x / all : empty);
}
""",
    "add": """
function add(row, other) {
  return row.map((x, k) => x + entry(other, k));
}
""",
    "multiply": """
function multiply(row, other) {
  return row.map((x, k) => x * entry(other, k));
}
""",
    "quotient": """
function quotient(row, other) {
  return row.map((x, k) => x / entry(other, k));
}
""",
    "mix": """
function mix(rows, weights, constant) {
  return rows[0].map((_, k) => rows.reduce((sum, row, i) => sum + weights[i] * row[k], constant));
}
""",
    "step": """
function step(row, edges, values, right) {
  return row.map(x => values[place(edges, x, right)]);
}
""",
    "interpolate": """
function interpolate(row, points, starts, heights, slopes) {
  return row.map(x => {
    const j = place(points, x, true);
    return slopes[j] * (x - starts[j]) + heights[j];
  });
}
""",
    "bumps": """
function bumps(row, centers, heights, width) {
  return row.map(x => total(centers.map((c, j) => {
    const far = (x - c) / width;
    return heights[j] * Math.exp(-0.5 * far * far);
  })));
}
""",
    "top": """
function top(row, count) {
  return row.map((_, k) => k).sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
}
""",
    "columns": """
function columns(row, chosen) {
  return chosen.map(k => row[k]);
}
""",
    "stack": """
function stack(rows) {
  return rows.flat();
}
""",
    "constant": """
function constant(row, values) {
  return values;
}
""",
    "take": """
function take(row, label) {
  return label.map(k => row[k]);
}
""",
    "put": """
function put(row, label, values) {
  const out = [...row];
  label.forEach((k, place) => { out[k] = entry(values, place); });
  return out;
}
""",
}

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
    check, what = _CHECKS[program.inputs]
    return _MODULE.format(
        source=program.source,
        version=__version__,
        n_classes=program.n_classes,
        what=what,
        classes=_literal(list(program.classes)),
        constants="\n".join(f"const {line};" for line in constants),
        functions="\n\n".join(functions(program, FUNCTIONS, NEEDS)),
        check=check,
        lines="\n".join(lines),
        last=len(program.nodes),
    )


def _literal(value: Any) -> str:
    """JSON, in which ``<`` is written so that no text ends a script of a page."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
