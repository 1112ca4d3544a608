"""Calibrators where the library is not: one small program, and one back end for each target.

`program` turns a fitted calibrator into a list of operations, a few dozen kinds in all (`OPS`);
`to_onnx`, `to_torch`, `to_sql`, `to_python` and `to_javascript` write such a list down for others
to run. What they compute is what `Program.__call__` computes.
"""

from calibrant.export import _claims as _claims  # registers reductions
from calibrant.export._emit import program, register
from calibrant.export._ops import OPS
from calibrant.export._program import Builder, Node, Program
from calibrant.export._targets import (
    save_torch,
    to_javascript,
    to_onnx,
    to_python,
    to_sql,
    to_torch,
)

__all__ = [
    "OPS",
    "Builder",
    "Node",
    "Program",
    "program",
    "register",
    "save_torch",
    "to_javascript",
    "to_onnx",
    "to_python",
    "to_sql",
    "to_torch",
]
