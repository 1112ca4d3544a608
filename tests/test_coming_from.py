"""Run every row of the migration pages whose other library is installed."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from calibrant import (
    BetaCalibration,
    CalibratedClassifier,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    MetricAccumulator,
    MulticlassToBinary,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
    inference,
    load,
    method,
    metrics,
    save,
)
from calibrant.datasets import noisy_simplex
from calibrant.decisions import PredictionSets
from calibrant.metrics import expected_calibration_error as ece

PAGES = Path(__file__).resolve().parent.parent / "docs" / "migration"
MODULES = {
    "scikit-learn": "sklearn",
    "netcal": "netcal",
    "dirichletcal": "dirichletcal",
    "betacal": "betacal",
    "mapie": "mapie",
    "torchmetrics": "torchmetrics",
    "uncertainty-calibration": "calibration",
}

_data = noisy_simplex(1000, 4, noise=0.3, rng=0)
p, y = _data.proba, _data.labels
s, outcome = p[:, 0], (y == 0).astype(int)
inner = np.clip(s, 1e-6, 1 - 1e-6)
log_p = np.log(p)
z = log_p - log_p.mean(axis=1, keepdims=True)

CHECKS = {}


def row(page, cell):
    """Register a check of one row of a page. The first cell identifies the row."""

    def keep(check):
        CHECKS[page, cell] = check
        return check

    return keep


def _cells(page):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [re.match(r"\| (.*?) \|", line)[1] for table in tables for line in table.splitlines()]


def close(theirs, ours, atol=1e-12):
    np.testing.assert_allclose(np.asarray(theirs, dtype=float), ours, atol=atol, rtol=0)


def differ(theirs, ours, by=1e-3):
    assert np.abs(np.asarray(theirs, dtype=float) - ours).max() > by


def one_vs_rest(calibrator):
    return MulticlassToBinary(calibrator, notion="class-wise", normalize=True)


def proba_of(calibrator, scores=p, labels=y):
    return calibrator.fit(scores, labels).predict_proba(scores)


def top_of(calibrator):
    return MulticlassToBinary(calibrator, notion="confidence").fit(p, y).predict_claims(p)[:, 0]


def curve(**how):
    """Mean scores, rates and rows of the bins that are not empty."""
    table = metrics.calibration_curve(**how)
    full = table.weight[0] > 0
    rows = table.weight[0][full]
    return table.score[0][full] / rows, table.outcome[0][full] / rows, rows


# -- scikit-learn


@pytest.fixture(scope="module")
def wine():
    """Return a classifier with training rows, calibration rows and new rows."""
    X, label = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(label))
    X, label = X[order, :3], label[order]
    parts = {"train": slice(60), "cal": slice(60, 130), "new": slice(130, None)}
    rows = {name: (X[part], label[part]) for name, part in parts.items()}
    return {**rows, "model": GaussianNB().fit(*rows["train"])}


def _version():
    return tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def needs_sklearn(*version):
    if _version() < version:
        pytest.skip(f"needs scikit-learn {'.'.join(map(str, version))}")


def theirs_and_ours(wine, estimator, calibrator, theirs, ours):
    from sklearn.calibration import CalibratedClassifierCV

    a = CalibratedClassifierCV(estimator, **theirs).fit(*wine["cal"])
    b = CalibratedClassifier(estimator, calibrator, **ours).fit(*wine["cal"])
    return a.predict_proba(wine["new"][0]), b.predict_proba(wine["new"][0])


@row("scikit-learn", '`CalibratedClassifierCV(clf, method="temperature")`')
def _(wine):
    needs_sklearn(1, 8)
    how = {"method": "temperature"}
    a, b = theirs_and_ours(wine, GaussianNB(), "temperature", how, {"ensemble": True})
    close(a, b, 1e-4)
    differ(a, theirs_and_ours(wine, GaussianNB(), "temperature", how, {})[1])


@row("scikit-learn", "`CalibratedClassifierCV(clf, ensemble=False)`")
def _(wine):
    needs_sklearn(1, 8)
    how = {"method": "temperature", "ensemble": False}
    close(*theirs_and_ours(wine, GaussianNB(), "temperature", how, {"ensemble": False}), 1e-4)


@row("scikit-learn", '`CalibratedClassifierCV(FrozenEstimator(clf), method="temperature")`')
def _(wine):
    needs_sklearn(1, 8)
    frozen = FrozenEstimator(wine["model"])
    close(*theirs_and_ours(wine, frozen, "temperature", {"method": "temperature"}, {}), 1e-4)


@row("scikit-learn", '`method="sigmoid"`')
def _(wine):
    frozen = FrozenEstimator(wine["model"])
    differ(*theirs_and_ours(wine, frozen, "platt", {"method": "sigmoid"}, {}), 0.1)


@row("scikit-learn", '`method="isotonic"`')
def _(wine):
    frozen = FrozenEstimator(wine["model"])
    a, b = theirs_and_ours(wine, frozen, "isotonic", {"method": "isotonic"}, {})
    assert a.min() == 0 < b.min()


@row("scikit-learn", '`IsotonicRegression(out_of_bounds="clip")`')
def _():
    from sklearn.isotonic import IsotonicRegression

    theirs = IsotonicRegression(out_of_bounds="clip").fit(s, outcome)
    ours = IsotonicCalibration().fit(s, outcome)
    close(theirs.predict(s), ours.predict_proba(s)[:, 1])
    between = np.linspace(0.01, 0.99, 500)
    differ(theirs.predict(between), ours.predict_proba(between)[:, 1])


@row("scikit-learn", "a wrapper class that turns probabilities into a classifier")
def _(wine):
    X, label = wine["cal"]
    scores = wine["model"].predict_proba(X)
    wrapped = CalibratedClassifier(FrozenEstimator(wine["model"]), "temperature").fit(X, label)
    assert TemperatureScaling().fit(scores, label).temperature_ == pytest.approx(
        wrapped.calibrator_.temperature_, abs=1e-12
    )


@row("scikit-learn", "`calibration_curve(y, p, n_bins=10)`")
def _():
    from sklearn.calibration import calibration_curve

    rate, mean = calibration_curve(outcome, s, n_bins=10)
    ours = curve(y_true=outcome, y_prob=s, notion="class-1", n_bins=10)
    close(mean, ours[0])
    close(rate, ours[1])
    assert len(calibration_curve(outcome, s)[0]) == 5


@row("scikit-learn", "`CalibrationDisplay.from_predictions(y, p)`")
def _():
    pytest.importorskip("matplotlib").use("agg")
    from sklearn.calibration import CalibrationDisplay

    from calibrant.plots import ReliabilityDisplay

    theirs = CalibrationDisplay.from_predictions(outcome, s, n_bins=10)
    ours = ReliabilityDisplay.from_predictions(outcome, s, notion="class-1", n_bins=10).plot()
    rate = curve(y_true=outcome, y_prob=s, notion="class-1", n_bins=10)[1]
    close(theirs.prob_true, rate)
    sys.modules["matplotlib.pyplot"].close("all")
    assert ours.figure_ is not None


@row("scikit-learn", "`brier_score_loss(y, p)`, two classes")
def _():
    from sklearn.metrics import brier_score_loss

    close(brier_score_loss(outcome, s), metrics.brier_score(outcome, s) / 2)


@row("scikit-learn", "`brier_score_loss(y, P)`, more than two classes")
def _():
    needs_sklearn(1, 7)
    from sklearn.metrics import brier_score_loss

    close(brier_score_loss(y, p), metrics.brier_score(y, p))


@row("scikit-learn", "`log_loss(y, p)`")
def _():
    from sklearn.metrics import log_loss

    close(log_loss(y, p), metrics.log_loss(y, p))


@row("scikit-learn", "a class without rows in the calibration set: `IndexError`")
def _(wine):
    from sklearn.calibration import CalibratedClassifierCV

    X, label = (part[wine["cal"][1] != 1] for part in wine["cal"])
    frozen = FrozenEstimator(wine["model"])
    with pytest.raises(IndexError):
        CalibratedClassifierCV(frozen).fit(X, label).predict_proba(X)
    scores = wine["model"].predict_proba(X)
    assert TemperatureScaling().fit(scores, label).predict_proba(scores).shape == (len(X), 3)


# -- netcal


@row("netcal", "`TemperatureScaling().fit(p, y).transform(p)`")
def _():
    from netcal.scaling import TemperatureScaling as Theirs

    close(Theirs().fit(p, y).transform(p), proba_of(TemperatureScaling()), 1e-5)


@row("netcal", "`LogisticCalibration`, two classes")
def _():
    from netcal.scaling import LogisticCalibration

    ours = proba_of(PlattScaling(target_smoothing=False), s, outcome)[:, 1]
    close(LogisticCalibration().fit(s, outcome).transform(s), ours, 1e-5)


@row("netcal", "`LogisticCalibration`, more than two classes")
def _():
    from netcal.scaling import LogisticCalibration

    close(LogisticCalibration().fit(p, y).transform(p), proba_of(VectorScaling()), 1e-4)


@row("netcal", "`BetaCalibration`, two classes")
def _():
    from netcal.scaling import BetaCalibration as Theirs

    ours = proba_of(BetaCalibration(), inner, outcome)[:, 1]
    close(Theirs().fit(inner, outcome).transform(inner), ours, 1e-3)


@row("netcal", "`BetaCalibration`, more than two classes")
def _():
    from netcal.scaling import BetaCalibration as Theirs

    theirs, ours = Theirs().fit(p, y).transform(p), proba_of(method("beta", notion="class-wise"))
    differ(theirs, ours)
    assert metrics.log_loss(y, theirs) == pytest.approx(metrics.log_loss(y, ours), abs=0.003)


@row("netcal", "`HistogramBinning(bins=10)`")
def _():
    from netcal.binning import HistogramBinning as Theirs

    ours = HistogramBinning(10, strategy="uniform", boundary="include", delta=0)
    close(Theirs(bins=10).fit(p, y).transform(p), proba_of(one_vs_rest(ours)))


@row("netcal", "`IsotonicRegression()`")
def _():
    from netcal.binning import IsotonicRegression

    close(IsotonicRegression().fit(p, y).transform(p), proba_of(one_vs_rest(IsotonicCalibration())))


@row("netcal", "`BBQ()`")
def _():
    from netcal.binning import BBQ

    theirs, ours = BBQ().fit(p, y).transform(p), proba_of(method("bbq", notion="class-wise"))
    differ(theirs, ours)
    assert metrics.log_loss(y, theirs) == pytest.approx(metrics.log_loss(y, ours), abs=0.01)


@row("netcal", "`ENIR()`")
def _():
    from netcal.binning import ENIR

    assert callable(ENIR)


@row("netcal", "`ECE(15).measure(p, y)`")
def _():
    from netcal.metrics import ECE

    close(ECE(15).measure(p, y), ece(y, p, n_bins=15))


@row("netcal", "`MCE(15).measure(p, y)`")
def _():
    from netcal.metrics import MCE

    close(MCE(15).measure(p, y), ece(y, p, n_bins=15, norm=np.inf))


@row("netcal", "`ACE(15).measure(p, y)`")
def _():
    from netcal.metrics import ACE

    mean, rate, _rows = curve(y_true=y, y_prob=p, n_bins=15)
    close(ACE(15).measure(p, y), np.abs(mean - rate).mean())


@row("netcal", "`MMCE().measure(p, y)`")
def _():
    from netcal.metrics import MMCE

    ours = metrics.kernel_calibration_error(y, p, notion="confidence")
    differ(MMCE().measure(p, y), ours, 0.01)


@row("netcal", "`ReliabilityDiagram(15).plot(p, y)`")
def _():
    pytest.importorskip("matplotlib").use("agg")
    from netcal.presentation import ReliabilityDiagram

    from calibrant.plots import ReliabilityDisplay

    assert ReliabilityDiagram(15).plot(p, y) is not None
    assert ReliabilityDisplay.from_predictions(y, p, n_bins=15).plot().figure_ is not None
    sys.modules["matplotlib.pyplot"].close("all")


@row("netcal", "`save_model`, `load_model`")
def _(tmp_path):
    from netcal.scaling import TemperatureScaling as Theirs

    assert callable(Theirs().save_model)
    assert callable(Theirs().load_model)
    save(TemperatureScaling().fit(p, y), tmp_path / "map.json")
    close(load(tmp_path / "map.json").predict_proba(p), proba_of(TemperatureScaling()))


@row("netcal", "`sklearn.base.clone` raises an error")
def _():
    from netcal.scaling import TemperatureScaling as Theirs

    with pytest.raises(RuntimeError):
        clone(Theirs())
    assert isinstance(clone(TemperatureScaling()), TemperatureScaling)


# -- dirichletcal


def _full(**how):
    from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator

    return FullDirichletCalibrator(**how).fit(p, y)


@row("dirichletcal", "`FullDirichletCalibrator(reg_lambda=l, reg_mu=m, ref_row=False)`")
def _():
    theirs = _full(reg_lambda=0.01, reg_mu=0.02, ref_row=False).predict_proba(p)
    close(theirs, proba_of(DirichletCalibration(lam=0.01, mu=0.02)), 1e-6)


@row(
    "dirichletcal",
    "`FullDirichletCalibrator(reg_lambda=l, reg_mu=m)`, with the default `ref_row=True`",
)
def _():
    theirs = _full(reg_lambda=0.01, reg_mu=0.02).predict_proba(p)
    differ(theirs, proba_of(DirichletCalibration(lam=0.01, mu=0.02)), 0.01)


@row(
    "dirichletcal",
    "`FullDirichletCalibrator(reg_lambda=l, reg_mu=m, reg_norm=True, ref_row=False)`",
)
def _():
    theirs = _full(reg_lambda=0.01, reg_mu=0.02, reg_norm=True, ref_row=False).predict_proba(p)
    close(theirs, proba_of(DirichletCalibration(lam=0.01 / (4 * 3), mu=0.02 / 4)), 1e-6)


@row("dirichletcal", "`FullDirichletCalibrator(reg_lambda=l, ref_row=False)`")
def _():
    theirs = _full(reg_lambda=0.01, ref_row=False).predict_proba(p)
    close(theirs, proba_of(DirichletCalibration(lam=0.01, penalty="l2")), 1e-6)


@row("dirichletcal", "`FullDirichletCalibrator()`")
def _():
    for ref_row in (True, False):
        theirs = _full(ref_row=ref_row).predict_proba(p)
        close(theirs, proba_of(DirichletCalibration(lam=0.0)), 1e-6)


@row("dirichletcal", "`DiagonalDirichletCalibrator()`")
def _():
    from dirichletcal.calib.diagdirichlet import DiagonalDirichletCalibrator

    theirs = DiagonalDirichletCalibrator().fit(p, y).predict_proba(p)
    close(theirs, proba_of(VectorScaling()), 1e-6)


@row("dirichletcal", "`.cannonical_weights`")
def _():
    theirs = _full(reg_lambda=0.01, reg_mu=0.02, ref_row=False).cannonical_weights
    matrix, vector = DirichletCalibration(lam=0.01, mu=0.02).fit(p, y).canonical()
    close(theirs[:, :-1], matrix, 1e-5)
    close(theirs[:, -1], vector, 1e-5)


@row("dirichletcal", "`TemperatureScaling(logit_input=True)`")
def _():
    from dirichletcal.calib.tempscaling import TemperatureScaling as Theirs

    theirs = Theirs(logit_input=True).fit(log_p, y).predict_proba(log_p)
    close(theirs, proba_of(TemperatureScaling(inputs="logits"), log_p), 1e-6)


@row("dirichletcal", "`VectorScaling(logit_input=True)`")
def _():
    from dirichletcal.calib.vectorscaling import VectorScaling as Theirs

    theirs = Theirs(logit_input=True).fit(z, y)
    ours = VectorScaling(inputs="logits").fit(z, y)
    close(theirs.predict_proba(z), ours.predict_proba(z), 1e-6)
    close(ours.predict_proba(z + 1), ours.predict_proba(z))
    differ(theirs.predict_proba(z + 1), ours.predict_proba(z))


@row("dirichletcal", "`MatrixScaling(logit_input=True)`")
def _():
    from dirichletcal.calib.matrixscaling import MatrixScaling as Theirs

    ours = proba_of(MatrixScaling(inputs="logits"), z)
    close(Theirs(logit_input=True).fit(z, y).predict_proba(z), ours, 1e-6)
    differ(Theirs(logit_input=True).fit(log_p, y).predict_proba(log_p), ours)


@row("dirichletcal", "`GridSearchCV` over `reg_lambda` and `reg_mu`")
def _():
    from sklearn.model_selection import GridSearchCV

    ours = DirichletCalibration()
    assert ours.fit(p, y).lam_ in ours.grid
    search = GridSearchCV(ours, {"lam": [0.0, 0.01]}, scoring="neg_log_loss", cv=2).fit(p, y)
    assert search.best_params_["lam"] in (0.0, 0.01)


@row("dirichletcal", "replaces probabilities of zero by the smallest float, 1e-308")
def _():
    sure = np.array([[1.0, 0.0, 0.0, 0.0]])
    theirs = _full(reg_lambda=0.01, reg_mu=0.02, ref_row=False).predict_proba(sure)
    ours = DirichletCalibration(lam=0.01, mu=0.02).fit(p, y).predict_proba(sure)
    assert theirs[0, 1] < 1e-100
    assert ours[0, 1] > 1e-12


@row("dirichletcal", "a class without rows in the calibration set: an error")
def _():
    from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator

    kept = y != 3
    with pytest.raises(TypeError):
        FullDirichletCalibrator().fit(p[kept], y[kept])
    assert proba_of(DirichletCalibration(lam=0.01), p[kept], y[kept]).shape == (kept.sum(), 4)


@row("dirichletcal", "`MultinomialRegression.fit` overwrites the parameter `reg_lambda`")
def _():
    inside = _full(reg_lambda=0.01, reg_mu=0.01, reg_norm=True).calibrator_
    before = inside.reg_lambda
    assert inside.fit(log_p, y).reg_lambda == pytest.approx(before / 12)
    assert DirichletCalibration(lam=0.01).fit(p, y).get_params()["lam"] == 0.01


# -- betacal


def _beta(parameters):
    import betacal

    theirs = betacal.BetaCalibration(parameters).fit(inner.reshape(-1, 1), outcome)
    return theirs, BetaCalibration(parameters).fit(inner, outcome)


def _same_beta(parameters):
    theirs, ours = _beta(parameters)
    close(theirs.predict(inner.reshape(-1, 1)), ours.predict_proba(inner)[:, 1], 1e-4)


@row("betacal", '`BetaCalibration(parameters="abm")`')
def _():
    _same_beta("abm")


@row("betacal", '`parameters="am"`')
def _():
    _same_beta("am")


@row("betacal", '`parameters="ab"`')
def _():
    _same_beta("ab")


@row("betacal", '`parameters="a"`')
def _():
    import betacal

    assert betacal.BetaCalibration("a").parameters == "a"
    with pytest.raises(ValueError, match="parameters"):
        BetaCalibration("a").fit(inner, outcome)


@row("betacal", "`.fit(s.reshape(-1, 1), y)`")
def _():
    both = np.column_stack([1 - inner, inner])
    close(proba_of(BetaCalibration(), both, outcome), proba_of(BetaCalibration(), inner, outcome))


@row("betacal", "`.predict(s)`")
def _():
    theirs, ours = _beta("abm")
    assert theirs.predict(inner.reshape(-1, 1)).shape == inner.shape
    assert ours.predict_proba(inner).shape == (len(inner), 2)


@row("betacal", "`.calibrator_.map_`")
def _():
    theirs, ours = _beta("abm")
    close(theirs.calibrator_.map_, [ours.a_, ours.b_, ours.m_], 1e-3)


@row("betacal", "constant scores with equal numbers of labels 0 and 1: an error")
def _():
    import betacal

    same, labels = np.full(20, 0.5), np.tile([0, 1], 10)
    with pytest.raises(ValueError, match="features"):
        betacal.BetaCalibration().fit(same.reshape(-1, 1), labels).predict(same.reshape(-1, 1))
    close(proba_of(BetaCalibration(), same, labels)[:, 1], 0.5, 1e-6)


@row("betacal", "integer scores 0 and 1: an error")
def _():
    import betacal

    whole, labels = np.tile([0, 1], 10), np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="inexact"):
        betacal.BetaCalibration().fit(whole.reshape(-1, 1), labels)
    assert proba_of(BetaCalibration(), whole, labels).shape == (20, 2)


# -- MAPIE


def _top_label(wine):
    from mapie.calibration import TopLabelCalibrator

    theirs = TopLabelCalibrator(wine["model"], calibrator="isotonic", cv="prefit")
    return theirs.fit(*wine["cal"])


def _calibrated_wine(wine):
    steps = MulticlassToBinary(IsotonicCalibration())
    return CalibratedClassifier(FrozenEstimator(wine["model"]), steps).fit(*wine["cal"])


@row("mapie", '`TopLabelCalibrator(clf, calibrator="isotonic", cv="prefit")`')
def _(wine):
    X, label = wine["cal"]
    theirs = np.nanmax(_top_label(wine).predict_proba(X), axis=1)
    scores = wine["model"].predict_proba(X)
    ours = MulticlassToBinary(IsotonicCalibration()).fit(scores, label)
    close(theirs, ours.predict_top(scores)[1])


@row("mapie", "`predict_proba` of `TopLabelCalibrator`: NaN except for the predicted class")
def _(wine):
    X = wine["new"][0]
    assert (np.isnan(_top_label(wine).predict_proba(X)).sum(axis=1) == 2).all()
    close(_calibrated_wine(wine).predict_proba(X).sum(axis=1), 1)


@row("mapie", "columns of `TopLabelCalibrator`: the labels that occur in a batch")
def _(wine):
    X = wine["new"][0]
    batch = X[wine["model"].predict(X) == 2]
    assert not np.isnan(_top_label(wine).predict_proba(batch)[:, 0]).any()
    whole = _calibrated_wine(wine)
    close(whole.predict_proba(batch), whole.predict_proba(X)[wine["model"].predict(X) == 2])


def _venn_abers(wine, positive):
    from mapie.calibration import VennAbersCalibrator

    X, label = wine["cal"]
    model = wine["model"]
    if positive is not None:
        model = GaussianNB().fit(wine["train"][0], wine["train"][1] == positive)
        label = (label == positive).astype(int)
    theirs = VennAbersCalibrator(model, cv="prefit").fit(X, label)
    scores = [model.predict_proba(rows) for rows in (X, wine["new"][0])]
    return theirs.predict_proba(wine["new"][0]), scores, label


@row("mapie", '`VennAbersCalibrator(clf, cv="prefit")`, two classes')
def _(wine):
    theirs, (scores, new), label = _venn_abers(wine, 1)
    close(theirs, VennAbers().fit(scores, label).predict_proba(new))


@row("mapie", "`VennAbersCalibrator`, more than two classes")
def _(wine):
    theirs, (scores, new), label = _venn_abers(wine, None)
    ours = method("venn-abers", notion="class-wise").fit(scores, label)
    differ(theirs, ours.predict_proba(new), 0.01)


def _mapie(name, *args, **how):
    return getattr(importlib.import_module("mapie.metrics.calibration"), name)(*args, **how)


@row("mapie", "`expected_calibration_error(right, p, num_bins=16)`")
def _():
    right = (p.argmax(axis=1) == y).astype(int)
    close(_mapie("expected_calibration_error", right, p, num_bins=16), ece(y, p, n_bins=15))


@row("mapie", "`expected_calibration_error(..., classwise=True)`")
def _():
    theirs = _mapie(
        "expected_calibration_error", None, p, num_bins=16, classwise=True, class_labels=y
    )
    close(theirs, ece(y, p, notion="class-wise"))


@row("mapie", "`top_label_ece(y, p, num_bins=16)`")
def _():
    theirs = _mapie("top_label_ece", y, p, num_bins=16)
    predicted = p.argmax(axis=1)
    each = [ece(y[predicted == k], p[predicted == k]) for k in range(4)]
    close(theirs, np.mean(each))
    close(ece(y, p, notion="top-label"), np.average(each, weights=np.bincount(predicted)))


@row("mapie", "`kolmogorov_smirnov_p_value(y, s)`")
def _():
    ours = inference.ks_test(outcome, s, notion="class-1").p_value
    close(_mapie("kolmogorov_smirnov_p_value", outcome, s), ours, 1e-6)


@row("mapie", "`kuiper_p_value(y, s)`")
def _():
    ours = inference.kuiper_test(outcome, s, notion="class-1").p_value
    close(_mapie("kuiper_p_value", outcome, s), ours, 1e-6)


@row("mapie", "`spiegelhalter_p_value(y, s)`")
def _():
    ours = inference.spiegelhalter_test(outcome, s, notion="class-1").p_value
    close(2 * _mapie("spiegelhalter_p_value", outcome, s), ours)


@row("mapie", "`SplitConformalClassifier`")
def _():
    from mapie.classification import SplitConformalClassifier

    assert callable(SplitConformalClassifier)
    for score in ("lac", "aps"):
        assert PredictionSets(None, score=score).fit(p, y).predict_set(p).shape == p.shape


# -- torchmetrics


def _torch_error(scores, labels, name="MulticlassCalibrationError", **how):
    import torch
    import torchmetrics.classification

    if name.startswith("Multiclass"):
        how["num_classes"] = scores.shape[1]
    metric = getattr(torchmetrics.classification, name)(n_bins=15, **how)
    return metric(torch.as_tensor(scores), torch.as_tensor(labels)).item()


@row("torchmetrics", '`MulticlassCalibrationError(K, n_bins=15, norm="l1")`')
def _():
    close(_torch_error(p, y, norm="l1"), ece(y, p), 1e-6)


@row("torchmetrics", '`norm="l2"`')
def _():
    close(_torch_error(p, y, norm="l2"), ece(y, p, norm=2), 1e-6)


@row("torchmetrics", '`norm="max"`')
def _():
    close(_torch_error(p, y, norm="max"), ece(y, p, norm=np.inf), 1e-6)


@row("torchmetrics", "`BinaryCalibrationError(n_bins=15)`")
def _():
    theirs = _torch_error(s, outcome, "BinaryCalibrationError")
    close(theirs, ece(outcome, s, notion="class-1"), 1e-6)


@row("torchmetrics", "`metric(preds, target)`")
def _():
    close(_torch_error(p, y), ece(y, p), 1e-6)
    with pytest.raises(ValueError, match="labels"):
        ece(p, y)


@row("torchmetrics", "`metric.update`, `metric.compute`")
def _():
    import torch
    from torchmetrics.classification import MulticlassCalibrationError

    theirs, ours = MulticlassCalibrationError(4), MetricAccumulator(15)
    for part in np.array_split(np.arange(len(y)), 4):
        theirs.update(torch.as_tensor(p[part]), torch.as_tensor(y[part]))
        ours.update(y[part], p[part])
    close(theirs.compute().item(), ours.compute().conf_ece, 1e-6)
    assert sum(len(chunk) for chunk in theirs.confidences) == len(y)


def _sure_and_nearly():
    """Return ten rows of the last bin, half of them with a confidence of 1."""
    top = np.repeat([1.0, 0.95], 5)
    return np.column_stack([top, 1 - top]), np.array([0, 0, 0, 1, 1] * 2)


@row("torchmetrics", "a confidence of exactly 1.0: a separate bin")
def _():
    proba, labels = _sure_and_nearly()
    labels = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    close(ece(labels, proba), 0.475)
    close(_torch_error(proba, labels), 0.525, 1e-6)


@row("torchmetrics", "logits: recognized by values outside $[0, 1]$")
def _():
    logits = np.array([[0.9, 0.1, 0.2], [0.1, 0.8, 0.3]])
    labels = np.array([0, 1])
    error_of_scores = np.abs(1 - np.array([0.9, 0.8])).mean()
    close(_torch_error(logits, labels), error_of_scores, 1e-6)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    close(ece(labels, proba), 1 - proba.max(axis=1).mean())
    scaled = TemperatureScaling(inputs="logits", classes=[0, 1, 2]).fit(logits, [0, 2])
    assert scaled.temperature_ > 0


# -- uncertainty-calibration


def _uncertainty(name, *args, **how):
    return getattr(importlib.import_module("calibration"), name)(*args, **how)


@row("uncertainty-calibration", "`get_ece(p, y)`")
def _():
    close(_uncertainty("get_ece", p, y), ece(y, p))


@row("uncertainty-calibration", '`get_ece(p, y, mode="marginal")`')
def _():
    close(_uncertainty("get_ece", p, y, mode="marginal"), ece(y, p, notion="class-wise"))


@row("uncertainty-calibration", "`get_ece_em(p, y)`")
def _():
    close(_uncertainty("get_ece_em", p, y), ece(y, p, strategy="quantile"), 0.003)


_DEBIASED = {"norm": 2, "debias": True, "strategy": "quantile"}


@row("uncertainty-calibration", "`get_top_calibration_error(p, y)`")
def _():
    close(_uncertainty("get_top_calibration_error", p, y), ece(y, p, **_DEBIASED), 0.003)


@row("uncertainty-calibration", "`get_calibration_error(p, y)`")
def _():
    ours = ece(y, p, notion="class-wise", **_DEBIASED)
    close(_uncertainty("get_calibration_error", p, y), ours, 0.003)


@row("uncertainty-calibration", "`get_calibration_error_uncertainties(p, y)`")
def _():
    np.random.seed(0)  # noqa: NPY002 - the generator that it draws from
    low, middle, high = _uncertainty("get_calibration_error_uncertainties", p[:300], y[:300])
    ours = inference.debiased_interval(y[:300], p[:300], notion="class-wise")
    close(ours.estimate, ece(y[:300], p[:300], notion="class-wise", **_DEBIASED))
    assert low < middle < high
    assert ours.low <= ours.estimate <= ours.high


@row("uncertainty-calibration", "`HistogramMarginalCalibrator(n, 10)`")
def _():
    theirs = _uncertainty("HistogramMarginalCalibrator", len(y), 10)
    theirs.train_calibration(p, y)
    bins = HistogramBinning(10, boundary="include", delta=0)
    ours = MulticlassToBinary(bins, notion="class-wise").fit(p, y)
    close(theirs.calibrate(p), ours.predict_claims(p))


@row("uncertainty-calibration", "`PlattTopCalibrator(n, 1)`")
def _():
    theirs = _uncertainty("PlattTopCalibrator", len(y), 1)
    theirs.train_calibration(p, y)
    close(theirs.calibrate(p), top_of(PlattScaling(target_smoothing=False)), 1e-3)


@row("uncertainty-calibration", "`PlattBinnerMarginalCalibrator(n, 10)`")
def _():
    theirs = _uncertainty("PlattBinnerMarginalCalibrator", len(y), 10)
    theirs.train_calibration(p, y)
    assert theirs.calibrate(p).shape == p.shape


@row("uncertainty-calibration", "row sums of the calibrators: 0.73 to 1.24")
def _():
    theirs = _uncertainty("HistogramMarginalCalibrator", len(y), 10)
    theirs.train_calibration(p, y)
    total = theirs.calibrate(p).sum(axis=1)
    close([total.min(), total.max()], [0.73, 1.24], 0.005)
    close(proba_of(one_vs_rest(HistogramBinning(10))).sum(axis=1), 1)


# -- probcal: other tests compare with its stored output

PROBCAL = {
    "`cal_dirichlet(p, y)`": "multiclass/test_dirichlet.py",
    "`cal_dirichlet(p, y, lambda = l)`": "multiclass/test_dirichlet.py",
    "`cal_temperature(p, y)`": "test_probcal.py",
    "`cal_vector_scaling(p, y)`": "test_probcal.py",
    "`cal_beta`, one-vs-rest": "test_probcal.py",
    "`cal_isotonic`, one-vs-rest": "test_probcal.py",
    "ECE of the confidence, 10 bins": "test_probcal.py",
    "class-wise ECE, 10 bins": "test_probcal.py",
    "MCE of the confidence, 10 bins": "test_probcal.py",
    "binary ECE, 15 bins": "test_probcal.py",
}


# -- conventions, each with the row of a page whose check covers it

CONVENTIONS = {
    "uniform bins": ("torchmetrics", "a confidence of exactly 1.0: a separate bin"),
    "number of bins": ("scikit-learn", "`calibration_curve(y, p, n_bins=10)`"),
    "center of a bin": None,  # the library cannot be installed any more, so its source was read
    "quantile bins": ("uncertainty-calibration", "`get_ece_em(p, y)`"),
    "class-wise error": ("mapie", "`expected_calibration_error(..., classwise=True)`"),
    "top-label error": ("mapie", "`top_label_ece(y, p, num_bins=16)`"),
    "norm": ("uncertainty-calibration", "`get_calibration_error(p, y)`"),
    '"top-label"': ("uncertainty-calibration", "`get_top_calibration_error(p, y)`"),
    '"ACE"': ("netcal", "`ACE(15).measure(p, y)`"),
    "Brier score": ("scikit-learn", "`brier_score_loss(y, p)`, two classes"),
    "Platt scaling": ("scikit-learn", '`method="sigmoid"`'),
    "penalties of Dirichlet calibration": (
        "dirichletcal",
        "`FullDirichletCalibrator(reg_lambda=l, reg_mu=m)`, with the default `ref_row=True`",
    ),
    "logits or probabilities": (
        "torchmetrics",
        "logits: recognized by values outside $[0, 1]$",
    ),
    "constants added to the logits of a row": ("dirichletcal", "`VectorScaling(logit_input=True)`"),
    "labels": ("dirichletcal", "a class without rows in the calibration set: an error"),
    "order of arguments": ("torchmetrics", "`metric(preds, target)`"),
}


def test_a_row_of_a_page_covers_every_convention():
    text = (PAGES / "index.md").read_text(encoding="utf-8").split("## Conventions")[1]
    found = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)[1:]
    assert found == list(CONVENTIONS)
    assert {shown for shown in CONVENTIONS.values() if shown} <= set(CHECKS)


# -- the pages


def test_every_row_of_probcal_is_compared_with_its_stored_output():
    assert set(_cells("probcal")) == set(PROBCAL)
    for name in set(PROBCAL.values()):
        assert "probcal_golden" in (Path(__file__).parent / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", MODULES)
def test_rows_of_a_page_and_checks_correspond(page):
    cells = _cells(page)
    assert len(set(cells)) == len(cells)
    assert set(cells) == {cell for name, cell in CHECKS if name == page}


@pytest.mark.filterwarnings("ignore")  # of the other library
@pytest.mark.parametrize(("page", "cell"), CHECKS, ids=[f"{page}: {cell}" for page, cell in CHECKS])
def test_a_row_of_a_page_is_correct(page, cell, request):
    module = MODULES[page]
    try:
        importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"{page} is not installed: {error}")
    check = CHECKS[page, cell]
    names = check.__code__.co_varnames[: check.__code__.co_argcount]
    check(**{name: request.getfixturevalue(name) for name in names})
