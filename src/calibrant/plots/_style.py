"""Colors, lines and markers of all displays.

Before, after, reference and alarm have the colors of `calibrant._output.palette`, as in reports.
Other series have the colors of Okabe and Ito, which color-blind readers can distinguish. Series
also differ in line style, marker and lightness, so readers can distinguish series in black and
white.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from calibrant._output import palette

BLUE = "#0072B2"
ORANGE = "#E69F00"
VERMILION = "#D55E00"
GREEN = "#009E73"
SKY = "#56B4E9"
PINK = "#CC79A7"
INK = "#222222"
GREY = "#8C8C8C"
PALE = "#D9D9D9"

DIVERGING = "PuOr_r"
SEQUENTIAL = "Blues"

SMALL = 8.5
"""Smallest font size in points. Smaller text is hard to read: this is 11 px on a page."""
MEDIUM = 9.5
LARGE = 11.0

WIDEST = 7.6
"""Width of the widest figures in inches, 730 px: wider figures are made smaller on many pages."""

_MARGIN = 0.05
"""Margin around the unit square, which prevents the axes from clipping markers at 0 and 1."""


class Series(NamedTuple):
    """Color, line style and marker of one series in a figure with several series."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: str


_SERIES = (
    Series(BLUE, "-", "o"),
    Series(ORANGE, (0, (5, 2)), "s"),
    Series(GREEN, (0, (1, 1)), "^"),
    Series(PINK, (0, (4, 1, 1, 1)), "D"),
    Series(INK, (0, (7, 2)), "v"),
    Series(SKY, (0, (2, 1)), "P"),
    Series(VERMILION, (0, (5, 1, 1, 1, 1, 1)), "X"),
)
BEFORE = Series(palette.BEFORE, (0, (5, 2)), "D")
AFTER = Series(palette.AFTER, "-", "o")
ALONE = Series(INK, "-", "o")
"""A single series, which is neither before nor after calibration."""
REFERENCE, ALARM = palette.REFERENCE, palette.ALARM


def series(index: int) -> Series:
    """Return the style of the series ``index``. Styles repeat after seven series."""
    return _SERIES[index % len(_SERIES)]


def named_series(name: str, index: int) -> Series:
    """Return the style of a series. The names "before" and "after" have fixed styles."""
    return {"before": BEFORE, "after": AFTER}.get(name, series(index))


def tidy(ax: Any, *, grid: str | None = "both") -> None:
    """Remove the upper and right spines, and draw short ticks and a pale grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(labelsize=SMALL, color=GREY, length=3)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(visible=True, axis=grid, color="#ECECEC", linewidth=0.8)


def label(ax: Any, x: str = "", y: str = "", title: str = "") -> None:
    """Set axis labels and title in the font sizes of this package."""
    ax.set_xlabel(x, fontsize=MEDIUM)
    ax.set_ylabel(y, fontsize=MEDIUM)
    if title:
        ax.set_title(title, fontsize=MEDIUM, color=INK, loc="left")


def unit_square(ax: Any) -> None:
    """Give both axes the range 0 to 1 and the same scale, and draw the diagonal of calibration.

    The limits extend slightly beyond 0 and 1. Otherwise, the axes would clip markers there.
    """
    ax.plot([0, 1], [0, 1], color=REFERENCE, linewidth=1, linestyle=(0, (4, 3)), zorder=2.5)
    ends = -_MARGIN, 1 + _MARGIN
    ax.set(xlim=ends, ylim=ends)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
