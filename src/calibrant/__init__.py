"""Calibrant: probabilities of multiclass classifiers that can be acted on.

Names are loaded when they are first used: ``import calibrant`` is instant, and nothing is imported
that is not needed (scikit-learn alone imports pandas wherever it is installed).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from calibrant import datasets, inference, label_shift, metrics, notions, plots, testing
    from calibrant.binary import (
        BayesianBinning,
        BetaCalibration,
        HistogramBinning,
        IsotonicCalibration,
        PlattScaling,
        SplineCalibration,
        VennAbers,
    )
    from calibrant.classifier import CalibratedClassifier
    from calibrant.evaluation import Evaluation, MetricAccumulator, evaluate
    from calibrant.io import load, save
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
    from calibrant.reductions import MulticlassToBinary
    from calibrant.selection import AutoCalibration, CrossFitted, compare

# Where each public name lives; a module stands for itself.
_HOMES = {
    # one claim: fit(p, y) with p of shape (n,) or (n, 2)
    "PlattScaling": "binary",
    "BetaCalibration": "binary",
    "IsotonicCalibration": "binary",
    "HistogramBinning": "binary",
    "BayesianBinning": "binary",
    "SplineCalibration": "binary",
    "VennAbers": "binary",
    # the whole vector: fit(P, y)
    "Identity": "multiclass",
    "TemperatureScaling": "multiclass",
    "EnsembleTemperatureScaling": "multiclass",
    "VectorScaling": "multiclass",
    "MatrixScaling": "multiclass",
    "DirichletCalibration": "multiclass",
    "StructuredScaling": "multiclass",
    "GaussianProcessCalibration": "multiclass",
    "CanonicalBinning": "multiclass",
    # lifting and composing
    "MulticlassToBinary": "reductions",
    "CrossFitted": "selection",
    "AutoCalibration": "selection",
    "CalibratedClassifier": "classifier",
    # everyday verbs
    "evaluate": "evaluation",
    "Evaluation": "evaluation",
    "MetricAccumulator": "evaluation",
    "compare": "selection",
    "save": "io",
    "load": "io",
    # modules
    "datasets": "",
    "inference": "",
    "label_shift": "",
    "metrics": "",
    "notions": "",
    "plots": "",
    "testing": "",
}

__all__ = [
    "AutoCalibration",
    "BayesianBinning",
    "BetaCalibration",
    "CalibratedClassifier",
    "CanonicalBinning",
    "CrossFitted",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "Evaluation",
    "GaussianProcessCalibration",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibration",
    "MatrixScaling",
    "MetricAccumulator",
    "MulticlassToBinary",
    "PlattScaling",
    "SplineCalibration",
    "StructuredScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "compare",
    "datasets",
    "evaluate",
    "inference",
    "label_shift",
    "load",
    "metrics",
    "notions",
    "plots",
    "save",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    home = _HOMES[name]
    value = (
        getattr(import_module(f"calibrant.{home}"), name)
        if home
        else import_module(f"calibrant.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
