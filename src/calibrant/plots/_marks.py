"""Points, bands and histograms of the reliability diagram of one claim."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.simplex import TINY
from calibrant._typing import BoolArray, FloatArray
from calibrant.binning import BinTable, least_rows
from calibrant.plots._style import AFTER, ALONE, BEFORE, GREY, INK, PALE, REFERENCE, SMALL, Series

_BAR = {"align": "edge", "edgecolor": "white", "linewidth": 0.6}
_BAND = {"color": REFERENCE, "alpha": 0.2, "linewidth": 0, "zorder": 2}

_LEAST_AREA, _MOST_AREA = 22.0, 150.0
"""Area of a marker in square points, for one row and for the bin with the most rows.

The smallest markers are large enough to distinguish circles from diamonds.
"""

_FADED = 0.45
"""Opacity of bins with few rows."""


class OccupiedBins(NamedTuple):
    """The non-empty bins of one claim.

    ``share`` of the rows, mean ``score`` and frequency ``outcome`` have shape (m,). ``is_small``
    marks bins with few rows. ``left`` and ``width`` are the left ends and the width of equal-width
    bins. ``left`` is None if the bins depend on the data. ``low`` and ``high`` are the ends of the
    consistency band, or None.
    """

    share: FloatArray
    score: FloatArray
    outcome: FloatArray
    is_small: BoolArray
    left: FloatArray | None
    width: float
    low: FloatArray | None
    high: FloatArray | None


def occupied_bins(
    table: BinTable, claim: int, band: tuple[FloatArray, FloatArray] | None = None
) -> OccupiedBins:
    """Return the non-empty bins of a claim, in increasing order of score."""
    weight = table.weight[claim]
    places = np.flatnonzero(weight > 0)
    rows = weight[places]
    share = rows / max(rows.sum(), TINY)
    left = None if table.bins.width is None else places / table.n_bins
    low, high = (None, None) if band is None else (band[0][claim, places], band[1][claim, places])
    score, outcome = table.score[claim, places] / rows, table.outcome[claim, places] / rows
    is_small = rows < least_rows(rows.sum())
    return OccupiedBins(share, score, outcome, is_small, left, 1.0 / table.n_bins, low, high)


def draw_points(
    ax: Any, curve: OccupiedBins, style: Series, name: str, most: float | None = None
) -> Any:
    """Draw a point per bin at (mean score, frequency), and return a handle for the legend.

    The area of a point increases linearly with its share of the rows. ``most`` is the share of a
    point with the largest area. Bins with few rows are faint and hollow.
    """
    largest = curve.share.max(initial=TINY) if most is None else most
    area = _LEAST_AREA + (_MOST_AREA - _LEAST_AREA) * curve.share / largest
    looks = {"marker": style.marker, "clip_on": False, "zorder": 5}
    for rows, look in (
        (~curve.is_small, {"facecolor": style.color, "edgecolor": "white", "linewidth": 0.6}),
        (curve.is_small, {"facecolor": "none", "edgecolor": style.color, "alpha": _FADED}),
    ):
        ax.scatter(curve.score[rows], curve.outcome[rows], s=area[rows], **looks, **look)
    from matplotlib.lines import Line2D  # matplotlib is optional

    # All legends show the same marker size, because the size in the diagram depends on the number
    # of rows.
    marker: Any = {"linestyle": "", "marker": style.marker, "color": style.color, "markersize": 6}
    return Line2D([], [], label=name, **marker)


def draw_gaps(ax: Any, curve: OccupiedBins, style: Series) -> None:
    """Draw a thin line from each point to the diagonal."""
    look = {"color": style.color, "linewidth": 0.9, "alpha": 0.6, "zorder": 3}
    ax.vlines(curve.score, curve.score, curve.outcome, **look)


def draw_band(ax: Any, curve: OccupiedBins) -> list[Any]:
    """Draw the consistency band through all bins, and return its handle if there is a band."""
    if curve.low is None or curve.high is None or not curve.score.size:
        return []
    # Extend the band by the width of a marker, so the band of a single bin is visible.
    x = np.array([curve.score[0] - 0.01, *curve.score, curve.score[-1] + 0.01])
    low, high = (np.pad(ends, 1, mode="edge") for ends in (curve.low, curve.high))
    return [ax.fill_between(np.clip(x, 0, 1), low, high, **_BAND)]


def draw_one(ax: Any, curve: OccupiedBins) -> list[Any]:
    """Draw a single series of points with gaps and band, and return handles for a legend."""
    draw_gaps(ax, curve, ALONE)
    return [draw_points(ax, curve, ALONE, "observed"), *draw_band(ax, curve)]


def draw_pair(ax: Any, before: OccupiedBins, after: OccupiedBins) -> list[Any]:
    """Draw points before and after calibration with the band of the points after calibration."""
    most = max(curve.share.max(initial=TINY) for curve in (before, after))
    return [
        draw_points(ax, before, BEFORE, "before", most),
        draw_points(ax, after, AFTER, "after", most),
        *draw_band(ax, after),
    ]


def draw_line(ax: Any, curve: OccupiedBins, style: Series, name: str, **keywords: Any) -> Any:
    """Draw the points of a model, and a line through the bins with enough rows.

    ``keywords`` are passed to matplotlib.
    """
    look = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.2, "zorder": 4}
    marker = keywords.pop("marker", style.marker)
    # A missing value interrupts the line at bins with too few rows.
    outcome = np.where(curve.is_small, np.nan, curve.outcome)
    (line,) = ax.plot(curve.score, outcome, **(look | keywords))
    draw_points(ax, curve, Series(line.get_color(), style.linestyle, marker), f"_{name}")
    line.set_label(name)
    return line


def draw_shares(ax: Any, curve: OccupiedBins, style: Series | None = None, sign: int = 1) -> None:
    """Draw the share of the rows in every bin as a bar, downward if ``sign`` is -1."""
    color = GREY if style is None else style.color
    if curve.left is None:
        ax.vlines(curve.score, 0, sign * curve.share, color=color, linewidth=2)
    else:
        ax.bar(curve.left, sign * curve.share, curve.width, color=color, **_BAR)


def draw_mirrored_shares(ax: Any, before: OccupiedBins, after: OccupiedBins) -> None:
    """Draw shares before calibration upward, and shares after calibration downward."""
    draw_shares(ax, before, BEFORE)
    draw_shares(ax, after, AFTER, sign=-1)
    ax.axhline(0, color=INK, linewidth=0.8)
    top = 1.1 * max(curve.share.max(initial=TINY) for curve in (before, after))
    tick = float(f"{top / 1.1:.1g}")
    ax.set_ylim(-top, top)
    ax.set_yticks([-tick, 0, tick], [f"{tick:g}", "0", f"{tick:g}"])


def draw_means(ax: Any, curve: OccupiedBins) -> None:
    """Draw the mean score and the overall frequency as lines through the histogram."""
    score, outcome = float(curve.share @ curve.score), float(curve.share @ curve.outcome)
    top = max(1e-9, float(curve.share.max(initial=0.0)))
    # Both texts are on the wider side of the lines, so texts and lines do not overlap.
    is_right = score + outcome > 1
    anchor = min(score, outcome) if is_right else max(score, outcome)
    place = {"xytext": (-4 if is_right else 4, 0), "ha": "right" if is_right else "left"}
    style = {"va": "center", "fontsize": SMALL, "color": INK, "textcoords": "offset points"}
    lines = ((score, "mean score", "-", 1.75), (outcome, "frequency", (0, (2, 1)), 1.3))
    for value, text, line, height in lines:
        ax.axvline(value, color=INK, linewidth=1.1, linestyle=line)
        ax.annotate(f"{text} {value:.3f}", (anchor, top * height), **place, **style)
    # The texts are above the highest bar, where the axis needs no ticks.
    ax.set_ylim(0, 2.0 * top)
    tick = float(f"{top:.1g}")
    ax.set_yticks([0, tick], ["0", f"{tick:g}"])


def draw_background_shares(ax: Any, edges_left: FloatArray, width: float, share: FloatArray) -> Any:
    """Draw pale bars of the share of rows per bin at the bottom of a reliability diagram."""
    bars = ax.bar(edges_left, share, width, color=PALE, zorder=1, **_BAR)
    bars.set_label("share of rows")
    return bars
