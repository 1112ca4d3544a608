"""The table of README that puts other libraries beside ours: each cell, done where it can be."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant import (
    AutoCalibration,
    HistogramBinning,
    MulticlassToBinary,
    TemperatureScaling,
    inference,
    metrics,
)
from calibrant.datasets import noisy_simplex
from calibrant.selection.methods import METHODS

README = Path(__file__).resolve().parent.parent / "README.md"
# Column, and what is imported and installed by which name.
COLUMNS = {
    "Calibrant": ("calibrant", "calibrant"),
    "scikit-learn 1.9": ("sklearn", "scikit-learn"),
    "netcal 1.4": ("netcal", "netcal"),
    "MAPIE 1.6": ("mapie", "mapie"),
    "probmetrics 1.3": ("probmetrics", "probmetrics"),
    "torchmetrics 1.9": ("torchmetrics", "torchmetrics"),
}
OTHERS = [name for name in COLUMNS if name != "Calibrant"]

_data = noisy_simplex(400, 3, noise=0.3, rng=0)
p, y = _data.proba, _data.labels
kept = y != 1

CHECKS = {}


def says(row, column, text):
    """Says what a cell reads, and which function finds it true."""

    def keep(check):
        CHECKS[row, column] = (text, check)
        return check

    return keep


def _table():
    text = README.read_text(encoding="utf-8").split("## Comparison with other libraries\n\n")[1]
    lines = text.split("\n\n")[0]
    head, _, *body = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()
    ]
    return {(row[0], name): cell for row in body for name, cell in zip(head, row, strict=True)}


TABLE = {key: cell for key, cell in _table().items() if key[1] and cell}


def _class(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _takes(function, argument):
    return argument in inspect.signature(function).parameters


# -- what ours does

MANY = "multiclass calibrators"
SCORES = "fitted on scores, without a model"
MISSING = "a class without calibration rows"
ERRORS = "calibration errors"
TESTS = "tests and confidence intervals for multiclass calibration"
GUARANTEE = "finite-sample bounds on calibrated probabilities"
WEIGHTS = "sample weights"
SAVED = "saved without pickle"
OPERATIONS = "command line, report, monitoring of calibration"
TORCH = "needs PyTorch"


@says(
    MANY,
    "Calibrant",
    "17 and an automatic ensemble; 7 of them support several types of calibration",
)
def _():
    assert len(METHODS) - len({"identity", "auto"} & set(METHODS)) == 17
    binary = [name for name, method in METHODS.items() if method.is_binary]
    assert len(binary) == 7
    for name in binary:
        for notion in ("top-label", "rank-2", "within-top-2", "class-wise"):
            calibrator = calibrant.method(name, notion=notion).fit(p, y)
            assert calibrator.predict_proba(p).shape == p.shape
    for name in METHODS.keys() - set(binary):
        with pytest.raises(ValueError, match="only allowed for the binary methods"):
            calibrant.method(name, notion="class-wise")


@says(SCORES, "Calibrant", "yes")
def _():
    assert TemperatureScaling().fit(p, y).predict_proba(p).shape == p.shape


@says(MISSING, "Calibrant", "works")
def _():
    for calibrator in (TemperatureScaling(), AutoCalibration()):
        assert calibrator.fit(p[kept], y[kept]).predict_proba(p).shape == p.shape


@says(
    ERRORS,
    "Calibrant",
    "binned errors (confidence, top-label, class-wise and others), optionally debiased; "
    "KS, smooth and kernel errors",
)
def _():
    for notion in ("confidence", "top-label", "class-wise", "rank-2"):
        for norm in (1, 2, np.inf):
            for strategy in ("uniform", "quantile"):
                how = {"notion": notion, "norm": norm, "strategy": strategy}
                assert 0 <= metrics.expected_calibration_error(y, p, **how) <= 1
    assert metrics.expected_calibration_error(y, p, norm=2, debias=True) >= 0
    for other in ("ks_error", "smooth_calibration_error", "kernel_calibration_error"):
        assert np.isfinite(getattr(metrics, other)(y, p))


@says(TESTS, "Calibrant", "yes")
def _():
    assert 0 < inference.consistency_test(y, p, n_resamples=50, rng=0).p_value <= 1
    found = inference.debiased_interval(y, p, notion="class-wise")
    assert found.low <= found.estimate <= found.high


@says(GUARANTEE, "Calibrant", "yes")
def _():
    promise = MulticlassToBinary(HistogramBinning(points_per_bin=20)).fit(p, y).guarantee(0.05)
    assert all(0 <= bin_.low <= bin_.high <= 1 for bin_ in promise.intervals)


@says(WEIGHTS, "Calibrant", "in fits, metrics and most tests")
def _():
    assert all(_takes(type(method.make()).fit, "sample_weight") for method in METHODS.values())
    weighed = [name for name in metrics.__all__ if name.endswith(("_error", "_score", "_loss"))]
    assert weighed
    assert all(_takes(getattr(metrics, name), "sample_weight") for name in weighed)


@says(SAVED, "Calibrant", "JSON")
def _(tmp_path):
    calibrant.save(TemperatureScaling().fit(p, y), tmp_path / "map.json")
    assert (tmp_path / "map.json").read_text(encoding="utf-8").startswith("{")


@says(OPERATIONS, "Calibrant", "yes")
def _():
    for room in ("cli", "report", "monitoring"):
        assert importlib.util.find_spec(f"calibrant.{room}") is not None


# -- what the others do


@says(MANY, "scikit-learn 1.9", "3")
def _():
    from sklearn.calibration import CalibratedClassifierCV

    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("the table is about scikit-learn 1.9")
    (options,) = CalibratedClassifierCV._parameter_constraints["method"]
    assert options.options == {"sigmoid", "isotonic", "temperature"}


@says(MANY, "netcal 1.4", "10, most of them one-vs-rest")
def _():
    found = {
        name
        for room in ("binning", "scaling")
        for name, value in vars(importlib.import_module(f"netcal.{room}")).items()
        if inspect.isclass(value) and not name.startswith("Abstract")
    }
    assert len(found) == 10


@says(MANY, "MAPIE 1.6", "top-label, Venn-Abers")
def _():
    assert _class("mapie.calibration.TopLabelCalibrator")
    assert _class("mapie.calibration.VennAbersCalibrator")


@says(MANY, "probmetrics 1.3", "dozens")
def _():
    found = vars(importlib.import_module("probmetrics.calibrators"))
    assert len([name for name in found if name.endswith("Calibrator")]) >= 24


@says(MANY, "torchmetrics 1.9", "none")
def _():
    names = importlib.import_module("torchmetrics.classification").__all__
    assert not [name for name in names if name.endswith(("Scaling", "Calibrator", "Calibration"))]


@says(SCORES, "scikit-learn 1.9", "no")
def _():
    from sklearn.calibration import CalibratedClassifierCV

    assert next(iter(inspect.signature(CalibratedClassifierCV).parameters)) == "estimator"


@says(SCORES, "netcal 1.4", "yes")
def _():
    fitted = _class("netcal.scaling.TemperatureScaling")().fit(p, y)
    assert fitted.transform(p).shape == p.shape


@says(SCORES, "MAPIE 1.6", "no")
def _():
    for name in ("TopLabelCalibrator", "VennAbersCalibrator"):
        assert _takes(_class(f"mapie.calibration.{name}"), "estimator")


@says(SCORES, "probmetrics 1.3", "yes")
def _():
    fitted = _class("probmetrics.calibrators.get_calibrator")("ts-mix").fit(p, y)
    assert fitted.predict_proba(p).shape == p.shape


def _without_a_class():
    X, label = load_wine(return_X_y=True)
    model = GaussianNB().fit(X, label)
    return model, X[label != 1], label[label != 1]


@says(MISSING, "scikit-learn 1.9", "IndexError")
def _():
    from sklearn.calibration import CalibratedClassifierCV

    model, X, label = _without_a_class()
    with pytest.raises(IndexError):
        CalibratedClassifierCV(FrozenEstimator(model)).fit(X, label).predict_proba(X)


@says(MISSING, "netcal 1.4", "works")
def _():
    fitted = _class("netcal.scaling.TemperatureScaling")().fit(p[kept], y[kept])
    assert fitted.transform(p).shape == p.shape


@says(MISSING, "MAPIE 1.6", "Venn-Abers returns no column for this class")
def _():
    model, X, label = _without_a_class()
    fitted = _class("mapie.calibration.VennAbersCalibrator")(model, cv="prefit").fit(X, label)
    assert fitted.predict_proba(X).shape == (len(X), 2)


@says(MISSING, "probmetrics 1.3", "works")
def _():
    fitted = _class("probmetrics.calibrators.get_calibrator")("ts-mix").fit(p[kept], y[kept])
    assert fitted.predict_proba(p).shape == p.shape


@says(ERRORS, "scikit-learn 1.9", "none")
def _():
    import sklearn.metrics

    assert not [name for name in sklearn.metrics.__all__ if "calibration_error" in name]


@says(ERRORS, "netcal 1.4", "confidence only")
def _():
    found = _class("netcal.metrics.ECE")(15).measure(p, y)
    assert found == pytest.approx(metrics.expected_calibration_error(y, p))
    assert not _takes(_class("netcal.metrics.ECE"), "classwise")


@says(ERRORS, "MAPIE 1.6", "3 types")
def _():
    assert _takes(_class("mapie.metrics.calibration.expected_calibration_error"), "classwise")
    assert callable(_class("mapie.metrics.calibration.top_label_ece"))


@says(ERRORS, "torchmetrics 1.9", "confidence only")
def _():
    names = importlib.import_module("torchmetrics.classification").__all__
    found = {name for name in names if "Calibration" in name}
    assert found == {"BinaryCalibrationError", "CalibrationError", "MulticlassCalibrationError"}


@says(TESTS, "MAPIE 1.6", "no")
def _():
    with pytest.raises(ValueError, match="1d"):
        _class("mapie.metrics.calibration.spiegelhalter_p_value")(y, p)


@says(WEIGHTS, "scikit-learn 1.9", "yes")
def _():
    from sklearn.calibration import CalibratedClassifierCV

    assert _takes(CalibratedClassifierCV.fit, "sample_weight")


@says(WEIGHTS, "netcal 1.4", "no")
def _():
    assert not _takes(_class("netcal.scaling.TemperatureScaling").fit, "sample_weight")
    assert not _takes(_class("netcal.metrics.ECE").measure, "sample_weight")


@says(WEIGHTS, "MAPIE 1.6", "in part")
def _():
    assert _takes(_class("mapie.calibration.TopLabelCalibrator").fit, "sample_weight")
    assert not _takes(_class("mapie.metrics.calibration.top_label_ece"), "sample_weight")


@says(WEIGHTS, "probmetrics 1.3", "no")
def _():
    assert not _takes(_class("probmetrics.calibrators.SMSCalibrator").fit, "sample_weight")


@says(WEIGHTS, "torchmetrics 1.9", "no")
def _():
    metric = _class("torchmetrics.classification.MulticlassCalibrationError")
    assert not _takes(metric.update, "sample_weight")


@says(SAVED, "netcal 1.4", "no")
def _(tmp_path):
    fitted = _class("netcal.scaling.TemperatureScaling")().fit(p, y)
    fitted.save_model(str(tmp_path / "map"))
    assert b"pkl" in (tmp_path / "map").read_bytes()  # an archive of torch, with a pickle in it


def _check_operations(column):
    scripts = importlib.metadata.distribution(COLUMNS[column][1]).entry_points
    assert not [script for script in scripts if script.group == "console_scripts"]


def _needs_torch(column):
    needed = importlib.metadata.requires(COLUMNS[column][1]) or []
    always = {re.split(r"[^\w-]", line)[0].lower() for line in needed if "extra ==" not in line}
    return "torch" in always


for _column in OTHERS:
    says(OPERATIONS, _column, "no")(lambda column=_column: _check_operations(column))
for _column in COLUMNS:
    _is_needed = _column in ("netcal 1.4", "probmetrics 1.3", "torchmetrics 1.9")
    says(TORCH, _column, "yes" if _is_needed else "no")(
        lambda column=_column, needed=_is_needed: _check_torch(column, needed)
    )


def _check_torch(column, needed):
    assert _needs_torch(column) == needed


# Read in their sources and documentation: most are that something is nowhere.
READ = {
    *((TESTS, name) for name in OTHERS if name != "MAPIE 1.6"),
    *((GUARANTEE, name) for name in OTHERS),
    (ERRORS, "probmetrics 1.3"),
    *((SAVED, name) for name in ("scikit-learn 1.9", "MAPIE 1.6", "probmetrics 1.3")),
}


def test_every_cell_is_done_or_known_to_be_read():
    assert set(TABLE) == set(CHECKS) | READ
    assert not set(CHECKS) & READ
    assert {TABLE[cell] for cell in READ} == {"no", "several"}


@pytest.mark.filterwarnings("ignore")  # those of the other library
@pytest.mark.parametrize(("row", "column"), CHECKS, ids=lambda part: part)
def test_a_cell_is_true(row, column, request):
    text, check = CHECKS[row, column]
    assert TABLE[row, column] == text
    try:
        importlib.import_module(COLUMNS[column][0])
    except ImportError as error:
        pytest.skip(f"{column} is not installed: {error}")
    names = check.__code__.co_varnames[: check.__code__.co_argcount]
    given = {} if check.__defaults__ else {name: request.getfixturevalue(name) for name in names}
    try:
        check(**given)
    except importlib.metadata.PackageNotFoundError as error:
        pytest.skip(f"{column} is there but not installed: {error}")
