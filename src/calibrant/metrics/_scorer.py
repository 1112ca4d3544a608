"""scikit-learn scorers of the metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from calibrant._typing import LabelsLike, WeightsLike
from calibrant.metrics._binned import expected_calibration_error
from calibrant.metrics._confidence import overconfidence, sharpness, underconfidence
from calibrant.metrics._kde import kde_calibration_error
from calibrant.metrics._kernel import kernel_calibration_error
from calibrant.metrics._ks import ks_error
from calibrant.metrics._scores import accuracy, brier_score, log_loss
from calibrant.metrics._smooth import smooth_calibration_error

_METRICS: dict[str, Callable[..., float]] = {
    "expected_calibration_error": expected_calibration_error,
    "ks_error": ks_error,
    "kde_calibration_error": kde_calibration_error,
    "kernel_calibration_error": kernel_calibration_error,
    "smooth_calibration_error": smooth_calibration_error,
    "log_loss": log_loss,
    "brier_score": brier_score,
    "accuracy": accuracy,
    "overconfidence": overconfidence,
    "underconfidence": underconfidence,
    "sharpness": sharpness,
}
_GREATER_IS_BETTER = {"accuracy", "sharpness"}


@dataclass(frozen=True)
class Scorer:
    """``scorer(estimator, X, y)``: a metric of ``estimator.predict_proba(X)``, negated where
    smaller is better.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(
        self, estimator: Any, X: Any, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        options = {"classes": estimator.classes_, "sample_weight": sample_weight, **self.options}
        value = _METRICS[self.name](y, estimator.predict_proba(X), **options)
        return value if self.name in _GREATER_IS_BETTER else -value


def scorer(name: str, **options: Any) -> Scorer:
    """A scikit-learn scorer of any metric of this module, for ``cross_val_score``, ``GridSearchCV``
    and the like.

    As scikit-learn demands, greater is better: errors come negated. Labels are matched to columns
    by the estimator's ``classes_``, so that a fold without some class is scored like any other.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500)
    >>> score = scorer("expected_calibration_error", notion="class-wise")
    >>> bool((cross_val_score(model, X, y, scoring=score) < 0).all())
    True
    """
    if name not in _METRICS:
        raise ValueError(f"unknown metric {name!r}; valid are {', '.join(_METRICS)}")
    return Scorer(name, options)
