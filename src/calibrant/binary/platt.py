"""Platt scaling: logistic regression on the log-odds of the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import numpy as np

from calibrant._kernels.simplex import EPS, sigmoid, weighted_sum
from calibrant._optim.logistic import fit_logistics
from calibrant._optim.solution import Outcome
from calibrant._typing import FloatArray, Inputs, LabelsLike
from calibrant._validation import check_eps
from calibrant.base import BaseBinaryCalibrator, Citation, store_outcome
from calibrant.base.fitted import NUMBER, FittedValue
from calibrant.base.references import LIN_2007, PLATT_1999
from calibrant.binning import present_rows
from calibrant.notions import Claim, share_rows, stack_claims


class PlattScaling(BaseBinaryCalibrator):
    r"""Calibrate by a logistic function of the log-odds (Platt scaling).

    Use this method for binary problems with few rows, because it fits only two parameters and
    always has a finite solution. The calibrated probability is

    .. math:: q(p) = \frac{1}{1 + \exp(-(\mathrm{coef} \cdot z + \mathrm{intercept}))},
        \quad z = \log\frac{p}{1 - p} .

    Parameters
    ----------
    target_smoothing : bool, default True
        Whether to fit Platt's smoothed targets instead of 0 and 1. If False, the fit has no finite
        solution for scores that separate the outcomes.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores. Logits are used directly as log-odds.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken.

    Attributes
    ----------
    coef_, intercept_ : float
        Slope and intercept. The slope is negative if outcome 0 is more frequent at higher scores.
        The slope is 0 if all scores are equal.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    BetaCalibration : Three parameters, with separate slopes near 0 and near 1.
    IsotonicCalibration : Any increasing function, for a thousand rows and more.

    Notes
    -----
    The smoothed targets are :math:`(N_+ + 1) / (N_+ + 2)` for outcome 1 and :math:`1 / (N_- + 2)`
    for outcome 0, where :math:`N_+` and :math:`N_-` are the total weights of the two outcomes. The
    optimum is then finite and unique if there are two different scores.

    The model is correct if the log-odds of the scores of each outcome are normal with equal
    variances. The method has no guarantee if this assumption is violated. The fit costs O(n) per
    Newton iteration.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines, in Advances in Large Margin
    Classifiers. Lin, Lin & Weng (2007), A note on Platt's probabilistic outputs,
    doi:10.1007/s10994-007-5018-6.

    Examples
    --------
    >>> PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).predict_proba([0.9]).round(2)
    array([[0.3, 0.7]])
    """

    form: ClassVar[Literal["score", "log_odds"]] = "log_odds"
    remedies: ClassVar[Mapping[Outcome, str]] = {
        Outcome.SEPARABLE: "Use target_smoothing=True, or fit on more rows.",
    }

    def __init__(
        self,
        target_smoothing: bool = True,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
        eps: float = EPS,
    ) -> None:
        self.target_smoothing = target_smoothing
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation("Platt scaling of log-odds", (PLATT_1999, LIN_2007))

    def _check_parameters(self, n_classes: int) -> None:
        super()._check_parameters(n_classes)
        check_eps(self.eps)

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {"coef_": NUMBER, "intercept_": NUMBER}

    def _fit(self, claim: Claim) -> None:
        self._fit_many([self], [claim])

    @classmethod
    def _fit_many(cls, calibrators: Sequence[Self], claims: Sequence[Claim]) -> None:
        if not share_rows(claims):
            super()._fit_many(calibrators, claims)
            return
        score, outcome, weight = present_rows(*stack_claims(claims))
        total = float(weight.sum())
        target = np.empty(outcome.shape)
        for calibrator, hit, goal in zip(calibrators, outcome, target, strict=True):
            high, low = calibrator._targets(weighted_sum(weight, hit), total)
            goal[:] = low + (high - low) * hit
        solutions = fit_logistics([score], target, weight)
        for calibrator, solution in zip(calibrators, solutions, strict=True):
            calibrator.coef_, calibrator.intercept_ = solution.parameters.tolist()
            store_outcome(calibrator, solution)

    def _targets(self, n_positive: float, n_total: float) -> tuple[float, float]:
        """The target probabilities for outcomes 1 and 0 (Platt's smoothed targets)."""
        if not self.target_smoothing:
            return 1.0, 0.0
        return (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_total - n_positive + 2.0)

    def _log_odds(self, score: FloatArray) -> FloatArray:
        return self.coef_ * score + self.intercept_

    def _predict(self, score: FloatArray) -> FloatArray:
        return sigmoid(self._log_odds(score))

    @classmethod
    def _predict_many(cls, calibrators: Sequence[Self], score: FloatArray) -> FloatArray:
        coef, intercept = np.array([(c.coef_, c.intercept_) for c in calibrators]).T
        return sigmoid(coef * score + intercept)
