"""Describe fitted calibrators in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant.base import BaseBinaryCalibrator, Calibrator
from calibrant.base.description import describe_settings
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
"""Maximum number of classes for which matrices are shown."""


def describe(model: Any, classes: Sequence[str]) -> MapNote:
    """Describe a fitted calibrator in sentences, and in tables of its fitted parameters.

    The description of a calibrator of another package lists its settings and fitted numbers.
    """
    if not isinstance(model, Calibrator):
        name = type(model).__name__
        return MapNote(name, f"The calibrator is a fitted {name}. {describe_settings(model)}")
    return MapNote(_name(model), _text(model, classes), tuple(_tables(model, classes)))


def _name(model: Calibrator) -> str:
    inner = f"({type(model.calibrator).__name__})" if isinstance(model, MulticlassToBinary) else ""
    return f"{type(model).__name__}{inner}"


def _text(model: Calibrator, classes: Sequence[str]) -> str:
    """Return the sentences of a calibrator and of its base calibrators."""
    entry = method_of(model)
    # Binary calibrators describe only settings and numbers, so the method is described first.
    is_claim = isinstance(model, BaseBinaryCalibrator)
    first = [f"{entry.help[0].upper()}{entry.help[1:]}."] if entry and is_claim else []
    notes = [describe(fitted, classes) for fitted in _members(model)]
    return " ".join([*first, _own_text(model), *(f"{note.name}: {note.text}" for note in notes)])


def _own_text(model: Calibrator) -> str:
    """Return the sentences of a calibrator without the reduction in log-loss.

    `AutoCalibration` estimates its reduction in log-loss by cross-validation on the calibration
    rows. The verdict of the report states the reduction on the rows of the report, which is a
    different number.
    """
    text = model._description()
    gain = model.gain_ if isinstance(model, AutoCalibration) else None
    if gain is None:
        return text
    return text.replace(f"{gain.sentence()} ", "").replace(f": {gain.numbers}", "")


def _members(model: Any) -> list[Any]:
    """Return the base calibrators that are described separately."""
    if not isinstance(model, AutoCalibration):
        return []
    return [fitted for name, fitted in model.members_.items() if name != "identity"]


@singledispatch
def _tables(model: Any, classes: Sequence[str]) -> Iterable[MapTable]:
    """Return tables of fitted parameters, or an empty list for most calibrators."""
    return ()


@_tables.register(VectorScaling)
@_tables.register(MatrixScaling)
@_tables.register(StructuredScaling)
def _(model: Any, classes: Sequence[str]) -> Iterable[MapTable]:
    if np.ndim(model.coef_) == 1:
        return (_vector_table(model, classes),)
    return _matrix_tables(model.coef_, model.intercept_, classes, "W", "Intercept")


@_tables.register
def _(model: DirichletCalibration, classes: Sequence[str]) -> Iterable[MapTable]:
    return _matrix_tables(*model.canonical(), classes, "A", "c")


@_tables.register
def _(model: AutoCalibration, classes: Sequence[str]) -> Iterable[MapTable]:
    order = np.argsort(-model.weights_, kind="stable").tolist()
    losses = [None if np.isnan(loss) else float(loss) for loss in model.losses_]
    rows = tuple((model.names_[j], float(model.weights_[j]), losses[j]) for j in order)
    header = ("Base calibrator", "Weight", "Out-of-fold log-loss")
    yield MapTable("Weights of the stacked ensemble", header, rows)
    for fitted in _members(model):
        yield from describe(fitted, classes).tables


def _vector_table(model: Any, classes: Sequence[str]) -> MapTable:
    rows = zip(classes, np.asarray(model.coef_).tolist(), model.intercept_.tolist(), strict=True)
    return MapTable("Factor and offset of each class", ("Class", "Factor", "Offset"), tuple(rows))


def _matrix_tables(
    matrix: FloatArray, last: FloatArray, classes: Sequence[str], name: str, last_name: str
) -> tuple[MapTable, ...]:
    if len(classes) > MOST_CLASSES:
        return ()
    rows = tuple(
        (c, *row.tolist(), float(b)) for c, row, b in zip(classes, matrix, last, strict=True)
    )
    return (
        MapTable(
            f"Matrix {name} (one row per calibrated class) and {last_name.lower()}",
            ("Class", *classes, last_name),
            rows,
        ),
    )
