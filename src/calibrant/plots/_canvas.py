"""Figures and axes of displays. This module imports matplotlib only when it is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._output.results import ShortRepr
from calibrant.plots._style import LARGE

_LEGEND_INCHES = 4.2
"""Width in inches of a legend with three entries in one line."""

INSTALL = 'pip install "calibrant[plot]"'


@dataclass(eq=False, repr=False)
class Display(ShortRepr):
    """Base class of displays, which store computed numbers and the figure of the last plot."""

    figure_: Any = field(init=False, default=None, repr=False)


@dataclass(eq=False, repr=False)
class AxesDisplay(Display):
    """Base class of displays that are drawn in a single axes."""

    ax_: Any = field(init=False, default=None, repr=False)

    def _open_axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """Return ``ax``, or the axes of a new figure if ``ax`` is None."""
        self.ax_ = one_axes(ax, size)
        self.figure_ = self.ax_.figure
        return self.ax_


@dataclass(eq=False, repr=False)
class GridDisplay(Display):
    """Base class of displays that are drawn in several axes."""

    axes_: Any = field(init=False, default=None, repr=False)


def require_matplotlib() -> None:
    """Raise an ImportError with the installation command if matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"Plots need matplotlib, which is not installed. Run {INSTALL}."
        ) from error


def new_figure(size: tuple[float, float]) -> Any:
    """Return a pyplot figure whose layout leaves space for labels."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, layout="constrained")


def one_axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return ``ax``, or the axes of a new figure if ``ax`` is None."""
    require_matplotlib()
    check_axes(ax)
    return new_figure(size).add_subplot() if ax is None else ax


def check_axes(ax: Any) -> None:
    """Raise TypeError unless ``ax`` is a single matplotlib axes or None."""
    from matplotlib.axes import Axes

    if isinstance(ax, np.ndarray | list | tuple):
        raise TypeError(
            f"ax must be a single axes, got an array of {np.size(ax)}. Pass one element, such as "
            "ax=axes[0]. Calibrant splits this axes into panels if a plot has several panels."
        )
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be a matplotlib axes, got {type(ax).__name__}. Pass ax=plt.subplots()[1]."
        )


def grid_spec(
    ax: Any, n_rows: int, n_columns: int, size: tuple[float, float], **ratios: Any
) -> tuple[Any, Any]:
    """Return a figure and a grid for its axes, in a new figure or in the area of ``ax``.

    A strip of ``ax`` is reserved for the title.
    """
    require_matplotlib()
    check_axes(ax)
    if ax is None:
        figure = new_figure(size)
        return figure, figure.add_gridspec(n_rows, n_columns, **ratios)
    if ax.figure.get_layout_engine() is None:
        # Reserve space for labels, because the figure has no layout engine.
        ratios = {"wspace": 0.45, "hspace": 0.45} | ratios
    whole = _split_off_title(ax)
    ax.set_subplotspec(whole[0])
    ax.set_axis_off()
    return ax.figure, whole[1].subgridspec(n_rows, n_columns, **ratios)


def _split_off_title(ax: Any) -> Any:
    """Split the area of ``ax`` into a strip for the title and the area below it."""
    shape = {
        "height_ratios": (0.06, 1),
        "hspace": 0.25 if ax.figure.get_layout_engine() is None else 0.04,
    }
    place = ax.get_subplotspec()
    if place is not None:
        return place.subgridspec(2, 1, **shape)
    box = ax.get_position()
    return ax.figure.add_gridspec(
        2, 1, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, **shape
    )


def is_narrow(ax: Any) -> bool:
    """Return whether ``ax`` is too narrow for a legend with three entries in one line."""
    check_axes(ax)
    if ax is None:
        return False
    return bool(ax.get_position().width * ax.figure.get_figwidth() < _LEGEND_INCHES)


def heading(figure: Any, ax: Any, text: str) -> None:
    """Write the title of a display with several axes, above the axes or in the strip of ``ax``."""
    if ax is None:
        figure.suptitle(text, fontsize=LARGE)
    else:
        ax.text(0.5, 0.5, text, fontsize=LARGE, ha="center", va="center", transform=ax.transAxes)
