from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.inference import validity_curve
from calibrant.plots import ValidityDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 3, 0.4, rng=3)


def test_a_curve_is_drawn_per_model(data):
    uniform = np.full_like(data.proba, 1 / 3)
    display = ValidityDisplay.from_predictions(data.labels, {"scores": data.proba, "uniform": uniform}).plot()
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


def test_an_unknown_claim_is_refused(data):
    with pytest.raises(ValueError, match="claim must be one of 0, 1, 2; got 3"):
        ValidityDisplay.from_predictions(data.labels, data.proba, claims=[3])
