"""Proper scores and accuracy, which are means over rows."""

from __future__ import annotations

from functools import partial
from typing import Any

from calibrant._data.sample import RowBlock
from calibrant._kernels.blocks import READ_BLOCK
from calibrant._kernels.simplex import EPS, log_losses
from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import (
    ClaimBlock,
    Claims,
    Notion,
    as_notion,
    claims_of,
    sample_for,
)


def log_loss(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    eps: float = EPS,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the log-loss, the mean negative log-probability of the true class, in nats.

    Lower is better. The log-loss is a proper score, because the true probabilities minimize its
    expectation.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    eps : float, default 1e-12
        Probabilities of the true class below ``eps`` are raised to ``eps``, so a probability of 0
        does not make the mean infinite. With the default, a probability of 0 costs 27.6 nats.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The mean loss.

    See Also
    --------
    brier_score : Bounded proper score.
    calibrant.inference.bootstrap_interval : Confidence interval of the score.
    calibrant.inference.score_decomposition : Split the score into calibration and refinement.

    Notes
    -----
    .. math:: -\frac1n \sum_i \log \max(p_{i y_i}, \epsilon)

    References
    ----------
    Good (1952), Rational decisions, doi:10.1111/j.2517-6161.1952.tb00104.x.

    Examples
    --------
    >>> log_loss([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    0.693147...
    """
    sample, _ = sample_for(
        as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    return float(sample.sum(partial(_losses, eps), elements=READ_BLOCK) / sample.total)


def _losses(eps: float, block: RowBlock) -> Any:
    return block.weight @ log_losses(block.u, block.y, eps)


def brier_score(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the Brier score, the mean squared error summed over classes.

    Lower is better. The Brier score is a proper score between 0 and 2.

    Parameters
    ----------
    y_true, y_prob, inputs, sample_weight, classes
        As in `log_loss`.
    notion : str or Notion, optional
        If set, average ``(score - outcome)^2`` over the claims of this type of calibration.
        ``"confidence"`` is the top-1 Brier score of Gupta 2021, and ``"class-1"`` is the usual
        binary score.

    Returns
    -------
    float
        The mean score.

    See Also
    --------
    log_loss : Proper score that penalizes confident errors more strongly.
    ranked_probability_score : Proper score for ordered classes.
    calibrant.inference.score_decomposition : Split the score into calibration and refinement.

    Notes
    -----
    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1[y_i = k])^2

    References
    ----------
    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> brier_score([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    0.5
    """
    if notion is None:
        sample, _ = sample_for(
            as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs
        )
        return _square_sum(sample.claims(as_notion("class-wise")))
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return _square_sum(claims) / claims.n_quantities


def _square_sum(claims: Claims) -> float:
    """Return the mean over rows of the sum of squared residuals."""

    def squares(block: ClaimBlock, weight: FloatArray) -> Any:
        return weight @ (block.residual() ** 2).sum(axis=1)

    return float(claims.sum_over(squares) / claims.weight.sum())


def accuracy(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the accuracy, the share of rows whose predicted class is correct.

    Higher is better. The predicted class has the highest probability, and the first class is
    predicted if several classes tie.

    Parameters
    ----------
    y_true, y_prob, inputs, sample_weight, classes
        As in `log_loss`.

    Returns
    -------
    float
        The accuracy, between 0 and 1.

    See Also
    --------
    evaluate : Accuracy, proper scores and calibration errors in one call.
    calibrant.inference.bootstrap_interval : Exact confidence interval of the accuracy.

    Notes
    -----
    .. math:: \frac1n \sum_i 1[\arg\max_k p_{ik} = y_i]

    Examples
    --------
    >>> accuracy([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    0.5
    """
    claims, _ = claims_of(
        as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    correct = claims.sum_over(lambda block, weight: weight[block.hit].sum())
    return float(correct / claims.weight.sum())
