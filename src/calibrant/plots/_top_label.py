"""Draw the top-label figure of Gupta & Ramdas (2022), Figure 1.

In the overview, a star shows the confidence and the accuracy of a bin, and a plus shows the mean
gap of the predicted classes. Detail panels show the predicted classes of some bins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.plots import _marks as marks
from calibrant.plots._style import GREEN, GREY, INK, SMALL, label, tidy, unit_square

if TYPE_CHECKING:
    from calibrant.plots.reliability import ReliabilityDisplay

MOST_BARS = 10

_STAR = {"marker": "*", "s": 90, "color": INK, "edgecolor": "white", "linewidth": 0.5, "zorder": 5}


def draw_top_label(
    display: ReliabilityDisplay,
    figure: Any,
    grid: Any,
    details: tuple[int, ...],
    *,
    is_alone: bool = True,
) -> Any:
    """Draw all panels, and return the axes of the overview and of the points and counts.

    If the display ``is_alone`` in its figure, the legend is below the overview. Otherwise, the
    legend is inside the overview.
    """
    overview = figure.add_subplot(grid[:, 0])
    draw_overview(overview, display)
    if is_alone:
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 2}
        overview.legend(fontsize=SMALL, frameon=False, columnspacing=1.0, **below)
    else:
        overview.legend(fontsize=SMALL, loc="upper left", handlelength=1.0)
    axes = [overview]
    for i, b in enumerate(details):
        points = figure.add_subplot(grid[i, 1])
        counts = figure.add_subplot(grid[i, 2])
        is_last = i == len(details) - 1
        draw_detail(points, counts, display, b, is_last)
        axes += [points, counts]
    return np.array(axes)


def draw_overview(ax: Any, display: ReliabilityDisplay) -> None:
    """Draw the share of rows, the star and the plus of every bin."""
    tidy(ax)
    rows = display.table.weight.sum(axis=0)
    stars, pluses = display.stars, display.pluses
    if display.table.bins.width is not None:
        n_bins = display.table.n_bins
        left, share = np.arange(n_bins) / n_bins, rows / rows.sum()
        marks.draw_background_shares(ax, left, 1.0 / n_bins, share)
    ax.vlines(stars[:, 0], stars[:, 0], pluses[:, 1], color=GREEN, linewidth=0.9, zorder=3)
    ax.scatter(*stars.T, label="confidence", clip_on=False, **_STAR)
    plus = {"marker": "+", "s": 70, "color": GREEN, "linewidth": 1.8, "zorder": 5}
    ax.scatter(*pluses.T, label="top-label (mean gap)", clip_on=False, **plus)
    unit_square(ax)
    label(ax, *display.axis_labels)


def draw_detail(
    points: Any, counts: Any, display: ReliabilityDisplay, b: int, is_last: bool
) -> None:
    """Draw confidence, accuracy and number of rows of each predicted class in bin b."""
    weight = display.table.weight[:, b]
    labels = np.flatnonzero(weight > 0)
    score = display.table.score[labels, b] / weight[labels]
    outcome = display.table.outcome[labels, b] / weight[labels]
    tidy(points)
    points.vlines(score, score, outcome, color=GREY, linewidth=0.8, zorder=2)
    dots = {"s": 22, "color": GREEN, "edgecolor": "white", "linewidth": 0.5, "zorder": 4}
    points.scatter(score, outcome, **dots)
    points.scatter(*display.stars[b], **_STAR)
    low, high = _limits(score)
    points.plot([low, high], [low, high], color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1.5)
    points.set_xlim(low, high)
    names = np.asarray(display.class_names)[labels]
    _name_extremes(points, score, outcome, names, count=4 if len(names) <= MOST_BARS else 1)
    title = f"bin {b + 1}, class by class"
    label(points, "confidence" if is_last else "", "accuracy", title)
    draw_counts(counts, weight[labels], names, is_last)


def _limits(score: FloatArray) -> tuple[float, float]:
    if not score.size:
        return 0.0, 1.0
    pad = max(0.005, 0.25 * float(np.ptp(score)))
    return float(score.min()) - pad, float(score.max()) + pad


def _name_extremes(ax: Any, score: FloatArray, outcome: FloatArray, names: Any, count: int) -> None:
    """Write the names of the classes with the largest gaps next to their points."""
    style = {"xytext": (5, 0), "textcoords": "offset points", "fontsize": SMALL, "va": "center"}
    for i in furthest(outcome - score, count):
        ax.annotate(str(names[i]), (score[i], outcome[i]), **style)


def furthest(gap: FloatArray, count: int) -> IntArray:
    """Return the indices of the ``count`` largest gaps of either sign."""
    return np.argsort(-np.abs(gap), kind="stable")[:count]


def draw_counts(ax: Any, weight: FloatArray, names: Any, is_last: bool) -> None:
    """Draw the number of rows per predicted class, for at most ten classes."""
    tidy(ax, grid="x")
    order = np.sort(np.argsort(-weight, kind="stable")[:MOST_BARS])
    ax.barh(np.arange(len(order)), weight[order], color=GREY, height=0.72)
    ax.set_yticks(np.arange(len(order)), [str(n) for n in names[order]], fontsize=SMALL)
    ax.invert_yaxis()
    part = "" if len(weight) <= MOST_BARS else f"{MOST_BARS} largest of {len(weight)}"
    label(ax, "rows" if is_last else "", "predicted class", part)
