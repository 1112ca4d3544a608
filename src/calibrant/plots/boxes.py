"""Boxes of scores by true class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._blocks import ROUND_OFF
from calibrant._output.results import ShortRepr
from calibrant._typing import AnyArray, FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_count
from calibrant.notions import as_notion, predictions_for
from calibrant.plots._canvas import grid_spec, heading, require_matplotlib
from calibrant.plots._style import BLUE, GREEN, INK, label, tidy

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
BOX, OWN_BOX = "#D9D9D9", "#9CC4E0"


@dataclass(eq=False, repr=False)
class ScoreBoxDisplay(ShortRepr):
    r"""Distribution of the predicted probabilities, by true class: boxes, with the mean and
    standard deviation beside them.

    Whiskers reach from the 5th to the 95th percentile; the notch is the median :math:`\pm
    1.57\,\mathrm{IQR}/\sqrt n`, about a 95 % interval; the bar to the right of a box is the mean
    with one standard deviation to either side.

    Parameters
    ----------
    quantiles : array of shape (K, K, 5)
        Of the score of class j (second index) among the rows of true class i (first); NaN for a
        class without rows.
    mean, sd : arrays of shape (K, K)
    rows : array of shape (K,)
        Weight of the rows of each true class.
    class_names : sequence, optional

    Attributes
    ----------
    worst_first : array of int
        True classes that occur, by increasing mean score of their own class.

    References
    ----------
    Kull et al. (2019), supplement, Figure 3, arXiv:1910.12656; McGill, Tukey & Larsen (1978),
    Variations of box plots, doi:10.1080/00031305.1978.10479236.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]
    >>> display = ScoreBoxDisplay.from_predictions([0, 0, 0, 1], proba)
    >>> display.quantiles[0, 0, 2], round(float(display.mean[0, 0]), 3)
    (np.float64(0.8), 0.7)
    """

    quantiles: FloatArray
    mean: FloatArray
    sd: FloatArray
    rows: FloatArray
    class_names: AnyArray | None = None
    worst_first: Any = field(init=False)
    figure_: Any = field(init=False, default=None, repr=False)
    axes_: Any = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        own = np.where(self.rows > 0, np.diag(self.mean), np.inf)
        self.worst_first = np.argsort(own, kind="stable")[: int((self.rows > 0).sum())]

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: ScoresLike,
        *,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute what is drawn; O(n K log n)."""
        require_matplotlib()
        proba, y, weight, names = predictions_for(
            as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs
        )
        size = proba.shape[1]
        quantiles = np.full((size, size, len(LEVELS)), np.nan)
        mean, sd = np.full((size, size), np.nan), np.full((size, size), np.nan)
        for k in range(size):
            mine = np.flatnonzero((y == k) & (weight > 0))
            if mine.size:
                block, w = np.asarray(proba[mine], dtype=np.float64), weight[mine]
                mean[k] = w @ block / w.sum()
                sd[k] = np.sqrt(w @ (block - mean[k]) ** 2 / w.sum())
                quantiles[k] = _quantiles(block, w)
        return cls(quantiles, mean, sd, np.bincount(y, weight, minlength=size), names)

    def plot(self, ax: Any = None, *, max_classes: int = 6) -> Self:
        """Draw one axes per true class; of more than ``max_classes``, those predicted worst with
        their main rivals.
        """
        check_count(max_classes, "max_classes")
        size = len(self.rows)
        shown = self.worst_first[:max_classes] if size > max_classes else np.sort(self.worst_first)
        n_rows = -(-len(shown) // 3) if len(shown) != 4 else 2
        n_columns = -(-len(shown) // n_rows)
        self.figure_, grid = grid_spec(
            ax, n_rows, n_columns, (2.9 * n_columns + 0.4, 2.5 * n_rows + 0.5)
        )
        axes = []
        for i, k in enumerate(shown):
            panel = self.figure_.add_subplot(grid[divmod(i, n_columns)])
            self._draw(panel, int(k), max_classes)
            y = "predicted probability" if i % n_columns == 0 else ""
            x = "of class" if i + n_columns >= len(shown) else ""
            label(panel, x, y, f"truth {self._name(k)} ({self.rows[k]:g} rows)")
            axes.append(panel)
        part = f", the {len(shown)} worst of {size} classes" if len(shown) < size else ""
        heading(self.figure_, ax, f"Predicted probabilities by true class{part}")
        self.axes_ = np.array(axes)
        return self

    def columns(self, k: int, most: int) -> Any:
        """Classes whose scores are drawn for true class k: all, or its own and those with the
        highest mean.
        """
        size = len(self.rows)
        if size <= most:
            return np.arange(size)
        order = np.argsort(-self.mean[k], kind="stable")
        rivals = order[order != k][: most - 1]
        return np.append(k, rivals)

    def boxes(self, k: int, columns: Any) -> list[dict[str, Any]]:
        """The numbers of the boxes of true class k, as ``Axes.bxp`` takes them."""
        made = []
        for j in columns:
            low, q1, median, q3, high = self.quantiles[k, j]
            half = 1.57 * (q3 - q1) / np.sqrt(self.rows[k])
            # a notch beyond its box would fold back and hide it
            notch = {"cilo": max(q1, median - half), "cihi": min(q3, median + half)}
            made.append(
                {
                    "whislo": low,
                    "q1": q1,
                    "med": median,
                    "q3": q3,
                    "whishi": high,
                    "fliers": [],
                    **notch,
                }
            )
        return made

    def _draw(self, ax: Any, k: int, max_classes: int) -> None:
        tidy(ax, grid="y")
        columns = self.columns(k, max_classes)
        at = np.arange(len(columns))
        drawn = ax.bxp(
            self.boxes(k, columns),
            positions=at - 0.08,
            widths=0.5,
            shownotches=True,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": INK, "linewidth": 1.6},
            whiskerprops={"color": INK, "linewidth": 0.9},
            capprops={"color": INK, "linewidth": 0.9},
        )
        for j, box in zip(columns, drawn["boxes"], strict=True):
            box.set(
                facecolor=OWN_BOX if j == k else BOX,
                edgecolor=BLUE if j == k else INK,
                linewidth=0.9,
            )
        style = {"fmt": "D", "color": GREEN, "markersize": 3, "linewidth": 1.3, "capsize": 2}
        ax.errorbar(at + 0.32, self.mean[k, columns], self.sd[k, columns], **style)
        ax.set_xticks(at, [self._name(j) for j in columns])
        ax.set(ylim=(-0.03, 1.03), xlim=(-0.6, len(columns) - 0.4))

    def _name(self, k: int) -> str:
        return str(k if self.class_names is None else self.class_names[k])


def _quantiles(block: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted quantiles of each column, (K, 5): the smallest value that reaches the share."""
    order = np.argsort(block, axis=0)
    reached = np.cumsum(weight[order], axis=0) / weight.sum()
    made = np.empty((block.shape[1], len(LEVELS)))
    for j in range(block.shape[1]):
        at = np.searchsorted(reached[:, j], np.array(LEVELS) - ROUND_OFF)
        made[j] = block[order[np.minimum(at, len(block) - 1), j], j]
    return made
