"""Adapt probabilities to the estimated class frequencies of unlabeled rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._optim.mixture import mixture_weights
from calibrant._optim.solution import Solution
from calibrant._output.numbers import format_number
from calibrant._output.results import ShortRepr, html_table
from calibrant._typing import AnyArray, FloatArray, Rng, ScoresLike
from calibrant._validation import arrange_as_fitted, check_count, check_scores, column_names
from calibrant.base.outcome import warn_of
from calibrant.label_shift._frequencies import (
    TINY,
    check_frequencies,
    frequency_ratio,
    reweight,
)

_LEAST_PRIOR = 1e-12
"""Minimum frequency of a class in a bootstrap sample of the source. Weights are ratios of
frequencies, so zero frequencies would make weights infinite. """

_LEAST_INFORMATION = 100.0
"""Minimum of the number of rows times information. Below this minimum, estimated frequencies are
often exactly zero, and neither the estimates nor their bootstrap intervals are reliable. """

_LEAST_ROWS = 4.0
"""Minimum of the number of rows times information times the frequency of the rarest class. At this
minimum, the weight of the rarest class has a standard error of one half. With ten rows per class
and 100 classes, no interval contained the true weights, because weights of zero do not vary among
resamples. """


@dataclass(frozen=True, eq=False, repr=False)
class LabelShift(ShortRepr):
    """Class frequencies of a target population, returned by `adapt`.

    Attributes
    ----------
    weights : array of shape (K,)
        Target frequency divided by source frequency of each class. Without a shift, all weights are
        1.
    low, high : arrays of shape (K,)
        Bootstrap intervals of the weights, which hold jointly with probability ``level``.
    level : float
        Nominal joint coverage of the intervals.
    source_prior, target_prior : arrays of shape (K,)
        Class frequencies of source and target.
    proba : array of shape (n, K)
        Probabilities of the target rows, adapted to the class frequencies of the target.
    information : float
        A number between 0 and 1 that measures how well the model separates the classes that are
        hardest to separate. The number is 1 for a perfect classifier, or if the target frequencies
        were passed.
    names : array of shape (K,) or None
        Column names of the source, if it is a data frame. `transform` sorts the columns of other
        frames into this order.

    See Also
    --------
    adapt : Estimate the class frequencies.
    """

    weights: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    source_prior: FloatArray
    target_prior: FloatArray
    proba: FloatArray
    information: float
    names: AnyArray | None = None

    def apply(self, proba: ScoresLike) -> FloatArray:
        """Return probabilities of other target rows under the class frequencies of the target."""
        return reweight(check_scores(_arrange(proba, self.names)), self.weights)

    @property
    def is_shifted(self) -> AnyArray:
        """Whether the interval of each class excludes 1, which is evidence of a shift."""
        return (self.low > 1) | (self.high < 1)

    def _repr_html_(self) -> str:
        columns = (self.source_prior, self.target_prior, self.weights, self.low, self.high)
        values = np.stack(columns, axis=1)
        rows = [[k, *map(format_number, row)] for k, row in enumerate(values)]
        header = ["class", "source frequency", "target frequency", "weight", "low", "high"]
        note = f"The intervals of the weights hold jointly with probability {self.level:g}."
        return html_table(rows, header=header, title="Label shift", note=note)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as plain values, for example for JSON."""
        arrays = ("weights", "low", "high", "source_prior", "target_prior")
        plain: dict[str, Any] = {name: getattr(self, name).tolist() for name in arrays}
        return {**plain, "level": self.level, "information": self.information}


def adapt(
    source: Any,
    target_proba: ScoresLike,
    *,
    target_prior: Any = None,
    level: float = 0.95,
    n_resamples: int = 200,
    rng: Rng = None,
) -> LabelShift:
    r"""Adapt calibrated probabilities to the class frequencies of unlabeled rows.

    Use this function if class frequencies differ between production and calibration data, but the
    rows of each class are similar.

    Parameters
    ----------
    source : array-like of shape (m, K), or fitted calibrator
        Calibrated probabilities of source rows. The means of these probabilities are the source
        frequencies, so weights are 1 without a shift. For a calibrator, its calibration rows
        determine the source frequencies.
    target_proba : array-like of shape (n, K)
        Calibrated probabilities of target rows. If ``source`` is a calibrator, pass scores that it
        accepts.
    target_prior : array-like of shape (K,), optional
        Known class frequencies of the target in the order of the columns. If you pass frequencies,
        nothing is estimated, so any number of rows is accepted, and ``low`` and ``high`` equal
        ``weights``.
    level : float, default 0.95
        Joint coverage of the intervals of all classes.
    n_resamples : int, default 200
        Number of bootstrap samples of target and source rows. For a calibrator, its label counts
        are resampled instead of source rows.
    rng : int, Generator or None
        Seed or generator of the bootstrap.

    Returns
    -------
    LabelShift
        Weights with intervals, and adapted probabilities of the target rows.

    Raises
    ------
    ValueError
        If the shift cannot be identified, because the model does not separate some classes or there
        are too few rows. See Notes.

    See Also
    --------
    correct : Apply known class frequencies to any probabilities.
    calibrant.monitoring : Detect changes in production.
    AutoCalibration : Calibrate the probabilities first.

    Notes
    -----
    Assume that only the frequencies of the classes differ between source and target, and that p is
    calibrated on the source with class frequencies :math:`\pi`. On the target, :math:`p'_k \propto
    w_k p_k` with :math:`w = q / \pi`. The frequencies q maximize the likelihood :math:`\sum_i \log
    \sum_k q_k p_{ik} / \pi_k`, a concave function. The frequencies are the weights of a mixture,
    and the fixed point :math:`q = \frac 1 n \sum_i p'_i` of the EM algorithm. A few Newton steps on
    the simplex, which cost O(n K^2) each, find the frequencies. The EM algorithm would need
    hundreds of steps. A `ConvergenceWarning` is raised if the steps do not converge.

    Let M be the matrix of the means of :math:`p_k p_l / \sqrt{\bar p_k \bar p_l}` over the target,
    and :math:`\lambda` its smallest eigenvalue (``information``). The standard error of the least
    certain combination of weights is about :math:`1 / \sqrt{n \lambda}`. If this standard error is
    above 0.1, frequencies are often estimated as zero, and the intervals are not valid. The
    intervals are also not valid if the weight of the rarest class has a standard error :math:`1 /
    \sqrt{n \lambda \min_k \pi_k}` above 0.5. In both cases, a ValueError is raised.

    The intervals are asymptotic. Without any shift, with exact probabilities and 1,000 rows of ten
    classes, the intervals contained the true weights in 92% of simulated samples. Nearly all other
    intervals were too low, because weights are ratios (:doc:`/evidence/coverage`). The intervals do
    not account for errors of p. Calibrate with intercepts (`StructuredScaling`, `AutoCalibration`),
    because temperature scaling leaves the class frequencies biased.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), doi:10.1162/089976602753284446; Alexandari, Kundaje &
    Shrikumar (2020), Maximum likelihood with bias-corrected calibration is hard-to-beat at label
    shift adaptation, arXiv:1901.06852; Kim et al. (2020), arXiv:1806.01412 (Newton steps).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> is_one = np.repeat([0.5, 0.2], 2000)  # shares of class 1: source, then target
    >>> y = rng.random(4000) < is_one
    >>> p = np.where(y ^ (rng.random(4000) < 0.1), 0.9, 0.1)
    >>> adapt(p[:2000], p[2000:], rng=0).target_prior.round(1).tolist()
    [0.8, 0.2]
    >>> adapt(p[:2000], p[2000:2001], target_prior=[0.9, 0.1]).weights.round(1).tolist()
    [1.8, 0.2]
    """
    check_count(n_resamples, "n_resamples")
    if not 0 < level < 1:
        raise ValueError(
            f"level must lie between 0 and 1, got {level!r}. Pass level=0.95 for 95% intervals."
        )
    names = _names_of(source)
    origin, target = _as_source_and_target(source, _arrange(target_proba, names))
    prior = origin.prior
    if target_prior is not None:
        frequencies = check_frequencies(target_prior, "target_prior", len(prior))
        ratio = frequency_ratio(frequencies, prior)
        proba = reweight(target, ratio)
        return LabelShift(ratio, ratio, ratio, level, prior, frequencies, proba, 1.0, names)
    information = _check_identifiable(target, prior)
    solution = _target_prior(target, prior, np.ones(len(target)))
    if not solution.converged:
        warn_of("label_shift.adapt", solution.outcome)
    q = solution.parameters
    draws = _resample_weights(origin, target, n_resamples, np.random.default_rng(rng))
    weights = q / prior
    low, high = _band(weights, draws, level)
    proba = reweight(target, weights)
    return LabelShift(weights, low, high, level, prior, q, proba, information, names)


def _names_of(source: Any) -> AnyArray | None:
    """Return the column names of source rows in a data frame.

    The result is None for a calibrator, which checks the column names in its own methods.
    """
    names = None if hasattr(source, "predict_proba") else column_names(source)
    return None if names is None else np.array(names, dtype=object)


def _arrange(proba: ScoresLike, names: AnyArray | None) -> ScoresLike:
    return proba if names is None else arrange_as_fitted(proba, None, names)


class _Source(NamedTuple):
    """Class frequencies and number of rows of the source, and the rows if available."""

    prior: FloatArray
    n_rows: int
    rows: FloatArray | None = None

    def resample_prior(self, rng: Any) -> FloatArray:
        """Draw the class frequencies of a bootstrap sample.

        Each class counts as at least half a row, because weights divide by class frequencies.
        """
        if self.rows is None:
            labels = rng.multinomial(self.n_rows, self.prior / self.prior.sum())
            return np.maximum(labels, 0.5) / self.n_rows
        return np.maximum(_bootstrap_share(self.n_rows, rng) @ self.rows, _LEAST_PRIOR)


def _as_source_and_target(source: Any, target_proba: ScoresLike) -> tuple[_Source, FloatArray]:
    """Return the source and the target probabilities."""
    predict_proba = getattr(source, "predict_proba", None)
    if predict_proba is not None:
        target = check_scores(np.asarray(predict_proba(target_proba)))
        prior = np.asarray(source.class_prior_, dtype=np.float64)
        return _Source(prior, _rows_of(source)), np.asarray(target, dtype=np.float64)
    rows = np.asarray(check_scores(source), dtype=np.float64)
    target = np.asarray(check_scores(target_proba), dtype=np.float64)
    if rows.shape[1] != target.shape[1]:
        raise ValueError(
            f"source and target must have the same classes, got {rows.shape[1]} and "
            f"{target.shape[1]} columns. Pass probabilities of all classes for source and target."
        )
    return _Source(rows.mean(axis=0), len(rows), rows), target


def _rows_of(source: Any) -> int:
    """Return the number of calibration rows of a fitted calibrator or classifier."""
    weights = getattr(getattr(source, "calibrator_", source), "class_weights_", None)
    if weights is None:
        raise TypeError(
            f"{type(source).__name__} has no class_weights_, so the number of its calibration rows "
            "is unknown. Pass a fitted calibrator, or the calibrated probabilities of source rows."
        )
    return max(1, round(float(np.sum(weights))))


def _check_identifiable(target: FloatArray, prior: FloatArray) -> float:
    absent_classes = np.flatnonzero(prior <= 0)
    if absent_classes.size:
        raise ValueError(
            f"Class {int(absent_classes[0])} has frequency zero in the source, so its frequency in "
            "the target cannot be estimated. Remove the column of this class."
        )
    information = _information(target)
    if information * len(target) < _LEAST_INFORMATION:
        raise ValueError(
            f"The label shift cannot be identified from these {len(target)} rows, because the "
            f"probabilities hardly separate some classes (information {information:.2g}, at least "
            f"{_LEAST_INFORMATION / len(target):.2g} is needed). Pass more rows, merge these "
            f"classes, or use a better model."
        )
    rarest = int(np.argmin(prior))
    if information * len(target) * prior[rarest] < _LEAST_ROWS:
        raise ValueError(
            f"The label shift cannot be identified from these {len(target)} rows, because class "
            f"{rarest} has a frequency of only {prior[rarest]:.2g}. The standard error of the "
            "weight of this class would be above 0.5. Pass more rows, or merge or remove rare "
            "classes."
        )
    return information


def _information(target: FloatArray) -> float:
    """Return the smallest eigenvalue of the scaled second moments of the target."""
    mean = np.maximum(target.mean(axis=0), TINY)
    moments = target.T @ target / len(target) / np.sqrt(np.outer(mean, mean))
    return float(np.clip(np.linalg.eigvalsh(moments)[0], 0.0, 1.0))


def _target_prior(target: FloatArray, prior: FloatArray, share: FloatArray) -> Solution:
    r"""Return the class frequencies with the highest likelihood for rows of weight ``share``.

    The frequencies are the weights of a mixture of the classes, whose densities are :math:`p_k /
    \pi_k` up to a factor per row.
    """
    return mixture_weights(target / prior, share)


def _resample_weights(
    source: _Source, target: FloatArray, n_resamples: int, rng: Any
) -> FloatArray:
    draws = np.empty((n_resamples, len(source.prior)))
    for b in range(n_resamples):
        prior = source.resample_prior(rng)
        # The convergence of resamples is not checked, because each resample is one of many draws.
        # If the estimate does not converge, `adapt` raises a warning.
        q = _target_prior(target, prior, _bootstrap_share(len(target), rng)).parameters
        draws[b] = q / prior
    return draws


def _band(weights: FloatArray, draws: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return joint intervals of the weights.

    The half-width in standard errors is an order statistic of the largest deviation over all
    classes. The largest deviation of another draw exceeds this half-width with probability 1 -
    level.
    """
    error = draws.std(axis=0, ddof=1) if len(draws) > 1 else np.zeros(len(weights))
    # If weights never vary, the standard error is zero and must not be a divisor.
    deviation = np.abs(draws - weights) / np.where(error > 0, error, 1.0)
    largest = np.sort(deviation.max(axis=1))
    rank = min(len(draws), math.ceil(level * (len(draws) + 1) - ROUND_OFF))
    reach = largest[rank - 1] * error
    return np.maximum(weights - reach, 0.0), weights + reach


def _bootstrap_share(n_rows: int, rng: Any) -> FloatArray:
    return np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows) / n_rows
