"""Make scikit-learn scorers of the metrics."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from calibrant._typing import LabelsLike, WeightsLike
from calibrant._validation import encode_labels
from calibrant.metrics.registry import MetricLike, as_metric


class Scorer(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Callable ``scorer(estimator, X, y)`` that evaluates ``estimator.predict_proba``.

    The value of the metric is negated if lower is better. The class is a ``BaseEstimator``, so it
    supports ``clone``, ``get_params`` and metadata routing:
    ``scorer.set_score_request(sample_weight=True)`` requests the weights of the scored rows.
    Scorers of ``sklearn.metrics.make_scorer`` do not pass the classes to a metric, so they fail on
    a fold in which a class is missing.
    """

    # scikit-learn reads the routable arguments from the signature of `score`, but `estimator`
    # cannot be routed.
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
        """Compute the score of an estimator.

        The metadata routing of scikit-learn inspects the signature of this method.
        """
        metric, options = as_metric(self.metric), dict(self.options or {})
        proba = estimator.predict_proba(X)
        classes = options.pop("classes", estimator.classes_)
        codes, _ = encode_labels(y, np.shape(proba)[1], classes)
        if sample_weight is not None:
            options.setdefault("sample_weight", sample_weight)
        value = metric(codes, proba, **options)
        return value if metric.greater_is_better else -value


def scorer(metric: MetricLike, **options: Any) -> Scorer:
    """Make a scikit-learn scorer of a metric, for ``cross_val_score``, ``GridSearchCV`` and others.

    Higher is better, as scikit-learn requires, so errors are negated. Labels are matched to columns
    by the ``classes_`` of the estimator, so folds in which a class is missing can be scored.

    Parameters
    ----------
    metric : str, callable or Metric
        Name of a metric, or a function of column numbers and probabilities. Lower values of a
        function are better. If higher values are better, pass a `Metric` with
        ``greater_is_better=True``. A metric function receives ``sample_weight`` if you pass weights
        to the scorer.
    **options
        Options of the metric.

    Returns
    -------
    Scorer
        A callable ``(estimator, X, y) -> float``.

    See Also
    --------
    Metric : A metric with its direction and options.
    calibrant.compare : Compare calibrators by cross-validation.

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
    as_metric(metric)  # raises an error for an unknown name
    return Scorer(metric, options)
