"""A fitted map in words and tables, one description per kind of calibrator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Protocol, runtime_checkable

import numpy as np

from calibrant._typing import FloatArray
from calibrant.base._words import fitted_numbers, sentence, settings
from calibrant.multiclass import (
    CanonicalBinning,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GaussianProcessCalibration,
    Identity,
    MatrixScaling,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.notions import as_notion
from calibrant.reductions import MulticlassToBinary
from calibrant.report._content import MapNote, MapTable
from calibrant.selection import AutoCalibration, CrossFitted
from calibrant.selection._methods import method_of

MOST_CLASSES = 20
"""Matrices of more classes are not shown."""


_RATIO = 3.84
"""Of likelihoods, twice its logarithm, that one parameter exceeds by chance in 5 % of the cases."""


@runtime_checkable
class SelfDescribing(Protocol):
    """A calibrator that says in words what it has learned."""

    def describe(self) -> str: ...


def describe(model: Any, classes: Sequence[str]) -> MapNote:
    """What a fitted calibrator does, for classes of these names: as it says itself by a method
    ``describe()``, or as is said of its kind.
    """
    if isinstance(model, SelfDescribing):
        return MapNote(type(model).__name__, model.describe())
    return _note(model, classes)


@singledispatch
def _note(model: Any, classes: Sequence[str]) -> MapNote:
    """Of a kind that has no words below: the line of the registry of methods where it has one, its
    settings, and the few numbers that it has fitted.
    """
    name, entry = type(model).__name__, method_of(model)
    sentences = [
        f"{entry.help[0].upper()}{entry.help[1:]}." if entry else f"A fitted {name}.",
        sentence("Settings", settings(model)),
        sentence("Fitted", fitted_numbers(model)),
    ]
    return MapNote(name, " ".join(filter(None, sentences)))


@_note.register
def _(model: Identity, classes: Sequence[str]) -> MapNote:
    return MapNote("Identity", "The probabilities are left as they are.")


@_note.register
def _(model: TemperatureScaling, classes: Sequence[str]) -> MapNote:
    return MapNote("TemperatureScaling", _temperature(model))


def _temperature(model: TemperatureScaling) -> str:
    value = model.temperature_
    effect, was = ("softened", "over") if value > 1 else ("sharpened", "under")
    is_beyond = _is_beyond_chance(model)
    if is_beyond is not None:
        effect += f": the model was {was}confident" if is_beyond else _CHANCE
    return (
        f"Logits are divided by the temperature {value:.4g}. The probabilities are {effect}. The "
        f"ranking of classes is kept."
    )


_CHANCE = ", by no more than chance explains"


def _is_beyond_chance(model: TemperatureScaling) -> bool | None:
    """Whether the likelihood ratio of the temperature to none says so, so that the interval of its
    logarithm excludes 0; None where a fit did not keep its losses.
    """
    training = vars(model).get("training_")
    if training is None:
        return None
    gain = training.log_loss_before - training.log_loss_after
    return bool(2 * training.n_rows * gain > _RATIO)


@_note.register
def _(model: EnsembleTemperatureScaling, classes: Sequence[str]) -> MapNote:
    tempered, raw, uniform = (f"{weight:.1%}" for weight in model.weights_)
    text = (
        f"A mixture: {tempered} tempered by T = {model.temperature_:.4g}, {raw} as they were, "
        f"{uniform} uniform."
    )
    return MapNote("EnsembleTemperatureScaling", text)


@_note.register
def _(model: VectorScaling, classes: Sequence[str]) -> MapNote:
    text = "Every class has a factor and an offset of its own, on the scale of logits."
    return MapNote("VectorScaling", text, (_vector_table(model, classes),))


def _vector_table(model: Any, classes: Sequence[str]) -> MapTable:
    rows = zip(classes, np.asarray(model.coef_).tolist(), model.intercept_.tolist(), strict=True)
    return MapTable("Factor and offset of each class", ("class", "factor", "offset"), tuple(rows))


@_note.register(MatrixScaling)
@_note.register(StructuredScaling)
def _(model: Any, classes: Sequence[str]) -> MapNote:
    first = (
        f" after tempering by T = {model.temperature_:.4g}"
        if isinstance(model, StructuredScaling)
        else ""
    )
    if np.ndim(model.coef_) == 1:
        text = f"Every class has a factor and an offset of its own, on the scale of logits{first}."
        return MapNote(type(model).__name__, text, (_vector_table(model, classes),))
    text = (
        f"An affine map of logits{first}: the matrix corrects confusions between pairs of classes."
    )
    return MapNote(
        type(model).__name__,
        text,
        _matrix_tables(model.coef_, model.intercept_, classes, "W", "intercept"),
    )


@_note.register
def _(model: DirichletCalibration, classes: Sequence[str]) -> MapNote:
    text = (
        f"softmax(A log(K p) + log c), the canonical form, penalty {model.lam_:g}: c is where the "
        f"centre of the simplex goes, "
        "entry (k, l) of A how much the score of class l speaks for class k."
    )
    return MapNote(
        "DirichletCalibration", text, _matrix_tables(*model.canonical(), classes, "A", "c")
    )


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


@_note.register
def _(model: GaussianProcessCalibration, classes: Sequence[str]) -> MapNote:
    text = (
        f"A latent Gaussian process of scores: variance {model.kernel_variance_:.3g}, length scale "
        f"{model.lengthscale_:.3g}, "
        f"noise {model.noise_:.3g}, {len(model.inducing_inputs_)} inducing points."
    )
    return MapNote("GaussianProcessCalibration", text)


@_note.register
def _(model: CanonicalBinning, classes: Sequence[str]) -> MapNote:
    text = (
        f"{len(model.occupied_)} of {model.n_bins_} bins of the simplex hold calibration rows; "
        f"each reports their frequencies."
    )
    return MapNote("CanonicalBinning", text)


@_note.register
def _(model: MulticlassToBinary, classes: Sequence[str]) -> MapNote:
    base = type(model.calibrator).__name__
    pooled = len(model.fallback_classes_)
    rest = f" {pooled} class(es) had too few rows and share a pooled map." if pooled else ""
    text = (
        f"{base} for each of {len(model.calibrators_)} claims of the notion "
        f"{as_notion(model.notion).name!r}.{rest}"
    )
    return MapNote(f"MulticlassToBinary({base})", text)


@_note.register
def _(model: CrossFitted, classes: Sequence[str]) -> MapNote:
    return MapNote(
        "CrossFitted",
        f"The average of {len(model.calibrators_)} maps of {type(model.calibrator).__name__}.",
    )


@_note.register
def _(model: AutoCalibration, classes: Sequence[str]) -> MapNote:
    order = np.argsort(-model.weights_, kind="stable").tolist()
    losses = [None if np.isnan(loss) else float(loss) for loss in model.losses_]
    rows = tuple((model.names_[j], float(model.weights_[j]), losses[j]) for j in order)
    table = MapTable("Weights of the stack", ("member", "weight", "cross-fitted log-loss"), rows)
    parts = [
        describe(fitted, classes) for name, fitted in model.members_.items() if name != "identity"
    ]
    tables = (table, *(own for part in parts for own in part.tables))
    said = " ".join(f"{part.name}: {part.text}" for part in parts)
    return MapNote("AutoCalibration", f"{model.explain().splitlines()[0]} {said}".strip(), tables)
