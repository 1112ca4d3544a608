"""Plot the share of rows whose calibration error is at most epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import Inputs, LabelsLike, WeightsLike
from calibrant._validation import check_option
from calibrant.inference import ValidityCurve, validity_curve
from calibrant.notions import Notion
from calibrant.plots._canvas import GridDisplay, grid_spec, heading, require_matplotlib
from calibrant.plots._style import SMALL, WIDEST, label, named_series, tidy


@dataclass(eq=False, repr=False)
class ValidityDisplay(GridDisplay):
    r"""Plot of the share V(eps) of rows whose estimated calibration error is at most eps.

    Call `from_predictions` with the scores of one or several models, then `plot`. Higher is better.
    The error of a row is the estimated calibration error of its bin. The area above a curve is the
    expected calibration error.

    Parameters
    ----------
    curves : dict of str to ValidityCurve
        Curve of each model, from `calibrant.inference.validity_curve`.
    claims : sequence of int, optional
        Indices of classes that are drawn in separate axes. In this case, each curve includes only
        the rows of its class.
    names : sequence of str, optional
        Titles of the axes of ``claims``.

    See Also
    --------
    calibrant.inference.validity_curve : Compute a curve.

    References
    ----------
    Gupta & Ramdas (2022), Figures 4, 9 and 12, arXiv:2107.08353.

    Examples
    --------
    >>> from calibrant.datasets import two_label_example
    >>> data = two_label_example()
    >>> ValidityDisplay.from_predictions(data.labels, {"model": data.proba}).curves["model"](0.3)
    0.0
    """

    curves: Mapping[str, ValidityCurve]
    claims: Sequence[int] | None = None
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        n_claims = min(curve.gap.shape[0] for curve in self.curves.values())
        for claim in self.claims or ():
            check_option(claim, "claim", tuple(range(n_claims)))

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: Any,
        *,
        notion: str | Notion = "top-label",
        n_bins: int = 15,
        strategy: str = "uniform",
        bins: Any = None,
        claims: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute the curves from labels and scores.

        Parameters
        ----------
        y_true, notion, n_bins, strategy, bins, inputs, sample_weight, classes
            As in `calibrant.inference.validity_curve`.
        y_prob : array-like of shape (n, K), or dict of such arrays
            Scores of one model, or of several models by name.
        claims, names
            As in the parameters of `ValidityDisplay`.
        """
        require_matplotlib()
        models = y_prob if isinstance(y_prob, Mapping) else {"model": y_prob}
        binning = {"notion": notion, "n_bins": n_bins, "strategy": strategy, "bins": bins}
        checks = {"inputs": inputs, "sample_weight": sample_weight, "classes": classes}
        options: dict[str, Any] = {**binning, **checks}
        curves = {name: validity_curve(y_true, p, **options) for name, p in models.items()}
        return cls(curves, claims, names)

    def plot(self, ax: Any = None, *, max_epsilon: float | None = None) -> Self:
        """Draw the curves.

        The horizontal axis ends at ``max_epsilon``. By default, the axis ends where all curves have
        reached 1.
        """
        panels: list[int | None] = [None] if self.claims is None else list(self.claims)
        n_rows = -(-len(panels) // 4)
        n_columns = -(-len(panels) // n_rows)
        size = (4.4, 3.6) if len(panels) == 1 else (WIDEST, 2.1 * n_rows + 0.4)
        self.figure_, grid = grid_spec(ax, n_rows, n_columns, size)
        axes = []
        for i, claim in enumerate(panels):
            panel = self.figure_.add_subplot(grid[divmod(i, n_columns)])
            self._draw(panel, claim, max_epsilon)
            y = "share of rows"
            if len(panels) == 1:
                y = r"share of rows with error at most $\varepsilon$"
            x = r"$\varepsilon$" if i + n_columns >= len(panels) else ""
            label(panel, x, y if i % n_columns == 0 else "", self._title(i, claim))
            panel.tick_params(labelleft=i % n_columns == 0)
            axes.append(panel)
        axes[0].legend(fontsize=SMALL, frameon=False, loc="lower right")
        if len(panels) > 1:
            text = rf"Share of rows with error at most $\varepsilon$, {self._notion}"
            heading(self.figure_, ax, text)
        self.axes_ = np.array(axes)
        return self

    @property
    def _notion(self) -> str:
        return next(iter(self.curves.values())).notion

    def _title(self, i: int, claim: int | None) -> str:
        if claim is None:
            return f"Validity, {self._notion}"
        return self.names[i] if self.names is not None else f"class {claim}"

    def _draw(self, ax: Any, claim: int | None, max_epsilon: float | None) -> None:
        tidy(ax)
        end = self._end(claim) if max_epsilon is None else max_epsilon
        for i, (name, curve) in enumerate(self.curves.items()):
            x = np.append(curve.epsilon[curve.epsilon <= end], end)
            color, linestyle, _ = named_series(name, i)
            line: dict[str, Any] = {"color": color, "linestyle": linestyle, "linewidth": 1.6}
            ax.step(x, curve(x, claim), where="post", label=name, **line)
        ax.set(xlim=(0, end), ylim=(0, 1.03))

    def _end(self, claim: int | None) -> float:
        """Return the epsilon at which all curves have reached 1."""
        ends = []
        for curve in self.curves.values():
            rows = ... if claim is None else claim
            ends.append(curve.gap[rows][curve.share[rows] > 0].max(initial=0.0))
        return max(0.01, 1.02 * float(max(ends)))
