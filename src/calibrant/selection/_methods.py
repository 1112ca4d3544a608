"""Calibrators by the names that `compare` and the command line use."""

from __future__ import annotations

from typing import Any

from calibrant import binary, multiclass
from calibrant.selection._auto import AutoCalibration

BINARY: dict[str, Any] = {
    "platt": binary.PlattScaling(),
    "beta": binary.BetaCalibration(),
    "isotonic": binary.IsotonicCalibration("linear", smoothing=1.0),
    "histogram": binary.HistogramBinning(),
    "bbq": binary.BayesianBinning(),
    "spline": binary.SplineCalibration(),
    "venn-abers": binary.VennAbers(),
}
"""Calibrators of one claim; for more than two classes they are lifted class by class."""

WHOLE: dict[str, Any] = {
    "identity": multiclass.Identity(),
    "temperature": multiclass.TemperatureScaling(),
    "ensemble-temperature": multiclass.EnsembleTemperatureScaling(),
    "vector": multiclass.VectorScaling(),
    "matrix": multiclass.MatrixScaling(),
    "dirichlet": multiclass.DirichletCalibration(),
    "structured-vector": multiclass.StructuredScaling("vector"),
    "structured-matrix": multiclass.StructuredScaling("matrix"),
    "gp": multiclass.GaussianProcessCalibration(),
    "canonical": multiclass.CanonicalBinning(),
}
"""Calibrators of the whole vector."""

_DEFAULT = ("temperature", "structured-vector", "structured-matrix", "isotonic", "auto")


def method_named(name: str) -> Any:
    """An unfitted calibrator; see the names in `BINARY` and `WHOLE`, and "auto"."""
    known = {**WHOLE, **BINARY, "auto": AutoCalibration()}
    if name not in known:
        raise ValueError(
            f"unknown method {name!r}; valid are {', '.join(known)}, or a dict of name -> "
            f"calibrator"
        )
    return known[name]


def default_methods() -> dict[str, Any]:
    """What `compare` compares unless told otherwise."""
    return {name: method_named(name) for name in _DEFAULT}
