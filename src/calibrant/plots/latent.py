"""The latent function of Gaussian process calibration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from calibrant._output.results import ShortRepr
from calibrant._simplex import EPS, centred, true_class
from calibrant._typing import FloatArray, IntArray, LabelsLike, ScoresLike
from calibrant._validation import check_count, check_predictions
from calibrant.plots._canvas import grid_spec, heading, require_matplotlib
from calibrant.plots._style import BLUE, INK, SMALL, VERMILION, label, tidy

MOST_INPUTS = 300


@runtime_checkable
class HasLatent(Protocol):
    """A fitted calibrator with one latent function of a score."""

    inputs: str

    def latent(self, z: Any) -> tuple[Any, Any]:
        """Mean and standard deviation at scores in the units of ``inputs``."""


@dataclass(eq=False, repr=False)
class LatentDisplay(ShortRepr):
    """The latent function of a Gaussian process calibrator, with the inputs and labels that it was
    fitted to below.

    Parameters
    ----------
    z, mean, sd : arrays of shape (m,)
        Scores and the latent mean and standard deviation there.
    prior_mean : array of shape (m,)
        log z for probabilities, z for logits: "the classifier is calibrated".
    scores : array of shape (n, K)
        Inputs of the calibration data; logits are measured from their row mean.
    y : column codes of shape (n,)
        Their labels.
    inputs : {"proba", "logits", "log_proba"}

    References
    ----------
    Wenger et al. (2020), Figure 2, arXiv:1906.04933.

    Examples
    --------
    >>> z = np.linspace(0.1, 1, 4)
    >>> scores, labels = np.array([[0.3, 0.7]]), np.array([1])
    >>> display = LatentDisplay(z, np.log(z), np.ones(4), np.log(z), scores, labels)
    >>> display.band[1][-1]
    np.float64(2.0)
    """

    z: FloatArray
    mean: FloatArray
    sd: FloatArray
    prior_mean: FloatArray
    scores: FloatArray
    y: IntArray
    inputs: str = "proba"
    figure_: Any = field(init=False, default=None, repr=False)
    axes_: Any = field(init=False, default=None, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: HasLatent, X: ScoresLike, y: LabelsLike, *, n_points: int = 200
    ) -> Self:
        """Compute what is drawn: the latent function over the range of the scores X, and X with its
        labels.

        Of more than 300 rows the first 300 are drawn below. Of a stack, pass a member of
        ``members_`` that has a latent function.
        """
        require_matplotlib()
        check_count(n_points, "n_points", minimum=2)
        _check_latent(estimator)
        classes = getattr(estimator, "classes_", None)
        scores, codes, _, _ = check_predictions(y, X, None, classes, inputs=estimator.inputs)
        is_proba = estimator.inputs == "proba"
        shown = np.asarray(scores if is_proba else centred(scores), dtype=np.float64)
        low = max(EPS, float(shown.min())) if is_proba else float(shown.min())
        high = max(float(shown.max()), low + 1e-6)
        z = np.linspace(max(low, 1e-3) if is_proba and high > 1e-3 else low, high, n_points)
        mean, sd = (np.asarray(part, dtype=np.float64).reshape(-1) for part in estimator.latent(z))
        prior = np.log(z) if is_proba else z
        return cls(z, mean, sd, prior, shown[:MOST_INPUTS], codes[:MOST_INPUTS], estimator.inputs)

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Two standard deviations to either side of the mean."""
        return self.mean - 2 * self.sd, self.mean + 2 * self.sd

    @property
    def hits(self) -> FloatArray:
        """Scores that the true class got, (n,)."""
        return true_class(self.scores, self.y)

    @property
    def misses(self) -> FloatArray:
        """Scores that the other classes got, (n (K - 1),)."""
        is_true = np.arange(self.scores.shape[1]) == self.y[:, None]
        return self.scores[~is_true]

    def plot(self, ax: Any = None) -> Self:
        """Draw the latent function above, inputs and labels below."""
        self.figure_, grid = grid_spec(ax, 2, 1, (5.6, 4.6), height_ratios=(3.4, 1), hspace=0.04)
        above = self.figure_.add_subplot(grid[0])
        below = self.figure_.add_subplot(grid[1], sharex=above)
        self._draw_latent(above)
        self._draw_inputs(below)
        heading(self.figure_, ax, "Latent function of the calibration map")
        self.axes_ = np.array([above, below])
        return self

    def _draw_latent(self, ax: Any) -> None:
        tidy(ax)
        ax.fill_between(
            self.z,
            *self.band,
            color=BLUE,
            alpha=0.2,
            linewidth=0,
            label="mean \N{PLUS-MINUS SIGN} 2 sd",
        )
        ax.plot(self.z, self.mean, color=BLUE, linewidth=2, label="latent mean")
        name = r"prior mean, $\log z$" if self.inputs == "proba" else r"prior mean, $z$"
        ax.plot(
            self.z, self.prior_mean, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label=name
        )
        ax.legend(fontsize=SMALL, frameon=False, loc="lower right")
        ax.tick_params(labelbottom=False)
        label(ax, "", "latent function f(z)")

    def _draw_inputs(self, ax: Any) -> None:
        tidy(ax, grid="x")
        ax.scatter(
            self.hits,
            np.ones(len(self.hits)),
            marker="|",
            s=90,
            color=BLUE,
            alpha=0.55,
            linewidth=0.9,
        )
        ax.scatter(
            self.misses,
            np.zeros(self.misses.size),
            marker="|",
            s=90,
            color=VERMILION,
            alpha=0.55,
            linewidth=0.9,
        )
        ax.set_yticks([0, 1], ["other\nclasses", "true\nclass"])
        ax.set_ylim(-0.6, 1.6)
        what = "probability" if self.inputs == "proba" else "logit"
        label(ax, f"input z ({what} of a class)")


def _check_latent(estimator: Any) -> None:
    """Raise where there is no latent function, with the members that have one."""
    if isinstance(estimator, HasLatent):
        return
    members = getattr(estimator, "members_", {})
    with_one = [name for name, member in members.items() if isinstance(member, HasLatent)]
    hint = "; use a GaussianProcessCalibration"
    if with_one:
        hint = f", its member does: pass estimator.members_[{with_one[0]!r}]"
    raise TypeError(f"{type(estimator).__name__} has no latent function{hint}")
