"""Bayesian binning into quantiles: an average of histogram models, weighted by their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import betaln, softmax

from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike
from calibrant._validation import check_count
from calibrant.base import BaseBinaryCalibrator, Citation
from calibrant.base.fitted import RATES, SCORES, FittedValue
from calibrant.base.references import NAEINI_2015
from calibrant.binning import distinct_sums, quantile_ends
from calibrant.notions import Claim

# Constant C. Numbers of bins range from n^(1/3) / C to C n^(1/3), as in Naeini et al. (2015).
_RANGE = 10.0
# Clip prior means, because a mean of exactly 0 or 1 would exclude an outcome.
_PRIOR_FLOOR = 1e-6
# Models with less weight than this limit do not change the average in double precision.
_NEGLIGIBLE = 1e-17


class BayesianBinning(BaseBinaryCalibrator):
    r"""Calibrate by an average of quantile binning models with different numbers of bins (BBQ).

    Use this method for binary problems if you want bins without choosing their number.

    Parameters
    ----------
    n_models : int, optional
        Number of models. The numbers of bins are spread evenly from :math:`n^{1/3}/10` to
        :math:`10\, n^{1/3}`. If None, every number in this range is tried.
    prior_strength : float, default 2.0
        Pseudo-count N' of a model, shared by its bins.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.

    Attributes
    ----------
    n_bins_ : array of shape (n_models,)
        Numbers of bins that were tried.
    log_evidence_ : array of shape (n_models,)
        Logarithm of the marginal likelihood of each model.
    weights_ : array of shape (n_models,)
        Posterior probability of each model.
    edges_, values_ : arrays of shape (n_steps,)
        The averaged model is a step function. Scores above ``edges_[b - 1]`` and up to
        ``edges_[b]`` have the calibrated probability ``values_[b]``.

    See Also
    --------
    HistogramBinning : One number of bins, with distribution-free guarantees.

    Notes
    -----
    The average over quantile binning models M with B bins is

    .. math:: q(p) = \sum_M P(M \mid D)\, \theta_{M, b(p)} , \quad
        \theta_{M,b} = \frac{m_b + \alpha_b}{n_b + \alpha_b + \beta_b} ,

    where :math:`n_b` and :math:`m_b` are the weights of all rows and of outcome 1 in bin b. The
    prior is :math:`\mathrm{Beta}(\alpha_b, \beta_b)` with :math:`\alpha_b = (N'/B)\, p_b`,
    :math:`\beta_b = (N'/B)(1 - p_b)` and the midpoint :math:`p_b` of the bin. All models have the
    same prior probability, so their weights are proportional to the marginal likelihood

    .. math:: P(D \mid M) = \prod_b
        \frac{\mathrm{B}(m_b + \alpha_b,\, n_b - m_b + \beta_b)}{\mathrm{B}(\alpha_b, \beta_b)} .

    Bins are right-closed, and equal scores share a bin. B is the number of nonempty bins, because
    equal scores may leave a bin empty. No value is exactly 0 or 1. The fitted function is not
    always increasing. The method has no finite-sample guarantee.

    The fit costs O(n log n), plus O(B log n) per model and O(n) per model with a weight above
    1e-17.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian
    binning, AAAI, doi:10.1609/aaai.v29i1.9602. Wenger, Kjellström & Triebel (2020), Non-parametric
    calibration for classification, section 2.3, arXiv:1906.04933.

    Examples
    --------
    >>> bbq = BayesianBinning().fit([0.2] * 8 + [0.7] * 8, [0] * 8 + [1] * 8)
    >>> bbq.values_.round(3)
    array([0.011, 0.956])
    """

    def __init__(
        self,
        n_models: int | None = None,
        prior_strength: float = 2.0,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.n_models = n_models
        self.prior_strength = prior_strength
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("Bayesian binning into quantiles", (NAEINI_2015,))

    def _check_parameters(self, n_classes: int) -> None:
        super()._check_parameters(n_classes)
        if self.n_models is not None:
            check_count(self.n_models, "n_models")
        if not (isinstance(self.prior_strength, Real) and 0.0 < self.prior_strength < np.inf):
            raise ValueError(
                f"prior_strength must be a positive number, got {self.prior_strength!r}."
            )

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "edges_": SCORES,
        "values_": RATES,
        "weights_": FittedValue(("M",), 0.0, 1.0),
    }

    def _fit(self, claim: Claim) -> None:
        values, total, hits = distinct_sums(claim.score, claim.hits, claim.weight)
        self.n_bins_ = _numbers_of_bins(total.sum(), len(values), self.n_models)
        groups = _Groups(values, np.cumsum(total), np.cumsum(hits), np.cumsum(total) / total.sum())
        models = [_binning_model(groups, n_bins, self.prior_strength) for n_bins in self.n_bins_]
        self.log_evidence_ = np.array([model.log_evidence for model in models])
        self.weights_ = softmax(self.log_evidence_)
        average = np.zeros(len(values))
        for share, model in zip(self.weights_, models, strict=True):
            if share > _NEGLIGIBLE:
                average += share * np.repeat(model.mean, np.diff(model.last, prepend=-1))
        is_edge = np.append(average[1:] != average[:-1], True)
        self.edges_, self.values_ = values[is_edge], average[is_edge]

    def _predict(self, score: FloatArray) -> FloatArray:
        return self.values_[np.searchsorted(self.edges_[:-1], score, side="left")]


class _Groups(NamedTuple):
    """Distinct scores, with cumulative weights of all rows and of outcome 1, and shares of rows."""

    values: FloatArray
    total: FloatArray
    hits: FloatArray
    share: FloatArray


class _Model(NamedTuple):
    """The last distinct score of each bin, posterior means, and log marginal likelihood."""

    last: IntArray
    mean: FloatArray
    log_evidence: float


def _numbers_of_bins(n_rows: float, n_distinct: int, n_models: int | None) -> IntArray:
    root = np.cbrt(n_rows)
    lowest = min(max(1, int(np.floor(root / _RANGE))), n_distinct)
    highest = min(max(1, int(np.ceil(root * _RANGE))), n_distinct)
    count = highest - lowest + 1
    return np.linspace(lowest, highest, min(count, n_models or count)).round().astype(np.intp)


def _binning_model(groups: _Groups, n_bins: int, strength: float) -> _Model:
    ends = quantile_ends(groups.share, n_bins)
    last = np.unique(ends[ends >= 0])
    n, m = np.diff(groups.total[last], prepend=0.0), np.diff(groups.hits[last], prepend=0.0)
    misses = np.maximum(n - m, 0.0)  # round-off of cumulative sums may give a negative number
    inner = groups.values[last[:-1]]
    middle = (np.append(0.0, inner) + np.append(inner, 1.0)) / 2.0
    share = strength / len(last)
    alpha = share * np.clip(middle, _PRIOR_FLOOR, 1.0 - _PRIOR_FLOOR)
    evidence = betaln(m + alpha, misses + share - alpha) - betaln(alpha, share - alpha)
    return _Model(last, (m + alpha) / (m + misses + share), float(evidence.sum()))
