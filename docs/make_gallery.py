"""Draw the pictures of ``gallery.md`` and write the page: ``python docs/make_gallery.py [name
...]``.

Every entry is a function; the page shows its body, which is the code that was run. Entries on real
files are drawn where these are at hand (``CALIBRANT_DATA``); the others need nothing but the
package.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("agg")

import gallery_data as data
import matplotlib.pyplot as plt
import numpy as np
import paper_figures

import calibrant
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
from calibrant.monitoring import CalibrationMonitor

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"


class Entry(NamedTuple):
    """One picture: what it shows and the function that makes it."""

    title: str
    text: str
    make: Callable[[], Any]
    is_real: bool


ENTRIES: dict[str, list[Entry]] = {}


def entry(
    section: str, title: str, text: str, *, is_real: bool = True
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Put a function on the page."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        ENTRIES.setdefault(section, []).append(Entry(title, text, make, is_real))
        return make

    return add


@entry(
    "Reliability",
    "Confidence",
    "Bars are the observed accuracy, narrow bars the gap to the mean confidence. In grey, where 90 "
    "% of the bins of a "
    "calibrated model would end. Below, the share of the rows: naive Bayes on handwritten digits "
    "is nearly always sure.",
    is_real=False,
)
def reliability_digits():
    digits = datasets.digits_predictions("naive_bayes")
    return plots.ReliabilityDisplay.from_predictions(digits.test_labels, digits.test_proba).plot()


@entry(
    "Reliability",
    "Before and after",
    "DenseNet-40 on CIFAR-10 and the same after temperature scaling (Kull et al. 2019): the error "
    "falls from 0.0550 to 0.0095.",
)
def reliability_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    temperature = TemperatureScaling(inputs="logits").fit(net.val_logits, net.val_labels)
    after = temperature.predict_proba(net.test_logits)
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, after, before=net.test_proba
    ).plot()


@entry(
    "Reliability",
    "Several models",
    "A display with a name is a line: any number of models in one axes, here three classifiers of "
    "handwritten digits.",
    is_real=False,
)
def reliability_models():
    ax = None
    for model in ("naive_bayes", "forest", "logistic"):
        digits = datasets.digits_predictions(model)
        display = plots.ReliabilityDisplay.from_predictions(
            digits.test_labels, digits.test_proba, name=model
        ).plot(ax)
        ax = display.axes_[0]
    return display


@entry(
    "Reliability",
    "Groups and time",
    "Mean confidence minus accuracy of every group, here by month, with intervals that hold for "
    "all months together.",
    is_real=False,
)
def groups_months():
    digits = datasets.digits_predictions("naive_bayes")
    month = np.array("2026-01", dtype="datetime64[M]") + np.arange(600) // 75
    return plots.GroupDisplay.from_predictions(
        digits.test_labels, digits.test_proba, by={"month": month}
    ).plot()


@entry(
    "Reliability",
    "A year of weeks",
    "What a monitor has seen: the evidence against a deployed model, with the line where it is an "
    "alarm, and the mean gap of its top claim with an interval that holds at all times. From week "
    "30 on the model is too sure.",
    is_real=False,
)
def monitor_weeks():
    rng, monitor = np.random.default_rng(0), CalibrationMonitor(horizon=50_000)
    for week in range(1, 53):
        proba = rng.dirichlet(np.full(4, 0.4), 300)
        truth = proba if week < 30 else np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
        monitor.update(datasets.draw_labels(truth, rng=rng), proba, when=f"week {week}")
    return plots.MonitorDisplay.from_monitor(monitor).plot()


@entry(
    "Reliability",
    "Class-wise",
    "One diagram per class, with one legend: DenseNet-40 is overconfident in each.",
)
def reliability_class_wise():
    net = data.network("cifar10_densenet40_kull_sample")
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, net.test_proba, notion="class-wise"
    ).plot()


@entry(
    "Reliability",
    "Many classes",
    "ResNet-50 on CIFAR-100: of a hundred classes the ten with the largest part in the error.",
)
def reliability_many_classes():
    net = data.network("cifar100_resnet50_gupta")
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, net.test_proba, notion="class-wise", n_bins=10
    ).plot()


@entry(
    "Reliability",
    "Top-label",
    "ResNet-50 on CIFAR-10 with ten bins, as Figure 1 of Gupta & Ramdas (2022). Stars: the "
    "confidence diagram. Pluses: the "
    "mean gap of the predicted classes. Bin 6 looks calibrated, but is right in 22 % of the rows "
    "that it calls class 0, and "
    "in 88 % of those that it calls class 7.",
)
def reliability_top_label():
    net = data.network("cifar10_resnet50_gupta")
    options = {"notion": "top-label", "n_bins": 10}
    return plots.ReliabilityDisplay.from_predictions(
        net.test_labels, net.test_proba, **options
    ).plot(details=(5, 9))


@entry(
    "Reliability",
    "Bins of equal mass",
    "Points for bins that are made from the data, here of the digits after a forest, with bands "
    "drawn from the scores.",
    is_real=False,
)
def reliability_quantile():
    digits = datasets.digits_predictions("forest")
    options = {"strategy": "quantile", "n_bins": 12, "band": "resampling", "rng": 0}
    return plots.ReliabilityDisplay.from_predictions(
        digits.test_labels, digits.test_proba, **options
    ).plot()


@entry(
    "Without bins",
    "Cumulative graphs",
    "DenseNet-40 as in Figure 1 of Gupta et al. (2021): the cumulative score runs away from the "
    "cumulative probability, and "
    "their largest distance is the KS error, 5.493 %.",
)
def cumulative_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    return plots.CumulativeDisplay.from_predictions(net.test_labels, net.test_proba).plot()


@entry(
    "Without bins",
    "After spline calibration",
    "The same network after splines, as in their Figure 2, bottom row.",
)
def cumulative_densenet_spline():
    net = data.network("cifar10_densenet40_kull_sample")
    spline = MulticlassToBinary(SplineCalibration(), notion="confidence", inputs="logits")
    claims = spline.fit(net.val_logits, net.val_labels).predict_claims(net.test_logits)[:, 0]
    is_right = (net.test_logits.argmax(axis=1) == net.test_labels).astype(int)
    return plots.CumulativeDisplay.from_predictions(
        is_right, claims, notion="class-1", name="top score"
    ).plot()


@entry(
    "Without bins",
    "Any claim",
    "Is the truth among the two highest scores? The forest on digits.",
    is_real=False,
)
def cumulative_within_top_2():
    digits = datasets.digits_predictions("forest")
    return plots.CumulativeDisplay.from_predictions(
        digits.test_labels, digits.test_proba, notion="within-top-2"
    ).plot()


@entry(
    "Number of bins",
    "Error against the number of bins",
    "ResNet-50 on CIFAR-10 as in Figure 2 of Gupta & Ramdas (2022): whatever the number of bins, "
    "the top-label error is larger "
    "than the confidence error.",
)
def ece_versus_bins():
    net = data.network("cifar10_resnet50_gupta")
    temperature = TemperatureScaling(inputs="logits").fit(net.val_logits, net.val_labels)
    models = {"base": net.test_proba, "temperature": temperature.predict_proba(net.test_logits)}
    return paper_figures.errors_by_bins(net.test_labels, models)


def covtype_binned():
    """Top-label histogram binning of the forest, and its labels and claims on the test rows."""
    forest = data.covtype_forest()
    binning = MulticlassToBinary(HistogramBinning(points_per_bin=100), notion="top-label")
    binning.fit(forest.val_proba, forest.val_labels)
    label, claim = binning.predict_top(forest.test_proba)
    return forest, binning, label, claim


@entry(
    "Class imbalance",
    "Top-label reliability of a forest",
    "Forest cover types, seven classes of which one holds half of the rows and another a "
    "two-hundredth: a random forest "
    "of 40 trees before and after top-label histogram binning with 100 rows a bin, as Figures 4 "
    "and 9 of Gupta & Ramdas "
    "(2022). Both are judged on the bins of the latter.",
)
def covtype_reliability():
    forest, binning, label, claim = covtype_binned()
    options = {"notion": "top-label", "classes": np.arange(7)}
    before = calibration_curve(forest.test_labels, forest.test_proba, bins=binning, **options)
    after = calibration_curve(forest.test_labels, claim, y_pred=label, strategy="unique", **options)
    names = tuple(f"predicted type {k}" for k in forest.class_names)
    return plots.ReliabilityDisplay(after, "top-label", names, before=before).plot()


@entry(
    "Class imbalance",
    "Validity",
    "The share of the rows on which the claim is off by at most ε: higher is better.",
)
def covtype_validity():
    forest, binning, label, claim = covtype_binned()
    options = {"notion": "top-label", "classes": np.arange(7)}
    curves = {
        "binning": validity_curve(
            forest.test_labels, claim, y_pred=label, strategy="unique", **options
        ),
        "forest": validity_curve(forest.test_labels, forest.test_proba, bins=binning, **options),
    }
    names = [f"predicted type {k}" for k in forest.class_names]
    return plots.ValidityDisplay(curves, range(7), names).plot(max_epsilon=0.25)


@entry(
    "Class imbalance",
    "Error by class",
    "The top-label error of every predicted class, and the classes' shares below.",
)
def covtype_errors():
    forest, binning, label, claim = covtype_binned()
    options = {"notion": "top-label", "classes": np.arange(7)}
    base = plots.ClassErrorDisplay.from_predictions(
        forest.test_labels, {"forest": forest.test_proba}, bins=binning, **options
    )
    binned = plots.ReliabilityDisplay.from_predictions(
        forest.test_labels, claim, y_pred=label, strategy="unique", **options
    )
    errors = {"binning": binned.claim_errors, **base.errors}
    return plots.ClassErrorDisplay(
        [f"type {k}" for k in forest.class_names], errors, base.share
    ).plot()


@entry(
    "Three classes",
    "A calibration map",
    "Dirichlet calibration of a neural network on abalone, as Figure 2a of Kull et al. (2019): "
    "arrows lead from a prediction "
    "to its calibrated self. Four interpretation points, the centre and the middles of the sides, "
    "are marked.",
)
def simplex_map():
    abalone = data.uci("abalone", "network")
    names = abalone.class_names
    dirichlet = DirichletCalibration(classes=names).fit(
        abalone.val_proba, names[abalone.val_labels]
    )
    return plots.SimplexDisplay.from_estimator(dirichlet).plot()


@entry(
    "Three classes",
    "Bins of whole vectors",
    "Logistic regression on cover types 1, 2 and other, binned by projections, as Figure 12 of "
    "Gupta & Ramdas (2022): an arrow "
    "leads from the mean prediction of a bin to what it is replaced by.",
)
def simplex_bins():
    cover = data.covtype_three()
    names = cover.class_names
    binning = CanonicalBinning("projection", n_bins=27, classes=names).fit(
        cover.val_proba, names[cover.val_labels]
    )
    return plots.SimplexDisplay.from_estimator(binning, cover.test_proba).plot()


@entry(
    "Three classes",
    "A partition",
    "The Sierpinski partition of their Figure 10, at depth 3.",
    is_real=False,
)
def simplex_partition():
    drawn = datasets.noisy_simplex(3000, 3, noise=0.3, rng=0)
    binning = CanonicalBinning("sierpinski", depth=3).fit(drawn.proba, drawn.labels)
    return plots.SimplexDisplay.from_estimator(binning, min_rows=10_000).plot()


@entry(
    "Three classes", "Predictions", "Predictions of the network on abalone, by their true class."
)
def simplex_predictions():
    abalone = data.uci("abalone", "network")
    labels = abalone.class_names[abalone.test_labels]
    return plots.SimplexDisplay.from_predictions(
        labels, abalone.test_proba, classes=abalone.class_names
    ).plot()


@entry(
    "What a map does",
    "Latent function",
    "Gaussian process calibration of AdaBoost on MNIST, fitted to 1000 rows (Wenger et al. 2020, "
    "Figure 2): the latent mean "
    "with two standard deviations, the prior mean, and below the scores of the true and of the "
    "other classes. AdaBoost is so "
    "underconfident that the function rises steeply within the narrow range of its scores.",
)
def latent_mnist():
    from calibrant import GaussianProcessCalibration

    proba, labels = data.mnist("adaboost", 1000)
    process = GaussianProcessCalibration(random_state=0).fit(proba, labels)
    return paper_figures.latent_function(process, proba, labels)


@entry(
    "What a map does",
    "Parameters",
    "Dirichlet calibration of DenseNet-40 in its canonical form, as Figure 2b of Kull et al. "
    "(2019): a large entry raises the "
    "class of its row wherever the class of its column has a high score.",
)
def parameters_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    dirichlet = DirichletCalibration(lam=1e-3, inputs="logits").fit(net.val_logits, net.val_labels)
    return plots.ParameterDisplay.from_estimator(dirichlet).plot()


@entry(
    "What a map does",
    "Confusions",
    "What this map changes in the confusion matrix of the test rows (Figure 2c).",
)
def confusion_densenet():
    net = data.network("cifar10_densenet40_kull_sample")
    dirichlet = DirichletCalibration(lam=1e-3, inputs="logits").fit(net.val_logits, net.val_labels)
    after = dirichlet.predict_proba(net.test_logits)
    return plots.ConfusionChangeDisplay.from_predictions(
        net.test_labels, net.test_proba, after
    ).plot()


@entry(
    "What a map does",
    "Scores by true class, before",
    "AdaBoost on the car data, as Figure 3 of the supplement of Kull et al. (2019): it uses little "
    "of the range from 0 to 1.",
)
def boxes_car():
    car = data.uci("car", "AdaBoost")
    return paper_figures.score_boxes(car.test_labels, car.test_proba, car.class_names)


@entry(
    "What a map does",
    "Scores by true class, after",
    "The same after Dirichlet calibration, which uses all of it.",
)
def boxes_car_dirichlet():
    car = data.uci("car", "AdaBoost")
    after = DirichletCalibration().fit(car.val_proba, car.val_labels).predict_proba(car.test_proba)
    return paper_figures.score_boxes(car.test_labels, after, car.class_names)


@entry(
    "Comparing methods",
    "Critical differences",
    "Seven methods after naive Bayes on the 21 UCI sets (Figures 3a and 5 of Kull et al. 2019): "
    "methods joined by a bar do not "
    "differ significantly in their average rank.",
)
def critical_difference():
    losses = data.study_of_methods("naive Bayes").log_loss
    scores = np.column_stack(list(losses.values()))
    return plots.CriticalDifferenceDisplay.from_scores(
        scores, list(losses), title="Log-loss"
    ).plot()


@entry(
    "Comparing methods",
    "Accepted tests, by method",
    "The share of the sets on which the class-wise error is no larger than calibrated predictions "
    "show (their Figures 3b, 7).",
)
def accepted_methods():
    p_values = data.study_of_methods("naive Bayes").p_value
    return paper_figures.accepted_tests(p_values)


@entry(
    "Comparing methods",
    "Accepted tests, by classifier",
    "The same for classifiers as they come (their Figures 3c and 10).",
)
def accepted_classifiers():
    p_values = data.study_of_classifiers().p_value
    return paper_figures.accepted_tests(p_values)


@entry(
    "Comparing methods",
    "Chosen hyperparameters",
    "The strengths that Dirichlet calibration chose (their Figure 8a).",
)
def chosen_strengths():
    chosen = data.study_of_methods("naive Bayes").lam
    return plots.ChoiceDisplay.from_values(
        chosen, grid=[0.0, 1e-4, 1e-3, 1e-2, 1e-1], name="lam"
    ).plot()


def draw(item: Entry) -> None:
    """Make and save a picture."""
    drawing = item.make()
    figure = getattr(drawing, "figure_", drawing)  # of a display, or the figure itself
    figure.savefig(IMAGES / f"{item.make.__name__}.png", dpi=88, pil_kwargs={"optimize": True})
    plt.close("all")


def page() -> str:
    """The gallery as Markdown."""
    parts = [HEAD]
    for section, items in ENTRIES.items():
        parts.append(f"## {section}\n")
        for item in items:
            name = item.make.__name__
            parts.append(
                f"### {item.title}\n\n{item.text}\n\n![{item.title}](images/{name}.png)\n\n"
                f"{caption(item.make)}\n"
            )
    return "\n".join(parts)


def caption(make: Callable[[], Any]) -> str:
    """The code of an entry, or the function that draws a figure outside of the package."""
    body = textwrap.dedent("".join(inspect.getsourcelines(make)[0]).partition("():\n")[2]).strip()
    figure = re.search(r"paper_figures\.(\w+)", body)
    if figure:
        return f"Drawn by `{figure[1]}` in `docs/paper_figures.py`, which is not in the package."
    return f"```python\n{snippet(body)}\n```"


def snippet(body: str) -> str:
    """Code to be pasted: imports first, public data instead of ours, a name instead of
    ``return``.
    """
    for pattern, public in _PUBLIC:
        body = re.sub(pattern, public, body)
    body = re.sub(r"\nreturn display$", "", body)
    body = re.sub(r"^return ", "display = ", body, flags=re.MULTILINE)
    return f"{_imports(body)}\n\n{body}"


_LOSSES = """losses = {name: [] for name in ("identity", "temperature", "vector")}
for model in ("naive_bayes", "forest", "logistic"):
    digits = datasets.digits_predictions(model)
    for name, values in losses.items():
        fitted = method(name).fit(digits.val_proba, digits.val_labels)
        proba = fitted.predict_proba(digits.test_proba)
        values.append(log_loss(digits.test_labels, proba))"""

_PUBLIC = (
    (r"losses = data.study_of_methods.*", _LOSSES),
    (
        r"chosen = data.study_of_methods.*",
        """chosen = []
for model in ("forest", "logistic"):
    digits = datasets.digits_predictions(model)
    chosen.append(DirichletCalibration().fit(digits.val_proba, digits.val_labels).lam_)""",
    ),
    (
        r'data\.(uci\("abalone"[^)]*|covtype_three\()\)',
        'datasets.digits_predictions("logistic", digits=(3, 8, 9))',
    ),
    (r"n_bins=27", "n_bins=6"),
    (r"data\.network\([^)]*\)", 'datasets.digits_predictions("logistic")'),
    (
        r"forest, binning, label, claim = covtype_binned\(\)",
        'forest = datasets.digits_predictions("forest")\n'
        'binning = MulticlassToBinary(HistogramBinning(points_per_bin=20), notion="top-label")\n'
        "binning.fit(forest.val_proba, forest.val_labels)\n"
        "label, claim = binning.predict_top(forest.test_proba)",
    ),
    (r"range\(7\)", "range(10)"),
    (r'\(inputs="logits"\)', "()"),
    (r', inputs="logits"', ""),
    (r"_logits\b", "_proba"),
)
"""What stands on the page instead of data that a reader does not have."""


def _imports(body: str) -> str:
    """The lines that import what the code names."""
    names = [node for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)]
    used = {name.id for name in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)}
    public = sorted(used & set(calibrant.__all__), key=str.lower)
    lines = [
        "import numpy as np" * ("np" in used),
        f"from calibrant import {', '.join(public)}" if public else "",
        *(f"from calibrant.{room} import {name}" for room, name in _OTHERS if name in used),
    ]
    return "\n".join(line for line in lines if line)


_OTHERS = (
    ("inference", "validity_curve"),
    ("metrics", "calibration_curve"),
    ("metrics", "log_loss"),
    ("monitoring", "CalibrationMonitor"),
)
"""Names of the code that live in rooms."""


HEAD = """# Gallery

Every display of `calibrant.plots`, made by `docs/make_gallery.py`, with the code below each
picture, ready to be pasted. If a picture shows data that you do not have (networks on CIFAR, UCI
sets), the code uses handwritten digits instead and draws the same display. Figures of single papers
are drawn by `docs/paper_figures.py` instead. Displays need matplotlib:
`pip install "calibrant[plot]"`.

A display is built from result objects, such as a `BinTable`, or by `from_predictions` and
`from_estimator`, which compute them. `plot(ax=None)` draws, into a new figure or in the place of
the axes given, and returns the display; `figure_` and `ax_` or `axes_` are there to go on with.
"""


def main(names: list[str]) -> None:
    IMAGES.mkdir(exist_ok=True)
    for item in (item for items in ENTRIES.values() for item in items):
        if names and item.make.__name__ not in names:
            continue
        if item.is_real and not data.DATA.exists():
            print(f"{item.make.__name__}: left as it is, no data in {data.DATA.name}")
            continue
        draw(item)
        print(item.make.__name__)
    (DOCS / "gallery.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
