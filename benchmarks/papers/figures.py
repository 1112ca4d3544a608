"""Pictures in the manner of the papers' figures, drawn by the library's plots.

    python benchmarks/papers/figures.py [--data FOLDER] [--only bins]

Gupta & Ramdas 2022, Figures 5 to 8 (errors for 5 to 25 bins); Gupta et al. 2021, Figures 1 to 10
(cumulative graphs); Kull et al. 2019, Figures 5a and 6 of the supplement (critical differences,
from the kept results); Wenger et al. 2020, Figures 3 and 4 (active learning). Pictures go to
``docs/images``; what active learning measured is kept in ``results/figures``.
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
from calibrant.metrics import (
    accuracy,
    confidence_on_errors,
    doubt_on_correct,
    expected_calibration_error,
)
from calibrant.plots import CriticalDifferenceDisplay, CumulativeDisplay

sys.path.append(str(reproduction.ROOT / "tools"))
import paper_figures

IMAGES = reproduction.ROOT / "docs" / "images"
BINS = tuple(range(5, 26))


def save(figure: Any, name: str) -> None:
    # Text that can be searched; no date and fixed identifiers, so that files change with figures.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "calibrant"})
    with written_aside(IMAGES / f"papers_{name}.svg") as aside:
        figure.savefig(aside, bbox_inches="tight", format="svg", metadata={"Date": None})


# Gupta & Ramdas: errors against the number of bins

ERRORS = ("TL-ECE", "TL-MCE", "CW-ECE x 100")


def errors_by_bins(data: Path, file: str) -> list[dict[Any, Any]]:
    """Of every kind of error, values of every method for as many bins as the binning has."""
    X, y, Z, truth = reproduction.load_split(data, file)
    scaled = {
        "base": softmax(Z, axis=1),
        "TS": top_label.tempered(X, y, Z),
        "VS": top_label.vector_scaled(X, y, Z),
    }
    if X.shape[1] <= top_label.NEWTON:
        fitted = DirichletCalibration(lam=0, inputs="logits").fit(X, y)
        scaled["DS"] = fitted.predict_proba(Z)
    found: dict[str, list[Any]] = {
        name: [top_label.errors(truth, proba, n_bins) for n_bins in BINS]
        for name, proba in scaled.items()
    }
    # Of 100 classes it has no finite optimum: an empty line, so that colours stay.
    found.setdefault("DS", [[np.nan] * len(ERRORS) for _ in BINS])
    binned = [top_label.binned(X, y, Z, truth, 0, n_bins) for n_bins in BINS]
    found["N-HB"] = [normal for normal, _ in binned]
    found["TL-HB or CW-HB"] = [own for _, own in binned]
    return [
        {(name, kind): np.array(values)[:, place] for name, values in found.items()}
        for place, kind in enumerate(ERRORS)
    ]


def draw_bins(data: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(top_label.ROWS), 3, figsize=(13, 3.2 * len(top_label.ROWS)))
    for row, (file, name) in zip(axes, top_label.ROWS.items(), strict=True):
        for ax, errors, kind in zip(row, errors_by_bins(data, file), ERRORS, strict=True):
            paper_figures.draw_errors(ax, BINS, errors)
            ax.set_title(f"{name}: {kind}", loc="left", fontsize=10)
            ax.set(xlabel="", ylabel="")
    for ax in axes[-1]:
        ax.set_xlabel("number of bins")
    lines = axes[0, 0].get_lines()
    said = [str(line.get_label()).split(",")[0] for line in lines]
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    figure.legend(lines, said, loc="upper center", ncols=len(lines), frameon=False)
    save(figure, "errors_by_bins")


# Gupta et al.: cumulative graphs

CLAIMS = {
    "confidence": ("top-1", 6),
    "rank-2": ("top-2", 6),
    "rank-3": ("top-3", 6),
    "within-top-2": ("within-top-2", 14),
    "within-top-3": ("within-top-3", 14),
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
    """The four graphs of a claim in a row."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(displays), 4, figsize=(13, 2.7 * len(displays)))
    for row, of in zip(axes, displays, strict=True):
        graphs = (
            ("fractile", of.fractile, of.cumulative_score, of.cumulative_outcome),
            ("cumulative score", of.cumulative_score, of.cumulative_score, of.cumulative_outcome),
            ("fractile", of.fractile, of.score, of.probability),
            ("score", of.score, of.score, of.probability),
        )
        for ax, (across, x, score, probability) in zip(row, graphs, strict=True):
            ax.plot(x, score, color="C0", label="score")
            ax.plot(x, probability, color="C1", linestyle="--", label="probability")
            ax.set_xlabel(across, fontsize=9)
            ax.tick_params(labelsize=8)
        said = f"{of.name}: KS error {100 * of.ks:.3f} %, probability {100 * of.rate:.2f} %"
        row[0].set_title(said, loc="left", fontsize=10)
        row[0].set_ylabel("cumulative", fontsize=9)
        row[2].set_ylabel("not cumulative", fontsize=9)
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    save(figure, name)


# Kull et al.: critical differences


def draw_ranks(data: Path) -> None:
    import matplotlib.pyplot as plt

    results = uci.by_set(reproduction.read_paper("kull_2019_uci"))
    found = [one for case, one in results.items() if case.startswith("nbayes--")]
    title = f"log-loss of naive Bayes, {len(found)} sets"
    save(differences(found, "log-loss", title).plot().figure_, "critical_difference")
    figure, axes = plt.subplots(4, 2, figsize=(13, 13))
    for ax, key in zip(axes.ravel(), uci.RANKS, strict=True):
        differences(list(results.values()), key, key).plot(ax)
    figure.tight_layout()
    save(figure, "critical_differences")


def differences(found: Any, key: str, title: str) -> CriticalDifferenceDisplay:
    return CriticalDifferenceDisplay.from_scores(
        uci.scores(found, key), uci.COLUMNS, method="bonferroni-dunn", title=title
    )


# Wenger et al.: active learning

CHUNK, FIRST, FOR_CALIBRATION, SHUFFLES, JUDGED = 1500, 1000, 200, 2, 4000
MEASURES = {
    "error": lambda y, p: 1 - accuracy(y, p),
    "ECE": lambda y, p: expected_calibration_error(y, p, n_bins=100),
    "overconfidence": confidence_on_errors,
    "underconfidence": doubt_on_correct,
}


def learn(X: Any, y: Any, Z: Any, truth: Any, *, is_calibrated: bool) -> list[list[float]]:
    """Rows of labels asked for and measures, one after each chunk of a stream.

    A forest asks for the labels of rows whose entropy is above 0.5. The calibrated one keeps the
    first 200 labels of a chunk for its calibrator and learns from the others.
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
    found: dict[str, Any] = {"as it is": [], "calibrated": []}
    for seed in range(SHUFFLES):
        order = np.random.default_rng(seed).permutation(len(y))
        for name, runs in found.items():
            steps = learn(
                X[order],
                y[order],
                Z[:JUDGED],
                truth[:JUDGED],
                is_calibrated=name == "calibrated",
            )
            runs.append(steps)
    return found


def draw_active(data: Path) -> None:
    import matplotlib.pyplot as plt

    case = "active_learning"
    if case not in reproduction.read_paper("figures"):
        reproduction.write_result("figures", case, active_learning(data))
    found = reproduction.read_paper("figures")[case]
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(15, 3.4))
    for place, (ax, name) in enumerate(zip(axes, MEASURES, strict=True), start=1):
        for color, (model, runs) in enumerate(found.items()):
            for n_run, steps in enumerate(runs):
                asked, values = np.transpose(steps)[[0, place]]
                said = {"label": model} if n_run == 0 else {}
                ax.plot(asked, values, marker="o", markersize=3, color=f"C{color}", **said)
        ax.set(xlabel="labels asked for", title=name)
        ax.set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    figure.tight_layout()
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
    parser.add_argument("--only", choices=list(DRAWN), help="one of the pictures")
    chosen = parser.parse_args()
    mpl.use("Agg")
    warnings.simplefilter("ignore")
    for name in [chosen.only] if chosen.only else DRAWN:
        DRAWN[name](chosen.data)


if __name__ == "__main__":
    main()
