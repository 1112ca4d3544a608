"""Plot predictions, bins and calibrators of three classes on a triangle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._kernels.simplex import EPS, as_proba, log_clipped
from calibrant._typing import AnyArray, FloatArray, Inputs, IntArray, LabelsLike, ScoresLike
from calibrant._validation import arrange_as_fitted, check_count, check_fitted, check_scores
from calibrant.inference._validity import HasVectorBins
from calibrant.notions import as_notion, predictions_for
from calibrant.plots._canvas import AxesDisplay, require_matplotlib
from calibrant.plots._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MEDIUM,
    ORANGE,
    PINK,
    SKY,
    SMALL,
    VERMILION,
    series,
)

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
MOST_POINTS = 4000
BIN_COLORS = (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, "#B8A400", GREY, "#5B4B8A", "#8C564B")

MARKS = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]) / np.array([3, 2, 2, 2])[:, None]
"""Interpretation points, which are the center and the midpoints of the sides."""

_LEGEND = {"fontsize": SMALL, "frameon": False, "loc": "upper right", "bbox_to_anchor": (1.1, 1.0)}

# Arrows shorter than this share of a side are not drawn, because such arrows would consist of an
# arrowhead only.
_SHORTEST = 0.004

# Widths of arrows in units of the axes: on white, over dots (with a white outline), and at the
# interpretation points.
_OVER_WHITE, _OVER_DOTS, _OF_MARKS = 0.0036, 0.0075, 0.009

# Steps per side of the grid of dots that fills a triangle.
_REGION_STEPS = 80


def to_plane(proba: FloatArray) -> FloatArray:
    """Return positions in the plane, which are means of the corners weighted by the probabilities.

    >>> to_plane(np.array([[1.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.0]]
    """
    return proba @ CORNERS


@dataclass(eq=False, repr=False)
class SimplexDisplay(AxesDisplay):
    """Plot of predictions, or of the effect of a calibrator, on the simplex of three classes.

    Call `from_predictions` or `from_estimator`, then `plot`.

    Parameters
    ----------
    points : array of shape (n, 3), optional
        Predictions, drawn as dots.
    groups : array of int of shape (n,), optional
        Classes or bins of the dots, which determine their colors.
    tails, heads : arrays of shape (m, 3), optional
        Arrows from predictions to calibrated probabilities.
    marks, mark_heads : arrays of shape (4, 3), optional
        Interpretation points (Kull 2019) and their calibrated probabilities. The interpretation
        points are the center and the midpoints of the sides.
    class_names : sequence of three names, optional
        Names of the classes.
    group_kind : {"class", "bin", "region"}
        Meaning of ``groups``. With "class", the plot has a legend. With "bin" and "region", ten
        colors repeat. With "region", the dots are large enough to fill the triangle.
    title : str
        Title of the plot.

    See Also
    --------
    ReliabilityDisplay : Reliability diagrams for any number of classes.

    References
    ----------
    Kull et al. (2019), Figure 2a, arXiv:1910.12656; Gupta & Ramdas (2022), Figures 10 to 12,
    arXiv:2107.08353.

    Examples
    --------
    >>> display = SimplexDisplay.from_predictions([0, 2], [[0.8, 0.1, 0.1], [0.2, 0.2, 0.6]])
    >>> display.groups.tolist()
    [0, 2]
    """

    points: FloatArray | None = None
    groups: IntArray | None = None
    tails: FloatArray | None = None
    heads: FloatArray | None = None
    marks: FloatArray | None = None
    mark_heads: FloatArray | None = None
    class_names: AnyArray | None = None
    group_kind: str = "class"
    title: str = ""

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: ScoresLike,
        *,
        after: ScoresLike | None = None,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> Self:
        """Show predictions as dots, colored by true class.

        With ``after``, arrows point from predictions to calibrated predictions. ``inputs`` is the
        type of the scores ``y_prob`` and ``after``. If there are more than 4,000 rows (400 with
        arrows), evenly spaced rows are drawn.
        """
        require_matplotlib()
        proba, y, _, names = predictions_for(
            as_notion("confidence"), y_true, y_prob, None, classes, inputs=inputs
        )
        _check_three(proba.shape[1])
        rows = _select(len(y), MOST_POINTS if after is None else 400)
        points = np.asarray(proba[rows], dtype=np.float64)
        if after is None:
            return cls(points, y[rows], class_names=names)
        later = check_scores(arrange_as_fitted(after, None, names), inputs=inputs)[rows]
        return cls(points, y[rows], points, as_proba(later, inputs), class_names=names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ScoresLike | None = None,
        *,
        resolution: int = 10,
        min_rows: int = 10,
    ) -> Self:
        """Show the effect of a fitted calibrator of three classes.

        For a calibrator with bins (`CanonicalBinning`), the rows of X are colored by bin. If X is
        None, the whole triangle is colored by bin. Every bin with at least ``min_rows`` rows has an
        arrow from the mean of these rows to the calibrated prediction. For other calibrators,
        arrows start at a grid with ``resolution`` steps per side, and at the four interpretation
        points.
        """
        require_matplotlib()
        check_fitted(estimator)
        _check_three(int(estimator.n_classes_))
        check_count(resolution, "resolution", minimum=3)
        points = None if X is None else _as_points(estimator, X)
        if isinstance(estimator, HasVectorBins):
            return cls._from_bins(estimator, points, min_rows)
        arrows = [(tails, _map_points(estimator, tails)) for tails in (_grid(resolution), MARKS)]
        subset = None if points is None else points[_select(len(points), MOST_POINTS)]
        title = f"Effect of {type(estimator).__name__}"
        return cls(subset, None, *arrows[0], *arrows[1], estimator.classes_, title=title)

    @classmethod
    def _from_bins(cls, estimator: Any, rows: FloatArray | None, min_rows: int) -> Self:
        points = _grid(_REGION_STEPS) if rows is None else rows
        place = estimator.bins(_scores_of(estimator, points))
        bins, group, counts = np.unique(place, return_inverse=True, return_counts=True)
        sums = np.stack([np.bincount(group, points[:, k]) for k in range(3)], axis=1)
        first = np.unique(group, return_index=True)[1]
        enough = counts >= min_rows
        tails = (sums / counts[:, None])[enough]
        heads = _map_points(estimator, points)[first][enough]
        places = _select(len(points), MOST_POINTS)
        note = ", arrows from mean to calibrated prediction" if enough.any() else ""
        return cls(
            points[places],
            group[places],
            tails,
            heads,
            class_names=estimator.classes_,
            group_kind="region" if rows is None else "bin",
            title=f"{len(bins)} bins{note}",
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the plot into ``ax`` or a new figure."""
        self._open_axes(ax, (5.0, 4.6))
        self._draw_frame()
        if self.points is not None:
            self._draw_points(self.points)
        if self.tails is not None and self.heads is not None:
            width = _OVER_WHITE if self.group_kind == "class" else _OVER_DOTS
            _draw_arrows(self.ax_, self.tails, self.heads, INK, width)
        if self.marks is not None and self.mark_heads is not None:
            self._draw_marks(self.marks, self.mark_heads)
        title = self.title or "Predictions on the simplex"
        self.ax_.set_title(title, fontsize=MEDIUM, color=INK, pad=14)
        return self

    def _draw_marks(self, marks: FloatArray, heads: FloatArray) -> None:
        style = {"s": 34, "color": VERMILION, "zorder": 6, "label": "interpretation points"}
        self.ax_.scatter(*to_plane(marks).T, **style)
        _draw_arrows(self.ax_, marks, heads, VERMILION, _OF_MARKS)
        self.ax_.legend(**_LEGEND)

    def _draw_frame(self) -> None:
        ax = self.ax_
        ax.plot(*CORNERS[[0, 1, 2, 0]].T, color=INK, linewidth=1.2, zorder=3)
        names = _corner_names(self.class_names)
        places = (
            ((-6, -6), "right", "top"),
            ((6, -6), "left", "top"),
            ((0, 5), "center", "bottom"),
        )
        for corner, name, (shift, ha, va) in zip(CORNERS, names, places, strict=True):
            style = {"fontsize": MEDIUM, "ha": ha, "va": va, "annotation_clip": False}
            ax.annotate(name, corner, xytext=shift, textcoords="offset points", **style)
        ax.set_aspect("equal")
        ax.set(xlim=(-0.05, 1.05), ylim=(-0.06, 0.93))
        ax.set_axis_off()

    def _draw_points(self, points: FloatArray) -> None:
        at = to_plane(points)
        size = float(np.clip(4000 / max(1, len(points)), 3, 24))
        if self.groups is None:
            self.ax_.scatter(*at.T, s=size, color=GREY, alpha=0.5, linewidth=0, zorder=2)
            return
        if self.group_kind == "class":
            self._draw_classes(at, self.groups, size)
            return
        is_region = self.group_kind == "region"
        palette = [_mix_with_white(c) for c in BIN_COLORS] if is_region else BIN_COLORS
        colors = [palette[g % len(palette)] for g in self.groups]
        dots = {"s": 24, "marker": "h"} if is_region else {"s": size, "alpha": 0.75}
        self.ax_.scatter(*at.T, color=colors, linewidth=0, zorder=2, **dots)

    def _draw_classes(self, at: FloatArray, groups: IntArray, size: float) -> None:
        for k in range(3):
            name = k if self.class_names is None else self.class_names[k]
            dots = {"s": size + 4, "color": series(k).color, "marker": series(k).marker}
            style = {"label": f"true class {name}", "alpha": 0.6, "linewidth": 0, "zorder": 2}
            self.ax_.scatter(*at[groups == k].T, **dots, **style)
        self.ax_.legend(markerscale=1.8, **_LEGEND)


def _mix_with_white(color: str) -> str:
    """Mix a color with white.

    Overlaps of opaque dots are invisible, unlike overlaps of transparent dots.
    """
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(c + 255) // 2:02x}" for c in channels)


def _corner_names(names: AnyArray | None) -> list[str]:
    """Return the names of the corners. Class labels that are numbers follow the word "class"."""
    return [
        n if isinstance(n, str) else f"class {n}" for n in (range(3) if names is None else names)
    ]


def _draw_arrows(ax: Any, tails: FloatArray, heads: FloatArray, color: str, width: float) -> None:
    start, end = to_plane(tails), to_plane(heads)
    move = end - start
    is_long = np.hypot(*move.T) > _SHORTEST
    x, y = start[is_long].T
    u, v = move[is_long].T
    scale = {"angles": "xy", "scale_units": "xy", "scale": 1, "minlength": 0.3}
    shape = {"width": width, "headwidth": 4.0, "headlength": 4.5}
    line = {"edgecolor": "white", "linewidth": 0.5 if width == _OVER_DOTS else 0, "zorder": 5}
    ax.quiver(x, y, u, v, color=color, **scale, **shape, **line)


def _check_three(n_classes: int) -> None:
    if n_classes != 3:
        raise ValueError(
            f"A triangle shows three classes, but the scores have {n_classes} columns. Pass three "
            "normalized columns, such as p[:, :3] / p[:, :3].sum(axis=1, keepdims=True)."
        )


def _grid(resolution: int) -> FloatArray:
    """Return the points of a triangular grid, inset by a third of a step."""
    i, j = np.meshgrid(np.arange(resolution + 1), np.arange(resolution + 1), indexing="ij")
    inside = i + j <= resolution
    count = np.stack([i[inside], j[inside], resolution - i[inside] - j[inside]], axis=1)
    return (count + 1 / 3) / (resolution + 1)


def _as_points(estimator: Any, X: ScoresLike) -> FloatArray:
    """Return the probabilities of scores of the type that a fitted calibrator accepts."""
    scores = check_scores(arrange_as_fitted(X, None, estimator.classes_), inputs=estimator.inputs)
    return as_proba(scores, estimator.inputs)


def _scores_of(estimator: Any, proba: FloatArray) -> FloatArray:
    """Convert probabilities to the type of scores that the estimator accepts."""
    return proba if estimator.inputs == "proba" else log_clipped(proba, EPS)


def _map_points(estimator: Any, proba: FloatArray) -> FloatArray:
    return np.asarray(estimator.predict_proba(_scores_of(estimator, proba)), dtype=np.float64)


def _select(size: int, most: int) -> Any:
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(int)
