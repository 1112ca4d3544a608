"""Plot the calibration gap of groups of rows, such as sites or months."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics import GroupedEvaluation, GroupEvaluation, evaluate
from calibrant.plots._canvas import AxesDisplay, require_matplotlib
from calibrant.plots._style import BLUE, GREY, INK, ORANGE, SMALL, VERMILION, label, tidy

_STYLES = {
    "high": (VERMILION, "o"),
    "low": (ORANGE, "s"),
    "none": (BLUE, "D"),
    "few rows": (GREY, "v"),
}
"""Color and marker of each kind of group."""


@dataclass(eq=False, repr=False)
class GroupDisplay(AxesDisplay):
    """Plot of mean confidence minus accuracy of every group, with joint confidence intervals.

    Call `from_predictions`, then `plot`. With two classes, the gap is the mean predicted
    probability of the second class minus its frequency. Groups are sorted by their values.

    Parameters
    ----------
    groups : GroupedEvaluation
        Result of ``calibrant.evaluate(..., by=...)``.

    Attributes
    ----------
    figure_, ax_
        Figure and axes after `plot`.

    See Also
    --------
    calibrant.evaluate : Evaluate groups with ``by=...``.

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
        """Evaluate the groups. For the parameters, see `calibrant.evaluate`."""
        require_matplotlib()
        checks: Any = {"inputs": inputs, "sample_weight": sample_weight, "classes": classes}
        return cls(evaluate(y_true, y_prob, by=by, level=level, **checks))

    def plot(self, ax: Any = None) -> Self:
        """Draw the plot into ``ax`` or a new figure."""
        self._open_axes(ax, (max(4.0, 0.42 * len(self.groups) + 1.4), 3.6))
        tidy(self.ax_, grid="y")
        self.ax_.axhline(0.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        for kind in _STYLES:
            self._draw_kind(kind)
        names = [group.name for group in self.groups]
        self.ax_.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=SMALL)
        self.ax_.legend(fontsize=SMALL, frameon=False, loc="best")
        title = f"{format_percent(self.groups.level)} confidence intervals, jointly valid"
        gap = "mean probability - frequency" if self._is_binary else "mean confidence - accuracy"
        label(self.ax_, ", ".join(self.groups.by), gap, title)
        return self

    @property
    def _is_binary(self) -> bool:
        return self.groups.overall.is_binary

    def _draw_kind(self, kind: str) -> None:
        places = [at for at, group in enumerate(self.groups) if _kind(group) == kind]
        if not places:
            return
        color, marker = _STYLES[kind]
        groups = [group for group in self.groups if _kind(group) == kind]
        gap = np.array([group.gap for group in groups])
        reach = [
            [group.gap - group.gap_low for group in groups],
            [group.gap_high - group.gap for group in groups],
        ]
        style = {"color": color, "marker": marker, "markersize": 5, "capsize": 2.5}
        self.ax_.errorbar(places, gap, reach, linestyle="none", label=groups[0].finding, **style)

    def __repr__(self) -> str:
        by, wrong = ", ".join(self.groups.by), len(self.groups.miscalibrated)
        return f"<GroupDisplay: {len(self.groups)} groups by {by}, {wrong} miscalibrated>"


def _kind(group: GroupEvaluation) -> str:
    """Return the style of a group, which depends on the sign and significance of its gap."""
    if group.gap_low > 0:
        return "high"
    if group.gap_high < 0:
        return "low"
    return "few rows" if group.is_small else "none"
