"""Reliability diagrams of every notion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._typing import AnyArray, FloatArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import as_array, check_count, check_option
from calibrant.binning import BinTable
from calibrant.inference._bands import binomial_band, resampled_band
from calibrant.metrics import calibration_curve
from calibrant.metrics._binned import table_error
from calibrant.notions import Notion, as_notion
from calibrant.plots import _reliability as marks
from calibrant.plots._canvas import grid_spec, heading, require_matplotlib
from calibrant.plots._claims import axis_labels, claim_names, claims_of, class_names
from calibrant.plots._style import AFTER, BEFORE, SMALL, label, tidy, unit_square
from calibrant.plots._top_label import draw_top_label

BANDS = ("binomial", "resampling", None)


@dataclass(eq=False)
class ReliabilityDisplay:
    """Reliability diagram: how often what was claimed came true, against what was claimed.

    One claim is drawn large, with the share of the rows per bin below. Several (class-wise, ranks,
    predicted classes) make a grid of their own diagrams, the worst first where there are many.
    Top-label claims make the figure of Gupta & Ramdas: a star per bin for the confidence, a plus
    for the mean gap of the predicted classes, and single bins seen class by class. With ``before``,
    two curves lie over each other.

    Parameters
    ----------
    table : BinTable
        Sums per claim and bin, from `calibrant.metrics.calibration_curve`.
    notion : str
    names : tuple of str, optional
        One per claim.
    band : pair of arrays of the shape of the table, optional
        Lower and upper ends of the consistency band.
    level : float
        Of the band.
    before : BinTable, optional
        The same claims before calibration.
    class_names : array, optional
        Names of the classes.

    Attributes
    ----------
    error, before_error : float
        Expected calibration errors of the tables.
    claim_errors : array of shape (n_claims,)
        Mean gap of each claim's own rows.
    worst_first : array of int
        Claims by decreasing part in the error.
    figure_, axes_ : after `plot`

    Notes
    -----
    The band of a bin holds the observed frequency with probability ``level`` if the bin's scores
    are right. It says nothing of all bins together: of 15 bins of a calibrated model one or two
    leave a 90 % band.

    References
    ----------
    Niculescu-Mizil & Caruana (2005), doi:10.1145/1102351.1102430; Bröcker & Smith (2007),
    Increasing the reliability of reliability diagrams, doi:10.1175/WAF993.1; Gupta & Ramdas (2022),
    Figure 1, arXiv:2107.08353; Kull et al. (2019), Figure 1, arXiv:1910.12656.

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
    error: float = field(init=False)
    before_error: float | None = field(init=False)
    claim_errors: FloatArray = field(init=False)
    worst_first: Any = field(init=False)
    figure_: Any = field(init=False, default=None, repr=False)
    axes_: Any = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.notion = as_notion(self.notion)
        if self.class_names is None:
            self.class_names = np.arange(max(self.table.n_labels, self.table.n_quantities))
        if self.names is None:
            self.names = (
                tuple(f"claim {c}" for c in range(self.table.n_claims))
                if self.table.n_claims > 1
                else ("",)
            )
        self.error = table_error(self.table)
        self.before_error = None if self.before is None else table_error(self.before)
        off = (self.table.weight * self.table.gap).sum(axis=1)
        rows = self.table.weight.sum(axis=1)
        self.claim_errors = np.divide(off, rows, out=np.zeros_like(off), where=rows > 0)
        self.worst_first = np.argsort(-off, kind="stable")

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: ScoresLike,
        *,
        before: ScoresLike | None = None,
        notion: str | Notion = "confidence",
        n_bins: int = 15,
        strategy: str = "uniform",
        bins: Any = None,
        band: str | None = "binomial",
        level: float = 0.9,
        n_resamples: int = 1000,
        rng: Rng = None,
        y_pred: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute what is drawn.

        Parameters
        ----------
        y_true, y_prob, notion, n_bins, strategy, bins, y_pred, sample_weight, classes
            As in `calibrant.metrics.expected_calibration_error`.
        before : probabilities before calibration, of the shape of ``y_prob``, optional
            Drawn beneath, on bins of the same kind.
        band : {"binomial", "resampling"} or None
            Exact binomial quantiles at the mean score of each bin (never too narrow), or those of
            ``n_resamples`` sets of outcomes drawn from the scores themselves.
        level : float
            Probability that a calibrated bin lies within its band.
        n_resamples, rng
            Of ``band="resampling"``.
        """
        require_matplotlib()
        chosen = as_notion(notion)
        options = {"notion": chosen, "n_bins": n_bins, "strategy": strategy, "bins": bins}
        options |= {"y_pred": y_pred, "sample_weight": sample_weight, "classes": classes}
        table = calibration_curve(y_true, y_prob, **options)
        earlier = None if before is None else calibration_curve(y_true, before, **options)
        names = _names_of(y_true, y_prob, y_pred, classes)
        ends = _band(
            table,
            band,
            level,
            n_resamples,
            rng,
            chosen,
            (y_true, y_prob, sample_weight, classes),
            y_pred,
        )
        return cls(table, chosen, claim_names(chosen, list(names)), ends, level, earlier, names)

    def plot(
        self, ax: Any = None, *, max_claims: int = 10, details: tuple[int, ...] | None = None
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; displays of several axes take its place. By default a new figure.
        max_claims : int
            Of more claims, those with the largest part in the error are drawn.
        details : bins (from 0) to look into class by class, optional
            Of the top-label figure; by default the bin whose classes differ most and the fullest.
        """
        check_count(max_claims, "max_claims")
        if self.table.n_claims == 1:
            return self._plot_one(ax)
        if self.table.n_quantities == 1 and self.before is None:
            return self._plot_top_label(ax, details)
        return self._plot_grid(ax, max_claims)

    def _plot_one(self, ax: Any) -> Self:
        ratios = {"height_ratios": (4, 1, 0.12), "hspace": 0.04}
        self.figure_, grid = grid_spec(ax, 3, 1, (4.4, 5.4), **ratios)
        main = self.figure_.add_subplot(grid[0])
        below = self.figure_.add_subplot(grid[1], sharex=main)
        x, y = axis_labels(self._notion)
        self._draw_claim(main, 0)
        self._draw_legend(grid[2])
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
        curve = marks.curve_of(self.table, 0)
        if self.before is None:
            marks.draw_shares(ax, curve)
            marks.draw_means(ax, curve)
            return
        marks.draw_share_outline(ax, marks.curve_of(self.before, 0), BEFORE)
        marks.draw_share_outline(ax, curve, AFTER)
        ax.set_ylim(bottom=0)

    def _draw_claim(self, ax: Any, claim: int) -> None:
        tidy(ax)
        curve = marks.curve_of(self.table, claim, self.band)
        if self.before is None:
            handles = marks.draw_bars(ax, curve)
        else:
            handles = marks.draw_pair(ax, marks.curve_of(self.before, claim), curve)
        if self.band is not None and len(handles) == 3:
            handles[-1].set_label(f"{100 * self.level:g} % if calibrated")
        self._handles = handles
        unit_square(ax)

    def _plot_grid(self, ax: Any, max_claims: int) -> Self:
        shown = (
            self.worst_first[:max_claims]
            if self.table.n_claims > max_claims
            else np.arange(self.table.n_claims)
        )
        n_rows = -(-len(shown) // 5)
        n_columns = -(-len(shown) // n_rows)
        size = (max(4.6, 2.05 * n_columns + 0.5), 2.25 * n_rows + 1.0)
        self.figure_, grid = grid_spec(
            ax, n_rows + 1, n_columns, size, height_ratios=[1.0] * n_rows + [0.12]
        )
        axes = [self.figure_.add_subplot(grid[divmod(i, n_columns)]) for i in range(len(shown))]
        for i, (panel, claim) in enumerate(zip(axes, shown, strict=True)):
            self._draw_claim(panel, int(claim))
            label(panel, title=f"{self._names[claim]}: {self.claim_errors[claim]:.3f}")
            panel.title.set_size(SMALL + 0.5)
            panel.set_box_aspect(1)
            panel.tick_params(labelbottom=i + n_columns >= len(shown), labelleft=i % n_columns == 0)
        self._draw_grid_labels(axes, grid, n_rows, n_columns)
        part = (
            f", the {len(shown)} worst of {self.table.n_claims}"
            if len(shown) < self.table.n_claims
            else ""
        )
        heading(self.figure_, ax, f"{self._title()}{part}")
        self.axes_ = np.array(axes)
        return self

    def _draw_grid_labels(self, axes: list[Any], grid: Any, n_rows: int, n_columns: int) -> None:
        x, y = axis_labels(self._notion)
        for row in range(n_rows):
            axes[row * n_columns].set_ylabel(
                y if len(y) < 24 else "observed frequency", fontsize=SMALL
            )
        self._draw_legend(grid[n_rows, :]).set_title(x, fontsize=SMALL + 1, pad=0)

    def _draw_legend(self, place: Any) -> Any:
        """One legend for all axes, below them, where no data can lie."""
        ax = self.figure_.add_subplot(place)
        ax.set_axis_off()
        style = {"fontsize": SMALL, "frameon": False, "columnspacing": 1.2, "handlelength": 1.6}
        ax.legend(handles=self._handles, loc="center", ncols=3, **style)
        return ax

    def _plot_top_label(self, ax: Any, details: tuple[int, ...] | None) -> Self:
        chosen = self.details if details is None else tuple(details)
        for b in chosen:
            check_option(b, "a bin of details", tuple(range(self.table.n_bins)))
        self.figure_, grid = grid_spec(
            ax, max(1, len(chosen)), 3, (9.6, 4.6), width_ratios=(2.5, 1.35, 0.9)
        )
        self.axes_ = draw_top_label(self, self.figure_, grid, chosen)
        heading(self.figure_, ax, self._title())
        return self

    @property
    def stars(self) -> FloatArray:
        """Mean score and frequency of each bin over all claims, (n_bins, 2): the confidence
        diagram; NaN where empty.
        """
        rows = self.table.weight.sum(axis=0)
        sums = np.stack([self.table.score.sum(axis=0), self.table.outcome.sum(axis=0)], axis=1)
        return np.divide(
            sums, rows[:, None], out=np.full_like(sums, np.nan), where=rows[:, None] > 0
        )

    @property
    def pluses(self) -> FloatArray:
        """Mean score, and it plus or minus the mean gap over the claims of the bin, on the side of
        the star: (n_bins, 2).
        """
        stars = self.stars
        rows = self.table.weight.sum(axis=0)
        off = (self.table.weight * self.table.gap).sum(axis=0)
        gap = np.divide(off, rows, out=np.full_like(off, np.nan), where=rows > 0)
        side = np.where(stars[:, 1] > stars[:, 0], 1.0, -1.0)
        return np.stack([stars[:, 0], stars[:, 0] + side * gap], axis=1)

    @property
    def details(self) -> tuple[int, ...]:
        """The bin of at least 0.5 % of the rows whose star and plus differ most, and the fullest
        bin.
        """
        rows = self.table.weight.sum(axis=0)
        hidden = np.abs(self.pluses[:, 1] - self.stars[:, 1])
        eligible = np.where(rows >= 0.005 * rows.sum(), np.nan_to_num(hidden), -1.0)
        return tuple(sorted({int(eligible.argmax()), int(rows.argmax())}))

    @property
    def _names(self) -> tuple[str, ...]:
        return self.names or ()

    @property
    def _notion(self) -> Notion:
        return as_notion(self.notion)

    def _title(self) -> str:
        now = f"ECE {self.error:.4f}"
        if self.before_error is not None:
            now = f"ECE {self.before_error:.4f} before, {self.error:.4f} after"
        name = self._notion.name
        return f"{name[:1].upper()}{name[1:]}: {now}"


def _names_of(
    y_true: LabelsLike, y_prob: ScoresLike, y_pred: LabelsLike | None, classes: LabelsLike | None
) -> AnyArray:
    """Names of the classes, as `calibration_curve` finds them."""
    if classes is not None:
        return as_array(classes)
    if y_pred is not None:
        return np.unique(np.concatenate([as_array(y_true), as_array(y_pred).ravel()]))
    shape = as_array(y_prob).shape
    return class_names(y_true, shape[1] if len(shape) == 2 else 2, None)


def _band(
    table: BinTable,
    kind: str | None,
    level: float,
    n_resamples: int,
    rng: Rng,
    notion: Notion,
    data: tuple[Any, Any, Any, Any],
    y_pred: LabelsLike | None,
) -> tuple[FloatArray, FloatArray] | None:
    check_option(kind, "band", BANDS)
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    if kind is None:
        return None
    if kind == "binomial":
        return binomial_band(table, level)
    if y_pred is not None:
        raise ValueError(
            "band='resampling' draws from whole rows of probabilities; with y_pred use "
            "band='binomial'"
        )
    check_count(n_resamples, "n_resamples")
    return resampled_band(claims_of(notion, *data)[0], table, level, n_resamples, rng)
