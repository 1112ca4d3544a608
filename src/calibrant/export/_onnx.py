"""Export to ONNX: a graph of standard operators."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from calibrant import __version__
from calibrant._kernels.simplex import SHORT_ROW
from calibrant._typing import FloatArray
from calibrant._validation import check_option
from calibrant.export._average import Average
from calibrant.export._boundary import guarded
from calibrant.export._ops import segments
from calibrant.export._program import Label, NamedOutput, Program

_TYPES = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}
LEAST_OPSET = 13
"""The first operator set in which ReduceSum has its axes as an input and Softmax has one axis."""

_IR_VERSION = 8
"""The first version with operator set 17. Every recent runtime reads it."""

OURS = "calibrant_"
"""Prefix of the names of our values, so they differ from the names in classifiers."""

_ONE_BLOCK = 64
"""Largest number of edges that are compared with an entry at once."""


class _Graph:
    """The operators and constants of a graph under construction, each with a unique name."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Any] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append an operator and return the name of its output."""
        name = f"{self.prefix}v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def number(self, value: Any) -> str:
        """Return the name of a constant in double precision."""
        return self.constant(np.asarray(value, dtype=np.float64))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def constant(self, array: Any) -> str:
        key = (str(array.dtype), array.shape, array.tobytes())
        if array.dtype.kind == "O":
            key = ("text", array.shape, repr(array.tolist()).encode())
        if key not in self.constants:
            name = f"{self.prefix}c{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(array, name)
        return str(self.constants[key].name)

    def cast(self, x: str, have: int, want: int) -> str:
        """Convert a value to another type if the types differ."""
        return x if have == want else self.op("Cast", x, to=want)

    def row_sum(self, x: str, n_columns: int) -> str:
        """Sum each row.

        Long rows are summed by halves, because runtimes add one by one and lose digits.
        """
        while n_columns > SHORT_ROW:
            half = n_columns // 2
            parts = [self.slice(x, 0, half), self.slice(x, half, 2 * half)]
            rest = [self.slice(x, 2 * half, n_columns)] if n_columns % 2 else []
            x = self.op("Concat", self.op("Add", *parts), *rest, axis=1)
            n_columns -= half
        return self.op("ReduceSum", x, self.integers(-1), keepdims=1)

    def slice(self, x: str, first: int, end: int) -> str:
        """Select consecutive columns."""
        return self.op("Slice", x, self.integers(first), self.integers(end), self.integers(1))

    def subtract_max(self, x: str) -> str:
        """Subtract the largest entry of each row."""
        return self.op("Sub", x, self.at(x, self.op("ArgMax", x, axis=1, keepdims=1)))

    def index(self, x: str, edges: Any, side: str) -> str:
        """Count the edges that are below each entry ("left") or not above each entry ("right").

        Many edges are counted in two steps: first whole blocks, then the edges of the block that
        contains x. This method compares an entry with about 2 sqrt(E) numbers instead of all E
        edges.
        """
        if not len(edges):
            return self.op("Cast", self.op("Mul", x, self.number(0.0)), to=TensorProto.INT64)
        if len(edges) <= _ONE_BLOCK:
            return self.count(x, self.number(edges), side)
        blocks = _blocks(edges)
        before = self.count(x, self.number(blocks[:-1, -1]), side)
        inside = self.count(x, self.op("Gather", self.number(blocks), before, axis=0), side)
        whole = self.op("Mul", before, self.integers(blocks.shape[1]))
        return self.op("Add", whole, inside)

    def count(self, x: str, edges: str, side: str) -> str:
        """Count edges along the last axis, below each entry ("left") or not above the entry."""
        kind = "Greater" if side == "left" else "GreaterOrEqual"
        above = self.op(kind, self.op("Unsqueeze", x, self.integers(-1)), edges)
        counted = self.op("Cast", above, to=TensorProto.INT64)
        return self.op("ReduceSum", counted, self.integers(-1), keepdims=0)

    def gather(self, values: Any, index: str) -> str:
        return self.op("Gather", self.number(values), index, axis=0)

    def at(self, x: str, labels: str) -> str:
        """Select the entries in the columns with the given numbers."""
        return self.op("GatherElements", x, labels, axis=1)

    def labels(self, x: str) -> str:
        return self.op("Cast", x, to=TensorProto.INT64)


def _blocks(edges: Any) -> FloatArray:
    """Arrange edges in rows of equal length, with about as many rows as columns.

    The last row is padded with infinity, which is not below any entry.
    """
    width = math.isqrt(len(edges) - 1) + 1
    n_blocks = -(-len(edges) // width)
    filled = np.full(n_blocks * width, np.inf)
    filled[: len(edges)] = edges
    return filled.reshape(n_blocks, width)


Write = Callable[[_Graph, list[str], Any], str]


def _finite(g: _Graph, x: list[str], c: Any) -> str:
    is_low = g.op("IsInf", x[0], detect_positive=0)
    total = _log_sum_exp(g, x, c)
    floor = g.op("Add", total, g.number(np.log(c["eps"])))
    possible = g.op("Where", is_low, total, x[0])
    least = g.at(possible, g.op("ArgMin", possible, axis=1, keepdims=1))
    return g.op("Where", is_low, g.op("Min", floor, least), x[0])


def _log_sum_exp(g: _Graph, x: list[str], c: Any) -> str:
    top = g.at(x[0], g.op("ArgMax", x[0], axis=1, keepdims=1))
    total = g.row_sum(g.op("Exp", g.op("Sub", x[0], top)), c["n_columns"])
    return g.op("Add", top, g.op("Log", total))


def _admit(g: _Graph, x: list[str], c: Any) -> str:
    low, high, slack = c["low"], c["high"], c["slack"]
    inside = g.op("Clip", x[0], g.number(low - slack), g.number(high + slack))
    value = g.number(low) if low == high else g.op("Clip", x[0], g.number(low), g.number(high))
    return g.op("Where", g.op("Equal", x[0], inside), value, g.number(np.nan))


def _log_odds(g: _Graph, x: list[str], c: Any) -> str:
    rest = g.op("Sub", g.number(1.0), x[0])
    return g.op("Sub", g.op("Log", x[0]), g.op("Log", rest))


def _log_expit(g: _Graph, x: list[str], c: Any) -> str:
    small = g.op("Exp", g.op("Neg", g.op("Abs", x[0])))
    return g.op("Sub", g.op("Min", x[0], g.number(0.0)), _log1p(g, small))


def _log1p(g: _Graph, x: str) -> str:
    """Compute ``log(1 + x)`` for x in [0, 1], corrected for the rounding of 1 + x."""
    total = g.op("Add", g.number(1.0), x)
    lost = g.op("Sub", x, g.op("Sub", total, g.number(1.0)))
    return g.op("Add", g.op("Log", total), g.op("Div", lost, total))


def _expit(g: _Graph, x: list[str], c: Any) -> str:
    small = g.op("Exp", g.op("Neg", g.op("Abs", x[0])))
    top = g.op("Where", g.op("Less", x[0], g.number(0.0)), small, g.number(1.0))
    return g.op("Div", top, g.op("Add", g.number(1.0), small))


def _affine(g: _Graph, x: list[str], c: Any) -> str:
    # MatMul is not used, because onnxruntime fuses it with an adjacent factor in single precision.
    return g.op("Gemm", x[0], g.number(c["coef"]), g.number(c["offset"]), transB=1)


def _scale(g: _Graph, x: list[str], c: Any) -> str:
    return g.op("Add", g.op("Mul", x[0], g.number(c["factor"])), g.number(c["offset"]))


def _center(g: _Graph, x: list[str], c: Any) -> str:
    mean = g.op("Div", g.row_sum(x[0], c["n_columns"]), g.number(c["n_columns"]))
    return g.op("Sub", x[0], mean)


def _softmax(g: _Graph, x: list[str], c: Any) -> str:
    if c["n_columns"] <= SHORT_ROW:
        return g.op("Softmax", x[0], axis=-1)
    powers = g.op("Exp", g.subtract_max(x[0]))
    return g.op("Div", powers, g.row_sum(powers, c["n_columns"]))


def _log_softmax(g: _Graph, x: list[str], c: Any) -> str:
    if c["n_columns"] <= SHORT_ROW:
        return g.op("LogSoftmax", x[0], axis=-1)
    shifted = g.subtract_max(x[0])
    total = g.row_sum(g.op("Exp", shifted), c["n_columns"])
    return g.op("Sub", shifted, g.op("Log", total))


def _normalize(g: _Graph, x: list[str], c: Any) -> str:
    total = g.row_sum(x[0], c["n_columns"])
    is_empty = g.op("LessOrEqual", total, g.number(0.0))
    safe = g.op("Where", is_empty, g.number(1.0), total)
    return g.op("Where", is_empty, g.number(c["empty"]), g.op("Div", x[0], safe))


def _mix(g: _Graph, x: list[str], c: Any) -> str:
    total = g.number(c["constant"])
    for weight, value in zip(c["weights"], x, strict=True):
        total = g.op("Add", total, g.op("Mul", value, g.number(weight)))
    return total


def _step(g: _Graph, x: list[str], c: Any) -> str:
    return g.gather(c["values"], g.index(x[0], c["edges"], c["side"]))


def _interpolate(g: _Graph, x: list[str], c: Any) -> str:
    start, height, slope = segments(c["x"], c["y"])
    index = g.index(x[0], c["x"], "right")
    run = g.op("Sub", x[0], g.gather(start, index))
    return g.op("Add", g.op("Mul", g.gather(slope, index), run), g.gather(height, index))


def _bumps(g: _Graph, x: list[str], c: Any) -> str:
    column = g.op("Unsqueeze", x[0], g.integers(-1))
    far = g.op("Div", g.op("Sub", column, g.number(c["centers"])), g.number(c["width"]))
    near = g.op("Exp", g.op("Mul", g.number(-0.5), g.op("Mul", far, far)))
    weighted = g.op("Mul", near, g.number(c["heights"]))
    return g.op("ReduceSum", weighted, g.integers(-1), keepdims=0)


def _top(g: _Graph, x: list[str], c: Any) -> str:
    values, labels = x[0], []
    for rank in range(c["count"]):  # repeated ArgMax, because ties must go to the first column
        labels.append(g.op("ArgMax", values, axis=1, keepdims=1))
        if rank + 1 < c["count"]:
            minus = g.op("Sub", g.op("Mul", labels[-1], g.integers(0)), g.integers(1))
            low = g.op("Cast", minus, to=TensorProto.DOUBLE)
            values = g.op("ScatterElements", values, labels[-1], low, axis=1)
    columns = labels[0] if len(labels) == 1 else g.op("Concat", *labels, axis=1)
    return g.op("Cast", columns, to=TensorProto.DOUBLE)


def _constant(g: _Graph, x: list[str], c: Any) -> str:
    zero = g.op("Mul", g.op("ArgMax", x[0], axis=1, keepdims=1), g.integers(0))
    return g.op("Add", g.op("Cast", zero, to=TensorProto.DOUBLE), g.number([c["values"]]))


def _put(g: _Graph, x: list[str], c: Any) -> str:
    labels = g.labels(x[1])
    # Adding zeros in the shape of the labels broadcasts a single value to all columns.
    zero = g.op("Mul", x[1], g.number(0.0))
    return g.op("ScatterElements", x[0], labels, g.op("Add", zero, x[2]), axis=1)


OPERATORS: dict[str, Write] = {
    "finite": _finite,
    "clip": lambda g, x, c: g.op("Clip", x[0], g.number(c["low"]), g.number(c["high"])),
    "admit": _admit,
    "coalesce": lambda g, x, c: g.op("Where", g.op("IsNaN", x[0]), x[1], x[0]),
    "log": lambda g, x, c: g.op("Log", x[0]),
    "log_odds": _log_odds,
    "log_expit": _log_expit,
    "expit": _expit,
    "divide": lambda g, x, c: g.op("Div", x[0], g.number(c["by"])),
    "scale": _scale,
    "affine": _affine,
    "center": _center,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "log_sum_exp": _log_sum_exp,
    "sum": lambda g, x, c: g.row_sum(x[0], c["n_columns"]),
    "normalize": _normalize,
    "add": lambda g, x, c: g.op("Add", *x),
    "multiply": lambda g, x, c: g.op("Mul", *x),
    "quotient": lambda g, x, c: g.op("Div", *x),
    "mix": _mix,
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


def as_model(average: Average, opset: int, dtype: str, scores: Sequence[int] | None = None) -> Any:
    """Return an ONNX model of a program, or of the average of programs with one input each.

    ``scores`` are the element types of the inputs, by default the type of the output. All
    computations use double precision. Single precision cannot represent 1 - 1e-12, and a
    score close to the edge of a bin could change bins.
    """
    check_option(dtype, "dtype", tuple(_TYPES))
    if opset < LEAST_OPSET:
        raise ValueError(f"opset must be at least {LEAST_OPSET}, got {opset}.")
    graph, kind = _Graph(OURS if scores else ""), _TYPES[dtype]
    programs = average.programs
    names, kinds = input_names(len(programs)), scores or [kind]
    inputs = [graph.cast(n, k, TensorProto.DOUBLE) for n, k in zip(names, kinds, strict=True)]
    written = [_write(graph, p, x, k) for p, x, k in zip(programs, inputs, kinds, strict=True)]
    probas = [values[-1] for values in written]
    mean = probas[0] if len(probas) == 1 else _mean(graph, probas, average.weights)
    if average.last is not None:
        mean = _write(graph, average.last, mean, TensorProto.DOUBLE)[-1]
    first = programs[0]
    size = ["n", first.n_classes]
    takes = [helper.make_tensor_value_info(n, k, size) for n, k in zip(names, kinds, strict=True)]
    gives = [helper.make_tensor_value_info("probabilities", kind, size), _label(graph, mean, first)]
    pairs = zip(first.outputs, written[0][:-1], strict=True) if len(programs) == 1 else ()
    gives += [_named_output(graph, first, output, value, kind) for output, value in pairs]
    last = graph.cast(mean, TensorProto.DOUBLE, kind)
    graph.nodes.append(helper.make_node("Identity", [last], ["probabilities"]))
    constants = [*graph.constants.values()]
    onnx_graph = helper.make_graph(graph.nodes, "calibrant", takes, gives, constants)
    return _model(onnx_graph, opset, average)


def input_names(count: int) -> list[str]:
    """Return the names of the inputs: ``scores``, or ``scores_0``, ``scores_1``, ..."""
    return ["scores"] if count == 1 else [f"scores_{j}" for j in range(count)]


def _write(graph: _Graph, program: Program, scores: str, kind: int) -> list[str]:
    """Write a program for scores of type ``kind``.

    Return the names of the named outputs, and the name of the probabilities as the last name.
    """
    values, widths = [scores], [program.n_classes]
    dtype = "float32" if kind == TensorProto.FLOAT else "float64"
    checked = guarded(program, dtype)
    for node in checked.nodes:
        args = [values[arg] for arg in node.args]
        constants = {**node.constants, "n_columns": widths[node.args[0]]}
        values.append(OPERATORS[node.op](graph, args, constants))
        widths.append(node.width)
    return [*(values[output.value] for output in checked.outputs), values[-1]]


def _named_output(
    graph: _Graph, program: Program, output: NamedOutput, value: str, kind: int
) -> Any:
    """Write a named output and return its description."""
    if output.labels:
        labels, label_kind = _with_missing(output.labels)
        is_missing = graph.op("IsNaN", graph.op("Squeeze", value, graph.integers(1)))
        places = graph.labels(graph.op("Squeeze", value, graph.integers(1)))
        last = graph.constant(np.int64(len(output.labels)))
        place = graph.op("Where", is_missing, last, places)
        names = [graph.constant(labels), place]
        graph.nodes.append(helper.make_node("Gather", names, [output.name]))
        return helper.make_tensor_value_info(output.name, label_kind, ["n"])
    is_column = output.value > 0 and program.nodes[output.value - 1].width == 1
    flat = graph.op("Squeeze", value, graph.integers(1)) if is_column else value
    cast = graph.cast(flat, TensorProto.DOUBLE, kind)
    graph.nodes.append(helper.make_node("Identity", [cast], [output.name]))
    size = ["n"] if is_column else ["n", program.n_classes]
    return helper.make_tensor_value_info(output.name, kind, size)


def _mean(graph: _Graph, values: Sequence[str], weights: Sequence[float]) -> str:
    terms = [graph.op("Mul", v, graph.number(w)) for v, w in zip(values, weights, strict=True)]
    return reduce(partial(graph.op, "Add"), terms)


def _label(graph: _Graph, proba: str, program: Program) -> Any:
    """Write the class with the highest probability, and return the description of this output."""
    classes, kind = _classes(program)
    top = graph.op("ArgMax", proba, axis=1, keepdims=0)
    is_missing = graph.op("IsNaN", graph.op("ReduceSum", proba, graph.integers(1), keepdims=0))
    place = graph.op("Where", is_missing, graph.constant(np.int64(program.n_classes)), top)
    graph.nodes.append(helper.make_node("Gather", [graph.constant(classes), place], ["label"]))
    return helper.make_tensor_value_info("label", kind, ["n"])


def _classes(program: Program) -> tuple[Any, int]:
    """Return the labels of the columns, followed by the label of invalid rows, and their type."""
    return _with_missing(program.classes)


def _with_missing(labels: tuple[Label, ...]) -> tuple[Any, int]:
    """Return labels, followed by the label of invalid rows, and their type.

    Labels are strings, integers, or column numbers. The label of invalid rows is the empty string,
    or a number below all labels.
    """
    if all(isinstance(label, str) for label in labels):
        return np.array([*labels, ""], dtype=object), TensorProto.STRING
    if not all(type(label) is int and -(2**63) < label < 2**63 for label in labels):
        labels = tuple(range(len(labels)))
    missing = min(-1, *(int(label) - 1 for label in labels))
    return np.array([*labels, missing], dtype=np.int64), TensorProto.INT64


def _model(graph: Any, opset: int, average: Average) -> Any:
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=_IR_VERSION,
        producer_name="calibrant",
        producer_version=__version__,
    )
    helper.set_model_props(model, metadata(average))
    return model


def metadata(average: Average) -> dict[str, str]:
    """Return the metadata that describes the origin of a model."""
    programs = average.programs
    text = "\n".join(program.to_json() for program in average.all_programs)
    return {
        "calibrant": __version__,
        "calibrator": programs[0].source,
        "inputs": programs[0].inputs,
        "classes": json.dumps(programs[0].classes),
        "digest": hashlib.sha256(text.encode()).hexdigest(),
    }
