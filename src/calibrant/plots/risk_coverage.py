"""Plot the error rate of the most confident predictions against their share of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant._typing import Inputs, LabelsLike
from calibrant.inference import RiskCoverageCurve, risk_coverage
from calibrant.metrics.sureness import ScoreLike
from calibrant.plots._canvas import AxesDisplay, require_matplotlib
from calibrant.plots._style import INK, SMALL, Series, label, named_series, tidy

_MOST_POINTS = 2000
"""Maximum number of points of a drawn line. The width of a figure has fewer pixels."""

_SHOWN_COVERAGE = 0.1
"""Bounds at a lower coverage do not determine the height of the axes. Such bounds are based on few
rows, so they are much higher than the other bounds."""


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(AxesDisplay):
    """Risk-coverage plot of the error rate of the most confident predictions against the coverage.

    Call `from_predictions` with the scores of one or several models, then `plot`. Lower is better.
    Lines are observed error rates. Points are upper bounds for the error rate of new answers. The
    bounds of a model hold jointly.

    Parameters
    ----------
    curves : dict of str to RiskCoverageCurve
        Curve of each model, from `calibrant.inference.risk_coverage`.

    Attributes
    ----------
    figure_, ax_
        Figure and axes after `plot`.

    See Also
    --------
    calibrant.inference.risk_coverage : Compute a curve.
    calibrant.metrics.aurc : Area under the line.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions("forest")
    >>> display = RiskCoverageDisplay.from_predictions(data.test_labels, data.test_proba)
    >>> display.curves["model"].n_samples
    600
    """

    curves: Mapping[str, RiskCoverageCurve]

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: Any,
        *,
        n_points: int = 16,
        level: float = 0.9,
        score: ScoreLike = "confidence",
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute the curves from labels and scores.

        Parameters
        ----------
        y_true, n_points, level, score, inputs, classes
            As in `calibrant.inference.risk_coverage`.
        y_prob : array-like of shape (n, K), or dict of such arrays
            Scores of one model, or of several models by name.
        """
        require_matplotlib()
        models = y_prob if isinstance(y_prob, Mapping) else {"model": y_prob}
        options: dict[str, Any] = {"n_points": n_points, "level": level, "score": score}
        options |= {"inputs": inputs, "classes": classes}
        return cls({name: risk_coverage(y_true, p, **options) for name, p in models.items()})

    def plot(self, ax: Any = None, *, risk: float | None = None) -> Self:
        """Draw the curves, and a line at an acceptable error rate ``risk``.

        A mark on each curve shows the largest coverage with an upper bound of at most ``risk``.
        """
        self._open_axes(ax, (5.0, 3.6))
        tidy(self.ax_)
        for i, (name, curve) in enumerate(self.curves.items()):
            self._draw(curve, name, named_series(name, i))
        if risk is not None:
            self._draw_risk(risk)
        # Add space at the right end, because the last points would be cut in half.
        self.ax_.set(xlim=(0, 1.02), ylim=(0, self._height(risk)))
        self.ax_.legend(fontsize=SMALL, frameon=False, loc="best")
        level = format_percent(next(iter(self.curves.values())).level)
        title = f"Risk and coverage (points: {level} upper bounds, jointly valid)"
        label(self.ax_, "share of rows that are answered", "error rate of answers", title)
        return self

    def _draw(self, curve: RiskCoverageCurve, name: str, style: Series) -> None:
        path = curve.path
        step = -(-len(path.rows) // _MOST_POINTS)
        places = np.append(np.arange(0, len(path.rows) - 1, step), len(path.rows) - 1)
        rows, errors = path.rows[places], path.errors[places]
        # The line begins at coverage 0 with the error rate of the most confident rows.
        x, y = np.append(0.0, rows / path.total), np.append(errors[0] / rows[0], errors / rows)
        look = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.6}
        self.ax_.plot(x, y, label=name, **look)
        points = {"marker": style.marker, "markersize": 4, "linestyle": "none"}
        self.ax_.plot(curve.coverage, curve.high, color=style.color, **points)

    def _draw_risk(self, risk: float) -> None:
        self.ax_.axhline(risk, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        for i, (name, curve) in enumerate(self.curves.items()):
            share = curve.proved_coverage(risk)
            if share > 0:
                color = named_series(name, i).color
                self.ax_.axvline(share, color=color, linewidth=1, linestyle=(0, (1, 2)))
                self._name_share(share, i, color)

    def _name_share(self, share: float, i: int, color: str) -> None:
        """Write a share at the upper end of its line, away from the curves and the other line."""
        side = {"ha": "right" if share > 0.5 else "left", "va": "top", "color": color}
        place = {"xytext": (-3 if share > 0.5 else 3, -2 - 12 * i), "textcoords": "offset points"}
        top: Any = {"xycoords": self.ax_.get_xaxis_transform(), "fontsize": SMALL}
        self.ax_.annotate(format_percent(share), (share, 1.0), **top, **place, **side)

    def _height(self, risk: float | None) -> float:
        """Return the upper end of the vertical axis."""
        values = [0.01 if risk is None else 1.3 * risk]
        for curve in self.curves.values():
            is_shown = curve.coverage >= _SHOWN_COVERAGE
            values += [curve.high[is_shown].max(), curve.risk[is_shown].max()]
        return min(1.0, 1.1 * float(max(values)))
