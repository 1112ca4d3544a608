"""Beta calibration: logistic regression on the logarithms of the score and of its complement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
import scipy
from scipy.special import expit, log_expit

from calibrant._kernels.blocks import map_elements
from calibrant._kernels.simplex import EPS, log_sigmoids, sigmoid
from calibrant._optim.logistic import fit_logistic, fit_logistics
from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray, Inputs, LabelsLike
from calibrant._validation import check_eps, check_option
from calibrant.base import BaseBinaryCalibrator, Citation, store_outcome
from calibrant.base.fitted import NUMBER, FittedValue
from calibrant.base.references import KULL_2017
from calibrant.binning import present_rows
from calibrant.notions import Claim, share_rows, stack_claims

# Beyond these log-odds, a probability is 0 or 1 in double precision.
_LOG_ODDS_END = 745.0


class BetaCalibration(BaseBinaryCalibrator):
    r"""Calibrate by a function with three parameters (beta calibration).

    Use this method for binary problems with several hundred rows or more. Unlike Platt scaling,
    beta calibration has separate slopes for scores near 0 and near 1. The family contains the
    identity, so calibrated scores can stay unchanged. The calibrated probability is

    .. math:: q(p) = \frac{1}{1 + e^{-c} (1 - p)^b / p^a}, \quad c = b \log(1 - m) - a \log m .

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default "abm"
        Parameters that are fitted. "abm" means all three, "am" sets a = b, and "ab" sets m = 1/2.
    constrained : bool, default True
        Whether to require a >= 0 and b >= 0, so the function increases.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores. Only probabilities are clipped.
    classes : array-like of two labels, optional
        Labels of the negative and the positive class. If None, the labels of `fit` are sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken.

    Attributes
    ----------
    a_, b_, c_ : float
        The parameters of the formula.
    m_ : float
        The score with the calibrated probability 1/2. The value is 0 or 1 if there is no such score
        or more than one.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    PlattScaling : Two parameters, for fewer rows.
    SplineCalibration : A smooth function of any shape.

    Notes
    -----
    The fit is a logistic regression on :math:`\log p` and :math:`-\log(1 - p)`, O(n) per Newton
    iteration. With ``constrained=True``, negative coefficients are set to zero one at a time and
    the other coefficients are fitted again. The best of these fits is the maximum under the
    constraint.

    The model is correct if the scores of each outcome follow beta distributions. The method has no
    guarantee if this assumption is violated. If the scores separate the outcomes, the likelihood
    has no maximum. The fit then stops at finite values and warns. If there are too few different
    scores to determine all parameters, the fit with the smallest coefficients is returned.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration, AISTATS, PMLR 54:623-631.
    Kull, Silva Filho & Flach (2017), Beyond sigmoids, doi:10.1214/17-EJS1338SI.

    Examples
    --------
    >>> beta = BetaCalibration("am").fit([0.2, 0.2, 0.2, 0.8, 0.8, 0.8], [0, 0, 1, 0, 1, 1])
    >>> round(beta.a_, 6), round(beta.m_, 6)
    (0.5, 0.5)
    """

    form: ClassVar[Literal["score", "log_odds"]] = "log_odds"
    remedies: ClassVar[Mapping[Outcome, str]] = {
        Outcome.SEPARABLE: (
            "Fit on more rows, or use PlattScaling(), whose smoothed targets always have a "
            "solution."
        ),
    }

    def __init__(
        self,
        parameters: str = "abm",
        constrained: bool = True,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
        eps: float = EPS,
    ) -> None:
        self.parameters = parameters
        self.constrained = constrained
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation("beta calibration", (KULL_2017,))

    def _check_parameters(self, n_classes: int) -> None:
        super()._check_parameters(n_classes)
        check_option(self.parameters, "parameters", ("abm", "am", "ab"))
        check_eps(self.eps)

    fitted_values: ClassVar[Mapping[str, FittedValue]] = dict.fromkeys(("a_", "b_", "c_"), NUMBER)

    def _fit(self, claim: Claim) -> None:
        self._fit_many([self], [claim])

    @classmethod
    def _fit_many(cls, calibrators: Sequence[Self], claims: Sequence[Claim]) -> None:
        if not share_rows(claims):
            super()._fit_many(calibrators, claims)
            return
        score, outcome, weight = present_rows(*stack_claims(claims))
        first = calibrators[0]
        columns, intercept = _columns(score, first.parameters), first.parameters != "ab"
        solutions = fit_logistics(columns, outcome, weight, intercept=intercept)
        for j, (calibrator, free_fit) in enumerate(zip(calibrators, solutions, strict=True)):
            solution = free_fit
            if first.constrained and (free_fit.parameters[: len(columns)] < 0.0).any():
                design = np.stack([column[j] for column in columns]).T
                indices = list(range(len(columns)))
                solution = _nonnegative(design, outcome[j], weight, indices, intercept, free_fit)
            calibrator._store(solution)

    def _store(self, solution: Solution) -> None:
        *coef, intercept = solution.parameters.tolist()
        self.a_, self.b_ = coef[0], coef[-1]
        has_middle = self.parameters == "ab"
        self.c_ = (self.a_ - self.b_) * float(np.log(2.0)) if has_middle else intercept
        self.m_ = 0.5 if has_middle else _midpoint(self.a_, self.b_, self.c_)
        store_outcome(self, solution)

    def _log_odds(self, score: FloatArray) -> FloatArray:
        log_p, log_rest = log_sigmoids(score)
        return self.a_ * log_p - self.b_ * log_rest + self.c_

    def _predict(self, score: FloatArray) -> FloatArray:
        return sigmoid(self._log_odds(score))

    @classmethod
    def _predict_many(cls, calibrators: Sequence[Self], score: FloatArray) -> FloatArray:
        a, b, c = np.array([(fit.a_, fit.b_, fit.c_) for fit in calibrators]).T
        log_p, log_rest = log_sigmoids(score)
        return sigmoid(a * log_p - b * log_rest + c)


def _columns(log_odds: FloatArray, parameters: str) -> list[FloatArray]:
    """The columns of the regression: log p and -log(1 - p).

    For the parameters "ab" (m = 1/2), a shift makes both columns 0 at p = 1/2.
    """
    if parameters == "am":
        return [log_odds]
    shift = np.log(2.0) if parameters == "ab" else 0.0

    def log_terms(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_p, log_rest = log_sigmoids(odds)
        log_p += shift
        log_rest += shift
        return log_p, np.negative(log_rest, out=log_rest)

    return map_elements(log_terms, log_odds, 2)


def _on_columns(
    columns: FloatArray, target: FloatArray, weight: FloatArray, indices: list[int], intercept: bool
) -> Solution:
    """Fit on the columns in ``indices``. The other columns get the coefficient 0."""
    solution = fit_logistic(columns[:, indices], target, weight, intercept=intercept)
    parameters = np.zeros(columns.shape[1] + 1)
    parameters[[*indices, -1]] = solution.parameters
    return replace(solution, parameters=parameters)


def _nonnegative(
    columns: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    indices: list[int],
    intercept: bool,
    free_fit: Solution | None = None,
) -> Solution:
    """The best fit without negative coefficients.

    ``free_fit`` is the unconstrained fit, and ``indices`` are the columns that the fit uses.
    The loss is convex, so if the unconstrained optimum has negative coefficients, at least one of
    them is 0 in the constrained optimum.
    """
    if free_fit is None:
        free_fit = _on_columns(columns, target, weight, indices, intercept)
    negative = [j for j in indices if free_fit.parameters[j] < 0.0]
    if not negative:
        return free_fit
    fits = [
        _nonnegative(columns, target, weight, [k for k in indices if k != j], intercept)
        for j in negative
    ]
    return min(fits, key=lambda candidate: candidate.objective)


def _midpoint(a: float, b: float, c: float) -> float:
    """The score m with ``a log m - b log(1 - m) + c = 0``."""

    def eta(t: float) -> float:
        return float(a * log_expit(t) - b * log_expit(-t) + c)

    low, high = eta(-_LOG_ODDS_END), eta(_LOG_ODDS_END)
    if low * high < 0.0:
        return float(expit(scipy.optimize.brentq(eta, -_LOG_ODDS_END, _LOG_ODDS_END, xtol=1e-14)))
    middle = eta(0.0)
    # Without a change of sign, the function equals 1/2 everywhere up to round-off, or m is an end
    # point.
    return 0.5 if abs(middle) <= 1e-12 else float(middle < 0.0)
