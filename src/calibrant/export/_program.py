"""Programs: what a fitted calibrator computes, as a list of a few operations on rows of numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._kernels.blocks import row_blocks
from calibrant._typing import AnyArray, FloatArray, ScoresLike
from calibrant._validation import check_inputs, check_scores
from calibrant.export._ops import OPS, Constants

FORMAT = "calibrant-program"
SCHEMA = 1
MOST_NODES = 10**6
"""Programs of files that are longer are not read."""

_EXACT = ("columns", "take", "top", "clip", "stack", "put", "constant")
"""Operations that do not compute: they choose among numbers."""

Label = str | int | float | bool


@dataclass(frozen=True)
class Node:
    """One operation: its name in `OPS`, the numbers of the values that it takes, its constants.

    Value 0 is the row of scores, value i the result of node i.
    """

    op: str
    args: tuple[int, ...]
    constants: Constants = field(default_factory=dict)
    width: int = 1
    """Columns of the result."""


@dataclass(frozen=True)
class Program:
    """A calibrator as a list of operations; it knows nothing of the calibrator that it came from.

    ``program(X)`` is the calibrator's ``predict_proba(X)``, computed operation by operation in
    NumPy: the definition by which exported code is judged. The result of the last node is the
    probabilities, and the label is the class of the highest, the lowest column among equals.

    Attributes
    ----------
    inputs : {"proba", "logits", "log_proba"}
    classes : tuple of str, int, float or bool
        The labels of the columns.
    nodes : tuple of Node
    source : str
        The class of the calibrator.

    Notes
    -----
    Cost: that of the calibrator's own prediction, up to a factor; claims that are split by label
    are computed for all labels, and the one that is asked for is taken.

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

    def __post_init__(self) -> None:
        check_inputs(self.inputs)
        if len(self.classes) < 2:
            raise ValueError("a program needs the labels of two or more columns")
        widths = [len(self.classes)]
        for number, node in enumerate(self.nodes, start=1):
            widths.append(_width(node.op, node.args, node.constants, number, widths))
            if widths[-1] != node.width:
                raise ValueError(f"operation {number}, {node.op!r}: it has {widths[-1]} columns")
        if widths[-1] != len(self.classes):
            raise ValueError(f"the last value has {widths[-1]} columns, not {len(self.classes)}")

    @property
    def n_classes(self) -> int:
        """Columns of scores and of probabilities."""
        return len(self.classes)

    def __call__(self, X: ScoresLike) -> FloatArray:
        """Calibrated probabilities (n, K), in float32 where the scores are."""
        scores = check_scores(X, inputs=self.inputs)
        if scores.shape[1] != self.n_classes:
            raise ValueError(
                f"X has {scores.shape[1]} columns, but the program has {self.n_classes} classes"
            )
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        out = np.empty(scores.shape, dtype=dtype)
        for rows in row_blocks(*scores.shape):
            out[rows] = self.run(np.asarray(scores[rows], dtype=np.float64))
        return out

    def run(self, scores: FloatArray) -> FloatArray:
        """Probabilities of a block of checked scores in float64."""
        last_use = last_uses(self.nodes)
        values: dict[int, FloatArray] = {0: scores}
        for number, node in enumerate(self.nodes, start=1):
            args = [values[arg] for arg in node.args]
            values[number] = OPS[node.op].evaluate(args, node.constants)
            for arg in set(node.args):
                if last_use[arg] == number:
                    del values[arg]
        return values[len(self.nodes)]

    def to_json(self) -> str:
        """The program as JSON text, every number exactly; `from_json` reads it."""
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
        return json.dumps(document, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Program:
        """The program that `to_json` wrote.

        Raises
        ------
        ValueError
            For anything else. Nothing of the text is executed: it holds numbers and the names of
            operations, and what does not fit together is refused.
        """
        try:
            return _read(json.loads(text, parse_constant=_reject))
        except RecursionError:
            raise ValueError("this is not a program: it is nested too deeply") from None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is not a program: {error}") from None


def last_uses(nodes: Sequence[Node]) -> dict[int, int]:
    """The number of the last node that takes each value; the last value is taken by nobody."""
    return {arg: number for number, node in enumerate(nodes, start=1) for arg in node.args}


def _width(
    op: str, args: Sequence[int], constants: Constants, number: int, widths: Sequence[int]
) -> int:
    """Columns of the result of a node; raises where it does not go with what came before."""
    try:
        if op not in OPS:
            raise ValueError("there is no such operation")
        if set(constants) != set(OPS[op].constants):
            raise ValueError(f"its constants are {', '.join(OPS[op].constants) or 'none'}")
        if not args or OPS[op].n_args not in (None, len(args)):
            raise ValueError(f"it takes {OPS[op].n_args or 'one or more'} arguments")
        if not all(0 <= arg < number for arg in args):
            raise ValueError("its arguments must come before it")
        return OPS[op].width([widths[arg] for arg in args], constants)
    except ValueError as error:
        raise ValueError(f"operation {number}, {op!r}: {error}") from None


def _plain_constants(constants: Constants) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in constants.items()
    }


def _reject(name: str) -> Any:
    raise ValueError(f"{name} is not allowed in it")


def _read(document: Any) -> Program:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"'format' must be {FORMAT!r}")
    if document.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {document.get('schema')!r}, not {SCHEMA}")
    nodes, classes = document["nodes"], document["classes"]
    if not isinstance(nodes, list) or len(nodes) > MOST_NODES or not isinstance(classes, list):
        raise ValueError("'nodes' and 'classes' must be lists")
    build = Builder(len(classes))
    for number, entry in enumerate(nodes, start=1):
        constants = {name: _constant(name, value) for name, value in entry["constants"].items()}
        if build.append(entry["op"], tuple(map(_index, entry["args"])), constants) != number:
            raise ValueError(f"operation {number} is there twice")
    return build.program(str(document["inputs"]), plain_labels(classes), str(document["source"]))


def _index(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"arguments are whole numbers, got {value!r}")
    return value


def _constant(name: str, value: Any) -> Any:
    if name == "side":
        return str(value)
    if name == "count":
        return _index(value)
    if isinstance(value, list):
        return np.array(value, dtype=np.intp if name == "columns" else np.float64)
    return float(value)


def plain_labels(classes: AnyArray | Sequence[Any]) -> tuple[Label, ...]:
    """Labels as plain Python values, which every target can write down."""
    labels = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    for label in labels:
        if not isinstance(label, str | int | float | bool) or label in (np.inf, -np.inf):
            raise TypeError(
                f"labels to export must be text or numbers, got {label!r}; fit with classes=[...]"
            )
    return tuple(labels)


class Builder:
    """Makes programs: `append` adds an operation of `OPS` and gives the number of its value.

    The same operation on the same values is not written twice.

    Examples
    --------
    >>> build = Builder(2)
    >>> build.append("softmax", (0,))
    1
    >>> build.program("logits", ("no", "yes"), "doc")([[0.0, 0.0]]).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, n_classes: int) -> None:
        self.widths = [n_classes]
        self.nodes: list[Node] = []
        self._numbers: dict[Any, int] = {}

    def append(self, op: str, args: Sequence[int], constants: Constants | None = None) -> int:
        """Add an operation; the number of its value."""
        frozen = {name: _freeze(value) for name, value in (constants or {}).items()}
        keys = tuple((name, _key(value)) for name, value in sorted(frozen.items()))
        key = (op, tuple(args), keys)
        if key not in self._numbers:
            number = len(self.widths)
            self.widths.append(_width(op, args, frozen, number, self.widths))
            self.nodes.append(Node(op, tuple(args), frozen, self.widths[-1]))
            self._numbers[key] = number
        return self._numbers[key]

    def program(self, inputs: str, classes: tuple[Label, ...], source: str) -> Program:
        """All that was appended; the last value is the probabilities."""
        return Program(inputs, classes, tuple(self.nodes), source)

    def is_exact(self, value: int) -> bool:
        """Whether a value is made of scores as they came, so that it is the same to the last bit
        wherever the program runs.
        """
        if value == 0:
            return True
        node = self.nodes[value - 1]
        return node.op in _EXACT and all(map(self.is_exact, node.args))

    def last(self, value: int) -> None:
        """Make a value the last one, by an operation that changes nothing."""
        if value != len(self.nodes):
            columns = np.arange(self.widths[value])
            self.nodes.append(Node("columns", (value,), {"columns": columns}, len(columns)))
            self.widths.append(len(columns))


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray | list):
        copy = np.array(value)
        copy.setflags(write=False)
        return copy
    return value


def _key(value: Any) -> Any:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
