"""Pictures compared with those in ``baseline``.

Run with ``CALIBRANT_UPDATE_BASELINE=1`` to write them anew, and look at them before they are kept.
With another matplotlib, set `BASELINE_VERSION` and the group ``pictures`` of pyproject.toml first.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.testing.compare import compare_images

from calibrant import CanonicalBinning, DirichletCalibration, TemperatureScaling
from calibrant.datasets import draw_labels, noisy_simplex
from calibrant.monitoring import MonitorEntry
from calibrant.plots import (
    ChoiceDisplay,
    ClassErrorDisplay,
    ConfusionChangeDisplay,
    CriticalDifferenceDisplay,
    CumulativeDisplay,
    DecisionCurveDisplay,
    MonitorDisplay,
    ParameterDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SimplexDisplay,
    ValidityDisplay,
)
from clone import only_in_clone

pytestmark = only_in_clone

BASELINE = Path(__file__).parent / "baseline"

BASELINE_VERSION = "3.11.2"
"""The matplotlib that drew the baseline. Others place a letter or an edge elsewhere; what displays
compute is tested with every version, in the other files of this folder."""

same_matplotlib = pytest.mark.skipif(
    mpl.__version__ != BASELINE_VERSION,
    reason=f"pictures are compared with those of matplotlib {BASELINE_VERSION}, and this is "
    f"{mpl.__version__}",
)

# Root mean square of the difference of pixel values, of 255. The same matplotlib draws the same
# picture; the room is for scores that differ in their last digits and so move an edge by a pixel.
# The last test shows what is beyond it.
TOLERANCE = 5.0


def predictions():
    """Overconfident scores of four classes, their labels, and the scores at temperature two."""
    generator = np.random.default_rng(7)
    proba = generator.dirichlet(np.full(4, 0.6), 800)
    labels = draw_labels(proba, rng=generator)
    sharp = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    return labels, sharp, proba


def three_classes():
    data = noisy_simplex(900, 3, 0.4, rng=3)
    return data.proba, data.labels


Y, BEFORE, AFTER = predictions()
MODELS = {"before": BEFORE, "after": AFTER}


def ranking():
    ranks = [1.05, 3.40, 3.45, 3.95, 4.40, 5.53, 6.28]
    names = ["Dirichlet", "beta", "isotonic", "width", "frequency", "temperature", "none"]
    return CriticalDifferenceDisplay(ranks, names, 1.64, 6.7e-14, "log-loss")


def weeks():
    nats = [3.0, 4.5, 4.0, 5.0, 9.0, 15.0, 22.0]
    gap = [0.01, -0.01, 0.0, -0.005, -0.02, -0.035, -0.05]
    history = [
        MonitorEntry(
            f"week {i}", 300, 300 * (i + 1), n, g, g - 0.1 / (i + 1), g + 0.1 / (i + 1), n > 14
        )
        for i, (n, g) in enumerate(zip(nats, gap, strict=True))
    ]
    return MonitorDisplay(history, 14.0, 0.02, "top score")


DISPLAYS = {
    "reliability_confidence": lambda: ReliabilityDisplay.from_predictions(Y, BEFORE, n_bins=10),
    "reliability_before_after": lambda: ReliabilityDisplay.from_predictions(
        Y, AFTER, before=BEFORE, n_bins=10
    ),
    "reliability_merged": lambda: ReliabilityDisplay.from_predictions(Y[:80], BEFORE[:80]),
    "reliability_isotonic": lambda: ReliabilityDisplay.from_predictions(
        Y, AFTER, before=BEFORE, curve="isotonic", n_resamples=200, rng=0
    ),
    "reliability_quantile": lambda: ReliabilityDisplay.from_predictions(
        Y, BEFORE, strategy="quantile", n_bins=12
    ),
    "reliability_class_wise": lambda: ReliabilityDisplay.from_predictions(
        Y, BEFORE, notion="class-wise", n_bins=10
    ),
    "reliability_top_label": lambda: ReliabilityDisplay.from_predictions(
        Y, BEFORE, notion="top-label", n_bins=10
    ),
    "cumulative": lambda: CumulativeDisplay.from_predictions(Y, BEFORE),
    "validity": lambda: ValidityDisplay.from_predictions(Y, MODELS),
    "simplex_map": lambda: SimplexDisplay.from_estimator(
        DirichletCalibration(lam=1e-2).fit(*three_classes())
    ),
    "simplex_bins": lambda: SimplexDisplay.from_estimator(
        CanonicalBinning("sierpinski", depth=2).fit(*three_classes())
    ),
    "simplex_predictions": lambda: SimplexDisplay.from_predictions(*three_classes()[::-1]),
    "parameters": lambda: ParameterDisplay(
        np.linspace(0, 1, 16).reshape(4, 4) ** 2, np.array([0.1, 0.2, 0.3, 0.4])
    ),
    "confusion_change": lambda: ConfusionChangeDisplay.from_predictions(
        Y, BEFORE, np.roll(AFTER, 1, axis=0)
    ),
    "critical_difference": ranking,
    "choices": lambda: ChoiceDisplay.from_values(
        [1e-3] * 9 + [1e-2] * 4, grid=[1e-4, 1e-3, 1e-2], name="lam"
    ),
    "class_errors": lambda: ClassErrorDisplay.from_predictions(Y, MODELS),
    "monitor": weeks,
    "risk_coverage": lambda: RiskCoverageDisplay.from_predictions(Y, MODELS),
    "decision_curve": lambda: DecisionCurveDisplay.from_predictions(Y, MODELS, notion="class-2"),
}


@same_matplotlib
@pytest.mark.parametrize("name", DISPLAYS)
def test_the_picture_is_the_one_that_was_looked_at(name, tmp_path):
    expected, actual = BASELINE / f"{name}.png", tmp_path / f"{name}.png"
    with mpl.rc_context():
        mpl.rcdefaults()
        target = expected if os.environ.get("CALIBRANT_UPDATE_BASELINE") else actual
        DISPLAYS[name]().plot().figure_.savefig(target, dpi=60, metadata={"Software": None})
    difference = compare_images(str(expected), str(target), tol=TOLERANCE)
    assert difference is None, difference


@same_matplotlib
def test_the_comparison_sees_another_temperature(tmp_path):
    path = tmp_path / "other.png"
    warmer = TemperatureScaling().fit(BEFORE, Y).predict_proba(BEFORE) ** 1.5
    warmer /= warmer.sum(axis=1, keepdims=True)
    with mpl.rc_context():
        mpl.rcdefaults()
        ReliabilityDisplay.from_predictions(Y, warmer, n_bins=10).plot().figure_.savefig(
            path, dpi=60
        )
    assert (
        compare_images(str(BASELINE / "reliability_confidence.png"), str(path), tol=TOLERANCE)
        is not None
    )
