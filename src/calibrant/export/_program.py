"""Programs describe the computation of a fitted calibrator as a list of operations on rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._kernels.blocks import row_blocks
from calibrant._typing import AnyArray, FloatArray, ScoresLike
from calibrant._validation import NEW_SCORE_HINTS, as_array, check_inputs, check_scores, shortened
from calibrant.export._ops import OPS, Constants, check_constants, label_count

FORMAT = "calibrant-program"
SCHEMA = 1
MOST_NODES = 10**6
"""Maximum number of operations of a program in a file."""

MOST_COLUMNS = 10**7
"""Maximum number of columns of all values of a program. One row of 1e7 columns takes 80 MB."""

_BLOCK_VALUES = 64
"""Number of values that a block of rows may keep in memory, each as wide as the scores."""

_EXACT = ("columns", "take", "top", "clip", "stack", "put", "constant")
"""Operations that only select numbers and therefore have no rounding errors."""

_NOT_A_PROGRAM = "The text is not a valid program ({}). Pass the text that to_json() returned."

Label = str | int | float | bool


@dataclass(frozen=True)
class Node:
    """One operation, with its name in `OPS`, the value numbers of its arguments, and its constants.

    Value 0 is the row of scores. Value i is the result of node i.
    """

    op: str
    args: tuple[int, ...]
    constants: Constants = field(default_factory=dict)
    width: int = 1
    """Number of columns of the result."""


RESERVED = ("scores", "probabilities", "label")
"""Names of inputs and outputs that every program has."""


@dataclass(frozen=True)
class NamedOutput:
    """A result of a program besides the probabilities, such as the decision of a rule.

    ``value`` is the number of a value. If there are ``labels``, this value has one column with
    indices into the labels. Otherwise the value has one numeric column, or one numeric column per
    class.
    """

    name: str
    value: int
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True)
class Program:
    """A fitted calibrator as a list of operations, which runs without the calibrator.

    Calling a program with scores returns the same probabilities as ``predict_proba`` of the
    calibrator. NumPy computes one operation after the other, and the last operation returns the
    probabilities. The label is the class with the highest probability. Ties go to the first column.

    Attributes
    ----------
    inputs : {"proba", "logits", "log_proba"}
        Type of the scores.
    classes : tuple of str, int, float or bool
        The labels of the columns.
    nodes : tuple of Node
        The operations.
    source : str
        The class name of the calibrator, which may contain dots.
    outputs : tuple of NamedOutput
        Results besides the probabilities: the decisions of a rule of `calibrant.decisions`.

    See Also
    --------
    program : Convert a fitted calibrator to a program.
    to_onnx : Export to an ONNX file.

    Notes
    -----
    A program takes about as long as ``predict_proba`` of the calibrator. If there is one calibrator
    per label, the program runs all of them and selects the result of the predicted label.

    Examples
    --------
    >>> from calibrant import TemperatureScaling, export
    >>> model = TemperatureScaling().fit([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    >>> [node.op for node in export.program(model).nodes]
    ['clip', 'log', 'divide', 'softmax']
    """

    inputs: str
    classes: tuple[Label, ...]
    nodes: tuple[Node, ...]
    source: str = ""
    outputs: tuple[NamedOutput, ...] = ()

    def __post_init__(self) -> None:
        check_inputs(self.inputs)
        _check_source(self.source)
        _check_classes(self.classes)
        widths, n_classes = self._widths(), len(self.classes)
        if widths[-1] != n_classes:
            raise ValueError(
                f"the last value has {widths[-1]} columns, but there are {n_classes} classes"
            )
        _check_outputs(self.outputs, widths)

    def _widths(self) -> list[int]:
        """Return the widths of all values, or raise if a node declares another width."""
        shapes = _Shapes(len(self.classes))
        for number, node in enumerate(self.nodes, start=1):
            width = shapes.append(node.op, node.args, node.constants)
            if width != node.width:
                raise ValueError(
                    f"operation {number}, {node.op!r}, returns {width} columns, but its width is "
                    f"{node.width}"
                )
        return shapes.widths

    @property
    def n_classes(self) -> int:
        """Number of columns of scores and probabilities."""
        return len(self.classes)

    def __call__(self, X: ScoresLike) -> FloatArray:
        """Return calibrated probabilities (n, K), in float32 for float32 scores."""
        scores = self._checked(X)
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        out = np.empty(scores.shape, dtype=dtype)
        for rows in self._blocks(len(scores)):
            out[rows] = self.run(np.asarray(scores[rows], dtype=np.float64))
        return out

    def decide(self, X: ScoresLike) -> dict[str, AnyArray]:
        """Return the named outputs by name: labels (n,), numbers (n,), or one per class (n, K)."""
        scores = self._checked(X)
        blocks = [
            self.run_values(np.asarray(scores[rows], dtype=np.float64))
            for rows in self._blocks(len(scores))
        ]
        return {
            output.name: _named(output, np.concatenate([block[output.value] for block in blocks]))
            for output in self.outputs
        }

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        width = max(self.n_classes, self._peak_width() // _BLOCK_VALUES)
        return row_blocks(n_rows, width)

    def _checked(self, X: ScoresLike) -> FloatArray:
        # Check the number of columns first. If a column is missing, rows do not sum to one either,
        # and a message about sums would be misleading.
        shape = as_array(X).shape
        n_columns = 2 if len(shape) == 1 else shape[-1]
        if len(shape) in (1, 2) and n_columns != self.n_classes:
            raise ValueError(
                f"X has shape {shape}, but the program has {self.n_classes} classes. Pass one "
                "column per class."
            )
        return check_scores(X, inputs=self.inputs, hint=NEW_SCORE_HINTS[self.inputs])

    def run(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of a block of valid scores in float64."""
        return self.run_values(scores)[len(self.nodes)]

    def run_values(self, scores: FloatArray) -> dict[int, FloatArray]:
        """Return the probabilities and the named outputs of a block of scores, by value number."""
        last_use = last_uses(self.nodes)
        kept = {output.value for output in self.outputs}
        values: dict[int, FloatArray] = {0: scores}
        for number, node in enumerate(self.nodes, start=1):
            args = [values[arg] for arg in node.args]
            values[number] = OPS[node.op].evaluate(args, node.constants)
            for arg in set(node.args) - kept:
                if last_use[arg] == number:
                    del values[arg]
        return values

    def _peak_width(self) -> int:
        """Return the largest number of columns that are in memory at the same time."""
        last_use, widths = last_uses(self.nodes), [self.n_classes]
        live = peak = self.n_classes
        for number, node in enumerate(self.nodes, start=1):
            widths.append(node.width)
            live += node.width
            peak = max(peak, live)
            live -= sum(widths[arg] for arg in set(node.args) if last_use[arg] == number)
        return peak

    def to_json(self) -> str:
        """Return the program as JSON text with exact numbers, which `from_json` reads."""
        nodes = [
            {"op": node.op, "args": list(node.args), "constants": _plain_constants(node.constants)}
            for node in self.nodes
        ]
        document = {
            "format": FORMAT,
            "schema": SCHEMA,
            "inputs": self.inputs,
            "classes": list(self.classes),
            "source": self.source,
            "nodes": nodes,
        }
        if self.outputs:
            document["outputs"] = [
                {"name": entry.name, "value": entry.value, "labels": list(entry.labels)}
                for entry in self.outputs
            ]
        return json.dumps(document, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Program:
        """Read a program that `to_json` wrote.

        Raises
        ------
        ValueError
            If the text is not a valid program. `from_json` reads only numbers and names of
            operations, and never executes any text.
        """
        try:
            return _read(json.loads(text, parse_constant=_reject))
        except RecursionError:
            raise ValueError(_NOT_A_PROGRAM.format("it is nested too deeply")) from None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(_NOT_A_PROGRAM.format(error)) from None


def _named(output: NamedOutput, values: FloatArray) -> AnyArray:
    """The values of a named output, or their labels."""
    if output.labels:
        return np.array(output.labels)[values[:, 0].astype(np.intp)]
    return values[:, 0] if values.shape[1] == 1 else values


def last_uses(nodes: Sequence[Node]) -> dict[int, int]:
    """Return the number of the last node that uses each value."""
    return {arg: number for number, node in enumerate(nodes, start=1) for arg in node.args}


class _Shapes:
    """The widths of the values of a program, and the columns that column numbers may refer to."""

    def __init__(self, n_classes: int) -> None:
        self.widths = [n_classes]
        self.labels: list[int | None] = [None]
        self.n_columns = n_classes

    def append(self, op: str, args: Sequence[int], constants: Constants) -> int:
        """Return the width of the next value. Raise if the node does not fit the earlier values."""
        try:
            self._check_arguments(op, args)
            check_constants(op, constants)
            widths = [self.widths[arg] for arg in args]
            width = OPS[op].width(widths, constants)
            self._check_labels(op, args)
        except ValueError as error:
            raise ValueError(f"{error} (operation {len(self.widths)}, {op!r})") from None
        self.n_columns += width
        if self.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"the values have {self.n_columns:,} columns in total, but at most "
                f"{MOST_COLUMNS:,} are allowed"
            )
        counts = [self.labels[arg] for arg in args]
        self.labels.append(label_count(op, counts, widths[0], constants))
        self.widths.append(width)
        return width

    def _check_arguments(self, op: str, args: Sequence[int]) -> None:
        if op not in OPS:
            raise ValueError("the program contains an unknown operation")
        if not args or OPS[op].n_args not in (None, len(args)):
            expected = OPS[op].n_args or "one or more"
            noun = "argument" if expected == 1 else "arguments"
            raise ValueError(f"expected {expected} {noun}, got {len(args)}")
        if not all(0 <= arg < len(self.widths) for arg in args):
            raise ValueError(
                f"the arguments of an operation must be earlier values, got {list(args)!r:.80}"
            )

    def _check_labels(self, op: str, args: Sequence[int]) -> None:
        """Raise unless argument 2 of ``take`` and ``put`` refers to columns of argument 1."""
        if op not in ("take", "put"):
            return
        count = self.labels[args[1]]
        if count is None or count > self.widths[args[0]]:
            raise ValueError(
                f"the second argument must refer to columns 0 to {self.widths[args[0]] - 1}"
            )


def _check_outputs(outputs: Sequence[NamedOutput], widths: Sequence[int]) -> None:
    """Raise unless named outputs have different names and refer to values of the program."""
    names = [output.name for output in outputs]
    if len(set(names)) != len(names) or set(names) & set(RESERVED):
        raise ValueError(f"outputs must have different names other than {RESERVED}, got {names}")
    for output in outputs:
        # Generated code contains the names.
        if not (output.name.isidentifier() and output.name.isascii()):
            raise ValueError(
                f"the name of an output must be an ASCII identifier, got {output.name!r}"
            )
        if not 0 <= output.value < len(widths):
            raise ValueError(f"output {output.name!r} must be a value of the program")
        if widths[output.value] not in ((1,) if output.labels else (1, widths[0])):
            raise ValueError(f"output {output.name!r} has {widths[output.value]} columns")
        plain_labels(output.labels)


def _check_source(source: str) -> None:
    """Raise unless the source is a class name, because the name is inserted into generated code."""
    if source and not all(part.isidentifier() for part in source.split(".")):
        raise ValueError(f"source must be the name of a class, got {source[:60]!r}")


def _check_classes(classes: Sequence[Label]) -> None:
    if len(classes) < 2:
        raise ValueError(f"a program needs at least two classes, got {len(classes)}")
    if len(set(classes)) != len(classes):
        raise ValueError(f"classes must be distinct, got {shortened(classes, show=repr)}")
    for label in classes:
        str(label).encode()  # raises an error if text is not valid Unicode


def _plain_constants(constants: Constants) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in constants.items()
    }


def _reject(name: str) -> Any:
    raise ValueError(f"{name} is not allowed")


def _check_document(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"'format' must be {FORMAT!r}")
    if document.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {document.get('schema')!r}, expected {SCHEMA}")
    nodes, classes = document["nodes"], document["classes"]
    if not isinstance(nodes, list) or len(nodes) > MOST_NODES or not isinstance(classes, list):
        raise ValueError("'nodes' and 'classes' must be lists")


def _read(document: Any) -> Program:
    _check_document(document)
    nodes, classes = document["nodes"], document["classes"]
    build = Builder(len(classes))
    for number, entry in enumerate(nodes, start=1):
        constants = {name: _constant(name, value) for name, value in entry["constants"].items()}
        if build.append(entry["op"], tuple(map(_index, entry["args"])), constants) != number:
            raise ValueError(f"operation {number} occurs twice")
    outputs = [
        NamedOutput(str(entry["name"]), _index(entry["value"]), plain_labels(entry["labels"]))
        for entry in document.get("outputs", ())
    ]
    return build.program(
        str(document["inputs"]), plain_labels(classes), str(document["source"]), outputs
    )


def _index(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"arguments must be integers, got {value!r}")
    return value


def _constant(name: str, value: Any) -> Any:
    if name == "side":
        return str(value)
    if name == "count":
        return _index(value)
    if name == "columns":
        return np.array([_index(column) for column in value], dtype=np.intp)
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    return float(value)


def plain_labels(classes: AnyArray | Sequence[Any]) -> tuple[Label, ...]:
    """Convert labels to plain Python values, which every export target supports."""
    labels = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    for label in labels:
        if not isinstance(label, str | int | float | bool) or label in (np.inf, -np.inf):
            raise TypeError(
                f"Only labels that are strings, booleans or finite numbers can be exported, got "
                f"{label!r}. Fit the calibrator with such labels, classes=[...]."
            )
    return tuple(labels)


class Builder:
    """Build a program by adding one operation after the other.

    `append` adds an operation of `OPS` and returns the number of its value. If the program already
    has the same operation on the same values, `append` returns the existing number.

    Examples
    --------
    >>> build = Builder(2)
    >>> build.append("softmax", (0,))
    1
    >>> build.program("logits", ("no", "yes"), "doc")([[0.0, 0.0]]).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, n_classes: int) -> None:
        self._shapes = _Shapes(n_classes)
        self.widths = self._shapes.widths
        self.nodes: list[Node] = []
        self._numbers: dict[Any, int] = {}

    def append(self, op: str, args: Sequence[int], constants: Constants | None = None) -> int:
        """Add an operation and return the number of its value."""
        frozen = {name: _freeze(value) for name, value in (constants or {}).items()}
        keys = tuple((name, _key(value)) for name, value in sorted(frozen.items()))
        key = (op, tuple(args), keys)
        if key not in self._numbers:
            width = self._shapes.append(op, args, frozen)
            self.nodes.append(Node(op, tuple(args), frozen, width))
            self._numbers[key] = len(self.nodes)
        return self._numbers[key]

    def program(
        self,
        inputs: str,
        classes: tuple[Label, ...],
        source: str,
        outputs: Sequence[NamedOutput] = (),
    ) -> Program:
        """Return the program of all operations. The last value must be the probabilities."""
        return Program(inputs, classes, tuple(self.nodes), source, tuple(outputs))

    def is_exact(self, value: int) -> bool:
        """Return whether a value has no rounding errors, so all runtimes agree to the last bit."""
        if value == 0:
            return True
        node = self.nodes[value - 1]
        return node.op in _EXACT and all(map(self.is_exact, node.args))

    def last(self, value: int) -> None:
        """Make a value the last value, if necessary by an operation that copies the value."""
        if value != len(self.nodes):
            columns = {"columns": np.arange(self.widths[value])}
            width = self._shapes.append("columns", (value,), columns)
            self.nodes.append(Node("columns", (value,), columns, width))


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray | list):
        copy = np.array(value)
        copy.setflags(write=False)
        return copy
    return value


def _key(value: Any) -> Any:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
