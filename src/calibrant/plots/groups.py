"""Gaps of groups of rows: of sites, of people, of months."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics import GroupedEvaluation, evaluate
from calibrant.plots._canvas import AxesDisplay, require_matplotlib
from calibrant.plots._style import BLUE, GREY, INK, ORANGE, SMALL, VERMILION, label, tidy

_COLORS = {
    "overconfident": (VERMILION, "o"),
    "underconfident": (ORANGE, "s"),
    "probabilities too high": (VERMILION, "o"),
    "probabilities too low": (ORANGE, "s"),
    "no gap detected": (BLUE, "D"),
    "too few rows": (GREY, "v"),
}
"""Color and marker of the finding about a group."""


@dataclass(eq=False, repr=False)
class GroupDisplay(AxesDisplay):
    """Mean confidence minus accuracy of every group, with intervals that hold for all together.

    For two classes, the mean predicted probability of the second class minus its frequency.
    Groups are in their order: of months, time runs from left to right.

    Parameters
    ----------
    groups : GroupedEvaluation
        From ``calibrant.evaluate(..., by=...)``.

    Attributes
    ----------
    figure_, ax_ : after `plot`

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> month = np.arange(600) // 100
    >>> display = GroupDisplay.from_predictions(data.test_labels, data.test_proba, by=month)
    >>> display
    <GroupDisplay: 6 groups by group, 5 miscalibrated>
    """

    groups: GroupedEvaluation

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: ScoresLike,
        *,
        by: Any,
        level: float = 0.95,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Evaluate the groups; parameters as in `calibrant.evaluate`."""
        require_matplotlib()
        checks: Any = {"inputs": inputs, "sample_weight": sample_weight, "classes": classes}
        return cls(evaluate(y_true, y_prob, by=by, level=level, **checks))

    def plot(self, ax: Any = None) -> Self:
        """Draw, into ``ax`` or a new figure."""
        self._open_axes(ax, (max(4.0, 0.42 * len(self.groups) + 1.4), 3.6))
        tidy(self.ax_, grid="y")
        self.ax_.axhline(0.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        for finding, (color, marker) in _COLORS.items():
            self._draw_finding(finding, color, marker)
        names = [group.name for group in self.groups]
        self.ax_.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=SMALL)
        self.ax_.legend(fontsize=SMALL, frameon=False, loc="best")
        share = f"{self.groups.level:.0%} intervals for all groups together"
        title = "mean probability - frequency" if self._is_binary else "mean confidence - accuracy"
        label(self.ax_, ", ".join(self.groups.by), title, share)
        return self

    @property
    def _is_binary(self) -> bool:
        return self.groups.overall.is_binary

    def _draw_finding(self, finding: str, color: str, marker: str) -> None:
        places = [at for at, group in enumerate(self.groups) if group.finding == finding]
        if not places:
            return
        groups = [group for group in self.groups if group.finding == finding]
        gap = np.array([group.gap for group in groups])
        reach = [
            [group.gap - group.gap_low for group in groups],
            [group.gap_high - group.gap for group in groups],
        ]
        style = {"color": color, "marker": marker, "markersize": 5, "capsize": 2.5}
        self.ax_.errorbar(places, gap, reach, linestyle="none", label=finding, **style)

    def __repr__(self) -> str:
        by, wrong = ", ".join(self.groups.by), len(self.groups.miscalibrated)
        return f"<GroupDisplay: {len(self.groups)} groups by {by}, {wrong} miscalibrated>"
