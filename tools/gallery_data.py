"""Compute the predictions and experiments for the figures of the gallery, once and on request."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from calibrant import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MulticlassToBinary,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.datasets import SplitPredictions
from calibrant.inference import consistency_test
from calibrant.metrics import log_loss

DATA = Path(
    os.environ.get("CALIBRANT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)

CLASSIFIERS: dict[str, Callable[[], object]] = {
    "naive Bayes": GaussianNB,
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "forest": lambda: RandomForestClassifier(50, random_state=0),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "neighbors": lambda: KNeighborsClassifier(10),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=50, random_state=0),
}
METHODS: dict[str, Callable[[], object]] = {
    "none": Identity,
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "Dirichlet": DirichletCalibration,
    "isotonic": lambda: MulticlassToBinary(
        IsotonicCalibration(), notion="class-wise", normalize=True
    ),
    "beta": lambda: MulticlassToBinary(BetaCalibration(), notion="class-wise", normalize=True),
    "histogram": lambda: MulticlassToBinary(
        HistogramBinning(n_bins=10), notion="class-wise", normalize=True
    ),
}


@dataclass(frozen=True, eq=False)
class Network:
    """Return logits of a network on the calibration and test rows."""

    val_logits: np.ndarray
    val_labels: np.ndarray
    test_logits: np.ndarray
    test_labels: np.ndarray

    @property
    def test_proba(self) -> np.ndarray:
        return softmax(self.test_logits, axis=1)


@cache
def network(name: str) -> Network:
    """Return a network's logits on CIFAR from the folder of real predictions."""
    with np.load(DATA / f"{name}.npz") as file:
        parts = [file[key] for key in ("val_logits", "val_labels", "test_logits", "test_labels")]
    return Network(
        parts[0].astype(float), parts[1].ravel(), parts[2].astype(float), parts[3].ravel()
    )


@cache
def mnist(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of a classifier's probabilities on MNIST, and their labels."""
    with np.load(DATA / f"mnist_{name}_pycalib.npz") as file:
        return file["probs"][:n_rows].astype(float), file["labels"][:n_rows].ravel()


def split_model(
    X: np.ndarray, y: np.ndarray, names: np.ndarray, model: object, *, test: float, held_out: float
) -> SplitPredictions:
    """Train on one part of the rows, and predict a calibration and a test part."""
    stratify = y if np.bincount(y).min() > 5 else None
    X, test_X, y, test_y = train_test_split(X, y, test_size=test, random_state=0, stratify=stratify)
    stratify = y if np.bincount(y).min() > 5 else None
    X, val_X, y, val_y = train_test_split(
        X, y, test_size=held_out, random_state=0, stratify=stratify
    )
    model.fit(X, y)
    val, rest = (_all_columns(model, part, len(names)) for part in (val_X, test_X))
    return SplitPredictions(val, val_y, rest, test_y, names)


def _all_columns(model: object, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Return probabilities with a column for every class, also without training rows."""
    proba = np.zeros((len(X), n_classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


@cache
def uci(dataset: str, classifier: str) -> SplitPredictions:
    """Train a classifier on one of the UCI data sets of Kull et al., with at most 3000 rows."""
    with np.load(DATA / "uci" / f"{dataset}.npz") as file:
        X, y, names = file["X"], file["y"], file["class_names"]
    rows = np.random.default_rng(0).permutation(len(y))[:3000]
    scaled = (
        make_pipeline(StandardScaler(), CLASSIFIERS[classifier]())
        if classifier in CLASSIFIERS
        else MLP()
    )
    return split_model(X[rows], y[rows], names, scaled, test=0.3, held_out=0.4)


def MLP() -> object:  # noqa: N802  a maker of classifiers, like those above
    return make_pipeline(StandardScaler(), MLPClassifier((20,), max_iter=1000, random_state=0))


@cache
def covtype_forest() -> SplitPredictions:
    """Train a random forest on forest cover types. 70% of the rows train and calibrate (a tenth of
    them), 30% test.
    """
    with np.load(DATA / "features_covtype.npz") as file:
        X, y = file["X"], file["y"].astype(int)
        y -= y.min()
    forest = RandomForestClassifier(40, n_jobs=2, random_state=0)
    return split_model(X, y, np.arange(1, 8), forest, test=0.3, held_out=0.1)


@cache
def covtype_three() -> SplitPredictions:
    """Train a logistic regression of cover types 1, 2 and other on a fifth of the rows."""
    with np.load(DATA / "features_covtype.npz") as file:
        X, y = file["X"][::5], file["y"][::5].astype(int)
        y = np.minimum(y - y.min(), 2)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return split_model(X, y, np.array(["type 1", "type 2", "other"]), model, test=0.3, held_out=0.1)


@dataclass(frozen=True, eq=False)
class Study:
    """Return log-losses, p-values of class-wise ECE and chosen strengths on the UCI data sets."""

    log_loss: dict[str, list[float]] = field(default_factory=dict)
    p_value: dict[str, list[float]] = field(default_factory=dict)
    lam: list[float] = field(default_factory=list)


def uci_names() -> list[str]:
    return sorted(path.stem for path in (DATA / "uci").glob("*.npz"))


@cache
def study_of_methods(classifier: str = "naive Bayes") -> Study:
    """Measure every calibration method on every UCI data set, after one classifier."""
    study = Study()
    for dataset in uci_names():
        data = uci(dataset, classifier)
        for name, make in METHODS.items():
            calibrator = make().fit(data.val_proba, data.val_labels)
            proba = calibrator.predict_proba(data.test_proba)
            study.log_loss.setdefault(name, []).append(log_loss(data.test_labels, proba))
            study.p_value.setdefault(name, []).append(_p_value(data.test_labels, proba))
            if name == "Dirichlet":
                study.lam.append(float(calibrator.lam_))
    return study


@cache
def study_of_classifiers() -> Study:
    """Measure every uncalibrated classifier on every UCI data set."""
    study = Study()
    for name in CLASSIFIERS:
        for dataset in uci_names():
            data = uci(dataset, name)
            study.p_value.setdefault(name, []).append(_p_value(data.test_labels, data.test_proba))
    return study


def _p_value(y: np.ndarray, proba: np.ndarray) -> float:
    return consistency_test(y, proba, metric="cw_ece", n_resamples=500, rng=0).p_value
