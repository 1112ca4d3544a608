"""Figures of single papers, which the gallery redraws. They are not part of the package.

Each function draws with matplotlib and returns the figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._kernels.simplex import EPS, true_class
from calibrant.guarantees import clopper_pearson
from calibrant.metrics import expected_calibration_error
from calibrant.plots._canvas import grid_spec, new_figure
from calibrant.plots._style import (
    BLUE,
    GREEN,
    INK,
    LARGE,
    PALE,
    SMALL,
    VERMILION,
    label,
    series,
    tidy,
)

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
N_INPUTS = 300
LINES = ("-", (0, (2, 2)), (0, (6, 2)), (0, (1, 1)))
MARKERS = ("o", "^", "s", "D")


def score_boxes(y: Any, proba: Any, names: Sequence[Any]) -> Any:
    """Box plots of the predicted probabilities by true class: Kull et al. (2019), supplement,
    Figure 3, arXiv:1910.12656.

    Whiskers reach from the 5th to the 95th percentile. The notch is the median plus and minus 1.57
    IQR / sqrt(n), about a 95% interval (McGill, Tukey & Larsen, 1978). The bar next to a box is the
    mean with one standard deviation on either side.
    """
    classes = [k for k in range(len(names)) if (y == k).any()]
    n_rows = -(-len(classes) // 3) if len(classes) != 4 else 2
    n_columns = -(-len(classes) // n_rows)
    size = (2.9 * n_columns + 0.4, 2.5 * n_rows + 0.5)
    figure, grid = grid_spec(None, n_rows, n_columns, size)
    ends = box_limits([proba[y == k] for k in classes])
    for i, k in enumerate(classes):
        ax = figure.add_subplot(grid[divmod(i, n_columns)])
        rows = proba[y == k]
        draw_boxes(ax, rows, k)
        ax.set_ylim(ends)
        ax.set_xticks(np.arange(len(names)), [str(name) for name in names])
        y_label = "predicted probability" if i % n_columns == 0 else ""
        x_label = "class of the probability" if i + n_columns >= len(classes) else ""
        label(ax, x_label, y_label, f"true class {names[k]} ({len(rows)} rows)")
    figure.suptitle("Predicted probabilities by true class", fontsize=LARGE)
    return figure


def draw_boxes(ax: Any, rows: Any, k: int) -> None:
    """Draw boxes of all columns with means and standard deviations. Column ``k`` has a color."""
    tidy(ax, grid="y")
    at = np.arange(rows.shape[1])
    props = {"color": INK, "linewidth": 0.9}
    artists = ax.bxp(
        [box_numbers(column) for column in rows.T],
        positions=at - 0.08,
        widths=0.5,
        shownotches=True,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        medianprops={"color": INK, "linewidth": 1.6},
        whiskerprops=props,
        capprops=props,
    )
    for j, box in enumerate(artists["boxes"]):
        colors = ("#9CC4E0", BLUE) if j == k else (PALE, INK)
        box.set(facecolor=colors[0], edgecolor=colors[1], linewidth=0.9)
    style = {"fmt": "D", "color": GREEN, "markersize": 3, "linewidth": 1.3, "capsize": 2}
    ax.errorbar(at + 0.32, rows.mean(axis=0), rows.std(axis=0), **style)
    ax.set(ylim=(-0.03, 1.03), xlim=(-0.6, len(at) - 0.4))


def box_limits(parts: Sequence[Any]) -> tuple[float, float]:
    """Limits of the vertical axes, which contain whiskers and means with deviations up to 0 and 1.

    Some classifiers predict nearly equal probabilities. Their boxes would be flat on axes from 0
    to 1.
    """
    ends = []
    for rows in parts:
        mean, sd = rows.mean(axis=0), rows.std(axis=0)
        ends += [np.quantile(rows, q, axis=0, method="inverted_cdf") for q in (0.05, 0.95)]
        ends += [mean - sd, mean + sd]
    low, high = float(np.min(ends)), float(np.max(ends))
    pad = 0.06 * (high - low)
    return max(low - pad, -0.03), min(high + pad, 1.03)


def box_numbers(column: Any) -> dict[str, Any]:
    """Return the statistics of a box as ``Axes.bxp`` expects them."""
    low, q1, median, q3, high = np.quantile(column, LEVELS, method="inverted_cdf")
    half = 1.57 * (q3 - q1) / np.sqrt(len(column))
    # A notch outside its box would fold back and hide the box.
    notch = {"cilo": max(q1, median - half), "cihi": min(q3, median + half)}
    box = {"whislo": low, "q1": q1, "med": median, "q3": q3, "whishi": high, "fliers": []}
    return box | notch


def latent_function(process: Any, proba: Any, y: Any) -> Any:
    """The latent function of a Gaussian process calibrator, with the inputs and labels that it was
    fitted on below: Wenger et al. (2020), Figure 2, arXiv:1906.04933.
    """
    low, high = max(EPS, float(proba.min())), float(proba.max())
    z = np.linspace(max(low, 1e-3), high, 200)
    mean, sd = process.latent(z)
    ratios = {"height_ratios": (3.4, 1), "hspace": 0.04}
    figure, grid = grid_spec(None, 2, 1, (5.6, 4.6), **ratios)
    above = figure.add_subplot(grid[0])
    below = figure.add_subplot(grid[1], sharex=above)
    tidy(above)
    band = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "label": "mean \N{PLUS-MINUS SIGN} 2 sd"}
    above.fill_between(z, mean - 2 * sd, mean + 2 * sd, **band)
    above.plot(z, mean, color=BLUE, linewidth=2, label="latent mean")
    prior = {"color": INK, "linewidth": 1.2, "linestyle": (0, (4, 3))}
    above.plot(z, np.log(z), label=r"prior mean, $\log z$", **prior)
    above.legend(fontsize=SMALL, frameon=False, loc="lower right")
    above.tick_params(labelbottom=False)
    label(above, "", "latent function f(z)")
    draw_inputs(below, proba[:N_INPUTS], y[:N_INPUTS])
    figure.suptitle("Latent function of the Gaussian process calibrator", fontsize=LARGE)
    return figure


def draw_inputs(ax: Any, proba: Any, y: Any) -> None:
    """Draw the probabilities of the true class above those of the other classes."""
    tidy(ax, grid="x")
    is_true = np.arange(proba.shape[1]) == y[:, None]
    style = {"marker": "|", "s": 90, "alpha": 0.55, "linewidth": 0.9}
    ax.scatter(true_class(proba, y), np.ones(len(y)), color=BLUE, **style)
    others = proba[~is_true]
    ax.scatter(others, np.zeros(others.size), color=VERMILION, **style)
    ax.set_yticks([0, 1], ["other\nclasses", "true\nclass"])
    ax.set_ylim(-0.6, 1.6)
    label(ax, "input z (predicted probability of a class)")


def errors_by_bins(y: Any, models: Mapping[str, Any]) -> Any:
    """Top-label and confidence ECE of models against the number of bins: Gupta & Ramdas (2022),
    Figure 2, arXiv:2107.08353.
    """
    n_bins = range(5, 26)
    errors = {
        (model, notion): [
            expected_calibration_error(y, proba, notion=notion, n_bins=n) for n in n_bins
        ]
        for model, proba in models.items()
        for notion in ("top-label", "confidence")
    }
    figure = new_figure((5.8, 3.8))
    ax = figure.add_subplot()
    draw_errors(ax, n_bins, errors)
    ax.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def draw_errors(ax: Any, n_bins: Sequence[int], errors: Mapping[tuple[str, str], Any]) -> None:
    """Draw lines of errors by (model, kind), with a color per model and a line style per kind."""
    tidy(ax)
    models, kinds = (list(dict.fromkeys(key[i] for key in errors)) for i in range(2))
    for (model, kind), error in errors.items():
        n = kinds.index(kind) % len(LINES)
        style = {"linestyle": LINES[n], "marker": MARKERS[n], "markersize": 3.5, "linewidth": 1.4}
        color = series(models.index(model)).color
        ax.plot(n_bins, error, label=f"{model}, {kind}", color=color, **style)
    ax.set_ylim(bottom=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    title = "Calibration error against the number of bins"
    label(ax, "number of bins", "expected calibration error", title)


def accepted_tests(p_values: Mapping[str, Sequence[float]], alpha: float = 0.05) -> Any:
    """Share of experiments in which a test of calibration does not reject, by method: Kull et al.
    (2019), Figures 3b and 3c, arXiv:1910.12656.

    The intervals are exact (Clopper & Pearson) and treat experiments as independent. A calibrated
    method is accepted with probability ``1 - alpha``, the dashed line.
    """
    values = {name: np.asarray(p, dtype=np.float64) for name, p in p_values.items()}
    hits = np.array([(p > alpha).sum() for p in values.values()], dtype=np.float64)
    count = np.array([p.size for p in values.values()], dtype=np.float64)
    low, high = clopper_pearson(hits, count, 0.05)
    order, names = np.argsort(-hits / count, kind="stable"), list(values)
    at, share = np.arange(len(order)), (hits / count)[order]
    figure = new_figure((max(3.6, 0.62 * len(names) + 1.2), 3.6))
    ax = figure.add_subplot()
    tidy(ax, grid="y")
    ax.bar(at, share, width=0.7, color=BLUE)
    whiskers = np.stack([share - low[order], high[order] - share]).clip(min=0)
    ax.errorbar(at, share, whiskers, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    ax.axhline(1 - alpha, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    slant = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(at, [names[i] for i in order], fontsize=SMALL + 0.5, **slant)
    ax.set_ylim(0, 1.02)
    label(ax, "", f"share of tests with p > {alpha:g}", "Calibration not rejected")
    return figure
