"""ONNX: a graph of standard operators, alone or joined to a classifier."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, compose, helper, numpy_helper

from calibrant import __version__
from calibrant._output.files import written_aside
from calibrant._validation import check_option
from calibrant.export._ops import segments
from calibrant.export._program import Node, Program

_TYPES = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}
_FLOATS = {TensorProto.DOUBLE: "float64", TensorProto.FLOAT: "float32"}
_LEAST_OPSET = 13
"""From here on, sums take their axes as an input and softmax works along one axis."""

_IR_VERSION = 8
"""The first of operator set 17 and above; read by every runtime of the last years."""

_WORDS = {"proba": "prob", "logits": "logit", "log_proba": "prob"}
"""What the names of outputs of classifiers hold; "log" stands beside it for logarithms."""

_OURS, _THEIRS = "calibrant_", "classifier_"


class _Graph:
    """Operators and constants as they are written down, each with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Any] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append an operator; the name of its output."""
        name = f"{_OURS}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def number(self, value: Any) -> str:
        """A constant in double precision."""
        return self.constant(np.asarray(value, dtype=np.float64))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def constant(self, array: Any) -> str:
        key = (str(array.dtype), array.shape, array.tobytes())
        if array.dtype.kind == "O":
            key = ("text", array.shape, repr(array.tolist()).encode())
        if key not in self.constants:
            name = f"{_OURS}c{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(array, name)
        return str(self.constants[key].name)

    def cast(self, x: str, have: int, want: int) -> str:
        """A value in another type, or itself."""
        return x if have == want else self.op("Cast", x, to=want)

    def row_sum(self, x: str) -> str:
        return self.op("ReduceSum", x, self.integers(-1), keepdims=1)

    def index(self, x: str, edges: Any, side: str) -> str:
        """How many edges lie below each entry ("left"), or not above it ("right")."""
        if not len(edges):
            return self.op("Cast", self.op("Mul", x, self.number(0.0)), to=TensorProto.INT64)
        kind = "Greater" if side == "left" else "GreaterOrEqual"
        column = self.op("Unsqueeze", x, self.integers(-1))
        above = self.op(kind, column, self.number(edges))
        counted = self.op("Cast", above, to=TensorProto.INT64)
        return self.op("ReduceSum", counted, self.integers(-1), keepdims=0)

    def gather(self, values: Any, index: str) -> str:
        return self.op("Gather", self.number(values), index, axis=0)

    def at(self, x: str, labels: str) -> str:
        """The entries in the columns that whole numbers name."""
        return self.op("GatherElements", x, labels, axis=1)

    def labels(self, x: str) -> str:
        return self.op("Cast", x, to=TensorProto.INT64)


Write = Callable[[_Graph, list[str], Any], str]


def _finite(g: _Graph, x: list[str], c: Any) -> str:
    is_low = g.op("IsInf", x[0], detect_positive=0)
    top = g.at(x[0], g.op("ArgMax", x[0], axis=1, keepdims=1))
    total = g.row_sum(g.op("Exp", g.op("Sub", x[0], top)))
    floor = g.op("Add", g.op("Add", top, g.op("Log", total)), g.number(np.log(c["eps"])))
    possible = g.op("Where", is_low, top, x[0])
    least = g.at(possible, g.op("ArgMin", possible, axis=1, keepdims=1))
    return g.op("Where", is_low, g.op("Min", floor, least), x[0])


def _log_odds(g: _Graph, x: list[str], c: Any) -> str:
    rest = g.op("Sub", g.number(1.0), x[0])
    return g.op("Sub", g.op("Log", x[0]), g.op("Log", rest))


def _log_expit(g: _Graph, x: list[str], c: Any) -> str:
    small = g.op("Exp", g.op("Neg", g.op("Abs", x[0])))
    return g.op("Sub", g.op("Min", x[0], g.number(0.0)), _log1p(g, small))


def _log1p(g: _Graph, x: str) -> str:
    """``log(1 + x)`` of x in [0, 1], with what 1 + x rounds off put back."""
    total = g.op("Add", g.number(1.0), x)
    lost = g.op("Sub", x, g.op("Sub", total, g.number(1.0)))
    return g.op("Add", g.op("Log", total), g.op("Div", lost, total))


def _expit(g: _Graph, x: list[str], c: Any) -> str:
    small = g.op("Exp", g.op("Neg", g.op("Abs", x[0])))
    top = g.op("Where", g.op("Less", x[0], g.number(0.0)), small, g.number(1.0))
    return g.op("Div", top, g.op("Add", g.number(1.0), small))


def _affine(g: _Graph, x: list[str], c: Any) -> str:
    # Not MatMul: runtimes fold a factor beside it into it, in single precision.
    return g.op("Gemm", x[0], g.number(c["coef"]), g.number(c["offset"]), transB=1)


def _scale(g: _Graph, x: list[str], c: Any) -> str:
    return g.op("Add", g.op("Mul", x[0], g.number(c["factor"])), g.number(c["offset"]))


def _center(g: _Graph, x: list[str], c: Any) -> str:
    mean = g.op("Div", g.row_sum(x[0]), g.number(c["n_columns"]))
    return g.op("Sub", x[0], mean)


def _normalise(g: _Graph, x: list[str], c: Any) -> str:
    total = g.row_sum(x[0])
    is_empty = g.op("LessOrEqual", total, g.number(0.0))
    safe = g.op("Where", is_empty, g.number(1.0), total)
    return g.op("Where", is_empty, g.number(c["empty"]), g.op("Div", x[0], safe))


def _mix(g: _Graph, x: list[str], c: Any) -> str:
    total = g.number(c["constant"])
    for weight, value in zip(c["weights"], x, strict=True):
        total = g.op("Add", total, g.op("Mul", value, g.number(weight)))
    return total


def _log_mix(g: _Graph, x: list[str], c: Any) -> str:
    terms = [g.op("Add", v, g.number(w)) for w, v in zip(c["weights"], x, strict=True)]
    if len(terms) == 1:
        return terms[0]
    largest = g.op("Max", *terms)
    total = g.op("Sum", *(g.op("Exp", g.op("Sub", term, largest)) for term in terms))
    return g.op("Add", largest, g.op("Log", total))


def _step(g: _Graph, x: list[str], c: Any) -> str:
    return g.gather(c["values"], g.index(x[0], c["edges"], c["side"]))


def _interpolate(g: _Graph, x: list[str], c: Any) -> str:
    start, height, slope = segments(c["x"], c["y"])
    index = g.index(x[0], c["x"], "right")
    run = g.op("Sub", x[0], g.gather(start, index))
    return g.op("Add", g.op("Mul", g.gather(slope, index), run), g.gather(height, index))


def _bumps(g: _Graph, x: list[str], c: Any) -> str:
    column = g.op("Unsqueeze", x[0], g.integers(-1))
    far = g.op("Div", g.op("Sub", column, g.number(c["centres"])), g.number(c["width"]))
    near = g.op("Exp", g.op("Mul", g.number(-0.5), g.op("Mul", far, far)))
    weighted = g.op("Mul", near, g.number(c["heights"]))
    return g.op("ReduceSum", weighted, g.integers(-1), keepdims=0)


def _top(g: _Graph, x: list[str], c: Any) -> str:
    left, found = x[0], []
    for rank in range(c["count"]):  # the highest one, again and again: ties to the lowest column
        found.append(g.op("ArgMax", left, axis=1, keepdims=1))
        if rank + 1 < c["count"]:
            minus = g.op("Sub", g.op("Mul", found[-1], g.integers(0)), g.integers(1))
            low = g.op("Cast", minus, to=TensorProto.DOUBLE)
            left = g.op("ScatterElements", left, found[-1], low, axis=1)
    labels = found[0] if len(found) == 1 else g.op("Concat", *found, axis=1)
    return g.op("Cast", labels, to=TensorProto.DOUBLE)


def _constant(g: _Graph, x: list[str], c: Any) -> str:
    zero = g.op("Mul", g.op("ArgMax", x[0], axis=1, keepdims=1), g.integers(0))
    return g.op("Add", g.op("Cast", zero, to=TensorProto.DOUBLE), g.number([c["values"]]))


def _put(g: _Graph, x: list[str], c: Any) -> str:
    labels = g.labels(x[1])
    zero = g.op("Mul", x[1], g.number(0.0))  # one value may serve several columns
    return g.op("ScatterElements", x[0], labels, g.op("Add", zero, x[2]), axis=1)


OPERATORS: dict[str, Write] = {
    "finite": _finite,
    "clip": lambda g, x, c: g.op("Clip", x[0], g.number(c["low"]), g.number(c["high"])),
    "log": lambda g, x, c: g.op("Log", x[0]),
    "exp": lambda g, x, c: g.op("Exp", x[0]),
    "log_odds": _log_odds,
    "log_expit": _log_expit,
    "expit": _expit,
    "divide": lambda g, x, c: g.op("Div", x[0], g.number(c["by"])),
    "scale": _scale,
    "affine": _affine,
    "center": _center,
    "softmax": lambda g, x, c: g.op("Softmax", x[0], axis=-1),
    "log_softmax": lambda g, x, c: g.op("LogSoftmax", x[0], axis=-1),
    "sum": lambda g, x, c: g.row_sum(x[0]),
    "normalise": _normalise,
    "add": lambda g, x, c: g.op("Add", *x),
    "multiply": lambda g, x, c: g.op("Mul", *x),
    "quotient": lambda g, x, c: g.op("Div", *x),
    "mix": _mix,
    "log_mix": _log_mix,
    "step": _step,
    "interpolate": _interpolate,
    "bumps": _bumps,
    "top": _top,
    "columns": lambda g, x, c: g.op("Gather", x[0], g.integers(*c["columns"].tolist()), axis=1),
    "stack": lambda g, x, c: g.op("Concat", *x, axis=1),
    "constant": _constant,
    "take": lambda g, x, c: g.at(x[0], g.labels(x[1])),
    "put": _put,
}


def as_model(program: Program, opset: int, dtype: str, scores: int | None = None) -> Any:
    """An ONNX model of a program; ``scores`` is the element type of its input, by default that of
    its output.

    The arithmetic is in double precision whatever ``dtype``: 1 - 1e-12 is no number of single
    precision, and a score beside the edge of a bin would change sides.
    """
    check_option(dtype, "dtype", tuple(_TYPES))
    if opset < _LEAST_OPSET:
        raise ValueError(f"opset must be at least {_LEAST_OPSET}, got {opset}")
    graph, kind = _Graph(), _TYPES[dtype]
    scores = kind if scores is None else scores
    values = [graph.cast("scores", scores, TensorProto.DOUBLE)]
    for node in program.nodes:
        taken = [values[arg] for arg in node.args]
        values.append(OPERATORS[node.op](graph, taken, _arrays(node)))
    last = graph.cast(values[-1], TensorProto.DOUBLE, kind)
    graph.nodes.append(helper.make_node("Identity", [last], ["probabilities"]))
    classes, label_kind = _classes(program)
    top = graph.op("ArgMax", values[-1], axis=1, keepdims=0)
    graph.nodes.append(helper.make_node("Gather", [graph.constant(classes), top], ["label"]))
    size = ["n", program.n_classes]
    interface = (
        [helper.make_tensor_value_info("scores", scores, size)],
        [
            helper.make_tensor_value_info("probabilities", kind, size),
            helper.make_tensor_value_info("label", label_kind, ["n"]),
        ],
    )
    made = helper.make_graph(graph.nodes, "calibrant", *interface, list(graph.constants.values()))
    return _model(made, opset, program)


def _arrays(node: Node) -> Any:
    """The constants of a node, and its number of columns."""
    return {**node.constants, "n_columns": float(node.width)}


def _classes(program: Program) -> tuple[Any, int]:
    """The labels of the columns: text, whole numbers, or the numbers of the columns."""
    if all(isinstance(label, str) for label in program.classes):
        return np.array(program.classes, dtype=object), TensorProto.STRING
    if all(type(label) is int and -(2**63) <= label < 2**63 for label in program.classes):
        return np.array(program.classes, dtype=np.int64), TensorProto.INT64
    return np.arange(program.n_classes, dtype=np.int64), TensorProto.INT64


def _model(graph: Any, opset: int, program: Program) -> Any:
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=_IR_VERSION,
        producer_name="calibrant",
        producer_version=__version__,
    )
    helper.set_model_props(model, _metadata(program))
    return model


def _metadata(program: Program) -> dict[str, str]:
    return {
        "calibrant": __version__,
        "calibrator": program.source,
        "inputs": program.inputs,
        "classes": json.dumps(program.classes),
        "digest": hashlib.sha256(program.to_json().encode()).hexdigest(),
    }


def joined(program: Program, classifier: Any, output: str | None, dtype: str) -> Any:
    """One model: a classifier whose scores go through a program."""
    name, kind = _scores_output(classifier, output, program)
    opset = next((entry.version for entry in classifier.opset_import if not entry.domain), 0)
    if opset < _LEAST_OPSET:
        raise ValueError(
            f"the classifier uses operator set {opset}, below {_LEAST_OPSET}: convert it by "
            f"onnx.version_converter.convert_version(model, 17)"
        )
    calibrator = as_model(program, opset, dtype, kind)
    calibrator.ir_version = classifier.ir_version
    theirs = compose.add_prefix(classifier, _THEIRS, rename_inputs=False)
    ours = compose.add_prefix(
        calibrator, _OURS, rename_outputs=False, rename_nodes=False, rename_edges=False
    )
    merged = compose.merge_models(
        theirs,
        ours,
        io_map=[(_THEIRS + name, _OURS + "scores")],
        outputs=["probabilities", "label"],
        producer_name="calibrant",
        producer_version=__version__,
    )
    helper.set_model_props(merged, _metadata(program))
    return merged


def _scores_output(classifier: Any, output: str | None, program: Program) -> tuple[str, int]:
    """The output of a classifier that is to be calibrated, and the type of its elements."""
    outputs = {value.name: value.type for value in classifier.graph.output}
    if output is None:
        output = _likely(list(outputs), program.inputs)
    if output not in outputs:
        raise ValueError(f"the classifier has no output {output!r}; it has {', '.join(outputs)}")
    if not outputs[output].HasField("tensor_type"):
        raise ValueError(
            f"output {output!r} of the classifier is a list of dictionaries (ZipMap): convert it "
            f"with options={{'zipmap': False}}"
        )
    kind = outputs[output].tensor_type
    if kind.elem_type not in _FLOATS:
        raise ValueError(f"output {output!r} of the classifier holds no scores: give output=NAME")
    dims = [dim.dim_value for dim in kind.shape.dim]
    if len(dims) == 2 and dims[1] and dims[1] != program.n_classes:
        raise ValueError(
            f"output {output!r} has {dims[1]} columns and the calibrator {program.n_classes}"
        )
    return output, int(kind.elem_type)


def _likely(outputs: list[str], inputs: str) -> str:
    """The first output whose name says that it holds what a program takes, else scores at all."""
    is_log = inputs != "proba"
    first = [n for n in outputs if _WORDS[inputs] in n.lower() and ("log" in n.lower()) == is_log]
    named = [n for word in ("prob", "logit") for n in outputs if word in n.lower()]
    return [*first, *named, *outputs][0]


def write_model(
    program: Program,
    path: str | os.PathLike[str],
    opset: int,
    dtype: str,
    model: str | os.PathLike[str] | None,
    output: str | None,
) -> None:
    """Write the model of a program, or of a classifier with it, after a full check."""
    if model is None:
        made = as_model(program, opset, dtype)
    else:
        made = joined(program, onnx.load(Path(model)), output, dtype)
    onnx.checker.check_model(made, full_check=True)
    with written_aside(path) as aside:
        aside.write_bytes(made.SerializeToString())
