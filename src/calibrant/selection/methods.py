"""Table of all calibrators by the names that `compare` and the command line accept."""

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
    """A named calibrator with a one-line description.

    ``make`` returns the unfitted calibrator. Calibrators with ``is_binary`` are for binary
    problems. With more classes, one calibrator is fitted per class, unless another notion is
    passed.
    """

    name: str
    make: Callable[[], Any]
    help: str
    is_binary: bool = False


def _auto() -> Any:
    # Imported here, because AutoCalibration reads the names of its candidates from this table.
    from calibrant.selection._auto import AutoCalibration

    return AutoCalibration()


def _isotonic() -> Any:
    # Interpolate linearly and smooth, because plain isotonic regression predicts 0 and 1.
    return binary.IsotonicCalibration("linear", smoothing=1.0)


_STRUCTURED = multiclass.StructuredScaling
_TABLE = (
    Method("auto", _auto, "stacked ensemble of several methods (default)"),
    Method("identity", multiclass.Identity, "leaves probabilities unchanged"),
    Method("temperature", multiclass.TemperatureScaling, "divides logits by one number"),
    Method(
        "ensemble-temperature",
        multiclass.EnsembleTemperatureScaling,
        "mixture of tempered, original and uniform scores",
    ),
    Method(
        "bayesian-temperature",
        multiclass.BayesianTemperatureScaling,
        "averages over plausible temperatures, for few rows",
    ),
    Method("vector", multiclass.VectorScaling, "one factor and one offset per class"),
    Method("matrix", multiclass.MatrixScaling, "affine function of the logits"),
    Method(
        "dirichlet", multiclass.DirichletCalibration, "affine function of the log-probabilities"
    ),
    Method(
        "structured-vector",
        partial(_STRUCTURED, "vector"),
        "temperature scaling plus penalized vector scaling",
    ),
    Method(
        "structured-matrix",
        partial(_STRUCTURED, "matrix"),
        "temperature scaling plus penalized matrix scaling",
    ),
    Method("gp", multiclass.GaussianProcessCalibration, "latent Gaussian process of the scores"),
    Method("canonical", multiclass.CanonicalBinning, "frequencies in bins of the whole simplex"),
    Method("platt", binary.PlattScaling, "logistic regression on log-odds", is_binary=True),
    Method("beta", binary.BetaCalibration, "curve of the beta family", is_binary=True),
    Method("isotonic", _isotonic, "monotone curve, smoothed", is_binary=True),
    Method(
        "histogram",
        binary.HistogramBinning,
        "frequencies in bins, with a finite-sample guarantee",
        is_binary=True,
    ),
    Method("bbq", binary.BayesianBinning, "average of many binnings", is_binary=True),
    Method(
        "spline",
        binary.SplineCalibration,
        "derivative of a spline of cumulative outcomes",
        is_binary=True,
    ),
    Method(
        "venn-abers",
        binary.VennAbers,
        "two isotonic regressions per score",
        is_binary=True,
    ),
)

METHODS: dict[str, Method] = {entry.name: entry for entry in _TABLE}
"""All methods by name, in the order of lists that users see."""

_OTHER_NAMES = {"sigmoid": "platt", "logistic": "platt", "venn_abers": "venn-abers"}
"""Names of methods in other packages."""

_DEFAULT = ("temperature", "structured-vector", "structured-matrix", "isotonic", "auto")


def method(name: str, *, notion: str | None = None) -> Any:
    """Return the unfitted calibrator with this name.

    `compare`, the command line and every parameter that takes a calibrator accept the same names,
    as in ``CalibratedClassifier(estimator, "isotonic")``.

    Parameters
    ----------
    name : str
        Name of the method, such as "auto", "identity", "temperature", "structured-matrix",
        "dirichlet" or "platt".
    notion : str, optional
        Type of calibration for a binary method, which `MulticlassToBinary` extends to several
        classes. If None and there are more than two classes, functions that accept a name use
        ``notion="class-wise"``.

    Returns
    -------
    calibrator
        The unfitted calibrator.

    See Also
    --------
    compare : Compare calibrators by name.
    calibrant.notions : Types of calibration.

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
        binary_names = ", ".join(entry.name for entry in _TABLE if entry.is_binary)
        raise ValueError(
            f"notion= is only allowed for the binary methods {binary_names}, but {name} calibrates "
            f"the whole vector. Call method({name!r}) without notion."
        )
    return MulticlassToBinary(chosen.make(), notion=notion, normalize=notion == "class-wise")


def _find(name: str) -> Method:
    if name in _OTHER_NAMES:
        raise ValueError(f"Unknown method {name!r}. Did you mean {_OTHER_NAMES[name]!r}?")
    if name not in METHODS:
        raise ValueError(unknown_name("method", name, METHODS))
    return METHODS[name]


def as_calibrator(calibrator: Any) -> Any:
    """Return a calibrator unchanged, or the calibrator with this name."""
    return method(calibrator) if isinstance(calibrator, str) else check_calibrator(calibrator)


def needs_rows(calibrator: Any) -> bool:
    """Return whether a calibrator needs all rows in memory, as classifiers of other packages do."""
    return bool(getattr(calibrator, "needs_rows", True))


def check_members(members: Mapping[str, Any], sample: Sample) -> None:
    """Raise if a calibrator cannot be fitted to the folds of chunked rows."""
    for name, member in members.items():
        if needs_rows(member):
            sample.rows(name)
        if getattr(member, "_folds_by_row", False):
            # This calibrator assigns chunked rows to folds by their row number, as the outer folds
            # do. So the inner folds would be the same as the outer folds.
            sample.rows(f"{name} inside other folds", "pass the calibrators inside it instead")


def by_name(calibrators: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Return calibrators by name.

    The names are the keys of a dict, the names in a list, or the class names of calibrators.
    Repeated names get numbers, starting with 1.
    """
    if isinstance(calibrators, Mapping):
        return {str(name): as_calibrator(entry) for name, entry in calibrators.items()}
    is_one = isinstance(calibrators, str) or not isinstance(calibrators, Iterable)
    listed = [calibrators] if is_one else list(calibrators)
    kinds = [entry if isinstance(entry, str) else type(entry).__name__ for entry in listed]
    names = [
        f"{kind}-{kinds[: i + 1].count(kind)}" if kinds.count(kind) > 1 else kind
        for i, kind in enumerate(kinds)
    ]
    return dict(zip(names, map(as_calibrator, listed), strict=True))


def default_methods() -> dict[str, Any]:
    """Return the default methods of `compare`."""
    return {name: method(name) for name in _DEFAULT}


def method_of(calibrator: Any) -> Method | None:
    """Return the entry that makes calibrators of this type, or None if there is none."""
    return next((entry for entry in _TABLE if type(entry.make()) is type(calibrator)), None)
