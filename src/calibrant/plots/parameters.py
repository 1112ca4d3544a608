"""Plot the parameters of a calibrator, and how calibration changes the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._kernels.blocks import sum_blocks
from calibrant._typing import (
    AnyArray,
    FloatArray,
    Inputs,
    IntArray,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import check_fitted, check_predictions
from calibrant.notions import as_notion
from calibrant.plots._canvas import AxesDisplay, GridDisplay, grid_spec, heading, require_matplotlib
from calibrant.plots._style import DIVERGING, INK, SEQUENTIAL, SMALL, label

MOST_NUMBERS = 12


@dataclass(eq=False, repr=False)
class ParameterDisplay(GridDisplay):
    r"""Plot of the parameters of a linear calibrator as a matrix and a column.

    Call `from_estimator`, then `plot`. For Dirichlet calibration, the plot shows A and c of the
    canonical form :math:`\mathrm{softmax}(A \log(K p) + \log c)`. If entry (i, j) of A is large, a
    high score of class j raises the probability of class i. A uniform prediction becomes c. For
    other linear calibrators, the plot shows coefficients and intercepts.

    Parameters
    ----------
    matrix : array of shape (K, K)
        Matrix of coefficients.
    column : array of shape (K,)
        Intercepts, or the vector c for Dirichlet calibration.
    class_names : sequence, optional
        Names of the classes.
    symbols : pair of str
        Symbols of the matrix and the column.

    See Also
    --------
    calibrant.DirichletCalibration : Calibrator with a canonical form.
    ConfusionChangeDisplay : Plot the change of the confusion matrix.

    References
    ----------
    Kull et al. (2019), Figure 2b, arXiv:1910.12656.

    Examples
    --------
    >>> from calibrant import DirichletCalibration, datasets
    >>> data = datasets.noisy_simplex(200, 3, rng=0)
    >>> fitted = DirichletCalibration(lam=0.01).fit(data.proba, data.labels)
    >>> ParameterDisplay.from_estimator(fitted).matrix.shape
    (3, 3)
    """

    matrix: FloatArray
    column: FloatArray
    class_names: AnyArray | None = None
    symbols: tuple[str, str] = ("A", "c")

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Create the display from a fitted calibrator.

        The display shows the canonical form of `DirichletCalibration`, and ``coef_`` and
        ``intercept_`` of other calibrators.
        """
        require_matplotlib()
        check_fitted(estimator)
        if hasattr(estimator, "canonical"):
            matrix, column = estimator.canonical()
            return cls(matrix, column, estimator.classes_)
        if not hasattr(estimator, "coef_"):
            raise TypeError(
                f"{type(estimator).__name__} has no coef_. Pass a fitted DirichletCalibration, "
                "MatrixScaling or VectorScaling."
            )
        coef = np.asarray(estimator.coef_)
        matrix = np.diag(coef) if coef.ndim == 1 else coef
        return cls(matrix, np.asarray(estimator.intercept_), estimator.classes_, ("W", "b"))

    def plot(self, ax: Any = None) -> Self:
        """Draw the figure, with numbers in the cells for up to 12 classes."""
        size = len(self.column)
        side = float(np.clip(0.46 * size, 2.6, 5.2))
        ratios = {"width_ratios": (size, max(1.0, size / 12)), "wspace": 0.03}
        self.figure_, grid = grid_spec(ax, 1, 2, (side + 1.7, side + 0.9), **ratios)
        left, right = (self.figure_.add_subplot(grid[i]) for i in range(2))
        names, column = _names(self.class_names, size), self.column[:, None]
        draw_matrix(left, self.matrix, names, names, signed=bool((self.matrix < 0).any()), digits=2)
        draw_matrix(right, column, names, [""], signed=bool((column < 0).any()), digits=2)
        right.set_yticks([])
        label(left, "score of class", "calibrated probability of class", self.symbols[0])
        label(right, "", "", self.symbols[1])
        heading(self.figure_, ax, f"Parameters {self.symbols[0]} and {self.symbols[1]}")
        self.axes_ = np.array([left, right])
        return self


@dataclass(eq=False, repr=False)
class ConfusionChangeDisplay(AxesDisplay):
    """Plot of the change in the confusion matrix by calibration.

    Call `from_predictions`, then `plot`.

    Parameters
    ----------
    before, after : arrays of shape (K, K)
        Confusion matrices. Rows are true classes, and columns are predicted classes.
    class_names : sequence, optional
        Names of the classes.

    Attributes
    ----------
    change : array of shape (K, K)
        The difference ``after - before``. Positive values are improvements on the diagonal, and
        negative values are improvements elsewhere.

    See Also
    --------
    ParameterDisplay : Plot the parameters of the calibrator.

    References
    ----------
    Kull et al. (2019), Figure 2c, arXiv:1910.12656.

    Examples
    --------
    >>> before, after = [[0.4, 0.6], [0.4, 0.6]], [[0.6, 0.4], [0.4, 0.6]]
    >>> ConfusionChangeDisplay.from_predictions([0, 1], before, after).change.tolist()
    [[1.0, -1.0], [0.0, 0.0]]
    """

    before: FloatArray
    after: FloatArray
    class_names: AnyArray | None = None
    change: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.change = np.asarray(self.after) - np.asarray(self.before)

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        before: ScoresLike,
        after: ScoresLike,
        *,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Create the display from predictions before and after calibration.

        If several classes tie for the highest score, the first of these classes is predicted.
        ``inputs`` is the type of the scores ``before`` and ``after``.
        """
        require_matplotlib()
        proba, y, weight, names = check_predictions(
            y_true, before, sample_weight, classes, inputs=inputs
        )
        if np.shape(after) != np.shape(before):
            raise ValueError(
                f"before and after must have the same shape, got {np.shape(before)} and "
                f"{np.shape(after)}. Pass scores of the same rows and classes."
            )
        later, _, _, _ = check_predictions(y_true, after, sample_weight, names, inputs=inputs)
        return cls(_confusion(proba, y, weight), _confusion(later, y, weight), names)

    def plot(self, ax: Any = None) -> Self:
        """Draw the figure, with numbers in the cells for up to 12 classes."""
        size = len(self.change)
        side = float(np.clip(0.46 * size, 2.6, 5.2))
        self._open_axes(ax, (side + 1.2, side + 0.9))
        names = _names(self.class_names, size)
        draw_matrix(self.ax_, self.change, names, names, signed=True, digits=0)
        title = f"Change of the confusion matrix ({float(np.trace(self.change)):+g} correct)"
        label(self.ax_, "predicted class", "true class", title)
        return self


def _confusion(proba: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
    size = proba.shape[1]
    notion = as_notion("confidence")

    def counts(rows: slice) -> FloatArray:
        predicted = notion.select(proba[rows]).labels()[:, 0]
        cell = y[rows] * size + predicted
        return np.bincount(cell, weight[rows], minlength=size * size)

    total: FloatArray = sum_blocks(counts, *proba.shape)
    return total.reshape(size, size)


def _names(class_names: AnyArray | None, size: int) -> list[str]:
    return [str(n) for n in (range(size) if class_names is None else class_names)]


def draw_matrix(
    ax: Any, matrix: FloatArray, rows: list[str], columns: list[str], *, signed: bool, digits: int
) -> None:
    """Draw a matrix as colored cells, with numbers if there are at most 12 rows."""
    largest = float(np.abs(matrix).max(initial=0.0)) or 1.0
    colors = {"cmap": DIVERGING, "vmin": -largest} if signed else {"cmap": SEQUENTIAL, "vmin": 0.0}
    image = ax.imshow(matrix, vmax=largest, aspect="auto", **colors)
    slant = {"rotation": 40, "ha": "right"} if max(map(len, columns)) > 4 else {}
    ax.set_xticks(*_ticks(columns), fontsize=SMALL, **slant)
    ax.set_yticks(*_ticks(rows), fontsize=SMALL)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if len(rows) <= MOST_NUMBERS:
        _draw_numbers(ax, matrix, largest, signed=signed, digits=digits)
    elif matrix.shape[1] > 1:
        _draw_colorbar(ax, image)


def _draw_colorbar(ax: Any, image: Any) -> None:
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=SMALL)


def _draw_numbers(
    ax: Any, matrix: FloatArray, largest: float, *, signed: bool, digits: int
) -> None:
    style = {"ha": "center", "va": "center", "fontsize": SMALL}
    for (i, j), value in np.ndenumerate(matrix):
        has_sign = signed and digits == 0 and round(value) != 0
        text = f"{value:+.{digits}f}" if has_sign else f"{value:z.{digits}f}"
        shade = abs(value) / largest
        color = "white" if shade > 0.62 else INK if shade > 0.005 else "#A0A0A0"
        ax.text(j, i, text, color=color, **style)


def _ticks(names: list[str]) -> tuple[list[int], list[str]]:
    """Return positions and names of all classes, or of about ten if there are many classes."""
    step = 1 if len(names) <= 2 * MOST_NUMBERS else -(-len(names) // 10)
    positions = list(range(0, len(names), step))
    return positions, [names[i] for i in positions]
