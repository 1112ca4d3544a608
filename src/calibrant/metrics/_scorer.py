"""scikit-learn scorers of the metrics."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from calibrant._typing import LabelsLike, WeightsLike
from calibrant._validation import encode_labels
from calibrant.metrics.registry import MetricLike, as_metric


class Scorer(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """``scorer(estimator, X, y)``: a metric of ``estimator.predict_proba(X)``, negated where
    smaller is better.

    It is a ``BaseEstimator`` for ``clone``, ``get_params`` and metadata routing:
    ``scorer.set_score_request(sample_weight=True)`` asks for the weights of the rows that are
    scored. (``sklearn.metrics.make_scorer`` hands a metric no classes, so that it cannot score a
    fold without some class.)
    """

    # What scikit-learn may route to `score` it takes from its signature, but for this.
    __metadata_request__score: ClassVar[dict[str, Any]] = {"estimator": UNUSED}

    def __init__(self, metric: MetricLike, options: dict[str, Any] | None = None) -> None:
        self.metric = metric
        self.options = options

    def __call__(
        self, estimator: Any, X: Any, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        return self.score(estimator, X, y, sample_weight)

    def score(
        self, estimator: Any, X: Any, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """The same as a call; scikit-learn's metadata routing asks this method what it takes."""
        metric, options = as_metric(self.metric), dict(self.options or {})
        proba = estimator.predict_proba(X)
        classes = options.pop("classes", estimator.classes_)
        codes, _ = encode_labels(y, np.shape(proba)[1], classes)
        if sample_weight is not None:
            options.setdefault("sample_weight", sample_weight)
        value = metric(codes, proba, **options)
        return value if metric.greater_is_better else -value


def scorer(metric: MetricLike, **options: Any) -> Scorer:
    """A scikit-learn scorer of any metric of this module, for ``cross_val_score``, ``GridSearchCV``
    and the like.

    As scikit-learn demands, greater is better: errors come negated. Labels are matched to columns
    by the estimator's ``classes_``, so that a fold without some class is scored like any other.

    Parameters
    ----------
    metric : str, callable or Metric
        A name, or a function of column codes and probabilities (smaller is better; a `Metric` says
        otherwise), which is given ``sample_weight`` where the scorer is.
    **options
        Passed to the metric.

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
    as_metric(metric)
    return Scorer(metric, options)
