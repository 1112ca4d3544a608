"""Consistency resampling, which compares an error with its distribution under calibration."""

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
"""Minimum number of portions of resamples. A progress bar advances once per portion."""


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
    r"""Test calibration by resampling labels from the predictions.

    The test compares a calibration error of the data with the errors of labels that are drawn from
    the predicted probabilities. The test shows whether the error exceeds sampling noise.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    metric : str, callable ``(y, p) -> float`` or Metric, default "conf_ece"
        Name of a binned error ("conf_ece", "cw_ece", "tl_ece", "mce") or of another metric
        ("ks_error", "smooth_calibration_error", ...), or a function of column numbers and
        probabilities. Larger values must mean more miscalibration. A
        ``functools.partial(expected_calibration_error, ...)`` is as fast as a named binned error.
    n_resamples : int, default 10000
        Number of resamples.
    rng : int, Generator or None
        Seed or generator. The same seed gives the same p-value.
    progress : bool, default False
        Whether to show a progress bar if standard error is a terminal.
    n_bins : int, default 15
        Number of bins of the errors that are passed by name.
    notion : str or Notion, optional
        Type of calibration, for example ``notion="class-owl"``. The default is the type of
        calibration of the metric.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights in the statistic. With unequal weights, the metric is evaluated once per
        resample.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. ``expected`` is the mean of the resampled
        errors.

    See Also
    --------
    kernel_test : Test by the kernel calibration error, without bins.
    mean_test : Exact test of mean predicted probability against observed frequency.
    debiased_interval : Confidence interval of the L2 calibration error.

    Notes
    -----
    With :math:`T` the error of the data and :math:`T^*_1, \dots, T^*_B` the errors of drawn labels,

    .. math:: p = \frac{1 + \#\{b : T^*_b \ge T - 10^{-12}\}}{1 + B}.

    ``metric="conf_ece"`` is the p-conf-ECE of Kull 2019, and ``metric="cw_ece"`` is the p-cw-ECE.

    The test is exact, because the data and the resamples are exchangeable under the null
    hypothesis. So the p-value is at most alpha with probability at most alpha, for every n and B
    (Barnard's Monte Carlo test). For types of calibration with one claim per row (confidence,
    top-label, ...), the null hypothesis is that outcomes are draws from the scores. Counts per bin
    are drawn from their exact Poisson-binomial distribution, without labels. With several claims
    per row (class-wise), labels are drawn, and the null hypothesis is canonical calibration.

    For chunked scores, such as dask arrays, only errors of equal-width bins can be tested. With one
    claim per row, scores are grouped into narrow intervals, called cells
    (:doc:`/guide/large-data`). The distribution of the counts is therefore accurate up to the width
    of a cell. With several claims, labels are drawn in each chunk, so the draws depend on the
    chunking.

    Binned errors cost O(n K) time once. With one claim per row, each resample then needs one
    random number per bin. With several claims per row, each resample needs one random number per
    row. The resamples are computed in portions, and the memory is proportional to the counts of one
    portion. Other metrics are evaluated once per resample.

    The following results are for 10,000 test rows of the CIFAR-10 DenseNet-40 of Kull 2019, with
    temperature-scaled logits (T = 2.8826):

    ========  =========  ===========  =======  =========================
    metric    statistic  calibrated   p-value  published
    ========  =========  ===========  =======  =========================
    conf_ece  0.00946    0.0054       0.0020   0.002 (Table 19)
    cw_ece    0.00405    0.0029       0.0001   0.0000 (Table 20)
    ========  =========  ===========  =======  =========================

    At level 0.001, class-wise calibration is rejected, with the smallest p-value that 10,000
    resamples can give. At this level, confidence calibration is not rejected.

    References
    ----------
    Bröcker & Smith (2007), Increasing the reliability of reliability diagrams,
    doi:10.1175/WAF993.1. Vaicenavicius et al. (2019), Evaluating model calibration in
    classification, arXiv:1902.06977. Kull et al. (2019), section 2 and supplement, Tables 19 and
    20, arXiv:1910.12656.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> calibrated = noisy_simplex(1000, 3, noise=0.0, rng=0)
    >>> noisy = noisy_simplex(1000, 3, noise=0.3, rng=0)
    >>> consistency_test(calibrated.labels, calibrated.proba, "cw_ece", 999, rng=0).p_value > 0.05
    True
    >>> consistency_test(noisy.labels, noisy.proba, "cw_ece", 999, rng=0).p_value
    0.001
    """
    check_count(n_resamples, "n_resamples")
    generator = np.random.default_rng(rng)
    if as_chunked(y_prob) is not None:
        options = _chunked_options(metric, notion, n_bins)
        claims, draw, guarantee = chunked_null(
            as_notion(options.pop("notion", "confidence")),
            *(y_true, y_prob, sample_weight, classes),
            inputs=inputs,
            n_bins=options["n_bins"],
        )
        count_null = _CountNull.of_claims(claims, options, draw)
        resampled = _resample(count_null, generator, n_resamples, progress)
        statistic = count_null.table.error(**count_null.norm)
        return _result(
            metric, statistic, resampled, count_null.hypothesis, claims.n_rows, guarantee
        )
    proba, y, weight, names = check_rows(y_true, y_prob, sample_weight, classes, inputs)
    bound_metric = _with_options(as_metric(metric), notion, weight, names, n_bins)
    binned_options = bound_metric.binned_options
    null: _CountNull | _LabelNull
    if binned_options is None or not (weight == 1).all():
        null = _LabelNull(proba, bound_metric, LabelDraws(proba))
        statistic = null.metric(y, proba)
    else:
        null = _CountNull.of(proba, y, weight, {"n_bins": n_bins, **binned_options})
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
    """Return the binning options of a metric, or raise if the metric needs rows in memory."""
    options = as_metric(metric).binned_options
    if options is None or options.get("bins") or options.get("strategy", "uniform") != "uniform":
        raise TypeError(
            "The consistency test of chunked scores (dask arrays, files) needs an error of "
            "equal-width bins ('conf_ece', 'cw_ece', 'tl_ece' or 'mce'), got "
            f"{metric_label(metric)!r}. Load some or all rows first, for example with "
            "y_prob.compute()."
        )
    override = {} if notion is None else {"notion": notion}
    return {"n_bins": n_bins, **options, **override}


def _with_options(
    metric: Metric, notion: str | Notion | None, weight: FloatArray, names: AnyArray, n_bins: int
) -> Metric:
    """Return the metric with the given type of calibration and row weights."""
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
    """Null distribution of a binned error.

    Only the outcome counts in the bin table of the error are random.
    """

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
        """Build the null distribution of the error that ``options`` define."""
        keys = ("n_bins", "strategy", "bins")
        table = bin_table(claims, **{key: options[key] for key in keys if key in options})
        norm = {key: value for key, value in options.items() if key not in keys}
        return cls(table, norm, draw(claims, table.bins), label_hypothesis(claims))

    def portion(self, n_resamples: int) -> int:
        if self.draws.reusable:
            return min(max(1, WORK_MEMORY // self.table.weight.size), -(-n_resamples // _PORTIONS))
        # Every portion builds the alias tables again, so use fewer and larger portions.
        return max(1, 4 * WORK_MEMORY // self.table.weight.size)

    def draw(self, generator: np.random.Generator, size: int) -> list[float]:
        counts = self.draws.counts(generator, size).reshape(size, *self.table.weight.shape)
        return self.table.errors(counts, **self.norm).tolist()


@dataclass(frozen=True, eq=False)
class _LabelNull:
    """Null distribution of any metric, which is evaluated on each draw of labels."""

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
    rejected = [
        key for key in ("y_pred", "sample_weight", "classes") if options.pop(key, None) is not None
    ]
    if rejected:
        raise ValueError(
            f"{', '.join(rejected)} cannot be options of the metric, because the test also "
            "evaluates the metric on random labels. Pass sample_weight and classes to "
            "consistency_test."
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

    portions = tracked(errors(), total=len(parts), description="Resampling", progress=progress)
    return np.array([value for values in portions for value in values])
