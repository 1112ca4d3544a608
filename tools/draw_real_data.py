"""Draw figures of published data for the manual: ``python tools/draw_real_data.py [name ...]``.

Concept pages and the page of published results show these figures. The script needs the files of
real predictions in ``CALIBRANT_DATA``. Figures of the gallery are drawn by its page from bundled
data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np

import gallery_data as data
import paper_figures
from calibrant import (
    CanonicalBinning,
    DirichletCalibration,
    HistogramBinning,
    MulticlassToBinary,
    SplineCalibration,
    TemperatureScaling,
    datasets,
    plots,
)
from calibrant.inference import validity_curve
from calibrant.metrics import calibration_curve

DOCS = Path(__file__).resolve().parents[1] / "docs"
IMAGES = DOCS / "images"

# Text stays searchable. Without a date and with fixed identifiers, files change only with figures.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "calibrant"})

FIGURES: dict[str, Callable[[], Any]] = {}


def figure(make: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that returns a display or a figure. The file has the name of the
    function.
    """
    FIGURES[make.__name__] = make
    return make


@figure
def reliability_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    temperature = TemperatureScaling(inputs="logits").fit(net.val_logits, net.val_labels)
    after = temperature.predict_proba(net.test_logits)
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, after, before=net.test_proba
    ).plot()


@figure
def reliability_class_wise():
    net = data.network("cifar10_densenet40_kull_sample")
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, net.test_proba, notion="class-wise"
    ).plot()


@figure
def reliability_many_classes():
    net = data.network("cifar100_resnet50_gupta")
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, net.test_proba, notion="class-wise"
    ).plot(max_claims=8)


@figure
def reliability_top_label():
    net = data.network("cifar10_resnet50_gupta")
    options = {"notion": "top-label", "n_bins": 10}
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, net.test_proba, **options
    ).plot(details=(5, 9))


@figure
def cumulative_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    return plots.CumulativeDisplay.from_predictions(net.test_labels, net.test_proba).plot()


@figure
def cumulative_densenet_spline():
    net = data.network("cifar10_densenet40_kull_sample")
    spline = MulticlassToBinary(SplineCalibration(), notion="confidence", inputs="logits")
    claims = spline.fit(net.val_logits, net.val_labels).predict_claims(net.test_logits)[:, 0]
    is_right = (net.test_logits.argmax(axis=1) == net.test_labels).astype(int)
    return plots.CumulativeDisplay.from_predictions(
        is_right, claims, notion="class-1", name="confidence"
    ).plot()


@figure
def ece_versus_bins():
    net = data.network("cifar10_resnet50_gupta")
    temperature = TemperatureScaling(inputs="logits").fit(net.val_logits, net.val_labels)
    models = {
        "not calibrated": net.test_proba,
        "temperature": temperature.predict_proba(net.test_logits),
    }
    return paper_figures.errors_by_bins(net.test_labels, models)


def covtype_binned():
    """Return the top-label histogram binning of the forest, its labels and its probabilities on the
    test rows.
    """
    forest = data.covtype_forest()
    binning = MulticlassToBinary(HistogramBinning(points_per_bin=100), notion="top-label")
    binning.fit(forest.val_proba, forest.val_labels)
    label, claim = binning.predict_top(forest.test_proba)
    return forest, binning, label, claim


@figure
def covtype_reliability():
    forest, binning, label, claim = covtype_binned()
    options = {"notion": "top-label", "classes": np.arange(7)}
    before = calibration_curve(forest.test_labels, forest.test_proba, bins=binning, **options)
    after = calibration_curve(forest.test_labels, claim, y_pred=label, strategy="unique", **options)
    names = tuple(f"predicted type {k}" for k in forest.class_names)
    return plots.ReliabilityDisplay(after, "top-label", names, before=before).plot()


@figure
def covtype_validity():
    forest, binning, label, claim = covtype_binned()
    options = {"notion": "top-label", "classes": np.arange(7)}
    curves = {
        "before": validity_curve(forest.test_labels, forest.test_proba, bins=binning, **options),
        "after": validity_curve(
            forest.test_labels, claim, y_pred=label, strategy="unique", **options
        ),
    }
    names = [f"predicted type {k}" for k in forest.class_names]
    return plots.ValidityDisplay(curves, range(7), names).plot(max_epsilon=0.25)


@figure
def covtype_errors():
    forest, binning, label, claim = covtype_binned()
    options = {"notion": "top-label", "classes": np.arange(7)}
    base = plots.ClassErrorDisplay.from_predictions(
        forest.test_labels, {"before": forest.test_proba}, bins=binning, **options
    )
    binned = plots.ReliabilityDisplay.from_predictions(
        forest.test_labels, claim, y_pred=label, strategy="unique", **options
    )
    errors = {**base.errors, "after": binned.claim_errors}
    return plots.ClassErrorDisplay(
        [f"type {k}" for k in forest.class_names], errors, base.share
    ).plot()


@figure
def simplex_map():
    abalone = data.uci("abalone", "network")
    names = abalone.class_names
    dirichlet = DirichletCalibration(classes=names).fit(
        abalone.val_proba, names[abalone.val_labels]
    )
    return plots.SimplexDisplay.from_estimator(dirichlet).plot()


@figure
def simplex_bins():
    cover = data.covtype_three()
    names = cover.class_names
    binning = CanonicalBinning("projection", n_bins=27, classes=names).fit(
        cover.val_proba, names[cover.val_labels]
    )
    return plots.SimplexDisplay.from_estimator(binning, cover.test_proba).plot()


@figure
def simplex_partition():
    drawn = datasets.noisy_simplex(3000, 3, noise=0.3, rng=0)
    binning = CanonicalBinning("sierpinski", depth=3).fit(drawn.proba, drawn.labels)
    return plots.SimplexDisplay.from_estimator(binning, min_rows=10_000).plot()


@figure
def simplex_predictions():
    abalone = data.uci("abalone", "network")
    labels = abalone.class_names[abalone.test_labels]
    return plots.SimplexDisplay.from_predictions(
        labels, abalone.test_proba, classes=abalone.class_names
    ).plot()


@figure
def latent_mnist():
    from calibrant import GaussianProcessCalibration

    proba, labels = data.mnist("adaboost", 1000)
    process = GaussianProcessCalibration(random_state=0).fit(proba, labels)
    return paper_figures.latent_function(process, proba, labels)


@figure
def parameters_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    dirichlet = DirichletCalibration(lam=1e-3, inputs="logits").fit(net.val_logits, net.val_labels)
    return plots.ParameterDisplay.from_estimator(dirichlet).plot()


@figure
def confusion_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    dirichlet = DirichletCalibration(lam=1e-3, inputs="logits").fit(net.val_logits, net.val_labels)
    after = dirichlet.predict_proba(net.test_logits)
    return plots.ConfusionChangeDisplay.from_predictions(
        net.test_labels, net.test_proba, after
    ).plot()


@figure
def boxes_car():
    car = data.uci("car", "AdaBoost")
    return paper_figures.score_boxes(car.test_labels, car.test_proba, car.class_names)


@figure
def boxes_car_dirichlet():
    car = data.uci("car", "AdaBoost")
    after = DirichletCalibration().fit(car.val_proba, car.val_labels).predict_proba(car.test_proba)
    return paper_figures.score_boxes(car.test_labels, after, car.class_names)


@figure
def critical_difference():
    losses = data.study_of_methods("naive Bayes").log_loss
    scores = np.column_stack(list(losses.values()))
    return plots.CriticalDifferenceDisplay.from_scores(
        scores, list(losses), title="Log-loss"
    ).plot()


@figure
def accepted_methods():
    p_values = data.study_of_methods("naive Bayes").p_value
    return paper_figures.accepted_tests(p_values)


@figure
def accepted_classifiers():
    p_values = data.study_of_classifiers().p_value
    return paper_figures.accepted_tests(p_values)


@figure
def chosen_strengths():
    chosen = data.study_of_methods("naive Bayes").lam
    return plots.ChoiceDisplay.from_values(
        chosen, grid=[0.0, 1e-4, 1e-3, 1e-2, 1e-1], name="lam"
    ).plot()


def draw(name: str) -> None:
    """Draw and save a figure."""
    drawing = FIGURES[name]()
    drawn = getattr(drawing, "figure_", drawing)  # the figure of a display, or the figure itself
    drawn.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    plt.close("all")


def main(names: list[str]) -> int:
    if not data.DATA.exists():
        print(f"The folder {data.DATA.name} has no data. Set CALIBRANT_DATA.")
        return 1
    for name in names or FIGURES:
        draw(name)
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
