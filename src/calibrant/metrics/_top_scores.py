"""What can be said of forecasts of which only the best few classes are known."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.top_scores import TopSample, TopScores, as_top_sample
from calibrant._kernels.simplex import EPS
from calibrant._output.results import as_frame, html_table
from calibrant._typing import FloatArray, LabelsLike, WeightsLike
from calibrant.binning import bin_table
from calibrant.metrics._confidence import ConfidenceSums
from calibrant.metrics._ks import claims_ks
from calibrant.metrics.registry import METRICS
from calibrant.notions import as_notion


class Bounds(NamedTuple):
    """The least and the largest value that a number can have."""

    low: float
    high: float


def log_loss_bounds(
    y_true: LabelsLike,
    y_prob: TopScores,
    *,
    eps: float = EPS,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> Bounds:
    r"""The least and the largest `log_loss` that agrees with the best m classes of each row.

    A truth among them has its log-probability. Any other has at most the least probability q that
    is known and at most the mass r of the rest, and at least what the other K - m - 1 classes,
    with no more than q each, cannot hold of r: :math:`\max(r - (K - m - 1) q, \epsilon)`. No
    narrower bounds hold for all forecasts with these scores. O(n m).

    Examples
    --------
    >>> top = TopScores([[0], [1]], np.log([[0.5], [0.8]]), n_classes=3)
    >>> [round(bound, 3) for bound in log_loss_bounds([0, 2], top)]
    [1.151, 14.162]
    """
    data = as_top_sample(y_true, y_prob, sample_weight, classes)
    return _log_loss_bounds(data, eps)


def _log_loss_bounds(data: TopSample, eps: float) -> Bounds:
    top, weight = data.top, data.weight
    known = top.log_proba[np.arange(len(top)), data.place]
    least, rest = top.log_proba[:, -1], top.require_rest("bounds of the log-loss")
    others = top.n_classes - top.n_known - 1
    highest = np.where(data.is_inside, known, np.minimum(least, rest))
    held = np.exp(rest) - others * np.exp(least)
    lowest = np.where(data.is_inside, known, np.log(np.maximum(held, eps)))

    def mean(log_true: FloatArray) -> float:
        return -float(weight @ np.maximum(log_true, np.log(eps)) / weight.sum())

    return Bounds(mean(highest), mean(np.minimum(lowest, highest)))


@dataclass(frozen=True)
class TopEvaluation:
    """How good and how honest forecasts are whose best m classes are known; ``str()`` is a table.

    The numbers are those of `Evaluation` where the best classes tell them. The log-loss is known
    up to bounds, because a truth that was cut off has an unknown probability; errors by class and
    the Brier score need whole rows.

    Attributes
    ----------
    n_samples : float
    n_classes, n_known : int
        K and m.
    within_known : float
        Share of rows whose truth is among the m classes.
    mean_rest : float
        Mean mass of the others, which a calibrated forecast has equal to ``1 - within_known``.
    log_loss_low, log_loss_high : float
    accuracy, conf_ece, tl_ece, mce, ks, confidence_on_errors, doubt_on_correct, sharpness : float
        As in `Evaluation`.
    """

    n_samples: float
    n_classes: int
    n_known: int
    within_known: float
    mean_rest: float
    accuracy: float
    log_loss_low: float
    log_loss_high: float
    conf_ece: float
    tl_ece: float
    mce: float
    ks: float
    confidence_on_errors: float
    doubt_on_correct: float
    sharpness: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain numbers."""
        return asdict(self)

    def to_frame(self) -> Any:
        """A pandas frame with one row."""
        return as_frame(self.to_dict())

    def _rows(self) -> list[list[str]]:
        return [
            [_TITLES.get(entry.name) or METRICS[entry.name].title, _shown(entry.name, self)]
            for entry in fields(self)
        ]

    def _repr_html_(self) -> str:
        return html_table(self._rows())

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(title) for title, _ in rows)
        return "\n".join(f"{title:<{width}}  {value:>12}" for title, value in rows)


_TITLES = {
    "n_samples": "rows",
    "n_classes": "classes",
    "n_known": "classes known a row",
    "within_known": "truth among the known",
    "mean_rest": "mass of the others",
    "log_loss_low": "log-loss, at least",
    "log_loss_high": "log-loss, at most",
}


def _shown(name: str, result: TopEvaluation) -> str:
    value = getattr(result, name)
    return f"{value:,.0f}" if name.startswith("n_") else f"{value:.5f}"


def evaluate_top(
    y_true: LabelsLike,
    y_prob: TopScores,
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> TopEvaluation:
    """The evaluation of top scores."""
    data = as_top_sample(y_true, y_prob, sample_weight, classes)
    confidence = data.claims(as_notion("confidence"))
    table = bin_table(confidence, n_bins=n_bins)
    by_label = bin_table(data.claims(as_notion("top-label")), n_bins=n_bins)
    sums: ConfidenceSums = confidence.sum_over(ConfidenceSums.of_block)
    weight, total, loss = data.weight, sums.weight, _log_loss_bounds(data, EPS)
    return TopEvaluation(
        n_samples=int(total) if total == int(total) else total,
        n_classes=y_prob.n_classes,
        n_known=y_prob.n_known,
        within_known=float(weight @ data.is_inside / total),
        mean_rest=float(weight @ y_prob.rest / total),
        accuracy=sums.accuracy,
        log_loss_low=loss.low,
        log_loss_high=loss.high,
        conf_ece=table.error(),
        tl_ece=by_label.error(),
        mce=table.error(norm=np.inf),
        ks=claims_ks(confidence),
        confidence_on_errors=sums.confidence_on_errors,
        doubt_on_correct=sums.doubt_on_correct,
        sharpness=sums.sharpness(y_prob.n_classes),
    )
