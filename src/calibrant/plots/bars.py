"""Bar plots of selected hyperparameters and of calibration errors per class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import AnyArray, FloatArray, Inputs, LabelsLike, WeightsLike
from calibrant.binning import BinTable, bin_table
from calibrant.notions import Notion, as_notion, claims_of
from calibrant.plots._canvas import AxesDisplay, GridDisplay, grid_spec, heading, require_matplotlib
from calibrant.plots._style import GREY, INK, SMALL, label, named_series, tidy

_HATCHES = (None, "////", "....", "xxxx")


@dataclass(eq=False, repr=False)
class ChoiceDisplay(AxesDisplay):
    """Bar plot of the number of times that each hyperparameter value was selected.

    Parameters
    ----------
    values : sequence
        Hyperparameter values in the order of the horizontal axis.
    counts : array of shape (m,)
        Number of times that each value was selected.
    name : str
        Name of the hyperparameter.

    See Also
    --------
    calibrant.DirichletCalibration : Select the penalty strength by cross-validation.

    References
    ----------
    Kull et al. (2019), supplement, Figure 8, arXiv:1910.12656.

    Examples
    --------
    >>> ChoiceDisplay.from_values([0.1, 0.01, 0.1], name="lam").counts.tolist()
    [1, 2]
    """

    values: Sequence[Any]
    counts: AnyArray
    name: str = "value"

    @classmethod
    def from_values(
        cls, chosen: Sequence[Any], *, grid: Sequence[Any] | None = None, name: str = "value"
    ) -> Self:
        """Count how often each value was selected.

        Pass all candidates as ``grid`` to include values that were never selected.
        """
        require_matplotlib()
        counts = Counter(chosen)
        values = sorted(counts) if grid is None else list(grid)
        other_values = [value for value in counts if value not in values]
        if other_values:
            raise ValueError(
                f"The value {other_values[0]!r} was selected, but this value is not in the grid "
                f"{values}. Pass grid=None, or add the value to the grid."
            )
        return cls(values, np.array([counts[value] for value in values]), name)

    def plot(self, ax: Any = None) -> Self:
        """Draw the plot into ``ax`` or a new figure."""
        self._open_axes(ax, (max(3.6, 0.55 * len(self.values) + 1.2), 3.0))
        tidy(self.ax_, grid="y")
        positions = np.arange(len(self.values))
        bars = self.ax_.bar(positions, self.counts, width=0.8, color=GREY)
        self.ax_.bar_label(bars, fontsize=SMALL, padding=1.5, color=INK)
        names = [f"{v:g}" if isinstance(v, float) else str(v) for v in self.values]
        self.ax_.set_xticks(positions, names, fontsize=SMALL)
        self.ax_.yaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_ylim(0, 1.12 * max(1, int(np.max(self.counts, initial=0))))
        label(self.ax_, self.name, "times selected", f"Selected values of {self.name}")
        return self


@dataclass(eq=False, repr=False)
class ClassErrorDisplay(GridDisplay):
    """Bar plot of the calibration error per class, for one or several models.

    Call `from_predictions`, then `plot`. A second panel shows the share of rows per class.

    Parameters
    ----------
    names : sequence of str
        Names of the classes (claims).
    errors : dict of str to array of shape (n_claims,)
        Expected calibration error (ECE) of each class, with one array per model. The error is NaN
        for a class without rows.
    share : array of shape (n_claims,)
        Share of the rows of each class.
    notion : str
        Type of calibration.

    See Also
    --------
    ReliabilityDisplay : Reliability diagrams per class.

    References
    ----------
    Gupta & Ramdas (2022), Figure 4, arXiv:2107.08353.

    Examples
    --------
    >>> from calibrant.datasets import two_label_example
    >>> data = two_label_example()
    >>> display = ClassErrorDisplay.from_predictions(data.labels, {"model": data.proba})
    >>> display.errors["model"].round(6).tolist()
    [0.4, 0.4]
    """

    names: Sequence[str]
    errors: Mapping[str, FloatArray]
    share: FloatArray
    notion: str = "top-label"

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
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute the errors. ``y_prob`` is an array or a dict of arrays, one per model.

        ``notion`` is "top-label" or "class-wise". For the other parameters, see
        `calibrant.metrics.expected_calibration_error`.
        """
        require_matplotlib()
        models = y_prob if isinstance(y_prob, Mapping) else {"model": y_prob}
        notion = as_notion(notion)
        names: tuple[str, ...] = ()
        tables = {}
        for model, proba in models.items():
            claims, labels = claims_of(notion, y_true, proba, sample_weight, classes, inputs=inputs)
            tables[model] = bin_table(claims, n_bins=n_bins, strategy=strategy, bins=bins)
            names = notion.claim_names(labels)
        errors = {model: _claim_errors(table) for model, table in tables.items()}
        share = _claim_shares(next(iter(tables.values())), notion)
        return cls(names, errors, share, notion.name)

    def plot(self, ax: Any = None) -> Self:
        """Draw the errors in the upper panel and the shares of rows in the lower panel."""
        count, models = len(self.names), len(self.errors)
        size = (float(np.clip(0.5 * count + 1.6, 4.2, 9.0)), 3.8)
        self.figure_, grid = grid_spec(ax, 2, 1, size, height_ratios=(3, 1), hspace=0.05)
        above = self.figure_.add_subplot(grid[0])
        below = self.figure_.add_subplot(grid[1], sharex=above)
        positions, width = np.arange(count), 0.8 / models
        for i, (name, error) in enumerate(self.errors.items()):
            x = positions + (i - (models - 1) / 2) * width
            look = {"color": named_series(name, i).color, "hatch": _HATCHES[i % 4], "ec": "white"}
            above.bar(x, error, width, label=name, **look)
        below.bar(positions, self.share, 0.8, color=GREY)
        for panel in (above, below):
            tidy(panel, grid="y")
        above.tick_params(labelbottom=False)
        above.legend(fontsize=SMALL, frameon=False)
        step = -(-count // 12)
        names = list(self.names)[::step]
        below.set_xticks(positions[::step], names, fontsize=SMALL, rotation=30, ha="right")
        label(above, "", "ECE")
        label(below, "", "share\nof rows")
        heading(self.figure_, ax, f"Calibration error per class ({self.notion})")
        self.axes_ = np.array([above, below])
        return self


def _claim_errors(table: BinTable) -> FloatArray:
    return np.where(table.claim_weight > 0, table.claim_errors, np.nan)


def _claim_shares(table: BinTable, notion: Notion) -> FloatArray:
    """Return the shares of the predicted classes, or of the true classes.

    For class-wise calibration, every row belongs to all claims, so the shares of the true classes
    are used.
    """
    rows = table.claim_weight
    return rows / rows.sum() if notion.splits_by_label else table.outcome.sum(axis=1) / rows
