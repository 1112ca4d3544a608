"""A fitted map in words and tables, one description per kind of calibrator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant.base import BaseBinaryCalibrator, Calibrator
from calibrant.base._words import plain_words
from calibrant.multiclass import (
    DirichletCalibration,
    MatrixScaling,
    StructuredScaling,
    VectorScaling,
)
from calibrant.reductions import MulticlassToBinary
from calibrant.report._content import MapNote, MapTable
from calibrant.selection import AutoCalibration
from calibrant.selection.methods import method_of

MOST_CLASSES = 20
"""Matrices of more classes are not shown."""


def describe(model: Any, classes: Sequence[str]) -> MapNote:
    """What a fitted calibrator does, for classes of these names: in its own words, with tables of
    what its kind has fitted. Of what is no `Calibrator`, its settings and numbers are said.
    """
    if not isinstance(model, Calibrator):
        name = type(model).__name__
        return MapNote(name, f"A fitted {name}. {plain_words(model)}")
    return MapNote(_name(model), _text(model, classes), tuple(_tables(model, classes)))


def _name(model: Calibrator) -> str:
    inner = f"({type(model.calibrator).__name__})" if isinstance(model, MulticlassToBinary) else ""
    return f"{type(model).__name__}{inner}"


def _text(model: Calibrator, classes: Sequence[str]) -> str:
    """The words of a map, and of its members."""
    entry = method_of(model)
    # Maps of one claim say their settings and numbers; the registry says what they are.
    is_claim = isinstance(model, BaseBinaryCalibrator)
    first = [f"{entry.help[0].upper()}{entry.help[1:]}."] if entry and is_claim else []
    parts = [describe(fitted, classes) for fitted in _members(model)]
    return " ".join([*first, model._words(), *(f"{part.name}: {part.text}" for part in parts)])


def _members(model: Any) -> list[Any]:
    """Members that are described one by one."""
    if not isinstance(model, AutoCalibration):
        return []
    return [fitted for name, fitted in model.members_.items() if name != "identity"]


@singledispatch
def _tables(model: Any, classes: Sequence[str]) -> Iterable[MapTable]:
    """Tables of a fitted map; of most kinds there are none."""
    return ()


@_tables.register(VectorScaling)
@_tables.register(MatrixScaling)
@_tables.register(StructuredScaling)
def _(model: Any, classes: Sequence[str]) -> Iterable[MapTable]:
    if np.ndim(model.coef_) == 1:
        return (_vector_table(model, classes),)
    return _matrix_tables(model.coef_, model.intercept_, classes, "W", "intercept")


@_tables.register
def _(model: DirichletCalibration, classes: Sequence[str]) -> Iterable[MapTable]:
    return _matrix_tables(*model.canonical(), classes, "A", "c")


@_tables.register
def _(model: AutoCalibration, classes: Sequence[str]) -> Iterable[MapTable]:
    order = np.argsort(-model.weights_, kind="stable").tolist()
    losses = [None if np.isnan(loss) else float(loss) for loss in model.losses_]
    rows = tuple((model.names_[j], float(model.weights_[j]), losses[j]) for j in order)
    yield MapTable("Weights of the stack", ("member", "weight", "cross-fitted log-loss"), rows)
    for fitted in _members(model):
        yield from describe(fitted, classes).tables


def _vector_table(model: Any, classes: Sequence[str]) -> MapTable:
    rows = zip(classes, np.asarray(model.coef_).tolist(), model.intercept_.tolist(), strict=True)
    return MapTable("Factor and offset of each class", ("class", "factor", "offset"), tuple(rows))


def _matrix_tables(
    matrix: FloatArray, last: FloatArray, classes: Sequence[str], name: str, extra: str
) -> tuple[MapTable, ...]:
    if len(classes) > MOST_CLASSES:
        return ()
    rows = tuple(
        (c, *row.tolist(), float(b)) for c, row, b in zip(classes, matrix, last, strict=True)
    )
    return (
        MapTable(
            f"{name} (row: class that is spoken for), {extra}", ("class", *classes, extra), rows
        ),
    )
