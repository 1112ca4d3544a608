"""Table of all metrics with their names, functions, titles and directions.

`scorer`, `compare`, `bootstrap_interval`, `consistency_test`, the command line and the report read
this table. To add a metric, write its module and import its function here. Then add its name to
``__all__``, which `calibrant.metrics` exports, and add an entry to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from calibrant._validation import unknown_name
from calibrant.metrics._binned import expected_calibration_error
from calibrant.metrics._confidence import confidence_on_errors, doubt_on_correct, sharpness
from calibrant.metrics._cutoff import cutoff_calibration_error
from calibrant.metrics._decision_cost import decision_cost
from calibrant.metrics._kde import kde_calibration_error
from calibrant.metrics._kernel import kernel_calibration_error
from calibrant.metrics._line import calibration_intercept, calibration_slope
from calibrant.metrics._local import integrated_calibration_index, local_gap_quantile
from calibrant.metrics._ordered import ranked_probability_score
from calibrant.metrics._scores import accuracy, brier_score, log_loss
from calibrant.metrics._selective import augrc, aurc, coverage_at_risk, risk_at_coverage
from calibrant.metrics._smooth import smooth_calibration_error
from calibrant.metrics._two_bin import averaged_two_bin_error
from calibrant.metrics.ks import ks_error

__all__ = [  # a literal list, because type checkers do not evaluate expressions
    "accuracy",
    "augrc",
    "aurc",
    "averaged_two_bin_error",
    "brier_score",
    "calibration_intercept",
    "calibration_slope",
    "confidence_on_errors",
    "coverage_at_risk",
    "cutoff_calibration_error",
    "decision_cost",
    "doubt_on_correct",
    "expected_calibration_error",
    "integrated_calibration_index",
    "kde_calibration_error",
    "kernel_calibration_error",
    "ks_error",
    "local_gap_quantile",
    "log_loss",
    "ranked_probability_score",
    "risk_at_coverage",
    "sharpness",
    "smooth_calibration_error",
]


@dataclass(frozen=True)
class Metric:
    """A metric function with a name, a title and a direction.

    Functions that accept the name of a metric also accept a `Metric` or a function. Lower values of
    a function are better.

    Parameters
    ----------
    name : str
        Name of the metric.
    function : callable ``(y_true, y_prob, **options) -> float``
        Function that computes the metric.
    title : str, optional
        Title in tables. By default, the title is the name.
    options : mapping, optional
        Options that are passed to the function.
    aliases : tuple of str, optional
        Other names of the metric.
    greater_is_better : bool or None, default False
        Direction of the metric. None if neither higher nor lower values are better in general.
        Rankings treat such metrics as if lower were better.

    See Also
    --------
    scorer : Make a scikit-learn scorer of a metric.

    Examples
    --------
    >>> from calibrant import metrics
    >>> hits = metrics.Metric("hits", metrics.accuracy, greater_is_better=True)
    >>> hits([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    1.0
    """

    name: str
    function: Callable[..., float]
    title: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    greater_is_better: bool | None = False

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name)

    def __call__(self, y_true: Any, y_prob: Any, **options: Any) -> float:
        return self.function(y_true, y_prob, **{**self.options, **options})

    @property
    def better(self) -> str:
        """Direction of the metric: "higher", "lower" or "neither"."""
        if self.greater_is_better is None:
            return "neither"
        return "higher" if self.greater_is_better else "lower"

    @property
    def binned_options(self) -> dict[str, Any] | None:
        """Options of `expected_calibration_error` if this function computes the metric, else None.

        The consistency test is faster for such metrics, because only the counts of their bins are
        random.
        """
        return dict(self.options) if self.function is expected_calibration_error else None


MetricLike: TypeAlias = str | Metric | Callable[..., float]
"""Type of the argument ``metric``: a name in the table, a `Metric`, or a function of (y, p)."""

_ECE = expected_calibration_error
_TABLE = (
    Metric("log_loss", log_loss, "log-loss"),
    Metric("brier_score", brier_score, "Brier score", aliases=("brier",)),
    Metric("accuracy", accuracy, greater_is_better=True),
    Metric("conf_ece", _ECE, "ECE, confidence", {"notion": "confidence"}, aliases=("ece",)),
    Metric("cw_ece", _ECE, "ECE, class-wise", {"notion": "class-wise"}),
    Metric("tl_ece", _ECE, "ECE, top-label", {"notion": "top-label"}),
    Metric(
        "mce", _ECE, "maximum calibration error (MCE)", {"notion": "confidence", "norm": np.inf}
    ),
    Metric("ks", ks_error, "KS error", aliases=("ks_error",)),
    Metric(
        "confidence_on_errors",
        confidence_on_errors,
        "mean confidence on errors",
        aliases=("overconfidence",),
        greater_is_better=None,
    ),
    Metric(
        "doubt_on_correct",
        doubt_on_correct,
        "mean 1 - confidence if correct",
        aliases=("underconfidence",),
        greater_is_better=None,
    ),
    Metric("sharpness", sharpness, greater_is_better=True),
    Metric("expected_calibration_error", _ECE, "calibration error"),
    Metric("kde_calibration_error", kde_calibration_error, "kernel-density error"),
    Metric("kernel_calibration_error", kernel_calibration_error, "kernel error"),
    Metric("smooth_calibration_error", smooth_calibration_error, "smooth error"),
    Metric("integrated_calibration_index", integrated_calibration_index, "ICI", aliases=("ici",)),
    Metric("local_gap_quantile", local_gap_quantile, "E50", {"quantile": 0.5}, aliases=("e50",)),
    Metric("e90", local_gap_quantile, "E90", {"quantile": 0.9}),
    Metric("calibration_slope", calibration_slope, "slope", greater_is_better=None),
    Metric("calibration_intercept", calibration_intercept, "intercept", greater_is_better=None),
    Metric(
        "ranked_probability_score",
        ranked_probability_score,
        "ranked probability score",
        aliases=("rps",),
    ),
    Metric("averaged_two_bin_error", averaged_two_bin_error, "two-bin error", aliases=("atb",)),
    Metric("cutoff_calibration_error", cutoff_calibration_error, "cutoff error"),
    Metric("aurc", aurc, "AURC"),
    Metric("augrc", augrc, "AUGRC"),
    Metric("coverage_at_risk", coverage_at_risk, "coverage at 5% risk", greater_is_better=True),
    Metric("risk_at_coverage", risk_at_coverage, "risk at 80% coverage"),
    Metric("decision_cost", decision_cost, "mean cost of decisions"),
)

METRICS: dict[str, Metric] = {
    name: metric for metric in _TABLE for name in (metric.name, *metric.aliases)
}
"""All metrics by name and alias, in the order of lists that users see."""


def as_metric(metric: MetricLike) -> Metric:
    """Return the metric for a name, a `Metric` or a function.

    A function in the table, or a ``functools.partial`` of such a function, gets the direction of
    its table entry.
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ValueError(
                unknown_name("metric", metric, METRICS, "a function (y_true, y_prob) -> float")
            )
        return METRICS[metric]
    if not callable(metric):
        raise TypeError(
            f"A metric must be a name, a function (y_true, y_prob) -> float or a Metric, got "
            f"{metric!r}. For example, pass 'log_loss'."
        )
    return _of_function(metric)


def _of_function(function: Callable[..., float]) -> Metric:
    inner, options = function, {}
    if isinstance(function, partial):
        inner = function.func
        # Only keyword arguments can be stored as options. A partial with positional arguments stays
        # unchanged.
        if not function.args:
            options, function = dict(function.keywords), inner
    name = str(getattr(inner, "__name__", type(inner).__name__))
    entry = next((entry for entry in _TABLE if entry.function is inner), None)
    direction = entry.greater_is_better if entry else False
    return Metric(name, function, options=options, greater_is_better=direction)


def metric_label(metric: MetricLike) -> str:
    """Return the label of a metric in results."""
    return metric if isinstance(metric, str) else as_metric(metric).name
