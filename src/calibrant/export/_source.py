"""Parts of generated Python and JavaScript: constants, one call per node, and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from calibrant import __version__
from calibrant.export._boundary import DESCRIPTIONS
from calibrant.export._ops import OPS, segments
from calibrant.export._program import Node, Program

VARIADIC = ("mix", "stack")
"""Operations whose values are passed as one list."""


def function_constants(node: Node) -> list[Any]:
    """Return the constants of a node as arguments of its function (numbers, flags and lists)."""
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
    """Return statements that define constants, and statements that compute the values v1, v2, ...

    ``statement`` is a format string with the fields ``name`` and ``value``.
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


def module_values(program: Program, literal: Callable[[Any], str]) -> dict[str, Any]:
    """Return the values for the template of a generated module."""
    return {
        "source": program.source,
        "version": __version__,
        "n_classes": program.n_classes,
        "what": DESCRIPTIONS[program.inputs],
        "classes": literal(list(program.classes)),
        "last": len(program.nodes),
        "kept": ", ".join(f"{number}: v{number}" for number in _kept(program)),
    }


def _kept(program: Program) -> list[int]:
    """The value numbers of the probabilities and of the named outputs."""
    return sorted({len(program.nodes), *(output.value for output in program.outputs)})


def read_functions(name: str, keyword: str) -> dict[str, str]:
    """Read the functions of a template by name.

    A function begins with a keyword at the start of a line and ends before an empty line.
    """
    text = files("calibrant.export").joinpath("templates", name).read_text(encoding="utf-8")
    pattern = rf"^{keyword} (\w+)\(.*?(?=\n\n|\Z)"
    return {match[1]: match[0].rstrip() for match in re.finditer(pattern, text, re.S | re.M)}


def functions(program: Program, written: Mapping[str, str]) -> list[str]:
    """Return the code of the functions that a program calls, after the functions that they call."""
    used = dict.fromkeys(node.op for node in program.nodes)
    shared = [name for name in written if name not in OPS]
    called = (name for op in used for name in shared if re.search(rf"\b{name}\(", written[op]))
    return [written[name] for name in [*dict.fromkeys(called), *used]]
