"""Bars, points and lines of reliability diagrams, each for one claim of a bin table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.simplex import TINY
from calibrant._typing import FloatArray
from calibrant.binning import BinTable
from calibrant.plots._style import AFTER, BEFORE, BLUE, GREY, INK, PALE, SMALL, VERMILION, Series

BAR_COLOR = "#9CC4E0"

_BAR = {"align": "edge", "edgecolor": "white", "linewidth": 0.6}
_DOT = {"edgecolor": "white", "clip_on": False}
_BAND = {"color": INK, "alpha": 0.16}


class OccupiedBins(NamedTuple):
    """The occupied bins of one claim.

    ``share`` of the rows, mean ``score`` and frequency ``outcome`` have shape (m,). ``left`` and
    ``width`` are those of equal-width bins; ``left`` is None if the bins depend on the data.
    ``low`` and ``high`` are the consistency band, or None.
    """

    share: FloatArray
    score: FloatArray
    outcome: FloatArray
    left: FloatArray | None
    width: float
    low: FloatArray | None
    high: FloatArray | None


def occupied_bins(
    table: BinTable, claim: int, band: tuple[FloatArray, FloatArray] | None = None
) -> OccupiedBins:
    """The occupied bins of a claim, in increasing order of score."""
    weight = table.weight[claim]
    at = np.flatnonzero(weight > 0)
    rows = weight[at]
    share = rows / max(rows.sum(), TINY)
    left = None if table.bins.width is None else at / table.n_bins
    low, high = (None, None) if band is None else (band[0][claim, at], band[1][claim, at])
    score, outcome = table.score[claim, at] / rows, table.outcome[claim, at] / rows
    return OccupiedBins(share, score, outcome, left, 1.0 / table.n_bins, low, high)


def draw_bars(ax: Any, curve: OccupiedBins) -> list[Any]:
    """Draw bars of the frequency, narrow bars to the mean score, and the band.

    Returns the handles for a legend.
    """
    if curve.left is None:
        return draw_points(ax, curve)
    left, width = curve.left, curve.width
    bars = ax.bar(left, curve.outcome, width, color=BAR_COLOR, zorder=2, **_BAR)
    bars.set_label("observed")
    style = {"color": VERMILION, "edgecolor": "white", "linewidth": 0.4, "zorder": 4}
    height = curve.score - curve.outcome
    gap = ax.bar(left + width / 2, height, 0.36 * width, bottom=curve.outcome, **style)
    gap.set_label("gap to mean score")
    return [bars, gap, *_band_boxes(ax, curve, left, width)]


def _band_boxes(ax: Any, curve: OccupiedBins, left: FloatArray, width: float) -> list[Any]:
    if curve.low is None or curve.high is None:
        return []
    height = curve.high - curve.low
    style = {**_BAND, "linewidth": 0, "zorder": 3}
    return [ax.bar(left, height, width, bottom=curve.low, align="edge", **style)]


def draw_points(ax: Any, curve: OccupiedBins) -> list[Any]:
    """Draw a point per bin at (mean score, frequency) with its gap to the diagonal.

    Used for bins that depend on the data.
    """
    style = {"color": VERMILION, "linewidth": 1.2, "zorder": 3}
    gap = ax.vlines(curve.score, curve.score, curve.outcome, **style)
    gap.set_label("gap to mean score")
    dots = {"s": 14, "color": BLUE, "linewidth": 0.4, "zorder": 4}
    points = ax.scatter(curve.score, curve.outcome, **dots, **_DOT)
    points.set_label("observed")
    handles = [points, gap]
    if curve.low is not None:
        band = {**_BAND, "linewidth": 5, "zorder": 2}
        handles.append(ax.vlines(curve.score, curve.low, curve.high, **band))
    return handles


def draw_line(ax: Any, curve: OccupiedBins, style: Series, name: str, **keywords: Any) -> Any:
    """Draw the curve as a line with a marker per bin; larger markers have more rows.

    ``keywords`` are those of matplotlib lines.
    """
    look = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.4, "zorder": 4}
    marker = keywords.pop("marker", style.marker)
    (line,) = ax.plot(curve.score, curve.outcome, **(look | keywords))
    size = 8 + 60 * np.sqrt(curve.share)
    dots = {"s": size, "color": line.get_color(), "marker": marker, "linewidth": 0.5, "zorder": 5}
    ax.scatter(curve.score, curve.outcome, **dots, **_DOT)
    line.set_label(name)
    return line


def draw_pair(ax: Any, before: OccupiedBins, after: OccupiedBins) -> list[Any]:
    """Draw before and after calibration in one axes, with the band of the latter."""
    handles = [draw_line(ax, before, BEFORE, "before"), draw_line(ax, after, AFTER, "after")]
    if after.low is not None and after.score.size > 1:
        style = {"color": AFTER.color, "alpha": 0.18, "linewidth": 0, "zorder": 2}
        handles.append(ax.fill_between(after.score, after.low, after.high, **style))
    return handles


def draw_shares(ax: Any, curve: OccupiedBins) -> None:
    """Draw the share of the rows in every bin."""
    if curve.left is None:
        ax.vlines(curve.score, 0, curve.share, color=GREY, linewidth=2)
        ax.set_ylim(bottom=0)
        return
    ax.bar(curve.left, curve.share, curve.width, color=GREY, **_BAR)


def draw_share_outline(ax: Any, curve: OccupiedBins, style: Series) -> None:
    """Draw the share of the rows in every bin as an outline, so two of them can overlap."""
    line = {"color": style.color, "linestyle": style.linestyle}
    if curve.left is None:
        ax.plot(curve.score, curve.share, marker=style.marker, markersize=3, **line)
        return
    n_bins = round(1.0 / curve.width)
    share = np.zeros(n_bins)
    share[np.round(curve.left * n_bins).astype(int)] = curve.share
    edges = np.linspace(0, 1, n_bins + 1)
    ax.stairs(share, edges, linewidth=1.5, **line)


def draw_means(ax: Any, curve: OccupiedBins) -> None:
    """Draw mean score and overall frequency as lines through the histogram."""
    score, outcome = float(curve.share @ curve.score), float(curve.share @ curve.outcome)
    top = max(1e-9, float(curve.share.max(initial=0.0)))
    # Both texts are on the wider side of the lines, so they do not cross them.
    is_right = score + outcome > 1
    anchor = min(score, outcome) if is_right else max(score, outcome)
    place = {"xytext": (-4 if is_right else 4, 0), "ha": "right" if is_right else "left"}
    style = {"va": "center", "fontsize": SMALL - 0.5, "color": INK, "textcoords": "offset points"}
    lines = ((score, "mean score", "-", 1.75), (outcome, "frequency", (0, (2, 1)), 1.3))
    for value, text, line, height in lines:
        ax.axvline(value, color=INK, linewidth=1.1, linestyle=line)
        ax.annotate(f"{text} {value:.3f}", (anchor, top * height), **place, **style)
    # The texts are above the highest bar, where the axis needs no ticks.
    ax.set_ylim(0, 2.0 * top)
    ax.set_yticks([0, top], ["0", f"{top:.2g}"])


def draw_background_shares(ax: Any, edges_left: FloatArray, width: float, share: FloatArray) -> Any:
    """Draw pale bars of the share of rows at the bottom of a diagram from 0 to 1."""
    bars = ax.bar(edges_left, share, width, color=PALE, zorder=1, **_BAR)
    bars.set_label("share of rows")
    return bars
