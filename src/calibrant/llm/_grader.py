"""The pass rate of a grader, corrected with human labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from calibrant._output.numbers import format_fixed, format_percent
from calibrant._output.results import AsText
from calibrant._typing import FloatArray, ScoresLike
from calibrant._validation import as_array, check_same_length
from calibrant.metrics.groups import check_level


@dataclass(frozen=True)
class PassRate(AsText):
    """A corrected pass rate with its interval, returned by `pass_rate`.

    Attributes
    ----------
    rate, low, high : float
        Corrected pass rate and the ends of its interval.
    level : float
        Nominal coverage of the interval.
    grader_rate : float
        Uncorrected mean of the grader over the answers without human labels.
    human_rate : float
        Mean of the human labels alone.
    bias : float
        Mean of the grader minus mean of the human labels, on the labeled answers.
    power : float
        Weight of the grader, between 0 (ignored) and 1.
    n_labeled, n_unlabeled : int
        Numbers of answers with and without human labels.

    See Also
    --------
    pass_rate : Compute the corrected pass rate.
    """

    rate: float
    low: float
    high: float
    level: float
    grader_rate: float
    human_rate: float
    bias: float
    power: float
    n_labeled: int
    n_unlabeled: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        interval = f"{format_percent(self.low)} to {format_percent(self.high)}"
        bias = format_fixed(self.bias, signed=True)
        return (
            f"Pass rate: {format_percent(self.rate)} ({self.level:.0%} CI {interval}, asymptotic). "
            f"The grader alone reports {format_percent(self.grader_rate)}. On {self.n_labeled:,} "
            f"answers with human labels, the bias of the grader is {bias}."
        )


def pass_rate(
    graded: ScoresLike, human: ScoresLike, human_graded: ScoresLike, *, level: float = 0.95
) -> PassRate:
    r"""Estimate the share of answers that people would accept, from a grader and some human labels.

    The grader is a language model or a program that accepts or rejects answers (``LLM as judge``).

    Parameters
    ----------
    graded : array-like of shape (N,)
        Verdicts of the grader on the answers without human labels: 0 or 1, or probabilities.
    human : array-like of shape (n,)
        Human labels of other answers, 0 or 1. These answers must be a random sample of all answers.
    human_graded : array-like of shape (n,)
        Verdicts of the grader on the answers with human labels.
    level : float, default 0.95
        Coverage of the interval.

    Returns
    -------
    PassRate

    See Also
    --------
    AnswerCalibration : Probability that a single answer is correct.

    Notes
    -----
    With verdicts :math:`f` and human labels :math:`h`, the estimate is

    .. math:: \hat\theta = \bar h + \lambda\, (\bar f_N - \bar f_n), \qquad
        \lambda = \frac{\mathrm{cov}(h, f)}{(1 + n / N)\, \mathrm{var}(f)} \in [0, 1],

    which is the mean of the rescaled grader over the unlabeled answers, plus its mean error on the
    labeled answers. The method is prediction-powered inference with power tuning. The method uses
    the :math:`\lambda` with the smallest variance. Even for a bad grader, the interval is therefore
    not much wider than the interval of the human labels alone. The interval adds both variances,
    :math:`\mathrm{var}(h - \lambda f) / n + \lambda^2\, \mathrm{var}(f) / N`, and uses a quantile
    of Student's distribution with n - 1 degrees of freedom. Each half of the interval is at least
    as wide as the interval of Clopper and Pearson for no error in n labels. The interval is
    asymptotic, and answers must be independent.

    References
    ----------
    Angelopoulos et al. (2023), Prediction-powered inference, arXiv:2301.09633; Angelopoulos, Duchi
    & Zrnic (2023), PPI++, arXiv:2311.01453.

    Examples
    --------
    >>> import numpy as np
    >>> human = np.tile([1, 1, 0, 0, 1], 20)
    >>> human_graded = np.tile([1, 1, 1, 0, 1], 20)
    >>> graded = np.tile([1, 1, 1, 0, 1], 400)
    >>> result = pass_rate(graded, human, human_graded)
    >>> result.grader_rate, round(result.rate, 3)
    (0.8, 0.6)
    """
    check_level(level)
    unlabeled, label, verdict = (
        _as_shares(values, name)
        for values, name in ((graded, "graded"), (human, "human"), (human_graded, "human_graded"))
    )
    check_same_length(human=label, human_graded=verdict)
    n_labeled, n_unlabeled = len(label), len(unlabeled)
    if n_labeled < 2 or n_unlabeled < 2:
        raise ValueError(
            f"pass_rate needs at least two answers with and two without human labels, got "
            f"{n_labeled} and {n_unlabeled}. Label more answers."
        )
    power = _power(unlabeled, label, verdict)
    rate = label.mean() + power * (unlabeled.mean() - verdict.mean())
    variance = np.var(label - power * verdict, ddof=1) / n_labeled
    variance += power**2 * np.var(unlabeled, ddof=1) / n_unlabeled
    half = float(student.ppf((1 + level) / 2, n_labeled - 1) * np.sqrt(variance))
    # If the grader has no error on the labels, the variance is too small. Its error rate can still
    # be the upper limit of Clopper and Pearson for no error.
    half = max(half, 1 - ((1 - level) / 2) ** (1 / n_labeled))
    return PassRate(
        rate=float(np.clip(rate, 0, 1)),
        low=float(np.clip(rate - half, 0, 1)),
        high=float(np.clip(rate + half, 0, 1)),
        level=level,
        grader_rate=float(unlabeled.mean()),
        human_rate=float(label.mean()),
        bias=float(verdict.mean() - label.mean()),
        power=power,
        n_labeled=n_labeled,
        n_unlabeled=n_unlabeled,
    )


def _power(unlabeled: FloatArray, label: FloatArray, verdict: FloatArray) -> float:
    spread = np.var(np.concatenate([unlabeled, verdict]))
    if spread == 0:
        return 0.0
    covariance = np.mean((label - label.mean()) * (verdict - verdict.mean()))
    ratio = 1 + len(label) / len(unlabeled)
    return float(np.clip(covariance / (ratio * spread), 0, 1))


def _as_shares(values: Any, name: str) -> FloatArray:
    array = as_array(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers of shape (n,), got {array.dtype} {array.shape}.")
    numbers = array.astype(np.float64)
    if not ((numbers >= 0) & (numbers <= 1)).all():  # also catches NaN
        wrong = numbers[~((numbers >= 0) & (numbers <= 1))][0]
        raise ValueError(f"{name} must be between 0 and 1, got {wrong}.")
    return numbers
