"""Figures of the evidence pages, drawn from the recorded tables as SVG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from evidence_tables import number, table

mpl.use("agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
BLUE, ORANGE, GRAY, GREEN = "#1f77b4", "#d9730d", "#7f7f7f", "#2a9d5c"
# Text stays searchable. Without a date and with fixed identifiers, files change only with their
# figures.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "calibrant", "font.size": 10})

FIGURES: dict[str, Callable[[Any], None]] = {}


def figure(height: float) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a function that draws on axes. The file has the name of the function."""

    def keep(draw: Callable[[Any], None]) -> Callable[[Any], None]:
        def save(folder: Path) -> None:
            fig, ax = plt.subplots(figsize=(7, height), layout="constrained")
            draw(ax)
            ax.spines[["top", "right"]].set_visible(False)
            fig.savefig(folder / f"evidence_{draw.__name__}.svg", metadata={"Date": None})
            plt.close(fig)

        FIGURES[f"evidence_{draw.__name__}.svg"] = save
        return draw

    return keep


def _dots(ax: Any, names: list[str], columns: dict[str, tuple[list[float], str]]) -> None:
    """Draw one row per name and one dot per column."""
    for label, (values, color) in columns.items():
        ax.plot(values, range(len(names)), "o", color=color, label=label)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.3)


def _legend_above(ax: Any, *entries: Any) -> None:
    """Put the legend above the axes, where it cannot hide points."""
    # The legend ends with the axes. A long legend begins above the labels on the left.
    ax.legend(*entries, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)


FAMILIES = {
    "forest": "random forest",
    "hgb": "gradient boosting",
    "nb": "naive Bayes",
    "logistic": "logistic regression",
    "mlp": "neural network",
    "knn": "nearest neighbors",
    "tree": "decision tree",
    "ada": "AdaBoost",
    "all": "all",
}
SCIKIT_LEARN = [
    f"{name}, {how}"
    for name in ("sigmoid", "isotonic", "temperature")
    for how in ("ensemble", "one fit")
]


@figure(3.4)
def default(ax):
    rows = table("default", "Mean test log-loss")
    best = [min(number(row[name]) for name in SCIKIT_LEARN) for row in rows]
    _dots(
        ax,
        [FAMILIES[row["family"]] for row in rows],
        {
            "uncalibrated": ([number(row["uncalibrated"]) for row in rows], GRAY),
            "best of scikit-learn's six variants": (best, ORANGE),
            "CalibratedClassifier": ([number(row["default"]) for row in rows], BLUE),
        },
    )
    ax.set_xscale("log")
    ax.set_xticks([0.3, 0.5, 1, 2, 5], ["0.3", "0.5", "1", "2", "5"])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("mean test log-loss in nats (lower is better)")
    _legend_above(ax)


@figure(3.2)
def do_no_harm(ax):
    rows = table("do-no-harm", "All files")
    x = [number(row["rows"]) for row in rows]
    shown = {"auto": BLUE, "structured-matrix": GREEN, "temperature": ORANGE}
    for name, color in shown.items():
        label = "AutoCalibration" if name == "auto" else name
        ax.plot(x, [number(row[name]) for row in rows], "o-", color=color, label=label)
    ax.axhline(0, color=GRAY, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xticks(x, [row["rows"] for row in rows])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("calibration rows")
    ax.set_ylabel("reduction of log-loss in nats\n(higher is better)")
    ax.legend(frameon=False)


@figure(2.4)
def confidence(ax):
    rows = table("top-probability", "Averaged over draws")
    names = ["temperature", "its stack alone", "top-label binning", "confidence spline", "auto"]
    labels = [
        "temperature scaling",
        "stack without correction",
        "top-label binning",
        "confidence spline",
        "AutoCalibration",
    ]
    means = [sum(number(row[name]) for row in rows) / len(rows) for name in names]
    ax.barh(labels, means, color=[GRAY, GRAY, GRAY, GRAY, BLUE])
    ax.set_xlabel("mean debiased calibration error of the confidence (lower is better)")


@figure(3.6)
def coverage(ax):
    rows = table("coverage", "The family")
    sizes = {"n = 10": GRAY, "n = 100": ORANGE, "n = 1,000": BLUE}
    names = list(dict.fromkeys(row["interval"] for row in rows))
    for size, color in sizes.items():
        for i, name in enumerate(names):
            cells = [row[size] for row in rows if row["interval"] == name]
            values = [number(cell) for cell in cells if cell[0].isdigit()]
            label = size.replace("n = ", "") + " rows"
            ax.plot(values, [i] * len(values), "o", color=color, alpha=0.7, label=label)
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    ax.axvline(0.95, color=GRAY, linestyle="--")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel("share of intervals that contain the true value (nominal: 0.95)")
    _legend_above(ax, unique.values(), unique.keys())


@figure(3.0)
def error_rates(ax):
    rows = [row for row in table("statements") if row["stated"] == "at most 0.05"]
    rows.sort(key=lambda row: number(row["observed"]))
    observed = [number(row["observed"]) for row in rows]
    errors = [3 * number(row["standard error"]) for row in rows]
    ax.errorbar(range(len(rows)), observed, yerr=errors, fmt="o", color=BLUE, markersize=3, lw=0.6)
    ax.axhline(0.05, color=GRAY, linestyle="--")
    ax.set_ylim(0, None)
    ax.set_xticks([])
    ax.set_xlabel(f"{len(rows)} statements, ordered by observed error rate")
    ax.set_ylabel("observed error rate")


@figure(5.2)
def performance(ax):
    rows = [row for row in table("performance", "All cases") if row["ratio"]]
    kinds = list(dict.fromkeys(row["case"] for row in rows))
    for i, kind in enumerate(kinds):
        values = [number(row["ratio"]) for row in rows if row["case"] == kind]
        ax.plot(values, [i] * len(values), "o", color=BLUE)
    ax.axvline(1, color=GRAY, linestyle="--")
    ax.set_xscale("log")
    ax.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.set_xticks([], minor=True)
    ax.set_yticks(range(len(kinds)), kinds)
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.3)
    ax.set_xlabel("ratio of CPU times, fastest other package to Calibrant")


SIZES = ("50", "200", "1,000", "5,000")


@figure(3.8)
def ranking(ax):
    rankings = {size: table("ranking", f"{size} rows to calibrate on") for size in SIZES}
    order = [row["method"] for row in rankings["1,000"]][:12]
    colors = dict(zip(SIZES, (GRAY, GREEN, ORANGE, BLUE), strict=True))
    _dots(
        ax,
        ["AutoCalibration" if name == "auto" else name for name in order],
        {f"{size} rows": (_ranks(rankings[size], order), colors[size]) for size in SIZES},
    )
    ax.set_xlabel("mean rank by test log-loss among 30 methods (1 is best)")
    ax.legend(frameon=False)


def _ranks(rows: list[dict[str, str]], order: list[str]) -> list[float]:
    ranks = {row["method"]: number(row["rank, log-loss"]) for row in rows}
    return [ranks.get(name, float("nan")) for name in order]


@figure(2.4)
def reproduction(ax):
    rows = [row for row in table("reproduction") if row["paper"] != "all"]
    papers = list(dict.fromkeys(row["paper"] for row in rows))
    columns = {"within": BLUE, "outside, explained": ORANGE, "outside, unexplained": GRAY}
    left = [0.0] * len(papers)
    for name, color in columns.items():
        counts = [sum(number(row[name]) for row in rows if row["paper"] == p) for p in papers]
        label = "within tolerance" if name == "within" else name
        ax.barh([_short(p) for p in papers], counts, left=left, color=color, label=label)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    ax.invert_yaxis()
    ax.set_xlabel("published figures")
    ax.legend(frameon=False)


def _short(paper: str) -> str:
    authors = paper.split(",")[0]
    return f"{authors} ({paper.rsplit(': ', 1)[1]})" if ": " in paper else authors


@figure(2.8)
def monitoring(ax):
    rows = [row for row in table("monitoring", "delays") if "resnet50_gupta" in row["network"]]
    rows = [row for row in rows if row["network"].startswith("cifar10")]
    columns = {
        "rolling ECE": GRAY,
        "plain e-process": ORANGE,
        "e-detector": BLUE,
    }
    labels = {"e-detector": "CalibrationMonitor", "rolling ECE": "rolling ECE (if it alarms)"}
    _dots(
        ax,
        [row["drift"] for row in rows],
        {
            labels.get(name, name): (
                [float("nan") if row[name].startswith("-") else number(row[name]) for row in rows],
                color,
            )
            for name, color in columns.items()
        },
    )
    ax.set_xscale("log")
    ax.set_xticks([100, 300, 1000, 3000, 10_000], ["100", "300", "1,000", "3,000", "10,000"])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("median rows from the drift to the alarm (lower is better)")
    _legend_above(ax)


@figure(3.2)
def large_data(ax):
    rows = table("cluster", "cluster memory")
    workers = [max(number(row["worker 1"]), number(row["worker 2"])) for row in rows]
    _dots(
        ax,
        [row["MB above idle"] for row in rows],
        {
            "largest worker": (workers, BLUE),
            "client": ([number(row["client"]) for row in rows], GRAY),
        },
    )
    ax.set_xlim(-2, 82)  # the axis would clip dots at 0
    ax.axvline(80, color=GRAY, linestyle="--")
    ax.set_xlabel("memory above idle in MB (dashed: data)")
    _legend_above(ax)
