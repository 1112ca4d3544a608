"""Where displays are drawn: matplotlib on demand, one axes or a grid of axes in the place of
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._output.results import ShortRepr
from calibrant.plots._style import LARGE

_LEGEND_INCHES = 4.2
"""Width of a legend of three entries in one line."""

INSTALL = 'pip install "calibrant[plot]"'


@dataclass(eq=False, repr=False)
class Display(ShortRepr):
    """Computed numbers, and the figure in which they were drawn last."""

    figure_: Any = field(init=False, default=None, repr=False)


@dataclass(eq=False, repr=False)
class AxesDisplay(Display):
    """A display that is drawn in one axes."""

    ax_: Any = field(init=False, default=None, repr=False)

    def _open_axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """The axes to draw in: ``ax``, or those of a new figure."""
        self.ax_ = one_axes(ax, size)
        self.figure_ = self.ax_.figure
        return self.ax_


@dataclass(eq=False, repr=False)
class GridDisplay(Display):
    """A display that is drawn in several axes."""

    axes_: Any = field(init=False, default=None, repr=False)


def require_matplotlib() -> None:
    """Raise, with the line that installs it, where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"displays are drawn with matplotlib, which is not installed; run: {INSTALL}"
        ) from error


def new_figure(size: tuple[float, float]) -> Any:
    """A pyplot figure whose layout leaves room for labels."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, layout="constrained")


def one_axes(ax: Any, size: tuple[float, float]) -> Any:
    """``ax``, or the axes of a new figure."""
    require_matplotlib()
    check_axes(ax)
    return new_figure(size).add_subplot() if ax is None else ax


def check_axes(ax: Any) -> None:
    """One matplotlib axes, or None for a new figure."""
    from matplotlib.axes import Axes

    if isinstance(ax, np.ndarray | list | tuple):
        raise TypeError(
            f"ax is one axes, not an array of {np.size(ax)}: pass one of them, such as ax=axes[0]; "
            "displays of several axes take the place of one"
        )
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be matplotlib axes, such as those of plt.subplots(); got {type(ax).__name__}"
        )


def grid_spec(
    ax: Any, n_rows: int, n_columns: int, size: tuple[float, float], **ratios: Any
) -> tuple[Any, Any]:
    """A figure and a grid of places for axes: a new figure, or the place of ``ax``, which keeps a
    strip for its title.
    """
    require_matplotlib()
    check_axes(ax)
    if ax is None:
        figure = new_figure(size)
        return figure, figure.add_gridspec(n_rows, n_columns, **ratios)
    if ax.figure.get_layout_engine() is None:
        ratios = {"wspace": 0.45, "hspace": 0.45} | ratios  # nothing else makes room for labels
    whole = _split_off_title(ax)
    ax.set_subplotspec(whole[0])
    ax.set_axis_off()
    return ax.figure, whole[1].subgridspec(n_rows, n_columns, **ratios)


def _split_off_title(ax: Any) -> Any:
    """The place of ``ax`` as a strip and what is below it."""
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
    """Whether a display is drawn in the place of axes that a legend in one line would leave."""
    if ax is None:
        return False
    return bool(ax.get_position().width * ax.figure.get_figwidth() < _LEGEND_INCHES)


def heading(figure: Any, ax: Any, text: str) -> None:
    """The title of a display of several axes: of the figure, or in the strip above those in the
    place of ``ax``.
    """
    if ax is None:
        figure.suptitle(text, fontsize=LARGE)
    else:
        ax.text(0.5, 0.5, text, fontsize=LARGE, ha="center", va="center", transform=ax.transAxes)
