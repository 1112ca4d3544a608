"""Consistency resampling: is an error larger than a calibrated model would show on as many rows?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._data.read import as_chunked
from calibrant._kernels.blocks import WORK_MEMORY, row_blocks
from calibrant._output.progress import tracked
from calibrant._typing import (
    AnyArray,
    FloatArray,
    IntArray,
    LabelsLike,
    Rng,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import check_count
from calibrant.binning import BinRule, BinTable, bin_table
from calibrant.inference._cell_draws import chunked_null
from calibrant.inference._draws import CountDraws, LabelDraws, count_draws, label_hypothesis
from calibrant.inference._results import CalibrationTestResult, monte_carlo_p_value
from calibrant.inference._rows import check_rows
from calibrant.metrics.registry import Metric, MetricLike, as_metric, metric_label
from calibrant.notions import Claims, Notion, as_notion

_PORTIONS = 20
"""The least number of portions of resamples, so that a progress bar moves."""


def consistency_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    metric: MetricLike = "conf_ece",
    n_resamples: int = 10_000,
    rng: Rng = None,
    progress: bool = False,
    *,
    n_bins: int = 15,
    notion: str | Notion | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Test of calibration by resampling labels from the predictions.

    The statistic :math:`T` is a calibration error of the data. Under the null hypothesis the label
    of each row is a draw from its probabilities; the errors :math:`T^*_1, \dots, T^*_B` of labels
    drawn so tell how large an error is by chance alone, and

    .. math:: p = \frac{1 + \#\{b : T^*_b \ge T - 10^{-12}\}}{1 + B}.

    ``metric="conf_ece"`` is the p-conf-ECE of Kull 2019, ``metric="cw_ece"`` the p-cw-ECE.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
    metric : str, callable ``(y, p) -> float`` or Metric
        "conf_ece", "cw_ece", "tl_ece", "mce", the name of any metric ("ks_error",
        "smooth_calibration_error", ...), or a function of column codes and probabilities whose
        large values speak against calibration. A ``functools.partial(expected_calibration_error,
        ...)`` takes the fast way of the binned errors.
    n_resamples : int
    rng : int, Generator or None
        The same seed gives the same p-value.
    progress : bool
        Show a bar where standard error is a terminal.
    n_bins : int
        Bins of the errors given by name.
    notion : str, optional
        What is checked, instead of the notion of the metric: ``notion="class-owl"``.
    inputs : {"proba", "logits"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
        How much each row counts in the statistic, whatever its label. Unequal weights cost one
        evaluation of the metric per resample.
    classes : labels of the columns, optional

    Returns
    -------
    CalibrationTestResult
        ``expected`` is the mean of the resampled errors.

    Notes
    -----
    The test is exact: the data and the resamples are exchangeable under the null hypothesis, so
    that the p-value is at most a level with at most that probability, for every n and B (the
    Monte-Carlo test of Barnard). For a notion of one claim a row (confidence, top-label, ...) the
    null hypothesis is that the outcomes are draws from those scores, and their counts per bin are
    drawn from the exact Poisson-binomial law, without any labels. For several claims (class-wise)
    labels are drawn, and the null hypothesis is that of canonical calibration.

    Of scores that come in parts, such as dask arrays, errors of equal-width bins are tested. For a
    notion of one claim a row scores are taken together in cells (docs/howto-large-data.md), so that
    the law of the counts is right but for the width of a cell. For several, labels are drawn where
    the rows are, by numbers that depend on how they were cut, and their counts are added up.

    Binned errors: O(n K) time once, then one random number a row and resample (confidence: a bin
    and resample), memory for the counts of some resamples. Others are computed once a resample.

    On the temperature-scaled logits (T = 2.8826) of the CIFAR-10 DenseNet-40 of Kull 2019, 10,000
    test rows:

    ========  =========  ===========  =======  =========================
    metric    statistic  calibrated   p-value  published
    ========  =========  ===========  =======  =========================
    conf_ece  0.00946    0.0054       0.0020   0.002 (Table 19)
    cw_ece    0.00405    0.0029       0.0001   0.0000 (Table 20)
    ========  =========  ===========  =======  =========================

    So calibration of the top probability is not rejected at 0.001, that of all classes is, with the
    smallest p-value that 10,000 resamples can give.

    References
    ----------
    Bröcker & Smith (2007), Increasing the reliability of reliability diagrams,
    doi:10.1175/WAF993.1. Vaicenavicius et al. (2019), Evaluating model calibration in
    classification, arXiv:1902.06977. Kull et al. (2019), section 2 and supplement, Tables 19 and
    20, arXiv:1910.12656.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> honest = noisy_simplex(1000, 3, noise=0.0, rng=0)
    >>> noisy = noisy_simplex(1000, 3, noise=0.3, rng=0)
    >>> consistency_test(honest.labels, honest.proba, "cw_ece", 999, rng=0).p_value > 0.05
    True
    >>> consistency_test(noisy.labels, noisy.proba, "cw_ece", 999, rng=0).p_value
    0.001
    """
    check_count(n_resamples, "n_resamples")
    generator = np.random.default_rng(rng)
    if as_chunked(y_prob) is not None:
        how = _chunked_options(metric, notion, n_bins)
        claims, draw, guarantee = chunked_null(
            as_notion(how.pop("notion", "confidence")),
            *(y_true, y_prob, sample_weight, classes),
            inputs=inputs,
            n_bins=how["n_bins"],
        )
        counted = _CountNull.of_claims(claims, how, draw)
        resampled = _resample(counted, generator, n_resamples, progress)
        statistic = counted.table.error(**counted.norm)
        return _result(metric, statistic, resampled, counted.hypothesis, claims.n_rows, guarantee)
    proba, y, weight, names = check_rows(y_true, y_prob, sample_weight, classes, inputs)
    chosen = _with_options(as_metric(metric), notion, weight, names, n_bins)
    options = chosen.binned_options
    null: _CountNull | _LabelNull
    if options is None or not (weight == 1).all():
        null = _LabelNull(proba, chosen, LabelDraws(proba))
        statistic = null.metric(y, proba)
    else:
        null = _CountNull.of(proba, y, weight, {"n_bins": n_bins, **options})
        statistic = null.table.error(**null.norm)
    resampled = _resample(null, generator, n_resamples, progress)
    return _result(metric, statistic, resampled, null.hypothesis, len(y), "exact")


def _result(
    metric: MetricLike,
    statistic: float,
    resampled: FloatArray,
    hypothesis: str,
    n_samples: int,
    guarantee: str,
) -> CalibrationTestResult:
    return CalibrationTestResult(
        test=f"consistency test, {metric_label(metric)}",
        statistic=float(statistic),
        p_value=monte_carlo_p_value(statistic, resampled),
        null=hypothesis,
        guarantee=guarantee,
        n_samples=n_samples,
        n_resamples=len(resampled),
        expected=float(resampled.mean()),
    )


def _chunked_options(
    metric: MetricLike, notion: str | Notion | None, n_bins: int
) -> dict[str, Any]:
    """How a metric bins rows that come in parts; an error where it does not, or by ranks."""
    options = as_metric(metric).binned_options
    if options is None or options.get("bins") or options.get("strategy", "uniform") != "uniform":
        raise TypeError(
            "of rows that come in parts, such as dask arrays, the consistency test takes errors of "
            "bins of equal width: 'conf_ece', 'cw_ece', 'tl_ece', 'mce'; pass X.compute() where "
            "the rows fit into memory, or some of them"
        )
    own = {} if notion is None else {"notion": notion}
    return {"n_bins": n_bins, **options, **own}


def _with_options(
    metric: Metric, notion: str | Notion | None, weight: FloatArray, names: AnyArray, n_bins: int
) -> Metric:
    """The metric of a notion that was asked for and of rows with weights."""
    options = dict(metric.options)
    if notion is not None:
        options["notion"] = as_notion(notion).bound(names)
    if not (weight == 1).all():
        options["sample_weight"] = weight
        if metric.binned_options is not None:
            options.setdefault("n_bins", n_bins)
    return replace(metric, options=options)


@dataclass(frozen=True, eq=False)
class _CountNull:
    """Null distribution of a binned error: only the outcome counts of its table are random."""

    table: BinTable
    norm: dict[str, Any]
    draws: CountDraws
    hypothesis: str

    @classmethod
    def of(
        cls, proba: FloatArray, y: IntArray, weight: FloatArray, options: dict[str, Any]
    ) -> _CountNull:
        binning: dict[str, Any] = {
            key: options.pop(key) for key in ("n_bins", "strategy", "bins") if key in options
        }
        claims = _claims(as_notion(options.pop("notion", "confidence")), proba, y, weight, options)
        return cls.of_claims(claims, {**binning, **options}, count_draws)

    @classmethod
    def of_claims(
        cls,
        claims: Claims,
        options: dict[str, Any],
        draw: Callable[[Claims, BinRule], CountDraws],
    ) -> _CountNull:
        """The null of claims, binned and measured as the ``options`` say."""
        keys = ("n_bins", "strategy", "bins")
        table = bin_table(claims, **{key: options[key] for key in keys if key in options})
        norm = {key: value for key, value in options.items() if key not in keys}
        return cls(table, norm, draw(claims, table.bins), label_hypothesis(claims))

    def portion(self, n_resamples: int) -> int:
        if self.draws.reusable:
            return min(max(1, WORK_MEMORY // self.table.weight.size), -(-n_resamples // _PORTIONS))
        # Alias tables are made anew for each portion: fewer of them.
        return max(1, 4 * WORK_MEMORY // self.table.weight.size)

    def draw(self, generator: np.random.Generator, size: int) -> list[float]:
        counts = self.draws.counts(generator, size).reshape(size, *self.table.weight.shape)
        return self.table.errors(counts, **self.norm).tolist()


@dataclass(frozen=True, eq=False)
class _LabelNull:
    """Null distribution of any metric: it is computed anew from drawn labels."""

    proba: FloatArray
    metric: Metric
    draws: LabelDraws
    hypothesis: str = label_hypothesis(None)

    def portion(self, n_resamples: int) -> int:
        return -(-n_resamples // _PORTIONS)

    def draw(self, generator: np.random.Generator, size: int) -> list[float]:
        errors: list[float] = []
        for part in row_blocks(size, len(self.proba), elements=WORK_MEMORY):
            labels = self.draws.labels(generator, part.stop - part.start)
            errors += [self.metric(y, self.proba) for y in labels]
        return errors


def _claims(
    notion: Notion, proba: FloatArray, y: IntArray, weight: FloatArray, options: dict[str, Any]
) -> Claims:
    taken = [
        key for key in ("y_pred", "sample_weight", "classes") if options.pop(key, None) is not None
    ]
    if taken:
        raise ValueError(
            f"{', '.join(taken)} cannot be options of the metric: labels are drawn for every row "
            f"alike"
        )
    return notion.claims(proba, y, weight)


def _resample(
    null: _CountNull | _LabelNull, generator: np.random.Generator, n_resamples: int, progress: bool
) -> FloatArray:
    size = null.portion(n_resamples)
    parts = list(row_blocks(n_resamples, 1, elements=size))

    def errors() -> Iterator[list[float]]:
        for part in parts:
            yield null.draw(generator, part.stop - part.start)

    drawn = tracked(errors(), total=len(parts), description="Resampling", progress=progress)
    return np.array([value for values in drawn for value in values])
