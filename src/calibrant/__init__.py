"""Calibrant calibrates and evaluates the predicted probabilities of classifiers.

Calibrate:

- ``CalibratedClassifier`` wraps any scikit-learn classifier.
- ``AutoCalibration``, ``TemperatureScaling``, ``StructuredScaling``, ``DirichletCalibration`` and
  other calibrators transform scores that you already have. ``method("isotonic")`` returns a
  calibrator by its name.

Evaluate:

- ``evaluate`` computes accuracy, proper scores and calibration errors, with ``by=`` per group.
- ``evaluate_answers`` evaluates the stated confidence of answers.
- ``compare`` compares calibrators, and ``compare_models`` compares models.
- ``MetricAccumulator`` evaluates data in batches.
- ``flatten_predictions`` and ``map_scores`` prepare predictions of pixels and tokens. ``TopScores``
  contains the top classes of each row, and ``OptionScores`` contains questions with different
  numbers of options.

Save calibrators with ``save`` and restore them with ``load``.

The subpackages are ``metrics``, ``inference`` (tests and intervals), ``plots``, ``report``,
``notions`` (types of calibration), ``guarantees``, ``decisions`` (abstention, costs, prediction
sets), ``label_shift``, ``monitoring``, ``export``, ``llm`` (language-model evaluations),
``datasets`` and ``testing``. ``dir(calibrant)`` lists all public names. Modules that begin with
``_`` are private.

Names are loaded at their first use, so ``import calibrant`` is fast and imports no optional
dependency.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the same names as in _HOMES, written as imports for type checkers
    from calibrant import base as base
    from calibrant import binary as binary
    from calibrant import binning as binning
    from calibrant import classifier as classifier
    from calibrant import datasets as datasets
    from calibrant import decisions as decisions
    from calibrant import exceptions as exceptions
    from calibrant import export as export
    from calibrant import guarantees as guarantees
    from calibrant import inference as inference
    from calibrant import io as io
    from calibrant import label_shift as label_shift
    from calibrant import llm as llm
    from calibrant import metrics as metrics
    from calibrant import monitoring as monitoring
    from calibrant import multiclass as multiclass
    from calibrant import notions as notions
    from calibrant import plots as plots
    from calibrant import reductions as reductions
    from calibrant import report as report
    from calibrant import selection as selection
    from calibrant import testing as testing
    from calibrant.binary import BayesianBinning as BayesianBinning
    from calibrant.binary import BetaCalibration as BetaCalibration
    from calibrant.binary import HistogramBinning as HistogramBinning
    from calibrant.binary import IsotonicCalibration as IsotonicCalibration
    from calibrant.binary import PlattScaling as PlattScaling
    from calibrant.binary import SplineCalibration as SplineCalibration
    from calibrant.binary import VennAbers as VennAbers
    from calibrant.classifier import CalibratedClassifier as CalibratedClassifier
    from calibrant.io import load as load
    from calibrant.io import save as save
    from calibrant.metrics import Evaluation as Evaluation
    from calibrant.metrics import MetricAccumulator as MetricAccumulator
    from calibrant.metrics import OptionScores as OptionScores
    from calibrant.metrics import TopScores as TopScores
    from calibrant.metrics import evaluate as evaluate
    from calibrant.metrics import evaluate_answers as evaluate_answers
    from calibrant.metrics import flatten_predictions as flatten_predictions
    from calibrant.metrics import map_scores as map_scores
    from calibrant.multiclass import BayesianTemperatureScaling as BayesianTemperatureScaling
    from calibrant.multiclass import CanonicalBinning as CanonicalBinning
    from calibrant.multiclass import DirichletCalibration as DirichletCalibration
    from calibrant.multiclass import EnsembleTemperatureScaling as EnsembleTemperatureScaling
    from calibrant.multiclass import GaussianProcessCalibration as GaussianProcessCalibration
    from calibrant.multiclass import Identity as Identity
    from calibrant.multiclass import MatrixScaling as MatrixScaling
    from calibrant.multiclass import StructuredScaling as StructuredScaling
    from calibrant.multiclass import TemperatureScaling as TemperatureScaling
    from calibrant.multiclass import VectorScaling as VectorScaling
    from calibrant.reductions import MulticlassToBinary as MulticlassToBinary
    from calibrant.selection import AutoCalibration as AutoCalibration
    from calibrant.selection import CrossFitted as CrossFitted
    from calibrant.selection import GroupCalibration as GroupCalibration
    from calibrant.selection import compare as compare
    from calibrant.selection import compare_models as compare_models
    from calibrant.selection import method as method

# The subpackage of each public name; a module has an empty string.
_HOMES = {
    # binary calibrators: fit(p, y) with p of shape (n,) or (n, 2)
    "PlattScaling": "binary",
    "BetaCalibration": "binary",
    "IsotonicCalibration": "binary",
    "HistogramBinning": "binary",
    "BayesianBinning": "binary",
    "SplineCalibration": "binary",
    "VennAbers": "binary",
    # multiclass calibrators: fit(P, y) with P of shape (n, K)
    "Identity": "multiclass",
    "TemperatureScaling": "multiclass",
    "EnsembleTemperatureScaling": "multiclass",
    "BayesianTemperatureScaling": "multiclass",
    "VectorScaling": "multiclass",
    "MatrixScaling": "multiclass",
    "DirichletCalibration": "multiclass",
    "StructuredScaling": "multiclass",
    "GaussianProcessCalibration": "multiclass",
    "CanonicalBinning": "multiclass",
    # calibrators that contain other calibrators
    "MulticlassToBinary": "reductions",
    "CrossFitted": "selection",
    "AutoCalibration": "selection",
    "GroupCalibration": "selection",
    "CalibratedClassifier": "classifier",
    # functions and results for daily use
    "evaluate": "metrics",
    "evaluate_answers": "metrics",
    "Evaluation": "metrics",
    "MetricAccumulator": "metrics",
    "OptionScores": "metrics",
    "TopScores": "metrics",
    "flatten_predictions": "metrics",
    "map_scores": "metrics",
    "compare": "selection",
    "compare_models": "selection",
    "save": "io",
    "load": "io",
    "method": "selection",
    # modules
    **dict.fromkeys(
        (
            *("base", "binary", "binning", "classifier", "datasets", "decisions", "exceptions"),
            *("export", "guarantees", "inference", "io", "label_shift", "llm", "metrics"),
            "monitoring",
            *("multiclass", "notions", "plots", "reductions", "report", "selection", "testing"),
        ),
        "",
    ),
}

if not TYPE_CHECKING:  # a module __getattr__ would hide unknown names from type checkers
    __all__ = sorted(_HOMES)

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            hint = _suggest(name)
            hint = f"; did you mean {hint!r}?" if hint else ""
            raise AttributeError(f"module 'calibrant' has no attribute {name!r}{hint}")
        home = _HOMES[name]
        module = import_module(f"calibrant.{home or name}")
        value = getattr(module, name) if home else module
        globals()[name] = value
        return value


def _suggest(name: str) -> str | None:
    """Suggest the nearest public name, or the full path of a name that a subpackage contains."""
    # Imported here, because this import doubles the import time of the package.
    from difflib import get_close_matches

    if name.startswith("_"):  # tools look up private names, for which no suggestion is useful
        return None
    near = get_close_matches(name, _HOMES, n=1)
    if near:
        return near[0]
    if "diagram" in name.lower() or "curve" in name.lower():
        return "calibrant.plots.ReliabilityDisplay"
    metrics, inference = (import_module(f"calibrant.{home}") for home in ("metrics", "inference"))
    metric = metrics.registry.METRICS.get(name.lower())
    if metric is not None:
        return f"calibrant.metrics.{metric.function.__name__}"
    homes = [module for module in (metrics, inference) if name in module.__all__]
    return f"{homes[0].__name__}.{name}" if homes else None


def __dir__() -> list[str]:
    return [*sorted(_HOMES), "__version__"]
