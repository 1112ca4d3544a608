"""What generated modules of source text have in common: one call a node, constants before them, and
only those functions that are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.export._ops import segments
from calibrant.export._program import Node, Program

SLACK = 1e-6
"""How far the logarithm of a probability may be above 0, by rounding: as far as in the library."""

VARIADIC = ("mix", "stack")
"""Operations whose values are passed as one list."""


def function_constants(node: Node) -> list[Any]:
    """Constants of a node as its function takes them: numbers, flags and lists."""
    constants = dict(node.constants)
    if node.op == "interpolate":
        starts, heights, slopes = segments(constants["x"], constants["y"])
        constants = {
            "points": constants["x"],
            "starts": starts,
            "heights": heights,
            "slopes": slopes,
        }
    if node.op == "step":
        constants = {**constants, "side": constants["side"] == "right"}
    values = constants.values()
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


def body(
    program: Program, literal: Callable[[Any], str], statement: str
) -> tuple[list[str], list[str]]:
    """Statements that define constants, and those that compute the values v1, v2, ...

    ``statement`` is a pattern with the places ``name`` and ``value``.
    """
    constants, lines = [], []
    for number, node in enumerate(program.nodes, start=1):
        values = [f"v{arg}" for arg in node.args]
        args = ["[" + ", ".join(values) + "]"] if node.op in VARIADIC else values
        for place, value in enumerate(function_constants(node)):
            name = f"C{number}_{place}"
            constants.append((name, literal(value)))
            args.append(name)
        lines.append(statement.format(name=f"v{number}", value=f"{node.op}({', '.join(args)})"))
    return [f"{name} = {value}" for name, value in constants], lines


def functions(program: Program, written: Mapping[str, str], needs: Mapping[str, str]) -> list[str]:
    """The text of the functions that a program calls, and of those that these need."""
    used = dict.fromkeys(node.op for node in program.nodes)
    helpers = dict.fromkeys(needs[op] for op in used if op in needs)
    return [written[name].strip("\n") for name in [*helpers, *used]]
