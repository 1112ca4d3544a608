from __future__ import annotations

import numpy as np
import pytest

from calibrant._output import palette
from calibrant.datasets import noisy_simplex
from calibrant.metrics import net_benefit
from calibrant.plots import DecisionCurveDisplay


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 3, 0.4, rng=3)


def test_net_benefits_of_models_and_of_both_other_rules_are_drawn(data):
    models = {"scores": data.proba, "uniform": np.full_like(data.proba, 1 / 3)}
    display = DecisionCurveDisplay.from_predictions(data.labels, models, notion="class-2").plot()
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["scores", "uniform", "act always", "act never"]
    for line, proba in zip(display.ax_.lines, models.values(), strict=False):
        expected = net_benefit(data.labels, proba, line.get_xdata(), notion="class-2")
        np.testing.assert_array_equal(line.get_ydata(), expected)
    assert display.ax_.get_title(loc="left") == "Decision curve, class-2"


def test_acting_always_is_a_model_that_is_always_sure(data):
    display = DecisionCurveDisplay.from_predictions(data.labels, data.proba, notion="class-0")
    event = (data.labels == 0).astype(int)
    assert display.rate == pytest.approx(event.mean())
    expected = net_benefit(event, np.ones(len(event)), display.thresholds)
    np.testing.assert_allclose(display.act_always, expected, atol=1e-12)


def test_weights_count_in_the_rate(data):
    weight = np.where(data.labels == 0, 2.0, 1.0)
    display = DecisionCurveDisplay.from_predictions(
        data.labels, data.proba, notion="class-0", sample_weight=weight
    )
    assert display.rate == pytest.approx(np.average(data.labels == 0, weights=weight))


def test_thresholds_are_sorted(data):
    display = DecisionCurveDisplay.from_predictions(data.labels, data.proba, thresholds=[0.5, 0.1])
    assert display.thresholds.tolist() == [0.1, 0.5]
    assert display.plot().ax_.get_xlim() == (0, 0.5)


def test_by_default_the_axis_ends_where_no_model_is_useful(data):
    display = DecisionCurveDisplay.from_predictions(data.labels, data.proba, notion="class-0")
    useful = display.thresholds[display.benefit["model"] > 0]
    assert useful[-1] <= display.plot().ax_.get_xlim()[1] <= display.thresholds[-1]
    hopeless = DecisionCurveDisplay.from_predictions([0, 0, 0, 1], [0.9, 0.9, 0.9, 0.0])
    assert hopeless.plot().ax_.get_xlim() == (0, hopeless.thresholds[-1])


def test_a_line_ends_where_no_row_reaches_the_threshold():
    models = {"low": [0.1, 0.2, 0.3, 0.4], "high": [0.1, 0.2, 0.3, 1.0]}
    low, high = DecisionCurveDisplay.from_predictions([0, 0, 1, 1], models).plot().ax_.lines[:2]
    assert low.get_xdata()[-1] == pytest.approx(0.4)
    assert high.get_xdata()[-1] == pytest.approx(0.99)


def test_before_and_after_keep_their_colors():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    display = DecisionCurveDisplay.from_predictions(y.astype(int), {"before": p, "after": p}).plot()
    colors = [line.get_color() for line in display.ax_.lines[:2]]
    assert colors == [palette.BEFORE, palette.AFTER]
