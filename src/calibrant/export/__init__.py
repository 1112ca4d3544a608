"""Export fitted calibrators to ONNX, PyTorch, SQL, Python and JavaScript.

`program` turns a fitted calibrator into a list of a few simple operations (`OPS`). `to_onnx`,
`to_torch`, `to_sql`, `to_python` and `to_javascript` translate the list for another runtime. The
exported code returns the same probabilities as `Program.__call__`.
"""

from calibrant.export import _claims as _claims  # registers reductions
from calibrant.export._emit import program, register
from calibrant.export._ops import OPS
from calibrant.export._program import Builder, NamedOutput, Node, Program
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
    "NamedOutput",
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
