from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from calibrant import HistogramBinning, MulticlassToBinary
from calibrant.datasets import noisy_simplex
from calibrant.inference import validity_curve
from calibrant.plots import ValidityDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 3, 0.4, rng=3)


def test_a_curve_is_drawn_per_model(data):
    uniform = np.full_like(data.proba, 1 / 3)
    display = ValidityDisplay.from_predictions(
        data.labels, {"scores": data.proba, "uniform": uniform}
    ).plot()
    for line, proba in zip(display.axes_[0].lines, (data.proba, uniform), strict=True):
        curve = validity_curve(data.labels, proba)
        np.testing.assert_allclose(line.get_ydata(), curve(line.get_xdata()))
        assert set(np.round(curve.epsilon, 12)) <= set(np.round(line.get_xdata(), 12))
    assert [line.get_label() for line in display.axes_[0].lines] == ["scores", "uniform"]


def test_every_curve_reaches_one(data):
    display = ValidityDisplay.from_predictions(data.labels, data.proba, notion="class-wise").plot()
    assert display.axes_[0].lines[0].get_ydata()[-1] == pytest.approx(1)


def test_claims_have_axes_of_their_own_rows(data):
    display = ValidityDisplay.from_predictions(data.labels, data.proba, claims=[0, 2]).plot()
    curve = display.curves["model"]
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["class 0", "class 2"]
    x = display.axes_[1].lines[0].get_xdata()
    np.testing.assert_allclose(display.axes_[1].lines[0].get_ydata(), curve(x, 2))


def test_the_axis_ends_where_it_is_told(data):
    display = ValidityDisplay.from_predictions(data.labels, data.proba).plot(max_epsilon=0.05)
    assert display.axes_[0].get_xlim() == (0, 0.05)
    assert display.axes_[0].lines[0].get_xdata().max() == 0.05


def test_the_canonical_notion_is_drawn(data):
    place = (data.proba.argmax(axis=1)).astype(int)
    curve = validity_curve(data.labels, data.proba, notion="canonical", bins=place)
    display = ValidityDisplay({"model": curve}).plot()
    assert display.axes_[0].get_title(loc="left") == "Validity, canonical"


def test_an_unknown_claim_is_rejected(data):
    with pytest.raises(ValueError, match="claim must be one of 0, 1, 2, got 3"):
        ValidityDisplay.from_predictions(data.labels, data.proba, claims=[3])


@pytest.mark.slow
def test_top_label_binning_of_a_forest_on_cover_types_is_valid_for_more_rows(real_data):
    data = real_data("features_covtype")
    order = np.random.default_rng(0).permutation(len(data["y"]))
    train, held_out, test = np.split(order[:80_000], [30_000, 50_000])
    X, y = data["X"], data["y"].astype(int)
    forest = RandomForestClassifier(30, random_state=0).fit(X[train], y[train])
    names = forest.classes_
    binning = MulticlassToBinary(
        HistogramBinning(points_per_bin=100), notion="top-label", classes=names
    )
    binning.fit(forest.predict_proba(X[held_out]), y[held_out])
    scores = forest.predict_proba(X[test])
    label, claim = binning.predict_top(scores)
    after = validity_curve(y[test], claim, y_pred=label, strategy="unique", classes=names)
    before = validity_curve(y[test], scores, notion="top-label", bins=binning, classes=names)
    # Gupta & Ramdas, Figure 4: higher for every epsilon; here where chance leaves no doubt
    epsilon = np.array([0.02, 0.03, 0.05, 0.1])
    assert (after(epsilon) > before(epsilon)).all()
    display = ValidityDisplay({"binning": after, "forest": before}, range(len(names))).plot()
    assert len(display.axes_) == len(names)
