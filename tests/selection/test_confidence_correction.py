"""The last step of a stack: its top probability, corrected where other rows say so."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import AutoCalibration, metrics
from calibrant._data.folds import as_folds
from calibrant.export import program
from calibrant.selection._confidence_correction import StackedRows, correct_confidence


def drawn(proba, rng):
    return (rng.random((len(proba), 1)) < proba.cumsum(axis=1)).argmax(axis=1)


def ill_judged(n_rows, rng, n_classes=4):
    """Probabilities whose top class is right in 60 % of the cases whatever they say: no mixture
    with the uniform forecast mends that.
    """
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    rows, top = np.arange(n_rows), proba.argmax(axis=1)
    truth = proba.copy()
    truth[rows, top] = 0.0
    truth *= 0.4 / truth.sum(axis=1, keepdims=True)
    truth[rows, top] = 0.6
    return proba, drawn(truth, rng)


def stacked(proba, labels):
    folds = as_folds(5, proba, labels, np.ones(len(labels)), None)
    rows = np.concatenate([fold.judge for fold in folds])
    number = np.repeat(np.arange(5), [len(fold.judge) for fold in folds])
    ratios = np.array([len(fold.judge) / len(fold.fit) for fold in folds])
    stack = StackedRows.of_proba(proba[rows], labels[rows], np.ones(len(rows)), number)
    return stack, proba.shape[1], ratios


def test_an_honest_top_probability_is_left_alone(rng):
    proba = rng.dirichlet(np.ones(4), size=600)
    assert correct_confidence(*stacked(proba, drawn(proba, rng))) is None


def test_rounding_is_no_gain(rng):
    """A mixture that is all the top probability as it is may gain 1e-18, in units of as little."""
    found = []
    for _ in range(40):
        proba = rng.dirichlet(np.ones(4), size=200)
        found.append(correct_confidence(*stacked(proba, drawn(proba, rng))))
    assert [one.gain.gain for one in found if one is not None and one.gain.gain < 1e-9] == []
    assert any(one is None for one in found)


def test_a_top_probability_that_is_not_honest_is_corrected(rng):
    found = correct_confidence(*stacked(*ill_judged(600, rng)))
    new, labels = ill_judged(4000, rng)
    after = found.map.predict_proba(new)
    assert found.gain.gain > 0
    assert metrics.log_loss(labels, after) < metrics.log_loss(labels, new)
    before = metrics.expected_calibration_error(labels, new)
    assert metrics.expected_calibration_error(labels, after) < 0.4 * before


def test_its_gain_is_measured_on_rows_that_the_map_has_not_seen(rng):
    proba, labels = ill_judged(600, rng)
    found = correct_confidence(*stacked(proba, labels))
    inside = metrics.log_loss(labels, proba) - metrics.log_loss(
        labels, found.map.predict_proba(proba)
    )
    assert 0 < found.gain.gain < inside


def test_a_handful_of_errors_says_too_little_of_it(rng):
    """However sure the scores are of them."""
    proba = np.full((200, 3), 0.005)
    proba[:, 0] = 0.99
    labels = np.where(np.arange(200) % 11 == 0, 1, 0)  # 19 of them
    assert correct_confidence(*stacked(proba, labels)) is None
    assert correct_confidence(*stacked(np.tile(proba, (5, 1)), np.tile(labels, 5))) is not None


@pytest.mark.parametrize("is_right", [True, False])
def test_rows_that_are_all_right_or_all_wrong_say_nothing_of_it(is_right, rng):
    proba = rng.dirichlet(np.ones(3), size=60)
    labels = proba.argmax(axis=1) if is_right else proba.argmin(axis=1)
    assert correct_confidence(*stacked(proba, labels)) is None


@pytest.fixture(scope="module")
def corrected():
    """A stack of nothing but the scores, whose top probability is corrected."""
    generator = np.random.default_rng(0)
    return AutoCalibration([]).fit(*ill_judged(800, generator))


def test_the_stack_applies_the_correction_and_says_so(corrected, rng):
    new, labels = ill_judged(2000, rng)
    stack = corrected.weights_[0] * new + corrected.weights_[-1] / 4
    proba = corrected.predict_proba(new)
    np.testing.assert_allclose(proba, corrected.top_.predict_proba(stack), atol=1e-12)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert metrics.log_loss(labels, proba) < metrics.log_loss(labels, stack)
    assert corrected.top_gain_.numbers in corrected.explain()


def test_the_correction_is_saved_and_exported(corrected, tmp_path, rng):
    new, _ = ill_judged(50, rng)
    calibrant.save(corrected, tmp_path / "model.json")
    loaded = calibrant.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(new), corrected.predict_proba(new))
    assert loaded.explain() == corrected.explain()
    np.testing.assert_allclose(program(corrected)(new), corrected.predict_proba(new), atol=1e-12)


def test_a_file_whose_correction_is_none_is_refused(corrected, tmp_path):
    path = tmp_path / "model.json"
    strange = AutoCalibration([]).fit(*ill_judged(800, np.random.default_rng(0)))
    strange.top_ = calibrant.TemperatureScaling().fit(np.full((4, 4), 0.25), [0, 1, 2, 3])
    calibrant.save(strange, path)
    with pytest.raises(ValueError, match="top_ must be a map"):
        calibrant.load(path)


def test_a_curve_is_kept_at_few_points_and_away_from_certainty(rng):
    top = np.sqrt(rng.random(3000)) * 0.5 + 0.5
    # Right where it says 0.6 to 0.8, and a coin elsewhere: no three parameters say that.
    claim = np.where((top > 0.6) & (top < 0.8), top, 0.5)
    labels = (rng.random(3000) > claim).astype(int)
    found = correct_confidence(*stacked(np.column_stack([top, 1 - top]), labels))
    (curve,) = found.map.calibrators_
    assert type(curve).__name__ == "SplineCalibration"
    assert len(curve.scores_) <= 128
    assert curve.values_.max() < 1.0
