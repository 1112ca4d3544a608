"""Draw figures in the style of the papers with the plots of the library.

    python benchmarks/papers/figures.py [--data FOLDER] [--only bins]

The figures are Figures 5 to 8 of Gupta & Ramdas 2022 (errors for 5 to 25 bins), Figures 1 to 10 of
Gupta et al. 2021 (cumulative graphs), Figures 5a and 6 of the supplement of Kull et al. 2019
(critical differences, from the stored results), and Figures 3 and 4 of Wenger et al. 2020 (active
learning). They are saved in ``docs/images``. The measurements of active learning are stored in
``results/figures``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gupta_ramdas_2022 as top_label
import kull_2019_uci as uci
import matplotlib as mpl
import numpy as np
import reproduction
from gupta_2021 import splined
from kull_2019 import FILE
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.ensemble import RandomForestClassifier

from calibrant import DirichletCalibration, GaussianProcessCalibration
from calibrant._output.files import written_aside
from calibrant._output.numbers import format_percent
from calibrant.metrics import (
    accuracy,
    confidence_on_errors,
    doubt_on_correct,
    expected_calibration_error,
)
from calibrant.plots import CriticalDifferenceDisplay, CumulativeDisplay
from calibrant.plots._style import AFTER, BEFORE, MEDIUM, SMALL, label, tidy

sys.path.append(str(reproduction.ROOT / "tools"))
import paper_figures

IMAGES = reproduction.ROOT / "docs" / "images"
WIDTH = 7.6
"""Width of a figure in inches. Pages show figures of at most 750 px in full size."""
BINS = tuple(range(5, 26))


def save(figure: Any, name: str) -> None:
    # Text stays searchable. Without a date and with fixed identifiers, files change only with
    # figures.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "calibrant"})
    with written_aside(IMAGES / f"papers_{name}.svg") as aside:
        figure.savefig(aside, bbox_inches="tight", format="svg", metadata={"Date": None})


# Gupta & Ramdas: errors against the number of bins

ERRORS = ("top-label ECE", "top-label MCE", "class-wise ECE (%)")


def errors_by_bins(data: Path, file: str) -> list[dict[Any, Any]]:
    """Per kind of error, the values of every method for 5 to 25 bins."""
    X, y, Z, truth = reproduction.load_split(data, file)
    scaled = {
        "not calibrated": softmax(Z, axis=1),
        "temperature scaling": top_label.tempered(X, y, Z),
        "vector scaling": top_label.vector_scaled(X, y, Z),
    }
    if X.shape[1] <= top_label.NEWTON:
        fitted = DirichletCalibration(lam=0, inputs="logits").fit(X, y)
        scaled["Dirichlet calibration"] = fitted.predict_proba(Z)
    measures: dict[str, list[Any]] = {
        name: [top_label.errors(truth, proba, n_bins) for n_bins in BINS]
        for name, proba in scaled.items()
    }
    # With 100 classes, Dirichlet calibration has no finite optimum. The empty line keeps the colors
    # of the other methods.
    measures.setdefault("Dirichlet calibration", [[np.nan] * len(ERRORS) for _ in BINS])
    binned = [top_label.binned(X, y, Z, truth, 0, n_bins) for n_bins in BINS]
    measures["class-wise binning, normalized"] = [normal for normal, _ in binned]
    measures["top-label or class-wise binning"] = [binary for _, binary in binned]
    return [
        {(name, kind): np.array(values)[:, place] for name, values in measures.items()}
        for place, kind in enumerate(ERRORS)
    ]


def draw_bins(data: Path) -> None:
    draw_bin_grid({name: errors_by_bins(data, file) for file, name in top_label.ROWS.items()})


def draw_bin_grid(errors_of: Mapping[str, list[dict[Any, Any]]]) -> None:
    """One row per network, one column per kind of error."""
    import matplotlib.pyplot as plt

    shape = len(errors_of), len(ERRORS)
    options: Any = {"figsize": (WIDTH, 1.9 * shape[0] + 0.6), "layout": "constrained"}
    figure, axes = plt.subplots(*shape, sharex=True, **options)
    for row, (name, errors) in zip(axes, errors_of.items(), strict=True):
        for ax, values in zip(row, errors, strict=True):
            paper_figures.draw_errors(ax, BINS, values)
            for line in ax.get_lines():
                line.set_markersize(2)
            ax.set_title("", loc="left")  # the title and labels of a single diagram
            label(ax)
        row[0].set_ylabel(name.replace(" ", "\n", 1), fontsize=MEDIUM)
    for ax, kind in zip(axes[0], ERRORS, strict=True):
        ax.set_title(kind, fontsize=MEDIUM)
    for ax in axes[-1]:
        ax.set_xlabel("number of bins", fontsize=MEDIUM)
    lines = axes[0, 0].get_lines()
    names = [str(line.get_label()).split(", top")[0] for line in lines]
    figure.legend(lines, names, loc="outside upper center", ncols=3, frameon=False, fontsize=MEDIUM)
    save(figure, "errors_by_bins")


# Gupta et al.: cumulative graphs

CLAIMS = {
    "confidence": ("Confidence", 6),
    "rank-2": ("Second highest probability", 6),
    "rank-3": ("Third highest probability", 6),
    "within-top-2": ("Sum of the two highest", 14),
    "within-top-3": ("Sum of the three highest", 14),
}


def draw_cumulative(data: Path) -> None:
    X, y, Z, truth = reproduction.load_split(data, FILE)
    before = [
        CumulativeDisplay.from_predictions(truth, softmax(Z, axis=1), notion=notion, name=name)
        for notion, (name, _) in CLAIMS.items()
    ]
    after = [
        CumulativeDisplay.from_predictions(
            *splined(X, y, Z, truth, notion, n_knots), notion="class-1", name=name
        )
        for notion, (name, n_knots) in CLAIMS.items()
    ]
    draw_graphs(before, "cumulative_before")
    draw_graphs(after, "cumulative_after")


def draw_graphs(displays: Any, name: str) -> None:
    """One row per claim: the cumulative graph, and the observed frequency against the score.

    The other two graphs of `CumulativeDisplay` show the same curves on another axis. Four columns
    would be too small to read.
    """
    import matplotlib.pyplot as plt

    shape = len(displays), 2
    options: Any = {"figsize": (WIDTH, 2.1 * shape[0]), "layout": "constrained"}
    figure, axes = plt.subplots(*shape, **options)
    for row, display in zip(axes, displays, strict=True):
        for ax in row:
            tidy(ax)
        display._draw_cumulative(row[0], np.append(0.0, display.fractile))
        display._draw_plain(row[1], display.score)
        ks, rate = format_percent(display.ks), format_percent(display.rate)
        label(row[0], "", "cumulative mean", f"{display.name}: KS error {ks}")
        label(row[1], "", "observed frequency", f"Observed frequency {rate}")
    label(axes[-1, 0], "fraction of rows, ordered by score", "cumulative mean")
    label(axes[-1, 1], "score", "observed frequency")
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=3, frameon=False, fontsize=MEDIUM)
    save(figure, name)


# Kull et al.: critical differences

METHOD_NAMES = ("Dirichlet", "beta", "frequency", "isotonic", "width", "temperature", "none")
"""Names of `kull_2019_uci.COLUMNS`. "frequency" and "width" are quantile and uniform bins."""
MEASURE_NAMES = {
    "accuracy": "Accuracy",
    "log-loss": "Log-loss",
    "confidence-ECE": "ECE",
    "classwise-ECE": "Class-wise ECE",
    "p-confidence-ECE": "p-value of ECE",
    "p-classwise-ECE": "p-value of class-wise ECE",
}


def draw_ranks(data: Path) -> None:
    import matplotlib.pyplot as plt

    results = uci.by_set(reproduction.read_paper("kull_2019_uci"))
    measures = [values for case, values in results.items() if case.startswith("nbayes--")]
    title = f"Log-loss of naive Bayes, {len(measures)} data sets"
    save(differences(measures, "log-loss", title).plot().figure_, "critical_difference")
    figure, axes = plt.subplots(4, 2, figsize=(WIDTH, 10.5), layout="constrained")
    for ax, key in zip(axes.ravel(), uci.RANKS, strict=True):
        display = differences(list(results.values()), key, MEASURE_NAMES.get(key, key))
        display.p_value = None  # below 0.001 in all cases, and the title would be too long
        display.plot(ax)
    save(figure, "critical_differences")


def differences(measures: Any, key: str, title: str) -> CriticalDifferenceDisplay:
    return CriticalDifferenceDisplay.from_scores(
        uci.scores(measures, key), METHOD_NAMES, method="bonferroni-dunn", title=title
    )


# Wenger et al.: active learning

DOUBT = "Mean of 1 \N{MINUS SIGN} confidence on correct predictions"
ACTIVE_STYLES = {"as it is": ("not calibrated", BEFORE), "calibrated": ("calibrated", AFTER)}
"""Label and style by the name of a model in the stored results."""
CHUNK, FIRST, FOR_CALIBRATION, SHUFFLES, N_TEST = 1500, 1000, 200, 2, 4000
MEASURE_TITLES = ("Error rate", "ECE (100 bins)", "Mean confidence on errors", DOUBT)
MEASURES = {
    "error": lambda y, p: 1 - accuracy(y, p),
    "ECE": lambda y, p: expected_calibration_error(y, p, n_bins=100),
    "overconfidence": confidence_on_errors,
    "underconfidence": doubt_on_correct,
}


def learn(X: Any, y: Any, Z: Any, truth: Any, *, is_calibrated: bool) -> list[list[float]]:
    """Measure active learning after each chunk of a stream: requested labels and scores.

    A forest requests the labels of rows whose entropy is above 0.5. The calibrated forest uses the
    first 200 labels of a chunk for its calibrator and learns from the other labels.
    """
    known, kept = np.arange(FIRST), np.arange(0)
    steps = []
    for begin in range(FIRST, len(y), CHUNK):
        forest = RandomForestClassifier(30, random_state=0).fit(X[known], y[known])
        predict = forest.predict_proba
        if is_calibrated and len(kept):
            gp = GaussianProcessCalibration(random_state=0).fit(predict(X[kept]), y[kept])
            predict = lambda rows, gp=gp, forest=forest: gp.predict_proba(  # noqa: E731
                forest.predict_proba(rows)
            )
        proba = predict(Z)
        steps.append([len(known) + len(kept), *(of(truth, proba) for of in MEASURES.values())])
        asked = begin + np.flatnonzero(entropy(predict(X[begin : begin + CHUNK]), axis=1) > 0.5)
        if is_calibrated:
            kept, asked = np.r_[kept, asked[:FOR_CALIBRATION]], asked[FOR_CALIBRATION:]
        known = np.r_[known, asked]
    return steps


def active_learning(data: Path) -> Mapping[str, Any]:
    file = reproduction.load(data, "features_kitti")
    X, Z = (np.nan_to_num(file[key].astype(np.float64)) for key in ("X_train", "X_test"))
    _, y = np.unique(file["y_train"], return_inverse=True)
    truth = np.searchsorted(np.unique(file["y_train"]), file["y_test"])
    measures: dict[str, Any] = {"as it is": [], "calibrated": []}
    for seed in range(SHUFFLES):
        order = np.random.default_rng(seed).permutation(len(y))
        for name, runs in measures.items():
            steps = learn(
                X[order],
                y[order],
                Z[:N_TEST],
                truth[:N_TEST],
                is_calibrated=name == "calibrated",
            )
            runs.append(steps)
    return measures


def draw_active(data: Path) -> None:
    import matplotlib.pyplot as plt

    case = "active_learning"
    if case not in reproduction.read_paper("figures"):
        reproduction.write_result("figures", case, active_learning(data))
    measures = reproduction.read_paper("figures")[case]
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 5.6), layout="constrained", sharex=True)
    for place, (ax, title) in enumerate(zip(axes.flat, MEASURE_TITLES, strict=True), start=1):
        tidy(ax)
        for model, runs in measures.items():
            name, (color, linestyle, marker) = ACTIVE_STYLES[model]
            style: Any = {"color": color, "linestyle": linestyle, "marker": marker}
            for n_run, steps in enumerate(runs):
                asked, values = np.transpose(steps)[[0, place]]
                ax.plot(asked, values, markersize=4, label=name if n_run == 0 else "", **style)
        label(ax, "", "", title)
        ax.set_ylim(bottom=0)
    for ax in axes[-1]:
        ax.set_xlabel("labels requested", fontsize=MEDIUM)
    axes[0, 0].legend(frameon=False, fontsize=SMALL)
    save(figure, "active_learning")


DRAWN = {
    "bins": draw_bins,
    "cumulative": draw_cumulative,
    "ranks": draw_ranks,
    "active": draw_active,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=reproduction.data_folder())
    parser.add_argument("--only", choices=list(DRAWN), help="draw only this figure")
    chosen = parser.parse_args()
    mpl.use("Agg")
    warnings.simplefilter("ignore")
    for name in [chosen.only] if chosen.only else DRAWN:
        DRAWN[name](chosen.data)


if __name__ == "__main__":
    main()
