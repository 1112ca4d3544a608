"""Plot cumulative scores and outcomes without bins."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_option
from calibrant.binary import SplineCalibration
from calibrant.metrics.ks import ks_path
from calibrant.notions import Claim, Notion, as_notion, claims_of
from calibrant.plots._canvas import GridDisplay, grid_spec, heading, require_matplotlib
from calibrant.plots._style import GREEN, INK, SMALL, Series, label, tidy

MOST_POINTS = 2000
"""Maximum number of points that are drawn. The width of a figure has fewer pixels."""

SCORE, FREQUENCY = Series(INK, "-", "o"), Series(GREEN, (0, (5, 2)), "s")


@dataclass(eq=False, repr=False)
class CumulativeDisplay(GridDisplay):
    r"""Four graphs of score and observed frequency of one binary event, without bins.

    Call `from_predictions`, then `plot`. The two upper graphs show cumulative values. The
    horizontal axis is the fraction of rows in the left graphs, and the score in the right graphs.
    For the fraction t of rows with scores up to s, the upper graphs show

    .. math:: S(s) = \frac1n \sum_{f_i \le s} f_i , \qquad P(s) = \frac1n \sum_{f_i \le s} o_i ,

    and the KS error is :math:`\max_s |S(s) - P(s)|`. The lower graphs show the score and the
    estimated frequency. The estimated frequency is the slope of a spline that is fitted to P as a
    function of t, as in `SplineCalibration`.

    Parameters
    ----------
    fractile, score, cumulative_score, cumulative_outcome, probability : arrays of shape (m,)
        The values of t, s, S, P and the slope of the spline, in increasing order of s. S and P
        start at 0.
    ks : float
        Kolmogorov-Smirnov (KS) calibration error of all rows.
    rate : float
        Share of the rows whose outcome is 1.
    worst : float
        Fraction of rows t at which the distance between S and P is largest.
    name : str
        Name of the event, for the title.

    See Also
    --------
    calibrant.metrics.ks_error : The KS error.
    ReliabilityDisplay : Reliability diagram with bins.

    Notes
    -----
    If there are more than 2,000 distinct scores, the graphs show a subset of scores that includes
    the score of the largest distance.

    References
    ----------
    Gupta et al. (2021), Calibration of neural networks using splines, Figures 1 and 2,
    arXiv:2006.12800.

    Examples
    --------
    >>> proba = [0.8, 0.8, 0.8, 0.8]
    >>> display = CumulativeDisplay.from_predictions([1, 1, 0, 1], proba, notion="class-1")
    >>> round(display.ks, 6), display.rate
    (0.05, 0.75)
    """

    fractile: FloatArray
    score: FloatArray
    cumulative_score: FloatArray
    cumulative_outcome: FloatArray
    probability: FloatArray
    ks: float
    rate: float
    worst: float
    name: str = ""

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: ScoresLike,
        *,
        notion: str | Notion = "confidence",
        claim: int = 0,
        n_knots: int = 6,
        name: str | None = None,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute the graphs.

        Parameters
        ----------
        y_true, y_prob, notion, inputs, sample_weight, classes
            As in `calibrant.metrics.ks_error`.
        claim : int
            Index of the event. For "class-wise" and "top-label", this is the column of the class.
        n_knots : int
            Number of knots of the spline.
        name : str, optional
            Name of the event, for the title. Set the name if you plot the output of
            ``predict_claims``. For such a plot, pass the outcomes as ``y_true``, the probabilities
            as ``y_prob`` and ``notion="class-1"``.
        """
        require_matplotlib()
        notion = as_notion(notion)
        claims, classes_ = claims_of(notion, y_true, y_prob, sample_weight, classes, inputs=inputs)
        check_option(claim, "claim", tuple(range(claims.n_claims)))
        title = notion.claim_name(claim, classes_) if name is None else name
        return cls._from_claim(next(islice(claims, claim, None)), n_knots, title)

    @classmethod
    def _from_claim(cls, claim: Claim, n_knots: int, name: str) -> Self:
        if not claim.weight.any():
            raise ValueError(
                f"No row belongs to {name!r}. Pass the index of another event as claim=."
            )
        path = ks_path(claim)
        spline = SplineCalibration(n_knots=n_knots)
        spline.fit(claim.score, claim.outcome.astype(np.intp), sample_weight=claim.weight)
        places = _select(len(path.score), path.worst)
        return cls(
            path.share[places],
            path.score[places],
            (path.outcome + path.excess)[places],
            path.outcome[places],
            spline.predict_proba(path.score[places])[:, 1],
            path.error,
            float(path.outcome[-1]),
            float(path.share[path.worst]),
            name,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the four graphs into a new figure, or into the area of ``ax``."""
        self.figure_, grid = grid_spec(ax, 2, 2, (7.4, 6.0))
        a, b, c, d = (self.figure_.add_subplot(grid[i, j]) for i in range(2) for j in range(2))
        for panel in (a, b, c, d):
            tidy(panel)
        self._draw_cumulative(a, np.append(0.0, self.fractile))
        self._draw_cumulative(b, np.append(0.0, self.cumulative_score))
        self._draw_plain(c, self.fractile)
        self._draw_plain(d, self.score)
        label(a, "fraction of rows, ordered by score", "cumulative mean", "(a)")
        label(b, "cumulative mean score", "cumulative mean", "(b)")
        label(c, "fraction of rows, ordered by score", "score and frequency", "(c)")
        label(d, "score", "score and frequency", "(d)")
        size = {} if ax is None else {"handlelength": 1.0, "borderaxespad": 0.1}
        a.legend(fontsize=SMALL, frameon=False, loc="upper left", **size)
        ks, rate = format_percent(self.ks), format_percent(self.rate)
        title = f"{self.name}: KS error {ks}, observed frequency {rate}"
        heading(self.figure_, ax, title[:1].upper() + title[1:])
        self.axes_ = np.array([[a, b], [c, d]])
        return self

    def _draw_cumulative(self, ax: Any, x: FloatArray) -> None:
        score = np.append(0.0, self.cumulative_score)
        outcome = np.append(0.0, self.cumulative_outcome)
        ax.fill_between(x, score, outcome, color=GREEN, alpha=0.18, linewidth=0)
        _draw_two(ax, x, score, outcome)
        place = int(np.abs(np.append(0.0, self.fractile) - self.worst).argmin())
        style = {"color": GREEN, "linewidth": 1.8, "label": "largest distance (KS)"}
        ax.plot([x[place]] * 2, [score[place], outcome[place]], **style)

    def _draw_plain(self, ax: Any, x: FloatArray) -> None:
        _draw_two(ax, x, self.score, self.probability)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(-0.03, 1.03)


def _draw_two(ax: Any, x: FloatArray, score: FloatArray, outcome: FloatArray) -> None:
    marker = {"marker": "o", "markersize": 3} if x.size < 8 else {}
    lines = ((score, SCORE, 1.6, "score"), (outcome, FREQUENCY, 1.8, "observed frequency"))
    for y, style, width, name in lines:
        line = {"color": style.color, "linestyle": style.linestyle, "linewidth": width}
        ax.plot(x, y, label=name, **line, **marker)


def _select(size: int, keep: int) -> Any:
    if size <= MOST_POINTS:
        return np.arange(size)
    return np.unique(np.append(np.linspace(0, size - 1, MOST_POINTS).astype(int), keep))
