"""Plot reliability diagrams for all types of calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._output.numbers import format_number, format_percent
from calibrant._typing import (
    AnyArray,
    FloatArray,
    Inputs,
    LabelsLike,
    Rng,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import check_count, check_option
from calibrant.binning import BinTable, bin_table, merge_small_bins
from calibrant.inference._isotonic_curve import IsotonicCurve
from calibrant.inference._results import check_level
from calibrant.notions import Notion, as_notion, claims_of
from calibrant.plots import _marks as marks
from calibrant.plots._bands import band_ends
from calibrant.plots._canvas import (
    GridDisplay,
    grid_spec,
    heading,
    is_narrow,
    one_axes,
    require_matplotlib,
)
from calibrant.plots._curves import draw_curve, draw_curves, fit_curve
from calibrant.plots._style import SMALL, WIDEST, label, series, tidy, unit_square
from calibrant.plots._top_label import draw_top_label

OVERLAY = "calibrant-reliability"
"""Identifier of the lines of named displays, whose number determines the style of the next line."""

_LONG_NAME = 14
"""Number of letters of a name that is too long for a title with its error in one line."""

BANDS = ("binomial", "resampling", "simultaneous", None)
CURVES = ("bins", "isotonic")


def _check_options(band: str | None, curve: str, level: float) -> None:
    check_option(band, "band", BANDS)
    check_option(curve, "curve", CURVES)
    check_level(level)


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(GridDisplay):
    """Reliability diagram of observed frequency against predicted probability.

    Call `from_predictions` or `from_estimator`, then `plot`. Each bin is a point, whose area
    increases with its number of rows. Bins with few rows are merged by default, or drawn faintly.
    With ``before``, each diagram has two series of points, and the histogram is mirrored. The
    layout depends on the type of calibration:

    - "confidence" has one large diagram, with the share of rows per bin below.
    - "class-wise" has one diagram per class. If there are many classes, the classes with the
      largest errors are drawn.
    - "top-label" has the figure of Gupta & Ramdas (2022). A star shows the confidence and the
      accuracy of a bin, and a plus shows the mean gap of the predicted classes. Detail panels show
      the predicted classes of some bins.

    Parameters
    ----------
    table : BinTable
        Sums per claim (binary event) and bin, from `calibrant.metrics.calibration_curve`. The error
        and the histogram are computed from this table.
    notion : str
        Type of calibration.
    names : tuple of str, optional
        Names of the claims, such as classes.
    band : pair of arrays of the shape of ``drawn``, optional
        Lower and upper ends of the consistency band.
    level : float
        Level of the band.
    before : BinTable, optional
        Bin sums of the claims in ``table`` before calibration.
    class_names : array, optional
        Names of the classes.
    name : str, optional
        Name of the model. Displays of one claim with a name are drawn as lines, so one diagram can
        compare several models.
    drawn, drawn_before : BinTable, optional
        Sums of the bins that are drawn. By default, the bins of ``table`` and ``before`` are drawn.
    curve, curve_before : curves, optional
        Isotonic curves that are drawn instead of bins.

    Attributes
    ----------
    error, before_error : float
        Expected calibration errors of the tables.
    claim_errors : array of shape (n_claims,)
        Expected calibration error of each claim.
    worst_first : array of int
        Indices of the claims, in decreasing order of their contribution to the error.
    figure_, axes_
        Figure and axes after `plot`.

    See Also
    --------
    calibrant.metrics.expected_calibration_error : Compute the error in the title.
    CumulativeDisplay : Calibration plot without bins.

    Notes
    -----
    The band of a bin covers the observed frequency with probability ``level`` if the scores of the
    bin are calibrated. The bands of several bins do not hold jointly. For a calibrated model, one
    or two of 15 bins are outside a 90% band on average.

    Bins with few rows are bins with fewer than 10 rows, or with fewer rows than the square root of
    the total number of rows. By default, the diagram starts from 15 bins of equal width and merges
    neighboring bins with few rows. The diagram of a small data set has fewer bins. The error in the
    title is computed with all 15 bins.

    With ``curve="isotonic"``, the diagram has no bins. The curve is the isotonic regression of the
    outcomes (CORP). At each score, the band contains the curve of a calibrated model with
    probability ``level``.

    References
    ----------
    Niculescu-Mizil & Caruana (2005), doi:10.1145/1102351.1102430; Bröcker & Smith (2007),
    Increasing the reliability of reliability diagrams, doi:10.1175/WAF993.1; Gupta & Ramdas (2022),
    Figure 1, arXiv:2107.08353; Kull et al. (2019), Figure 1, arXiv:1910.12656; Dimitriadis,
    Gneiting & Jordan (2021), doi:10.1073/pnas.2016191118.

    Examples
    --------
    >>> from calibrant.datasets import two_label_example
    >>> data = two_label_example()
    >>> top = ReliabilityDisplay.from_predictions(data.labels, data.proba, notion="top-label")
    >>> top.claim_errors.round(3).tolist()
    [0.4, 0.4]
    """

    table: BinTable
    notion: str | Notion = "confidence"
    names: tuple[str, ...] | None = None
    band: tuple[FloatArray, FloatArray] | None = None
    level: float = 0.9
    before: BinTable | None = None
    class_names: AnyArray | None = None
    name: str | None = None
    drawn: BinTable | None = None
    drawn_before: BinTable | None = None
    curve: IsotonicCurve | None = None
    curve_before: IsotonicCurve | None = None
    error: float = field(init=False)
    before_error: float | None = field(init=False)
    claim_errors: FloatArray = field(init=False)
    worst_first: Any = field(init=False)
    band_label: str = field(init=False)

    def __post_init__(self) -> None:
        self.band_label = f"{format_percent(self.level)} band if calibrated"
        self.notion = as_notion(self.notion)
        if self.class_names is None:
            self.class_names = np.arange(max(self.table.n_labels, self.table.n_quantities))
        if self.names is None:
            n_claims = self.table.n_claims
            self.names = tuple(f"claim {c}" for c in range(n_claims)) if n_claims > 1 else ("",)
        self.drawn = self.table if self.drawn is None else self.drawn
        self.drawn_before = self.before if self.drawn_before is None else self.drawn_before
        self.error = self.table.error()
        self.before_error = None if self.before is None else self.before.error()
        self.claim_errors = self.table.claim_errors
        self.worst_first = self.table.worst_first

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: ScoresLike,
        *,
        before: ScoresLike | None = None,
        notion: str | Notion = "confidence",
        n_bins: int | None = None,
        strategy: str = "uniform",
        bins: Any = None,
        curve: str = "bins",
        band: str | None = "binomial",
        level: float = 0.9,
        n_resamples: int = 1000,
        rng: Rng = None,
        y_pred: LabelsLike | None = None,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the diagram from labels and scores.

        Parameters
        ----------
        y_true, y_prob, notion, strategy, bins, y_pred, inputs, sample_weight, classes
            As in `calibrant.metrics.expected_calibration_error`.
        n_bins : int, optional
            Number of bins. By default, there are 15 bins, and neighboring equal-width bins with few
            rows are merged.
        curve : {"bins", "isotonic"}
            Whether to draw a point per bin or an isotonic curve (CORP). The isotonic curve requires
            a notion with one claim.
        before : array-like of the shape of ``y_prob``, optional
            Scores before calibration, of the same type as ``y_prob``, which are drawn as a second
            series.
        band : {"binomial", "resampling", "simultaneous"} or None
            Band of frequencies that are compatible with calibration. "binomial" uses exact binomial
            quantiles at the mean score of each bin, which are conservative. "resampling" uses
            quantiles of ``n_resamples`` outcomes that are drawn from the scores. "simultaneous" is
            a confidence band of the calibration curve instead, see
            `calibrant.inference.calibration_band`.
        level : float
            Probability that the frequency of a calibrated bin is within the band. For
            "simultaneous", the probability that the band covers the whole curve.
        n_resamples, rng
            Number of resamples and seed of ``band="resampling"`` and of ``curve="isotonic"``.
        name : str, optional
            Name of the model. With a name, the model is drawn as a line, and you can draw other
            models into the same ``ax``.
        ax : matplotlib axes, optional
            Axes to draw into immediately. By default, nothing is drawn until you call `plot`.
        """
        require_matplotlib()
        notion = as_notion(notion)
        _check_options(band, curve, level)
        binning = {"n_bins": 15 if n_bins is None else n_bins, "strategy": strategy, "bins": bins}
        rows: Any = {"sample_weight": sample_weight, "classes": classes, "inputs": inputs}
        rows["y_pred"] = y_pred
        claims, names = claims_of(notion, y_true, y_prob, **rows)
        claims = claims.effective()  # bands need the effective number of rows
        claims_before = [] if before is None else [claims_of(notion, y_true, before, **rows)[0]]
        series_claims = [claims, *claims_before]
        tables = [bin_table(part, **binning) for part in series_claims]
        is_merged = n_bins is None and bins is None and strategy == "uniform"
        drawn_tables = [merge_small_bins(table) if is_merged else table for table in tables]
        ends = band_ends(band, claims, drawn_tables[0], level, n_resamples, rng)
        labels, table_before = notion.claim_names(names), (*tables, None)[1]
        display = cls(tables[0], notion, labels, ends, level, table_before, names, name)
        display.drawn, display.drawn_before = drawn_tables[0], (*drawn_tables, None)[1]
        if curve == "isotonic":
            curves = [fit_curve(notion, part, level, n_resamples, rng) for part in series_claims]
            display.curve, display.curve_before = curves[0], (*curves, None)[1]
        elif band == "simultaneous":
            display.band_label = f"{100 * level:g}% confidence band"
        return display if ax is None else display.plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: LabelsLike,
        *,
        notion: str | Notion = "confidence",
        n_bins: int | None = None,
        strategy: str = "uniform",
        sample_weight: WeightsLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the diagram from ``predict_proba`` of a fitted classifier or calibrator."""
        binning: Any = {"notion": notion, "n_bins": n_bins, "strategy": strategy}
        rows: Any = {"sample_weight": sample_weight, "classes": estimator.classes_}
        proba = estimator.predict_proba(X)
        return cls.from_predictions(y, proba, **binning, **rows, name=name, ax=ax)

    def plot(
        self,
        ax: Any = None,
        *,
        max_claims: int = 10,
        details: tuple[int, ...] | None = None,
        line_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw into. A display with several panels divides the area of these axes. By
            default, a new figure is created.
        max_claims : int
            Maximum number of diagrams. If there are more claims, only the claims with the largest
            contributions to the error are drawn.
        details : sequence of int, optional
            Indices of the bins that the top-label figure shows class by class. By default, the
            figure shows the bin with the largest difference between star and plus, and the bin with
            the most rows.
        line_kw : mapping, optional
            Options of the line of a display with a ``name``, for matplotlib (color, linewidth,
            ...).
        """
        check_count(max_claims, "max_claims")
        if self.name is not None:
            return self._plot_line(ax, line_kw or {})
        if line_kw is not None:
            raise ValueError("line_kw requires a display with a name. Pass name='model'.")
        if self.table.n_claims == 1:
            return self._plot_one(ax)
        if self.table.n_quantities == 1 and self.before is None:
            return self._plot_top_label(ax, details)
        return self._plot_grid(ax, max_claims)

    def _plot_line(self, ax: Any, line_kw: Mapping[str, Any]) -> Self:
        """Draw a single line, into axes that may contain the lines of other models."""
        if self.table.n_claims > 1:
            raise ValueError(
                f"A display with a name draws one line, but notion={self._notion.name!r} consists "
                f"of {self.table.n_claims} binary problems. Pass notion='confidence' or "
                "notion='class-1'."
            )
        main = one_axes(ax, (4.6, 4.6))
        place = sum(line.get_gid() == OVERLAY for line in main.lines)
        if not place:
            tidy(main)
            unit_square(main)
            label(main, *self.axis_labels)
        text = f"{self.name} (ECE {format_number(self.error)})"
        if self.curve is None:
            bins = marks.occupied_bins(self._drawn, 0)
            line = marks.draw_line(main, bins, series(place), text, **line_kw)
        else:
            line = draw_curve(main, self.curve, series(place), text, **line_kw)
        line.set_gid(OVERLAY)
        main.legend(fontsize=SMALL, frameon=False, loc="best")
        self.figure_, self.axes_ = main.figure, np.array([main])
        return self

    def _plot_one(self, ax: Any) -> Self:
        narrow = is_narrow(ax)
        ratios = {"height_ratios": (4, 1, 0.4 if narrow else 0.12), "hspace": 0.04}
        self.figure_, grid = grid_spec(ax, 3, 1, (4.4, 5.4), **ratios)
        main = self.figure_.add_subplot(grid[0])
        below = self.figure_.add_subplot(grid[1], sharex=main)
        x, y = self.axis_labels
        self._draw_claim(main, 0)
        # Without a layout engine, a legend below the diagrams would cover the labels of the axis.
        is_inside = self.figure_.get_layout_engine() is None
        self._draw_legend(grid[2], main if is_inside else None, n_columns=1 if narrow else 3)
        label(main, "", y, self._title())
        main.tick_params(labelbottom=False)
        self._draw_histogram(below)
        label(below, x, "share\nof rows")
        below.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        main.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        self.axes_ = np.array([main, below])
        return self

    def _draw_histogram(self, ax: Any) -> None:
        tidy(ax, grid="y")
        curve = marks.occupied_bins(self.table, 0)
        if self.before is None:
            marks.draw_shares(ax, curve)
            marks.draw_means(ax, curve)
            return
        marks.draw_mirrored_shares(ax, marks.occupied_bins(self.before, 0), curve)

    def _draw_claim(self, ax: Any, claim: int) -> None:
        tidy(ax)
        bins = marks.occupied_bins(self._drawn, claim, self.band)
        if self.curve is not None:
            handles = draw_curves(ax, self.curve, self.curve_before)
        elif self.drawn_before is None:
            handles = marks.draw_one(ax, bins)
        else:
            handles = marks.draw_pair(ax, marks.occupied_bins(self.drawn_before, claim), bins)
        if len(handles) > 1 + (self.before is not None):
            handles[-1].set_label(self.band_label)
        self._handles = handles
        unit_square(ax)

    def _plot_grid(self, ax: Any, max_claims: int) -> Self:
        n_claims = self.table.n_claims
        is_part = n_claims > max_claims
        claims = self.worst_first[:max_claims] if is_part else np.arange(n_claims)
        n_rows = -(-len(claims) // 4)
        n_columns = -(-len(claims) // n_rows)
        size = (max(4.6, 1.78 * n_columns + 0.48), 1.95 * n_rows + 1.0)
        narrow = is_narrow(ax)
        ratios = [1.0] * n_rows + [0.5 if narrow else 0.12]
        self.figure_, grid = grid_spec(ax, n_rows + 1, n_columns, size, height_ratios=ratios)
        axes = [self.figure_.add_subplot(grid[divmod(i, n_columns)]) for i in range(len(claims))]
        for i, (panel, claim) in enumerate(zip(axes, claims, strict=True)):
            self._draw_panel(panel, int(claim))
            is_lowest = i + n_columns >= len(claims)
            panel.tick_params(labelbottom=is_lowest, labelleft=i % n_columns == 0)
        self._draw_grid_labels(axes, grid, (n_rows, n_columns), is_narrow=narrow)
        note = f", {len(claims)} largest errors of {n_claims}" if is_part else ""
        heading(self.figure_, ax, f"{self._title()}{note}")
        self.axes_ = np.array(axes)
        return self

    def _draw_panel(self, panel: Any, claim: int) -> None:
        self._draw_claim(panel, claim)
        # Put the number on a second line if names are long, because adjacent titles would touch.
        gap = "\n" if max(map(len, self._names)) > _LONG_NAME else " "
        label(panel, title=f"{self._names[claim]}:{gap}{format_number(self.claim_errors[claim])}")
        panel.title.set_size(SMALL + 0.5)
        panel.set_box_aspect(1)

    def _draw_grid_labels(
        self, axes: list[Any], grid: Any, shape: tuple[int, int], *, is_narrow: bool
    ) -> None:
        (n_rows, n_columns), (x, y) = shape, self.axis_labels
        for row in range(n_rows):
            axes[row * n_columns].set_ylabel(
                y if len(y) < 24 else "observed frequency", fontsize=SMALL
            )
        below = self._draw_legend(grid[n_rows, :], n_columns=1 if is_narrow else 3)
        below.set_title(x, fontsize=SMALL + 1, pad=0)

    def _draw_legend(self, place: Any, main: Any = None, *, n_columns: int = 3) -> Any:
        """Draw one legend for all axes, below the axes or inside ``main`` if passed."""
        if main is not None:
            return main.legend(handles=self._handles, loc="best", fontsize=SMALL)
        ax = self.figure_.add_subplot(place)
        ax.set_axis_off()
        style = {"fontsize": SMALL, "frameon": False, "columnspacing": 1.2, "handlelength": 1.6}
        ax.legend(handles=self._handles, loc="center", ncols=n_columns, **style)
        return ax

    def _plot_top_label(self, ax: Any, details: tuple[int, ...] | None) -> Self:
        bins = self.details if details is None else tuple(details)
        for b in bins:
            check_option(b, "a bin of details", tuple(range(self.table.n_bins)))
        ratios = {"width_ratios": (2.2, 1.35, 0.9)}
        self.figure_, grid = grid_spec(ax, max(1, len(bins)), 3, (WIDEST, 4.6), **ratios)
        self.axes_ = draw_top_label(self, self.figure_, grid, bins, is_alone=ax is None)
        heading(self.figure_, ax, self._title())
        return self

    @property
    def stars(self) -> FloatArray:
        """Mean score and frequency of each bin over all claims, an array of shape (n_bins, 2).

        The confidence diagram shows these points.
        """
        rows = self.table.weight.sum(axis=0)
        sums = np.stack([self.table.score.sum(axis=0), self.table.outcome.sum(axis=0)], axis=1)
        return np.divide(
            sums, rows[:, None], out=np.full_like(sums, np.nan), where=rows[:, None] > 0
        )

    @property
    def pluses(self) -> FloatArray:
        """Return the mean score of each bin, and the mean score plus or minus the mean gap.

        The plus is on the same side of the diagonal as the star. The shape is (n_bins, 2).
        """
        stars, gap = self.stars, self.table.pooled_gap
        side = np.where(stars[:, 1] > stars[:, 0], 1.0, -1.0)
        return np.stack([stars[:, 0], stars[:, 0] + side * gap], axis=1)

    @property
    def details(self) -> tuple[int, ...]:
        """Return the bin whose star and plus differ most, and the bin with the most rows.

        Only bins with at least 0.5% of the rows are considered.
        """
        rows = self.table.weight.sum(axis=0)
        difference = np.abs(self.pluses[:, 1] - self.stars[:, 1])
        eligible = np.where(rows >= 0.005 * rows.sum(), np.nan_to_num(difference), -1.0)
        return tuple(sorted({int(eligible.argmax()), int(rows.argmax())}))

    @property
    def axis_labels(self) -> tuple[str, str]:
        """Labels of the axes."""
        return self._notion.axis_labels

    @property
    def _drawn(self) -> BinTable:
        return self.table if self.drawn is None else self.drawn

    @property
    def _names(self) -> tuple[str, ...]:
        return self.names or ()

    @property
    def _notion(self) -> Notion:
        return as_notion(self.notion)

    def _title(self) -> str:
        error = f"ECE {format_number(self.error)}"
        if self.before_error is not None:
            before = format_number(self.before_error)
            error = f"ECE {before} before, {format_number(self.error)} after"
        name = self._notion.name
        return f"{name[:1].upper()}{name[1:]}: {error}"
