"""Files that contain only the top scores of each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrant import HistogramBinning, MulticlassToBinary, TemperatureScaling, evaluate
from calibrant._kernels.simplex import log_softmax
from calibrant.exceptions import DataWarning
from top_rows import best, log_rest

M = 20


@pytest.fixture
def small(rng):
    """Six classes, of which the truth was drawn."""
    log_proba = log_softmax(2 * rng.normal(size=(400, 6)))
    draws = log_proba + rng.gumbel(size=log_proba.shape)
    return log_proba, draws.argmax(axis=1)


def test_top_scores_that_include_all_classes_give_the_temperature_of_complete_rows(small):
    log_proba, y = small
    dense = TemperatureScaling(inputs="log_proba").fit(log_proba, y)
    top = TemperatureScaling().fit(best(log_proba, 6), y)
    assert top.temperature_ == pytest.approx(dense.temperature_, rel=1e-9)
    predicted = top.predict_proba(best(log_proba, 6))
    whole = np.sort(dense.predict_proba(log_proba), axis=1)[:, ::-1]
    assert np.allclose(predicted.proba, whole, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("cifar100_resnet110_gupta", "val_"),
        ("cifar100_resnet110_gupta", "test_"),
        ("cifar100_resnet50_gupta", "val_"),
        ("cifar100_resnet50_gupta", "test_"),
        ("imagenet1k_effnetlite0_sample1000", ""),
    ],
)
def test_temperatures_of_top_20_scores_and_complete_rows_differ_by_less_than_a_thousandth(
    real_data, name, part
):
    data = real_data(name)
    log_proba, y = log_softmax(data[f"{part}logits"]), data[f"{part}labels"]
    dense = TemperatureScaling(inputs="log_proba").fit(log_proba, y)
    top = TemperatureScaling().fit(best(log_proba, rest=log_rest(log_proba)), y)
    assert top.temperature_ == pytest.approx(dense.temperature_, abs=1e-3)


def test_temperatures_of_top_scores_and_complete_rows_agree_for_power_law_probabilities(rng):
    """The tail is what the fit takes it for, and every truth is known."""
    power = rng.uniform(1.2, 2.5, size=(2000, 1))
    log_proba = log_softmax(-power * np.log(np.arange(1, 501) + 0.0))
    y = np.minimum(rng.geometric(0.5, size=2000) - 1, M - 1)
    dense = TemperatureScaling(inputs="log_proba").fit(log_proba, y)
    top = TemperatureScaling().fit(best(log_proba, rest=log_rest(log_proba)), y)
    assert top.temperature_ == pytest.approx(dense.temperature_, abs=1e-3)


def test_calibrated_top_scores_keep_their_classes_and_sum_to_one_with_the_tail_mass(small):
    log_proba, y = small
    top = best(log_proba, 3)
    model = TemperatureScaling().fit(top, y)
    after = model.predict_proba(top)
    assert (after.labels == top.labels).all()
    assert np.allclose(after.proba.sum(axis=1) + after.rest, 1.0)
    assert (model.predict(top) == top.labels[:, 0]).all()
    assert repr(after) == "TopScores(400 rows, top 3 of 6 classes, tail mass known)"


def test_binning_of_top_scores_equals_binning_of_complete_rows_including_the_guarantee(small):
    log_proba, y = small
    for notion in ("confidence", "top-label", "within-top-2"):
        dense = MulticlassToBinary(HistogramBinning(n_bins=4), notion, inputs="log_proba")
        top = MulticlassToBinary(HistogramBinning(n_bins=4), notion)
        dense.fit(log_proba, y)
        top.fit(best(log_proba, 3), y)
        expected = dense.predict_claims(log_proba)
        assert np.allclose(top.predict_claims(best(log_proba, 3)), expected, atol=1e-12)
        assert str(top.guarantee()) == str(dense.guarantee())
    labels, claims = (
        MulticlassToBinary(HistogramBinning(n_bins=4))
        .fit(best(log_proba, 3), y)
        .predict_top(best(log_proba, 3))
    )
    assert (labels == log_proba.argmax(axis=1)).all()
    assert claims.shape == labels.shape


def test_if_the_tail_mass_is_unknown_the_temperature_uses_rows_whose_true_class_is_listed(small):
    log_proba, y = small
    top = best(log_proba, 3, rest="unknown")
    inside = (top.labels == y[:, None]).any(axis=1)
    with pytest.warns(
        DataWarning, match="true class is not among the top scores and the tail mass is unknown"
    ):
        model = TemperatureScaling().fit(top, y)
    known = np.flatnonzero(inside)
    place = (top.labels == y[:, None]).argmax(axis=1)[known]
    alone = TemperatureScaling(inputs="logits").fit(top.log_proba[known], place)
    assert model.temperature_ == pytest.approx(alone.temperature_, rel=1e-9)
    assert model.predict_proba(top).log_rest is None
    with pytest.raises(ValueError, match="cannot be computed, because the tail mass is unknown"):
        evaluate(y, top)


def test_the_code_of_the_guide_to_top_scores_runs():
    page = Path(__file__).resolve().parents[2] / "docs" / "howto" / "top-scores.md"
    code = page.read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(code.replace("print(evaluate(y, top))", "shown = str(evaluate(y, top))"), names)
    assert names["claims"].shape == (4, 1)
    assert names["low"] <= names["high"]
