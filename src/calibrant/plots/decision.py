"""Plot the net benefit of acting on predicted probabilities against the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import FloatArray, Inputs, LabelsLike, WeightsLike
from calibrant.metrics import net_benefit
from calibrant.metrics._net_benefit import event_rate
from calibrant.notions import Notion, as_notion, claims_of
from calibrant.plots._canvas import AxesDisplay, require_matplotlib
from calibrant.plots._style import GREY, INK, SMALL, label, named_series, tidy


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(AxesDisplay):
    """Plot of decision curves, which show the net benefit at each decision threshold.

    The decision rule is to act if the predicted probability is at least the threshold. Call
    `from_predictions` with the scores of one or several models, then `plot`. Higher is better. A
    model is useful at a threshold if its net benefit is higher than the net benefits of acting
    always and of never acting.

    Parameters
    ----------
    thresholds : array of shape (m,)
        Thresholds of the predicted probability.
    benefit : dict of str to array of shape (m,)
        Net benefit of each model, from `calibrant.metrics.net_benefit`.
    rate : float
        Share of the rows with the event.
    event : str
        Name of the event, for the title.
    max_threshold : float, optional
        End of the horizontal axis. By default the last threshold.

    Attributes
    ----------
    figure_, ax_
        Figure and axes after `plot`.

    See Also
    --------
    calibrant.metrics.net_benefit : Compute the net benefit.

    References
    ----------
    Vickers & Elkin (2006), Decision curve analysis, doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> display = DecisionCurveDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    >>> display.rate, len(display.thresholds)
    (0.5, 99)
    """

    thresholds: FloatArray
    benefit: Mapping[str, FloatArray]
    rate: float
    event: str = ""
    max_threshold: float | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: Any,
        *,
        thresholds: Any = None,
        notion: str | Notion = "class-1",
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute the curves from labels and scores.

        Parameters
        ----------
        y_true, notion, inputs, sample_weight, classes
            As in `calibrant.metrics.net_benefit`.
        y_prob : array-like of shape (n, K) or (n,), or dict of such arrays
            Scores of one model, or of several models by name.
        thresholds : array-like of shape (m,), optional
            Increasing thresholds. By default, the thresholds are 0.01 to 0.99 in steps of 0.01. The
            figure ends just above the last threshold at which a model is better than never acting.
        """
        require_matplotlib()
        models = y_prob if isinstance(y_prob, Mapping) else {"model": y_prob}
        cutoffs = np.linspace(0.01, 0.99, 99) if thresholds is None else np.sort(thresholds)
        options: Any = {"inputs": inputs, "sample_weight": sample_weight, "classes": classes}
        benefit = {
            name: net_benefit(y_true, p, cutoffs, notion=notion, **options)
            for name, p in models.items()
        }
        kind, first = as_notion(notion), next(iter(models.values()))
        claims, _ = claims_of(kind, y_true, first, sample_weight, classes, inputs=inputs)
        end = _useful_end(cutoffs, benefit) if thresholds is None else None
        return cls(cutoffs, benefit, event_rate(claims), kind.name, end)

    @property
    def act_always(self) -> FloatArray:
        """Return the net benefit of always acting, at each threshold."""
        return self.rate - (1.0 - self.rate) * self.thresholds / (1.0 - self.thresholds)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves into ``ax`` or a new figure.

        A line ends where no row reaches the threshold.
        """
        self._open_axes(ax, (5.0, 3.6))
        tidy(self.ax_)
        self._draw_curves(self.ax_)
        # Acting always has large losses at high thresholds, which would flatten the other lines.
        top = max(self.rate, *(float(values.max()) for values in self.benefit.values()), 0.01)
        end = float(self.thresholds[-1]) if self.max_threshold is None else self.max_threshold
        self.ax_.set(xlim=(0, end), ylim=(-0.25 * top, 1.1 * top))
        self.ax_.legend(fontsize=SMALL, frameon=False, loc="upper right")
        title = f"Decision curve, {self.event}" if self.event else "Decision curve"
        label(self.ax_, "threshold of the predicted probability", "net benefit per row", title)
        return self

    def _draw_curves(self, ax: Any) -> None:
        for i, (name, values) in enumerate(self.benefit.items()):
            color, linestyle, _ = named_series(name, i)
            style: dict[str, Any] = {"color": color, "linestyle": linestyle, "linewidth": 1.6}
            at, drawn = _until_no_action(self.thresholds, values)
            ax.plot(at, drawn, label=name, zorder=3, **style)
        ax.plot(self.thresholds, self.act_always, color=GREY, linewidth=1.2, label="act always")
        ax.axhline(0.0, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="act never")


def _until_no_action(thresholds: FloatArray, benefit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Thresholds and net benefits without the zeros at the end.

    There no row reaches the threshold. A line from a negative net benefit to 0 would look like a
    gain.
    """
    acts = np.flatnonzero(benefit)
    end = acts[-1] + 1 if acts.size else len(benefit)
    return thresholds[:end], benefit[:end]


def _useful_end(thresholds: FloatArray, benefit: Mapping[str, FloatArray]) -> float:
    """A threshold just above the last one at which a model is better than never acting.

    At higher thresholds, few rows are acted on and each error has a large weight. The lines would
    leave the axes, and return when no row reaches the threshold.
    """
    last = float(thresholds[-1])
    is_useful = np.max(list(benefit.values()), axis=0) > 0
    return min(last, 1.05 * float(thresholds[is_useful][-1])) if is_useful.any() else last
