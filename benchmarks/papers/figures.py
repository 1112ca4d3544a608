"""Pictures in the manner of the papers' figures, drawn by the library's plots.

    python benchmarks/papers/figures.py [--data FOLDER] [--only bins]

Gupta & Ramdas 2022, Figures 5 and 7 (errors for 5 to 25 bins); Kull et al. 2019, Figure 5a of the
supplement (critical differences, from the kept results of naive Bayes); Wenger et al. 2020, Figures
3 and 4 (active learning). Pictures go to ``docs/images``; what active learning measured is kept in
``results/figures``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gupta_ramdas_2022 as top_label
import kull_2019_uci as uci
import matplotlib as mpl
import numpy as np
import reproduction
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.ensemble import RandomForestClassifier

from calibrant import DirichletCalibration, GaussianProcessCalibration
from calibrant._output.files import written_aside
from calibrant.metrics import (
    accuracy,
    expected_calibration_error,
    overconfidence,
    underconfidence,
)
from calibrant.plots import CriticalDifferenceDisplay, EceVersusBinsDisplay

IMAGES = reproduction.ROOT / "docs" / "images"
BINS = tuple(range(5, 26))


def save(figure: Any, name: str) -> None:
    with written_aside(IMAGES / f"papers_{name}.png") as aside:
        figure.savefig(aside, dpi=110, bbox_inches="tight", format="png")


# Gupta & Ramdas: errors against the number of bins


def errors_by_bins(data: Path, file: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """TL-ECE and CW-ECE of every method, for as many bins in binning as in the estimate."""
    X, y, Z, truth = reproduction.load_split(data, file)
    scaled = {
        "base": softmax(Z, axis=1),
        "TS": top_label.tempered(X, y, Z),
        "VS": top_label.vector_scaled(X, y, Z),
        "DS": DirichletCalibration(lam=0, inputs="logits").fit(X, y).predict_proba(Z),
    }
    parts: list[dict[Any, Any]] = []
    for notion in ("top-label", "class-wise"):
        display = EceVersusBinsDisplay.from_predictions(
            truth, scaled, notions=(notion,), n_bins=BINS
        )
        parts.append(dict(display.errors))
    binned = [top_label.binned(X, y, Z, truth, 0, n_bins) for n_bins in BINS]
    parts[0]["N-HB", "top-label"] = np.array([normal[0] for normal, _ in binned])
    parts[0]["TL-HB", "top-label"] = np.array([own[0] for _, own in binned])
    parts[1]["N-HB", "class-wise"] = np.array([normal[2] for normal, _ in binned]) / 100
    parts[1]["CW-HB", "class-wise"] = np.array([own[2] for _, own in binned]) / 100
    return parts[0], parts[1]


def draw_bins(data: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5))
    files = ("cifar10_resnet50_gupta", "cifar10_wide_resnet_gupta")
    for row, file in zip(axes, files, strict=True):
        for ax, errors in zip(row, errors_by_bins(data, file), strict=True):
            EceVersusBinsDisplay(np.array(BINS), errors).plot(ax)
            title = f"{top_label.ROWS[file]}: {next(iter(errors))[1]} error"
            ax.set_title(title, loc="left", fontsize=10)
    figure.tight_layout()
    save(figure, "errors_by_bins")


# Kull et al.: critical differences


def draw_ranks(data: Path) -> None:
    results = reproduction.read_results("kull_2019_uci")
    found = [one for case, one in results.items() if case.startswith("nbayes--")]
    scores = [[np.mean(one[column]["log-loss"]) for column in uci.COLUMNS] for one in found]
    title = f"log-loss of naive Bayes, {len(found)} sets"
    display = CriticalDifferenceDisplay.from_scores(
        scores, uci.COLUMNS, method="bonferroni-dunn", title=title
    ).plot()
    save(display.figure_, "critical_difference")


# Wenger et al.: active learning

CHUNK, FIRST, FOR_CALIBRATION, SHUFFLES, JUDGED = 1500, 1000, 200, 2, 4000
MEASURES = {
    "error": lambda y, p: 1 - accuracy(y, p),
    "ECE": lambda y, p: expected_calibration_error(y, p, n_bins=100),
    "overconfidence": overconfidence,
    "underconfidence": underconfidence,
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

    kept = reproduction.RESULTS / "figures" / "active_learning.json"
    if not kept.exists():
        found = reproduction.short(active_learning(data))
        reproduction.write_text(kept, json.dumps(found, indent=0) + "\n")
    found = json.loads(kept.read_text(encoding="utf-8"))
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


DRAWN = {"bins": draw_bins, "ranks": draw_ranks, "active": draw_active}


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
