"""Proper scores and accuracy: means over rows."""

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
    r"""Mean negative log-probability of the truth, :math:`-\frac1n \sum_i \log \max(p_{i y_i},
    \epsilon)`, in nats.

    The floor ``eps`` keeps a truth that was called impossible from making the mean infinite: with
    the default it costs 27.6 nats.

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
    r"""Brier score: the mean of :math:`\sum_k (p_{ik} - 1[y_i = k])^2`, between 0 and 2.

    With a ``notion`` the mean over its claims of ``(score - outcome)^2``: ``"confidence"`` gives
    the top-1 Brier score of Gupta 2021, ``"class-1"`` the usual score of a binary problem.

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
    """Mean over rows of the sum of squared residuals."""

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
    """Share of rows whose highest probability is at the truth; ties go to the lowest column.

    Examples
    --------
    >>> accuracy([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    0.5
    """
    claims, _ = claims_of(
        as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    right = claims.sum_over(lambda block, weight: weight[block.hit].sum())
    return float(right / claims.weight.sum())
