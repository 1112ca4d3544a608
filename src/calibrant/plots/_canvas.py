"""Where displays are drawn: matplotlib on demand, one axes or a grid of axes in the place of one."""

from __future__ import annotations

from typing import Any

from calibrant.plots._style import LARGE

INSTALL = 'pip install "calibrant[plot]"'


def require_matplotlib() -> None:
    """Raise, with the line that installs it, where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(f"displays are drawn with matplotlib, which is not installed; run: {INSTALL}") from error


def new_figure(size: tuple[float, float]) -> Any:
    """A pyplot figure whose layout leaves room for labels."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, layout="constrained")


def one_axes(ax: Any, size: tuple[float, float]) -> Any:
    """``ax``, or the axes of a new figure."""
    require_matplotlib()
    return new_figure(size).add_subplot() if ax is None else ax


def grid_spec(ax: Any, n_rows: int, n_columns: int, size: tuple[float, float], **ratios: Any) -> tuple[Any, Any]:
    """A figure and a grid of places for axes: a new figure, or the place that ``ax`` takes up, which is then hidden."""
    require_matplotlib()
    if ax is None:
        figure = new_figure(size)
        return figure, figure.add_gridspec(n_rows, n_columns, **ratios)
    ax.set_axis_off()
    place = ax.get_subplotspec()
    if place is not None:
        return ax.figure, place.subgridspec(n_rows, n_columns, **ratios)
    box = ax.get_position()
    return ax.figure, ax.figure.add_gridspec(n_rows, n_columns, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, **ratios)


def heading(figure: Any, ax: Any, first: Any, text: str) -> None:
    """The title of a display of several axes: above the figure, or above the first axes inside the user's own."""
    if ax is None:
        figure.suptitle(text, fontsize=LARGE)
    else:
        ax.set_title(text, fontsize=LARGE)
