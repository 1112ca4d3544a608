"""Temperature scaling, and its mixture with the original and the uniform probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from calibrant._data.sample import RowBlock, Sample
from calibrant._data.top_scores import TopSample, TopScores
from calibrant._kernels.simplex import EPS, log_softmax, softmax, softmax_in_place
from calibrant._optim.mixture import MixtureSums, mixture_weights, search_mixture
from calibrant._optim.solution import Outcome, Solution
from calibrant._optim.temperature import find_log_beta
from calibrant._optim.top_temperature import (
    Tail,
    find_top_log_beta,
    tail_of,
    tempered,
)
from calibrant._output.numbers import format_number
from calibrant._typing import FloatArray, Inputs
from calibrant._validation import check_eps, check_prior_scale, warn_data
from calibrant.base import BaseCalibrator, Citation, SoftmaxCalibrator, store_outcome
from calibrant.base.description import CHI2_95, likelihood_ratio
from calibrant.base.fitted import TEMPERATURE, FittedValue
from calibrant.base.references import GUO_2017, ZHANG_2020

_MAX_GATHERED_ROWS = 2**18
"""Maximum number of rows whose likelihoods are gathered in one process. They take 6 MB."""


class TemperatureScaling(SoftmaxCalibrator):
    r"""Divide the logits by one temperature: :math:`\mathrm{softmax}(u / T)`.

    Use `TemperatureScaling` if predicted classes must not change, or if there are few rows. The
    method has a single parameter and keeps the ranking of the classes. Calibration reduces the
    confidence if T > 1, and increases the confidence if T < 1.

    Parameters
    ----------
    prior_scale : float, optional
        Standard deviation s of a Gaussian prior on log T around 0. The prior adds :math:`(\log T)^2
        / (2 n s^2)` to the mean log-loss, which limits T with few rows. 0.25 is a good value below
        100 rows.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`. Pass logits if they are
        available.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken. A logit of -inf
        is treated as the probability eps.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    curvature_ : float
        Second derivative of the mean log-loss with respect to log T. The standard error of log T is
        :math:`1 / \sqrt{n\, \mathrm{curvature}}`.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    BayesianTemperatureScaling : Average over temperatures, for fewer than 100 rows.
    StructuredScaling : One scale per class, or a matrix, with a penalty.
    AutoCalibration : Combine several calibrators.

    Notes
    -----
    The scores u are the logits, or the logarithms of the probabilities. The log-loss is convex in
    1/T. Newton's method for log T, safeguarded by a bracket, takes two to five passes over the
    data. Each pass takes O(n K) time, and memory for one block of rows.

    Clipping can change the temperature of confident networks. For example, 56% of the probabilities
    of a DenseNet are below 1e-12. The temperature of this network is 2.88 if fitted to logits, and
    2.85 if fitted to probabilities.

    A warning counts the rows whose true class has the score zero or -inf, because these rows
    increase the temperature. If a service returns only the highest scores, the other classes are
    not impossible. In `fit` and in `predict_proba`, replace -inf by the smallest finite score of
    the row::

        smallest = np.where(np.isneginf(z), np.inf, z).min(axis=1, keepdims=True)
        z = np.maximum(z, smallest)

    A fit to the scores of the top m of K classes (`calibrant.TopScores`) takes O(n m) time. The
    tail mass is distributed over the other classes in proportion to a power of their ranks. On data
    sets with 100 and 1,000 classes, using only the top 20 scores changed the temperature by less
    than 0.001. See :doc:`/howto/top-scores`.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks, arXiv:1706.04599.

    Examples
    --------
    >>> logits = [[4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [0.0, 4.0]]
    >>> model = TemperatureScaling(inputs="logits").fit(logits, [0, 1, 1, 1])
    >>> round(model.temperature_, 3), model.predict_proba([[4.0, 0.0]]).round(3).tolist()
    (3.641, [[0.75, 0.25]])
    """

    remedies: ClassVar[Mapping[Outcome, str]] = {
        Outcome.SEPARABLE: "Fit on more rows, or use TemperatureScaling(prior_scale=0.25).",
    }
    _is_centered: ClassVar[bool] = False

    def __init__(
        self,
        prior_scale: float | None = None,
        *,
        inputs: Inputs = "proba",
        classes: Any = None,
        eps: float = EPS,
    ) -> None:
        self.prior_scale = prior_scale
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation("temperature scaling", (GUO_2017,))

    def _check_parameters(self, n_classes: int) -> None:
        check_eps(self.eps)
        check_prior_scale(self.prior_scale)

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "temperature_": TEMPERATURE,
        "curvature_": FittedValue((), 0.0),
    }

    def _fit(self, sample: Sample) -> None:
        of_rows = partial(find_log_beta, prior_scale=self.prior_scale)
        solution: Solution = sample.dispatch(of_rows, self._fit_top)
        self.temperature_ = float(np.exp(-solution.parameters[0]))
        self.curvature_ = solution.curvature
        store_outcome(self, solution)

    def _description(self) -> str:
        is_softer = self.temperature_ > 1
        effect = "softened" if is_softer else "sharpened"
        if self._is_significant():
            effect += f", because the model is {'over' if is_softer else 'under'}confident"
        else:
            effect += ", but not significantly (5% level)"
        return (
            f"Logits are divided by the temperature {format_number(self.temperature_)}. "
            f"The probabilities are {effect}. The ranking of the classes does not change."
        )

    def _is_significant(self) -> bool:
        """Return whether T differs significantly from 1, at the 5% level."""
        # Wald's statistic uses all rows, but is too small if the labels are nearly separated. In
        # this case, the likelihood ratio on the rows of the summary is large.
        wald = self.class_weights_.sum() * self.curvature_ * np.log(self.temperature_) ** 2
        return bool(max(wald, likelihood_ratio(vars(self).get("training_"))) > CHI2_95)

    def _logits(self, u: FloatArray) -> FloatArray:
        return u / self.temperature_

    def _fit_top(self, sample: TopSample) -> Solution:
        top, rows = sample.top, slice(None)
        if top.log_rest is None:
            rows = _rows_inside(sample)
        return find_top_log_beta(
            top.log_proba[rows],
            _tail(top),
            sample.place[rows],
            sample.is_inside[rows],
            sample.weight[rows],
            prior_scale=self.prior_scale,
        )

    def _proba_of_top(self, top: TopScores) -> TopScores:
        log_proba, log_rest = tempered(top.log_proba, _tail(top), 1.0 / self.temperature_)
        if top.n_known == top.n_classes and top.log_rest is not None:
            log_proba, log_rest = log_softmax(log_proba), top.log_rest
        return top.replaced(log_proba, log_rest)


def _tail(top: TopScores) -> Tail | None:
    """Return the distribution of the tail mass, or None if the tail mass is unknown or absent."""
    if top.log_rest is None or top.n_known == top.n_classes:
        return None
    return tail_of(top.log_proba, top.log_rest, top.n_classes)


def _rows_inside(data: TopSample) -> Any:
    """Return the rows whose true class is among the top m.

    If the tail mass is unknown, the fit uses only these rows.
    """
    rows = np.flatnonzero(data.is_inside & (data.weight > 0))
    if not len(rows):
        raise ValueError(
            "No row has its true class among the top scores, and the tail mass is unknown, so "
            "nothing can be fitted. Pass TopScores(..., rest='complement'), or more classes per "
            "row."
        )
    if len(rows) < len(data.y):
        warn_data(
            f"TemperatureScaling: {len(data.y) - len(rows):,} of {len(data.y):,} rows are left "
            "out, because their true class is not among the top scores and the tail mass is "
            "unknown. Pass TopScores(..., rest='complement') to use them."
        )
    return rows


class EnsembleTemperatureScaling(BaseCalibrator):
    r"""Mix tempered, original and uniform probabilities: :math:`w_1\,\mathrm{softmax}(u/T) +
    w_2\,\mathrm{softmax}(u) + w_3 / K`.

    Use `EnsembleTemperatureScaling` if the ranking of the classes must not change and some true
    classes have a probability near zero. The uniform distribution keeps every probability positive.

    Parameters
    ----------
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken.

    Attributes
    ----------
    temperature_ : float
        The temperature T of `TemperatureScaling`.
    weights_ : array of shape (3,)
        The weights of the tempered, original and uniform probabilities.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    TemperatureScaling : Divide the logits by one temperature, without a mixture.

    Notes
    -----
    The temperature is fitted first. The weights then minimize the log-loss on the simplex, which is
    a convex problem. The weights are accurate to 1e-6. The fit takes O(n K) time, and stores three
    numbers per row if the rows are in memory.

    References
    ----------
    Zhang, Kailkhura & Han (2020), Mix-n-Match, arXiv:2003.07329 (the authors minimize the mean
    squared error).

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = EnsembleTemperatureScaling().fit(data.val_proba, data.val_labels)
    >>> round(float(model.weights_.sum()), 12)
    1.0
    """

    remedies: ClassVar[Mapping[Outcome, str]] = {
        Outcome.SEPARABLE: "Fit on more rows, or use TemperatureScaling(prior_scale=0.25).",
    }
    _is_centered: ClassVar[bool] = False

    def __init__(self, *, inputs: Inputs = "proba", classes: Any = None, eps: float = EPS) -> None:
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation("ensemble temperature scaling", (ZHANG_2020,))

    # The uniform part allows for rows whose true class had probability zero.
    _takes_logarithms = False

    def _check_parameters(self, n_classes: int) -> None:
        check_eps(self.eps)

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "temperature_": TEMPERATURE,
        "weights_": FittedValue((3,), 0.0, 1.0),
    }

    def _fit(self, sample: Sample) -> None:
        temperature = find_log_beta(sample)
        self.temperature_ = float(np.exp(-temperature.parameters[0]))
        mixture = self._fit_mixture(sample)
        self.weights_ = mixture.parameters
        outcome = mixture.outcome if temperature.converged else temperature.outcome
        store_outcome(self, replace(temperature, objective=mixture.objective, outcome=outcome))

    def _fit_mixture(self, sample: Sample) -> Solution:
        if sample.shape[0] > _MAX_GATHERED_ROWS:
            # For rows in memory, the likelihoods are stored between passes. For other rows, each
            # pass computes the likelihoods again.
            store = sample.block_store()
            solution = search_mixture(3, lambda w: sample.sum(partial(self._sums_at, w, store)))
            if solution.converged:
                return solution
        # The search over gathered rows also converges if a weight is tiny or rounding dominates.
        blocks = sample.sum(self._gather_likelihoods)
        likelihood, weight = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return mixture_weights(likelihood, weight)

    def _sums_at(
        self, w: FloatArray, store: dict[int, FloatArray] | None, block: RowBlock
    ) -> MixtureSums:
        """Return the sums over rows that the search for the weights needs at ``w``."""
        likelihood = None if store is None else store.get(block.start)
        if likelihood is None:
            likelihood = self._likelihoods(block)
        if store is not None:
            store[block.start] = likelihood
        return MixtureSums.of_rows(likelihood, block.weight, w)

    def _gather_likelihoods(self, block: RowBlock) -> list[tuple[FloatArray, FloatArray]]:
        return [(self._likelihoods(block), block.weight)]

    def _likelihoods(self, block: RowBlock) -> FloatArray:
        """Return the probability of the true class by each of the three components, (m, 3)."""
        members = self._log_members(block.u)
        likelihoods: FloatArray = np.exp(members[:, np.arange(len(block.y)), block.y].T)
        return likelihoods

    def _log_members(self, u: FloatArray) -> FloatArray:
        """Return tempered, original and uniform log-probabilities, (3, m, K)."""
        return np.stack(
            [
                log_softmax(u / self.temperature_),
                log_softmax(u),
                np.full(u.shape, -np.log(u.shape[1])),
            ]
        )

    def _description(self) -> str:
        tempered, raw, uniform = (f"{weight:.1%}" for weight in self.weights_)
        return (
            f"The result is a mixture of probabilities: {tempered} tempered with T = "
            f"{self.temperature_:.4g}, {raw} original, {uniform} uniform."
        )

    def _proba(self, u: FloatArray) -> FloatArray:
        tempered, raw, uniform = self.weights_.tolist()
        out = softmax_in_place(u / self.temperature_)
        out *= tempered
        out += uniform / u.shape[1]
        if raw > 0:
            out += raw * softmax(u)
        return out

    def _log_proba(self, u: FloatArray) -> FloatArray:
        used = self.weights_ > 0
        return np.logaddexp.reduce(
            self._log_members(u)[used] + np.log(self.weights_[used])[:, None, None], axis=0
        )
