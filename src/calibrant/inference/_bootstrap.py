"""Bootstrap intervals of metrics for which the bootstrap is valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtri, stdtrit

from calibrant._crossfit.scores import SCORES
from calibrant._kernels.blocks import ROUND_OFF, row_blocks
from calibrant._output.progress import tracked
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import as_array, check_count, check_same_length, raise_if_missing
from calibrant.guarantees import clopper_pearson
from calibrant.inference._results import Interval, check_level
from calibrant.inference._rows import check_rows
from calibrant.inference._skewed import Spread, model_spread, spread_of
from calibrant.metrics.registry import METRICS, Metric, MetricLike, as_metric, metric_label

# By Efron's rule of thumb, a bias above a quarter of the standard error invalidates an interval.
_LARGE_BIAS = 0.25
# If a smaller share of the rows contributes half of the variance, a few rows decide the interval.
_FEW = 0.02
# With fewer groups, intervals of the cluster bootstrap are too short (Cameron, Gelbach & Miller
# 2008).
_FEW_GROUPS = 30


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
    groups: LabelsLike | None = None,
    rng: Rng = None,
    progress: bool = False,
) -> Interval:
    r"""Compute a bootstrap confidence interval of a metric.

    Rows are drawn with replacement. Use the bootstrap for metrics that are means over rows, such as
    the log-loss, the Brier score and the accuracy, and for your own functions. Binned calibration
    errors raise ValueError, see Notes.

    Parameters
    ----------
    metric : str, callable ``(y, p) -> float`` or Metric
        The name of a metric ("log_loss", "brier_score", "accuracy", ...), or a function of column
        numbers and probabilities.
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the probabilities of class 1 of a binary
        problem.
    n_resamples : int, default 1000
        Number of resamples.
    level : float, default 0.95
        Nominal coverage of the interval.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. All positive weights must be equal. Rows with weight 0 are excluded.
    classes : array-like of labels, optional
        Labels of the columns.
    groups : array-like of shape (n,), optional
        Group of each row, for example the patient or the site. Whole groups are drawn (cluster
        bootstrap), so rows of a group need not be independent.
    rng : int, Generator or None
        Seed or generator of the resamples.
    progress : bool, default False
        Whether to show a progress bar if standard error is a terminal.

    Returns
    -------
    Interval
        ``guarantee`` is "asymptotic", or "finite-sample" for the accuracy without groups.
        ``guarantee`` is "heuristic" if the bias of the resamples exceeds a quarter of their
        standard deviation, or if there are fewer than 30 groups. ``guarantee`` is also "heuristic"
        if all rows have the same value, or if a few rows contribute most of the variance of a
        score. ``note`` explains the last two cases.

    See Also
    --------
    debiased_interval : Confidence interval of the L2 calibration error.
    calibration_gain : Confidence interval of the improvement by calibration in a proper score.
    consistency_test : Test whether a calibration error exceeds sampling noise.

    Notes
    -----
    Let :math:`T` be the metric on the data and :math:`T^*` the metric on resampled rows. The
    interval is :math:`T + a\, q(T^* - \bar{T^*})`, where q are the quantiles at (1 - level)/2 and
    (1 + level)/2. This interval is the percentile interval, centered at T and stretched by
    :math:`a = \frac{t_{n-1}}{z} \sqrt{\frac{n}{n-1}}`, because the spread is estimated from n rows,
    or groups.

    Intervals of the log-loss and the Brier score are widened in two ways. First, the intervals are
    at least as wide as for labels drawn from the predictions. The reason is that a few rows without
    an error contain little information about errors. Second, the intervals follow Hall's
    transformation for skewed losses, because a sample without large errors also underestimates the
    spread. The interval of the accuracy is the exact interval of Clopper and Pearson, without
    resampling.

    The bootstrap cannot account for events that are not in the sample. Confident errors are rare
    and costly. Samples without such an error give intervals that are too low, and no interval of an
    unbounded mean avoids this problem (Bahadur & Savage 1956). The two corrections make the problem
    rare. With 10 rows of an overconfident model (temperature 3), one interval in ten is too low.
    From 30 rows on, the share of such intervals is nominal. :doc:`/evidence/coverage` shows
    simulated coverages.

    The plug-in calibration error (any ``norm``, without ``debias=True``) raises ValueError. This
    error is a sum of absolute values, so sampling noise biases the error upward. For a calibrated
    model, the bias is up to ``0.4 sqrt(n_bins / n)``. Resampled rows contain duplicates, which
    increase the noise again. So the bootstrap adds the bias a second time, and its interval may
    miss the true error.

    The cost is O(n_resamples) evaluations of the metric. The log-loss and the Brier score are
    evaluated once, because their resamples are means of n losses.

    References
    ----------
    Efron & Tibshirani (1993), An introduction to the bootstrap, chapters 10 and 13; Kumar et al.
    (2019), arXiv:1909.10155; Bahadur & Savage (1956), doi:10.1214/aoms/1177728077; Clopper &
    Pearson (1934), doi:10.1093/biomet/26.4.404; Hall (1992), On the removal of skewness by
    transformation, J. R. Stat. Soc. B 54, 221-228; Field & Welsh (2007), Bootstrapping clustered
    data, doi:10.1111/j.1467-9868.2007.00593.x.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> data = noisy_simplex(500, 3, noise=0.2, rng=0)
    >>> result = bootstrap_interval("log_loss", data.labels, data.proba, n_resamples=200, rng=0)
    >>> result.low < result.estimate < result.high
    True
    """
    function = as_metric(metric)
    _raise_if_plug_in(function)
    check_level(level)
    check_count(n_resamples, "n_resamples", minimum=2)
    proba, y, _, _ = check_rows(
        y_true, y_prob, sample_weight, classes, inputs, only_equal="The bootstrap"
    )
    if function is METRICS["accuracy"] and groups is None:
        return _frequency_interval(metric, y, proba, level)
    estimate = float(function(y, proba))
    draw = RowDraws(len(y), groups)
    losses = SCORES[function.name].losses(proba, y) if _is_score(function) else None
    generator = np.random.default_rng(rng)
    if losses is not None and groups is None:
        resamples = _resample_means(losses, n_resamples, generator, progress)
    elif losses is not None:
        resamples = _resample(_mean_of(losses), n_resamples, draw, generator, progress)
    else:
        measure = _measure_of(function, y, proba)
        resamples = _resample(measure, n_resamples, draw, generator, progress)
    return _interval(metric, estimate, resamples, losses, draw, proba, level)


def _measure_of(function: Metric, y: IntArray, proba: FloatArray) -> Callable[[IntArray], float]:
    return lambda rows: function(y[rows], proba[rows])


def _interval(
    metric: MetricLike,
    estimate: float,
    drawn: FloatArray,
    losses: FloatArray | None,
    draw: RowDraws,
    proba: FloatArray,
    level: float,
) -> Interval:
    """Return the interval of an estimate from its resampled values."""
    error = float(drawn.std(ddof=1))
    # Means of equal losses differ only by round-off, so their spread is zero.
    error = error if error > ROUND_OFF * max(1.0, abs(estimate)) else 0.0
    # Center the quantiles at the mean of the resamples, so the interval is centered at the
    # estimate.
    ends = np.quantile(drawn - drawn.mean(), [(1 - level) / 2, (1 + level) / 2])
    ends = _few_rows_factor(draw.n_units, level) * ends
    if losses is not None:
        ends = _widened_ends(
            ends, error, losses, model_spread(as_metric(metric).name, proba), draw, level
        )
    least = -np.inf if losses is None else 0.0  # losses of proper scores are not negative
    is_biased = abs(drawn.mean() - estimate) > _LARGE_BIAS * error
    note = _spread_note(losses, error)
    return Interval(
        quantity=metric_label(metric),
        estimate=estimate,
        low=max(estimate + float(ends[0]), least),
        high=estimate + float(ends[1]),
        level=level,
        standard_error=error,
        guarantee="heuristic" if is_biased or note or draw.has_few_groups else "asymptotic",
        n_samples=len(proba),
        note=note,
    )


def _frequency_interval(
    metric: MetricLike, y: IntArray, proba: FloatArray, level: float
) -> Interval:
    """Return the exact interval of the accuracy."""
    rows = float(len(y))
    rate = METRICS["accuracy"](y, proba)
    low, high = clopper_pearson(np.array([round(rate * rows)]), np.array([rows]), 1 - level)
    return Interval(
        quantity=metric_label(metric),
        estimate=rate,
        low=float(low[0]),
        high=float(high[0]),
        level=level,
        standard_error=float(np.sqrt(rate * (1 - rate) / rows)),
        guarantee="finite-sample",
        n_samples=len(y),
    )


def _few_rows_factor(n_rows: int, level: float) -> float:
    """Return the factor for Student's quantile and the unbiased variance."""
    if n_rows < 2:
        return 1.0
    student, normal = stdtrit(n_rows - 1, (1 + level) / 2), ndtri((1 + level) / 2)
    return float(student / normal * np.sqrt(n_rows / (n_rows - 1)))


def _is_score(metric: Metric) -> bool:
    """Return whether the metric is a built-in proper score, which is a mean over rows."""
    return metric is METRICS.get(metric.name) and metric.name in SCORES


def _mean_of(losses: FloatArray) -> Callable[[IntArray], float]:
    return lambda rows: float(losses[rows].mean())


def _widened_ends(
    ends: FloatArray,
    error: float,
    losses: FloatArray,
    expected: Spread,
    draw: RowDraws,
    level: float,
) -> FloatArray:
    """Widen the ends for the variance that the model predicts and for skewed losses."""
    # The variance under the model is a lower bound. If the resamples have no spread, the interval
    # is symmetric.
    if expected.error > error:
        normal = _few_rows_factor(draw.n_units, level) * ndtri((1 + level) / 2) * expected.error
        ends = ends * (expected.error / error) if error > 0 else np.array([-normal, normal])
    skewed = (expected if expected.error > error else spread_of(losses, draw.groups)).ends(level)
    return np.array([min(ends[0], skewed[0]), max(ends[1], skewed[1])])


def _spread_note(losses: FloatArray | None, error: float) -> str:
    """Explain why the interval may be too short, or return an empty string."""
    if error == 0:
        return "all rows have the same value, so the variation cannot be estimated"
    if losses is None:
        return ""
    spread = np.sort((losses - losses.mean()) ** 2)[::-1]
    count = int(np.searchsorted(np.cumsum(spread), 0.5 * spread.sum())) + 1
    if count > max(1, _FEW * len(losses)):
        return ""
    return (
        f"{count} of {len(losses):,} rows contribute half of the variance, so the interval may be "
        f"too low if such rows are underrepresented"
    )


def _raise_if_plug_in(metric: Metric) -> None:
    options = metric.binned_options
    if options is not None and not options.get("debias"):
        raise ValueError(
            "The bootstrap is not valid for a plug-in calibration error, because the error is "
            "biased and resampling adds the same bias again. For an interval, use "
            "debiased_interval(y_true, y_prob) or calibration_gain(y_true, y_prob). For a "
            "p-value, use consistency_test(y_true, y_prob)."
        )


class RowDraws:
    """Draws of rows with replacement, one by one or in whole groups."""

    def __init__(self, n_rows: int, groups: LabelsLike | None) -> None:
        self.n_rows = n_rows
        self.groups: list[IntArray] | None = None
        if groups is not None:
            array = as_array(groups)
            check_same_length(y_true=np.empty(n_rows), groups=array)
            raise_if_missing(groups, array, "group")
            _, place, counts = np.unique(array, return_inverse=True, return_counts=True)
            order = np.argsort(place, kind="stable")
            self.groups = np.split(order, np.cumsum(counts)[:-1])
            if len(self.groups) < 2:
                raise ValueError(
                    "All rows belong to one group, but the cluster bootstrap needs at least two "
                    "groups. Pass groups=None if the rows are independent."
                )

    @property
    def has_few_groups(self) -> bool:
        """Whether there are too few groups to estimate the variance between groups."""
        return self.groups is not None and len(self.groups) < _FEW_GROUPS

    @property
    def n_units(self) -> int:
        """Number of units that are drawn, which are rows or groups."""
        return self.n_rows if self.groups is None else len(self.groups)

    def rows(self, generator: np.random.Generator) -> IntArray:
        """Return the row indices of one resample."""
        if self.groups is None:
            return generator.integers(0, self.n_rows, self.n_rows)
        parts = self.groups
        return np.concatenate([parts[g] for g in generator.integers(0, len(parts), len(parts))])


def _resample_means(
    losses: FloatArray, n_resamples: int, generator: np.random.Generator, progress: bool
) -> FloatArray:
    """Compute the means of resampled losses.

    Each step draws as many resamples as fit into the cache. The random numbers do not depend on the
    number of resamples per step.
    """
    n_rows = len(losses)

    def means() -> Iterator[float]:
        for part in row_blocks(n_resamples, n_rows):
            rows = generator.integers(0, n_rows, (part.stop - part.start, n_rows))
            # All indices are valid, and mode="clip" skips the check of their range.
            yield from losses.take(rows, mode="clip").mean(axis=1).tolist()

    return np.fromiter(
        tracked(means(), total=n_resamples, description="Bootstrap", progress=progress),
        dtype=np.float64,
    )


def _resample(
    statistic: Callable[[IntArray], float],
    n_resamples: int,
    draw: RowDraws,
    generator: np.random.Generator,
    progress: bool,
) -> FloatArray:
    def values() -> Iterator[float]:
        for _ in range(n_resamples):
            yield statistic(draw.rows(generator))

    return np.fromiter(
        tracked(values(), total=n_resamples, description="Bootstrap", progress=progress),
        dtype=np.float64,
    )
