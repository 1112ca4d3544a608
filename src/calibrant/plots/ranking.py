"""Plot the average ranks of methods in critical difference diagrams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._output.numbers import format_p_value
from calibrant._typing import FloatArray
from calibrant.inference import critical_difference, friedman_test
from calibrant.metrics import log_loss
from calibrant.plots._canvas import AxesDisplay, require_matplotlib
from calibrant.plots._style import BLUE, INK, MEDIUM, SMALL


@dataclass(eq=False, repr=False)
class CriticalDifferenceDisplay(AxesDisplay):
    """Critical difference diagram of the average ranks of methods over data sets.

    Call `from_scores` or `from_predictions`, then `plot`. A bar joins methods whose ranks differ by
    no more than the critical difference.

    Parameters
    ----------
    average_ranks : array of shape (m,)
        Average rank of each method. Rank 1 is best.
    names : sequence of str
        Names of the methods.
    critical_difference : float
        Smallest significant difference of average ranks.
    p_value : float, optional
        P-value of the Friedman test.
    title : str
        First words of the title, such as the name of the metric.

    Attributes
    ----------
    groups : list of (first, last)
        Best and worst rank of each maximal set of at least two methods that do not differ
        significantly.

    See Also
    --------
    calibrant.compare : Compare calibrators on several data sets.
    calibrant.inference.friedman_test : Test for equal ranks.

    References
    ----------
    Demšar (2006), JMLR 7:1-30; Kull et al. (2019), Figure 3a, arXiv:1910.12656.

    Examples
    --------
    >>> CriticalDifferenceDisplay([1.2, 2.0, 2.8], ["a", "b", "c"], 1.0).groups
    [(1.2, 2.0), (2.0, 2.8)]
    """

    average_ranks: Sequence[float]
    names: Sequence[str]
    critical_difference: float
    p_value: float | None = None
    title: str = ""
    groups: list[tuple[float, float]] = field(init=False)

    def __post_init__(self) -> None:
        if len(self.names) != len(self.average_ranks):
            raise ValueError(
                f"names must have one entry for each of the {len(self.average_ranks)} methods, got "
                f"{len(self.names)} entries. Pass a name for every method."
            )
        ranks = np.sort(np.asarray(self.average_ranks, dtype=np.float64))
        self.groups = _groups(ranks, self.critical_difference)

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        names: Sequence[str],
        *,
        alpha: float = 0.05,
        method: str = "nemenyi",
        tails: int = 1,
        title: str = "",
    ) -> Self:
        """Rank methods (columns) within data sets (rows). Smaller scores are better.

        For the parameters, see `calibrant.inference.friedman_test` and `critical_difference`. With
        "nemenyi", bars join all methods that do not differ significantly in the Nemenyi test. With
        "bonferroni-dunn", interpret only the differences between a control method and the other
        methods.
        """
        require_matplotlib()
        result = friedman_test(scores)
        distance = critical_difference(
            result.n_methods, result.n_datasets, alpha=alpha, method=method, tails=tails
        )
        return cls(list(result.average_ranks), list(names), distance, result.p_value, title)

    @classmethod
    def from_predictions(
        cls,
        y_true: Mapping[str, Any],
        y_prob: Mapping[str, Mapping[str, Any]],
        *,
        metric: Callable[[Any, Any], float] = log_loss,
        alpha: float = 0.05,
        method: str = "nemenyi",
        tails: int = 1,
    ) -> Self:
        """Evaluate every method on every data set, and rank the methods.

        Lower values of the metric must be better.

        ``y_true[dataset]`` are labels, and ``y_prob[method][dataset]`` are probabilities.
        """
        table = [
            [metric(y, proba[dataset]) for proba in y_prob.values()]
            for dataset, y in y_true.items()
        ]
        title = getattr(metric, "__name__", "").replace("_", " ")
        return cls.from_scores(
            table, list(y_prob), alpha=alpha, method=method, tails=tails, title=title
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the plot into ``ax`` or a new figure."""
        count = len(self.names)
        depth = -(-count // 2)
        below = 0.55 + 0.32 * len(self.groups)
        self._open_axes(ax, (6.4, 1.25 + 0.3 * (depth + below)))
        low, high = 1, max(2, int(np.ceil(max(self.average_ranks))))
        self._draw_axis(low, high)
        self._draw_groups()
        self._draw_names(low, high, below)
        margin = 0.42 * (high - low)
        self.ax_.set(xlim=(low - margin, high + margin), ylim=(-(depth + below), 2.3))
        self.ax_.set_axis_off()
        self.ax_.set_title(self._title(), fontsize=MEDIUM, color=INK)
        return self

    def _title(self) -> str:
        head = f"{self.title}: average ranks" if self.title else "Average ranks"
        if self.p_value is None:
            return head
        return f"{head} (Friedman p-value {format_p_value(self.p_value)})"

    def _draw_axis(self, low: int, high: int) -> None:
        self.ax_.plot([low, high], [0, 0], color=INK, linewidth=1.2)
        for rank in range(low, high + 1):
            self.ax_.plot([rank, rank], [0, 0.18], color=INK, linewidth=1)
            self.ax_.text(rank, 0.32, str(rank), ha="center", va="bottom", fontsize=SMALL)
        end = low + self.critical_difference
        x, y = [low, low, low, end, end, end], [1.25, 1.55, 1.4, 1.4, 1.25, 1.55]
        self.ax_.plot(x, y, color=INK, linewidth=1.4)
        text = f"CD = {self.critical_difference:.2f}"
        self.ax_.text((low + end) / 2, 1.62, text, ha="center", va="bottom", fontsize=SMALL)

    def _draw_groups(self) -> None:
        for i, (first, last) in enumerate(self.groups):
            y = -0.35 - 0.32 * i
            style = {"color": BLUE, "linewidth": 4, "solid_capstyle": "round", "zorder": 4}
            self.ax_.plot([first - 0.03, last + 0.03], [y, y], **style)

    def _draw_names(self, low: int, high: int, below: float) -> None:
        """Draw the diagram, with the names of the better methods on the left."""
        order = np.argsort(self.average_ranks, kind="stable")
        half = -(-len(order) // 2)
        pad = 0.06 * (high - low)
        for depth, i in enumerate(order[:half]):
            text = f"{self.names[i]}  {self.average_ranks[i]:.2f}"
            self._draw_name(i, text, (low - pad, -(below + depth) - 0.1), (-3, "right"))
        for depth, i in enumerate(order[half:][::-1]):
            text = f"{self.average_ranks[i]:.2f}  {self.names[i]}"
            self._draw_name(i, text, (high + pad, -(below + depth) - 0.1), (3, "left"))

    def _draw_name(
        self, i: int, text: str, at: tuple[float, float], align: tuple[int, str]
    ) -> None:
        rank, (x, y) = self.average_ranks[i], at
        self.ax_.plot([rank, rank, x], [0, y, y], color=INK, linewidth=0.9)
        place = {"xytext": (align[0], 0), "textcoords": "offset points", "ha": align[1]}
        self.ax_.annotate(text, at, va="center", fontsize=SMALL + 0.5, **place)


def _groups(ranks: FloatArray, distance: float) -> list[tuple[float, float]]:
    """Return the first and last rank of every maximal run of sorted ranks within ``distance``."""
    groups: list[tuple[float, float]] = []
    last_end = -1
    for i in range(len(ranks)):
        end = int(np.searchsorted(ranks, ranks[i] + distance + ROUND_OFF, side="right")) - 1
        if end > i and end > last_end:
            groups.append((float(ranks[i]), float(ranks[end])))
            last_end = end
    return groups
