"""Bootstrap intervals of metrics, for those that the bootstrap is fit for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant._progress import tracked
from calibrant._typing import FloatArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import check_count
from calibrant.inference._results import Interval, check_level
from calibrant.inference._rows import check_rows
from calibrant.metrics._registry import Metric, MetricLike, as_metric, metric_label

# Efron's rule of thumb: a bias beyond a quarter of the standard error spoils an interval.
_LARGE_BIAS = 0.25


def bootstrap_interval(
    metric: MetricLike,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    n_resamples: int = 1000,
    level: float = 0.95,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    rng: Rng = None,
    progress: bool = False,
) -> Interval:
    r"""Bootstrap confidence interval of a metric, by drawing rows with replacement.

    With :math:`T` the metric of the data and :math:`T^*` that of resampled rows the interval is
    :math:`T + q(T^* - \bar{T^*})`, q the quantiles at (1 - level)/2 and (1 + level)/2: the
    percentile interval, moved so that its centre is T.

    Parameters
    ----------
    metric : str, callable ``(y, p) -> float`` or Metric
        The name of a metric ("log_loss", "brier_score", "accuracy", ...), or a function of column
        codes and probabilities.
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
    n_resamples : int
    level : float
    inputs : {"proba", "logits"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
        Whole numbers: copies of a row, drawn one by one.
    classes : labels of the columns, optional
    rng : int, Generator or None
    progress : bool
        Show a bar where standard error is a terminal.

    Returns
    -------
    Interval
        ``guarantee`` is "asymptotic", or "heuristic" where the resamples show a bias of more than a
        quarter of their standard deviation, so that the metric is not one that the bootstrap is fit
        for.

    Notes
    -----
    The plug-in calibration error (any ``norm``, without ``debias=True``) is refused. It is a sum of
    absolute values, so chance makes it larger, by about ``sqrt(n_bins / n)`` for a calibrated
    model. Rows that are drawn twice make chance larger again: the bootstrap adds the same bias a
    second time instead of showing how large it is, and an interval around it may not even hold the
    true error. Ask instead

    - `debiased_interval` for an interval of the L2 error;
    - `consistency_test` whether the error is larger than chance makes it;
    - `calibration_gain` for an interval of what calibration costs in a proper score.

    O(n_resamples) evaluations of the metric.

    References
    ----------
    Efron & Tibshirani (1993), An introduction to the bootstrap, chapters 10 and 13; Kumar et al.
    (2019), arXiv:1909.10155.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> data = noisy_simplex(500, 3, noise=0.2, rng=0)
    >>> result = bootstrap_interval("log_loss", data.labels, data.proba, rng=0)
    >>> result.low < result.estimate < result.high
    True
    """
    function = as_metric(metric)
    _refuse_plug_in(function)
    check_level(level)
    check_count(n_resamples, "n_resamples", minimum=2)
    proba, y, _, _ = check_rows(y_true, y_prob, sample_weight, classes, inputs, only_whole=True)
    estimate = float(function(y, proba))
    drawn = _resample(function, y, proba, n_resamples, np.random.default_rng(rng), progress)
    low, high = estimate + np.quantile(drawn - drawn.mean(), [(1 - level) / 2, (1 + level) / 2])
    error = float(drawn.std(ddof=1))
    is_biased = abs(drawn.mean() - estimate) > _LARGE_BIAS * error
    return Interval(
        quantity=metric_label(metric),
        estimate=estimate,
        low=float(low),
        high=float(high),
        level=level,
        standard_error=error,
        guarantee="heuristic" if is_biased else "asymptotic",
        n_samples=len(y),
    )


def _refuse_plug_in(metric: Metric) -> None:
    options = metric.binned_options
    if options is not None and not options.get("debias"):
        raise ValueError(
            "the bootstrap is not fit for a plug-in calibration error: its bias does not vanish, "
            "and resampling rows adds the "
            "same bias again; use debiased_interval (L2 error), calibration_gain, or "
            "consistency_test for a p-value"
        )


def _resample(
    metric: Metric,
    y: Any,
    proba: FloatArray,
    n_resamples: int,
    generator: np.random.Generator,
    progress: bool,
) -> FloatArray:
    def values() -> Iterator[float]:
        for _ in range(n_resamples):
            rows = generator.integers(0, len(y), len(y))
            yield metric(y[rows], proba[rows])

    return np.fromiter(
        tracked(values(), total=n_resamples, description="Bootstrap", progress=progress),
        dtype=np.float64,
    )
