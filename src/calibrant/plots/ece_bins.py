"""Binned errors against the number of bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant._output.results import ShortRepr
from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike, WeightsLike
from calibrant._validation import check_count
from calibrant.metrics import expected_calibration_error
from calibrant.notions import Notion, as_notion
from calibrant.plots._canvas import one_axes, require_matplotlib
from calibrant.plots._style import SMALL, label, series, tidy

_LINES = ("-", (0, (2, 2)), (0, (6, 2)), (0, (1, 1)))
_MARKERS = ("o", "^", "s", "D")


@dataclass(eq=False, repr=False)
class EceVersusBinsDisplay(ShortRepr):
    """Calibration errors of one or several models against the number of bins they were estimated
    with.

    A conclusion that changes with the number of bins is none.

    Parameters
    ----------
    n_bins : array of int of shape (m,)
    errors : dict of (model, notion) to array of shape (m,)

    References
    ----------
    Gupta & Ramdas (2022), Figure 2, arXiv:2107.08353; Roelofs et al. (2022), Mitigating bias in
    calibration error estimation, arXiv:2012.08668.

    Examples
    --------
    >>> from calibrant.datasets import two_label_example
    >>> data = two_label_example()
    >>> models = {"model": data.proba}
    >>> display = EceVersusBinsDisplay.from_predictions(data.labels, models, n_bins=[5, 10])
    >>> display.errors["model", "top-label"].round(6).tolist()
    [0.4, 0.4]
    """

    n_bins: IntArray
    errors: Mapping[tuple[str, str], FloatArray]
    figure_: Any = field(init=False, default=None, repr=False)
    ax_: Any = field(init=False, default=None, repr=False)

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_prob: Any,
        *,
        notions: Sequence[str | Notion] = ("top-label", "confidence"),
        n_bins: Sequence[int] = tuple(range(5, 26)),
        strategy: str = "uniform",
        norm: float = 1,
        inputs: Inputs = "proba",
        sample_weight: WeightsLike | None = None,
        classes: LabelsLike | None = None,
    ) -> Self:
        """Compute what is drawn; ``y_prob`` is an array or a dict of arrays, one per model.

        Other parameters as in `calibrant.metrics.expected_calibration_error`.
        """
        require_matplotlib()
        models = y_prob if isinstance(y_prob, Mapping) else {"model": y_prob}
        counts = [check_count(b, "n_bins") for b in n_bins]
        options: dict[str, Any] = {
            "strategy": strategy,
            "norm": norm,
            "inputs": inputs,
            "sample_weight": sample_weight,
            "classes": classes,
        }

        def error(proba: Any, notion: Notion, count: int) -> float:
            return expected_calibration_error(y_true, proba, notion=notion, n_bins=count, **options)

        errors = {
            (name, notion.name): np.array([error(proba, notion, b) for b in counts])
            for name, proba in models.items()
            for notion in map(as_notion, notions)
        }
        return cls(np.array(counts), errors)

    def plot(self, ax: Any = None) -> Self:
        """Draw: a colour per model, a line and a marker per notion."""
        self.ax_ = one_axes(ax, (5.8, 3.8))
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        models, notions = (list(dict.fromkeys(key[i] for key in self.errors)) for i in range(2))
        for (model, notion), error in self.errors.items():
            color, n = series(models.index(model)).color, notions.index(notion) % len(_LINES)
            style = {
                "color": color,
                "linestyle": _LINES[n],
                "marker": _MARKERS[n],
                "markersize": 3.5,
                "linewidth": 1.4,
            }
            self.ax_.plot(self.n_bins, error, label=f"{model}, {notion}", **style)
        self.ax_.set_ylim(bottom=0)
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        label(
            self.ax_,
            "number of bins",
            "expected calibration error",
            "Calibration error against the number of bins",
        )
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if ax is None else {}
        self.ax_.legend(fontsize=SMALL, frameon=False, **beside)
        return self
