"""The one table of methods: calibrators by the names that `compare`, the command line, the report
and the README use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant import binary, multiclass
from calibrant._crossfit.members import check_calibrator
from calibrant._data.sample import Sample
from calibrant._validation import unknown_name
from calibrant.reductions import MulticlassToBinary


@dataclass(frozen=True)
class Method:
    """A calibrator by its name: how it is made, and what it does in one line.

    ``is_binary`` calibrators are for two classes. With more classes there is one per class, unless
    another notion is given.
    """

    name: str
    make: Callable[[], Any]
    help: str
    is_binary: bool = False


def _auto() -> Any:
    from calibrant.selection._auto import AutoCalibration  # its candidates are named by this table

    return AutoCalibration()


def _isotonic() -> Any:
    # Linear between blocks and smoothed: as it is, isotonic regression calls things impossible.
    return binary.IsotonicCalibration("linear", smoothing=1.0)


_STRUCTURED = multiclass.StructuredScaling
_TABLE = (
    Method("auto", _auto, "stacks several methods and the identity: rarely harms"),
    Method("identity", multiclass.Identity, "leaves probabilities as they are"),
    Method("temperature", multiclass.TemperatureScaling, "divides logits by one number"),
    Method(
        "ensemble-temperature",
        multiclass.EnsembleTemperatureScaling,
        "mixes tempered, raw and uniform probabilities",
    ),
    Method(
        "bayesian-temperature",
        multiclass.BayesianTemperatureScaling,
        "averages over the temperatures that few rows allow",
    ),
    Method("vector", multiclass.VectorScaling, "a factor and an offset for each class"),
    Method("matrix", multiclass.MatrixScaling, "an affine map of logits"),
    Method("dirichlet", multiclass.DirichletCalibration, "an affine map of log-probabilities"),
    Method(
        "structured-vector",
        partial(_STRUCTURED, "vector"),
        "temperature, then vector scaling as far as rows allow",
    ),
    Method(
        "structured-matrix",
        partial(_STRUCTURED, "matrix"),
        "temperature, then matrix scaling as far as rows allow",
    ),
    Method("gp", multiclass.GaussianProcessCalibration, "a latent Gaussian process of scores"),
    Method("canonical", multiclass.CanonicalBinning, "frequencies in bins of the whole simplex"),
    Method("platt", binary.PlattScaling, "logistic regression on log-odds", is_binary=True),
    Method("beta", binary.BetaCalibration, "a beta-shaped curve of the score", is_binary=True),
    Method("isotonic", _isotonic, "a monotone curve, smoothed", is_binary=True),
    Method("histogram", binary.HistogramBinning, "frequencies in bins, guaranteed", is_binary=True),
    Method("bbq", binary.BayesianBinning, "an average of many binnings", is_binary=True),
    Method("spline", binary.SplineCalibration, "a spline of cumulative outcomes", is_binary=True),
    Method("venn-abers", binary.VennAbers, "two isotonic maps, two probabilities", is_binary=True),
)

METHODS: dict[str, Method] = {entry.name: entry for entry in _TABLE}
"""Every method by its name, in the order in which they are listed to users."""

_OTHER_NAMES = {"sigmoid": "platt", "logistic": "platt", "venn_abers": "venn-abers"}
"""What other packages call a method."""

_DEFAULT = ("temperature", "structured-vector", "structured-matrix", "isotonic", "auto")


def method(name: str, *, notion: str | None = None) -> Any:
    """The unfitted calibrator that a name means: in `compare`, on the command line and wherever a
    calibrator may be given by its name (`CalibratedClassifier(estimator, "isotonic")`).

    Parameters
    ----------
    name : str
        "auto", "identity", "temperature", "structured-matrix", "dirichlet", "platt", ...
    notion : str, optional
        Type of calibration of a binary method, by `MulticlassToBinary`. If None and there are more
        than two classes, functions that accept a name use ``notion="class-wise"``.

    Returns
    -------
    calibrator

    Examples
    --------
    >>> method("isotonic")
    IsotonicCalibration(interpolation='linear', smoothing=1.0)
    >>> method("histogram", notion="top-label")
    MulticlassToBinary(calibrator=HistogramBinning())
    """
    chosen = _find(name)
    if notion is None:
        return chosen.make()
    if not chosen.is_binary:
        lifted = ", ".join(entry.name for entry in _TABLE if entry.is_binary)
        raise ValueError(
            f"a notion goes with the methods {lifted}; {name} calibrates the whole vector"
        )
    return MulticlassToBinary(chosen.make(), notion=notion, normalize=notion == "class-wise")


def _find(name: str) -> Method:
    if name in _OTHER_NAMES:
        raise ValueError(f"unknown method {name!r}; did you mean {_OTHER_NAMES[name]!r}?")
    if name not in METHODS:
        raise ValueError(unknown_name("method", name, METHODS))
    return METHODS[name]


def as_calibrator(calibrator: Any) -> Any:
    """A calibrator as it is, or the one that a name means."""
    return method(calibrator) if isinstance(calibrator, str) else check_calibrator(calibrator)


def needs_rows(calibrator: Any) -> bool:
    """Whether a calibrator needs all rows in memory; classifiers of other packages do."""
    return bool(getattr(calibrator, "needs_rows", True))


def check_members(members: Mapping[str, Any], sample: Sample) -> None:
    """Raise if a calibrator cannot be fitted to the folds of chunked rows."""
    for name, member in members.items():
        if needs_rows(member):
            sample.rows(name)
        if getattr(member, "_folds_by_row", False):
            # It assigns chunked rows to folds by their number, as the folds outside do.
            sample.rows(f"{name} inside other folds", "pass the calibrators inside it instead")


def by_name(calibrators: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Calibrators with what they are called: as a dict says, by the names that they were asked for,
    or after their class, numbered from 1 where it comes several times.
    """
    if isinstance(calibrators, Mapping):
        return {name: as_calibrator(given) for name, given in calibrators.items()}
    listed = [calibrators] if isinstance(calibrators, str) else list(calibrators)
    kinds = [given if isinstance(given, str) else type(given).__name__ for given in listed]
    names = [
        f"{kind}-{kinds[: i + 1].count(kind)}" if kinds.count(kind) > 1 else kind
        for i, kind in enumerate(kinds)
    ]
    return dict(zip(names, map(as_calibrator, listed), strict=True))


def default_methods() -> dict[str, Any]:
    """What `compare` compares unless told otherwise."""
    return {name: method(name) for name in _DEFAULT}


def method_of(calibrator: Any) -> Method | None:
    """The entry that makes calibrators of this type; None for one that is not in the table."""
    return next((entry for entry in _TABLE if type(entry.make()) is type(calibrator)), None)
