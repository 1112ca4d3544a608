"""Evaluation of predictions that contain only the scores of the top m classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.top_scores import TopSample, TopScores, as_top_sample
from calibrant._kernels.simplex import EPS
from calibrant._output.numbers import format_number
from calibrant._output.results import as_frame, html_table
from calibrant._typing import FloatArray, LabelsLike, WeightsLike
from calibrant.binning import bin_table
from calibrant.metrics._confidence import ConfidenceSums
from calibrant.metrics.ks import claims_ks
from calibrant.metrics.registry import METRICS
from calibrant.notions import as_notion


class Bounds(NamedTuple):
    """Smallest and largest possible value of a number."""

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
    r"""Compute the smallest and largest `log_loss` that is consistent with the top m classes.

    Use this function if a service returns only the highest scores of each row. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : TopScores
        Scores of the top m of K classes.
    eps : float, default 1e-12
        Probabilities of the true class are clipped to at least eps.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the K classes.

    Returns
    -------
    Bounds
        Smallest (``low``) and largest (``high``) possible log-loss.

    See Also
    --------
    log_loss : Log-loss of complete rows.
    evaluate : Pass `TopScores` to compute all metrics.

    Notes
    -----
    If the true class is among the top m, its log-probability is known. Otherwise, the probability
    of the true class is at most the lowest available probability q, and at most the tail mass r.
    Each of the other K - m - 1 classes outside the top m has at most the probability q. So the true
    class has at least the probability :math:`\max(r - (K - m - 1) q, \epsilon)`. The bounds are
    sharp, because complete predictions with these scores attain both bounds. The computation takes
    O(n m) time.

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
    log_true = top.log_proba[np.arange(len(top)), data.place]
    least, tail = top.log_proba[:, -1], top.require_rest("bounds of the log-loss")
    n_others = top.n_classes - top.n_known - 1
    highest = np.where(data.is_inside, log_true, np.minimum(least, tail))
    surplus = np.exp(tail) - n_others * np.exp(least)
    lowest = np.where(data.is_inside, log_true, np.log(np.maximum(surplus, eps)))

    def mean(log_true: FloatArray) -> float:
        return -float(weight @ np.maximum(log_true, np.log(eps)) / weight.sum())

    return Bounds(mean(highest), mean(np.minimum(lowest, highest)))


@dataclass(frozen=True)
class TopEvaluation:
    """Evaluation of predictions that contain only the scores of the top m classes.

    `evaluate` returns a `TopEvaluation` for `TopScores`. ``str()`` returns a table. Metrics that
    depend only on the top classes have the same values as in `Evaluation`. The log-loss has bounds,
    because a true class outside the top m has an unknown probability. Class-wise errors and the
    Brier score are missing, because they need complete rows.

    Attributes
    ----------
    n_samples : float
        Sum of the weights, or the number of rows if there are no weights.
    n_classes, n_known : int
        Number of classes K, and number of top classes m.
    within_known : float
        Share of rows whose true class is among the top m.
    mean_rest : float
        Mean tail mass. For a calibrated model, the expected tail mass is ``1 - within_known``.
    log_loss_low, log_loss_high : float
        Smallest and largest possible log-loss.
    accuracy, conf_ece, tl_ece, mce, ks, confidence_on_errors, doubt_on_correct, sharpness : float
        As in `Evaluation`.

    See Also
    --------
    evaluate : Compute the evaluation.
    log_loss_bounds : Bounds of the log-loss.
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
        """Return the fields as plain numbers."""
        return asdict(self)

    def to_frame(self) -> Any:
        """Return a pandas frame with one row."""
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
    "n_known": "top classes per row",
    "within_known": "true class in the top classes",
    "mean_rest": "mean tail mass",
    "log_loss_low": "log-loss, lower bound",
    "log_loss_high": "log-loss, upper bound",
}


def _shown(name: str, result: TopEvaluation) -> str:
    value = getattr(result, name)
    return f"{value:,.0f}" if name.startswith("n_") else format_number(value)


def evaluate_top(
    y_true: LabelsLike,
    y_prob: TopScores,
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> TopEvaluation:
    """Evaluate predictions that contain only the top scores of each row."""
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
