"""Bootstrap intervals of metrics, for those that the bootstrap is fit for."""

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
from calibrant.inference._skewed import Spread, own_spread, spread_of
from calibrant.metrics.registry import METRICS, Metric, MetricLike, as_metric, metric_label

# Efron's rule of thumb: a bias beyond a quarter of the standard error spoils an interval.
_LARGE_BIAS = 0.25
# Share of the rows that make up half of the spread of a mean, below which they are few.
_FEW = 0.02
# With fewer groups the cluster bootstrap is too short (Cameron, Gelbach & Miller 2008).
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
    r"""Bootstrap confidence interval of a metric, by drawing rows with replacement.

    With :math:`T` the metric of the data and :math:`T^*` that of resampled rows the interval is
    :math:`T + a\, q(T^* - \bar{T^*})`, q the quantiles at (1 - level)/2 and (1 + level)/2: the
    percentile interval, moved so that its centre is T, and wider by :math:`a = \frac{t_{n-1}}{z}
    \sqrt{\frac{n}{n-1}}`, because n rows, or groups, know their spread only so well. For the
    log-loss and the Brier score it is at least as wide as labels drawn from the model would make
    it: a few rows without an error say little about errors. It also reaches as far as the skewness
    of the losses asks for, by Hall's transformation: with the errors that a sample lacks it lacks
    the spread that they bring. Accuracy is a frequency: its interval is the exact one of Clopper
    and Pearson, without resampling.

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
        Only equal weights are accepted, and rows of weight 0 are left out.
    classes : labels of the columns, optional
    groups : array of shape (n,), optional
        Rows that belong together (of one patient, one site): groups are drawn with all their rows
        (the cluster bootstrap), so that rows of a group need not be independent.
    rng : int, Generator or None
    progress : bool
        Show a bar where standard error is a terminal.

    Returns
    -------
    Interval
        ``guarantee`` is "asymptotic" ("finite-sample" for accuracy without groups), or "heuristic"
        where the resamples show a bias of more than a quarter of their standard deviation, so that
        the metric is not one that the bootstrap is fit for; where a few rows make up most of the
        spread of a log-loss or Brier score; where nothing varies; and where there are fewer than 30
        groups, whose spread is then not known well. ``note`` says which.

    Notes
    -----
    The bootstrap cannot see what did not happen. Confident errors are rare and cost much: samples
    without such a row give intervals that are too low, and no interval of an unbounded mean is free
    of this (Bahadur & Savage 1956). What the model says of its own errors, and Hall's
    transformation, make it rare: with 10 rows of an overconfident model (temperature 3) one
    interval in ten is too low, from 30 rows on no more than are meant to. Simulated coverage
    stands in ``docs/coverage.md``.

    The plug-in calibration error (any ``norm``, without ``debias=True``) is refused. It is a sum of
    absolute values, so chance makes it larger, by up to ``0.4 sqrt(n_bins / n)`` for a calibrated
    model. Rows that are drawn twice make chance larger again: the bootstrap adds the same bias a
    second time instead of showing how large it is, and an interval around it may not even hold the
    true error. Ask instead

    - `debiased_interval` for an interval of the L2 error;
    - `consistency_test` whether the error is larger than chance makes it;
    - `calibration_gain` for an interval of what calibration costs in a proper score.

    O(n_resamples) evaluations of the metric; of the log-loss and the Brier score one, and means of
    n losses.

    References
    ----------
    Efron & Tibshirani (1993), An introduction to the bootstrap, chapters 10 and 13; Kumar et al.
    (2019), arXiv:1909.10155; Bahadur & Savage (1956), doi:10.1214/aoms/1177728077; Clopper &
    Pearson (1934), doi:10.1093/biomet/26.4.404; Hall (1992), On the removal of skewness by
    transformation, J. R. Stat. Soc. B 54, 221-228; Field & Welsh (2007), Bootstrapping
    clustered data, doi:10.1111/j.1467-9868.2007.00593.x.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> data = noisy_simplex(500, 3, noise=0.2, rng=0)
    >>> result = bootstrap_interval("log_loss", data.labels, data.proba, n_resamples=200, rng=0)
    >>> result.low < result.estimate < result.high
    True
    """
    function = as_metric(metric)
    _refuse_plug_in(function)
    check_level(level)
    check_count(n_resamples, "n_resamples", minimum=2)
    proba, y, _, _ = check_rows(
        y_true, y_prob, sample_weight, classes, inputs, only_equal="the bootstrap"
    )
    if function is METRICS["accuracy"] and groups is None:
        return _frequency_interval(metric, y, proba, level)
    estimate = float(function(y, proba))
    draw = RowDraws(len(y), groups)
    losses = SCORES[function.name].losses(proba, y) if _is_score(function) else None
    generator = np.random.default_rng(rng)
    if losses is not None and groups is None:
        drawn = _resample_means(losses, n_resamples, generator, progress)
    elif losses is not None:
        drawn = _resample(_mean_of(losses), n_resamples, draw, generator, progress)
    else:
        measure = _measure_of(function, y, proba)
        drawn = _resample(measure, n_resamples, draw, generator, progress)
    return _interval(metric, estimate, drawn, losses, draw, proba, level)


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
    """The interval of an estimate by its resampled values."""
    error = float(drawn.std(ddof=1))
    error = error if error > ROUND_OFF * max(1.0, abs(estimate)) else 0.0
    ends = np.quantile(drawn - drawn.mean(), [(1 - level) / 2, (1 + level) / 2])
    ends = _few_rows_factor(draw.n_units, level) * ends
    if losses is not None:
        ends = _careful_ends(
            ends, error, losses, own_spread(as_metric(metric).name, proba), draw, level
        )
    is_biased = abs(drawn.mean() - estimate) > _LARGE_BIAS * error
    note = _spread_note(losses, error)
    return Interval(
        quantity=metric_label(metric),
        estimate=estimate,
        low=estimate + float(ends[0]),
        high=estimate + float(ends[1]),
        level=level,
        standard_error=error,
        guarantee="heuristic" if is_biased or note or draw.is_few else "asymptotic",
        n_samples=len(proba),
        note=note,
    )


def _frequency_interval(
    metric: MetricLike, y: IntArray, proba: FloatArray, level: float
) -> Interval:
    """The exact interval of how often the top class is right."""
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
    """Student's quantile for the normal one, and the standard deviation of n - 1 for that of n."""
    if n_rows < 2:
        return 1.0
    student, normal = stdtrit(n_rows - 1, (1 + level) / 2), ndtri((1 + level) / 2)
    return float(student / normal * np.sqrt(n_rows / (n_rows - 1)))


def _is_score(metric: Metric) -> bool:
    """Whether it is a proper score of the table, which is a mean over rows."""
    return metric is METRICS.get(metric.name) and metric.name in SCORES


def _mean_of(losses: FloatArray) -> Callable[[IntArray], float]:
    return lambda rows: float(losses[rows].mean())


def _careful_ends(
    ends: FloatArray, error: float, losses: FloatArray, own: Spread, draw: RowDraws, level: float
) -> FloatArray:
    """Ends of a proper score that reach as far as the model itself says that such samples vary, and
    as the skewness of the losses asks for.
    """
    if own.error > error:
        normal = _few_rows_factor(draw.n_units, level) * ndtri((1 + level) / 2) * own.error
        ends = ends * (own.error / error) if error > 0 else np.array([-normal, normal])
    skewed = (own if own.error > error else spread_of(losses, draw.groups)).ends(level)
    return np.array([min(ends[0], skewed[0]), max(ends[1], skewed[1])])


def _spread_note(losses: FloatArray | None, error: float) -> str:
    """What the resamples cannot show: that nothing varies, or that a few rows decide."""
    if error == 0:
        return "nothing varies among these rows, which is no proof that nothing could"
    if losses is None:
        return ""
    spread = np.sort((losses - losses.mean()) ** 2)[::-1]
    few = int(np.searchsorted(np.cumsum(spread), 0.5 * spread.sum())) + 1
    if few > max(1, _FEW * len(losses)):
        return ""
    return (
        f"{few} of {len(losses):,} rows make up half of the spread: samples with fewer of their "
        f"kind give intervals that are too low"
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


class RowDraws:
    """Rows drawn with replacement: one by one, or with all others of their group."""

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
                    "all rows are of one group: at least two groups must be drawn from"
                )

    @property
    def is_few(self) -> bool:
        """Whether there are too few groups to know how much they vary."""
        return self.groups is not None and len(self.groups) < _FEW_GROUPS

    @property
    def n_units(self) -> int:
        """What is drawn: rows or groups."""
        return self.n_rows if self.groups is None else len(self.groups)

    def rows(self, generator: np.random.Generator) -> IntArray:
        """One resample."""
        if self.groups is None:
            return generator.integers(0, self.n_rows, self.n_rows)
        parts = self.groups
        return np.concatenate([parts[g] for g in generator.integers(0, len(parts), len(parts))])


def _resample_means(
    losses: FloatArray, n_resamples: int, generator: np.random.Generator, progress: bool
) -> FloatArray:
    """Means of resampled losses, as many at a time as stay in the cache; the same draws as one by
    one.
    """
    n_rows = len(losses)

    def means() -> Iterator[float]:
        for part in row_blocks(n_resamples, n_rows):
            rows = generator.integers(0, n_rows, (part.stop - part.start, n_rows))
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
