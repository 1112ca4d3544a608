from __future__ import annotations

import json

import numpy as np
import pytest

import notion_names
from calibrant import datasets
from calibrant.binary import HistogramBinning
from calibrant.binning import Bins
from calibrant.inference import validity_curve
from calibrant.metrics import calibration_curve, expected_calibration_error
from calibrant.multiclass import CanonicalBinning
from calibrant.reductions import MulticlassToBinary


def area_above(curve):
    """The integral of 1 - V, a step function."""
    return np.sum(np.diff(curve.epsilon) * (1 - curve.validity[:-1]))


@pytest.mark.parametrize("notion", notion_names.NAMES)
def test_the_area_above_the_curve_is_the_calibration_error(notion, rng):
    data = datasets.noisy_simplex(200, 3, 0.3, rng=rng)
    curve = validity_curve(data.labels, data.proba, notion=notion)
    assert area_above(curve) == pytest.approx(
        expected_calibration_error(data.labels, data.proba, notion=notion), abs=1e-12
    )
    assert (np.diff(curve.validity) >= 0).all()
    assert curve.epsilon[0] == 0
    assert curve.validity[-1] == pytest.approx(1)


def test_by_hand():
    # Two bins, .25 (three rows, one positive) and .75 (one positive row), with gaps 1/12 and 1/4.
    curve = validity_curve([1, 0, 0, 1], [0.25, 0.25, 0.25, 0.75], notion="class-1", n_bins=2)
    assert curve([0.0, 0.08, 1 / 12, 0.2, 0.25]) == pytest.approx([0, 0, 0.75, 0.75, 1])
    assert curve.epsilon == pytest.approx([0, 1 / 12, 0.25])


def test_round_off_does_not_hide_a_gap_that_is_reached():
    curve = validity_curve([0, 1, 1, 1, 1, 1, 1, 1, 1, 1], np.full(10, 0.8), notion="class-1")
    assert curve(0.1) == 1.0


def test_values_may_be_asked_for(rng):
    data = datasets.noisy_simplex(200, 3, 0.3, rng=rng)
    curve = validity_curve(data.labels, data.proba, notion="class-wise", epsilon=[0.01, 0.1])
    assert curve.epsilon.tolist() == [0.01, 0.1]
    assert curve.validity == pytest.approx(curve([0.01, 0.1]))


def test_a_claim_has_its_own_curve(rng):
    data = datasets.noisy_simplex(300, 3, 0.3, rng=rng)
    curve = validity_curve(data.labels, data.proba, notion="top-label")
    rows = data.proba.argmax(axis=1) == 1
    own = validity_curve(data.labels[rows], data.proba[rows], notion="confidence")
    assert curve(0.1, claim=1) == pytest.approx(own(0.1))
    never = validity_curve([0, 0], [[0.9, 0.1], [0.8, 0.2]], notion="top-label")
    assert np.isnan(never(0.1, claim=1))


def test_a_base_model_is_evaluated_on_the_bins_of_another(rng):
    data = datasets.noisy_simplex(300, 3, 0.3, rng=rng)

    class Fitted:
        bins_ = Bins((np.array([0.5, 0.7, 1.0]),))

    curve = validity_curve(data.labels, data.proba, notion="confidence", bins=Fitted())
    table = calibration_curve(data.labels, data.proba, notion="confidence", bins=Fitted())
    assert curve.gap == pytest.approx(table.gap)
    assert curve.gap.shape == (1, 3)


def test_a_weight_is_a_number_of_copies(rng):
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    copies = rng.integers(0, 3, size=40)
    rows = np.repeat(np.arange(40), copies)
    place = rng.integers(0, 4, 40)
    for notion, bins in (("top-label", None), ("canonical", place)):
        weighted = validity_curve(y, proba, notion=notion, bins=bins, sample_weight=copies)
        repeated = validity_curve(
            y[rows], proba[rows], notion=notion, bins=None if bins is None else bins[rows]
        )
        eps = np.linspace(0, 1, 21)
        assert weighted(eps) == pytest.approx(repeated(eps))


class HalfPlane:
    """A binning of the simplex by its first coordinate."""

    def bins(self, X):
        return (np.asarray(X)[:, 0] > 0.5).astype(int)


def test_canonical_in_l1_by_hand():
    proba = np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3], [0.8, 0.1, 0.1], [0.6, 0.3, 0.1]])
    curve = validity_curve([1, 2, 0, 0], proba, notion="canonical", bins=HalfPlane())
    # Means of the bins: (.3, .4, .3) against (0, .5, .5), and (.7, .2, .1) against (1, 0, 0).
    assert curve.gap.ravel() == pytest.approx([0.3 + 0.1 + 0.2, 0.3 + 0.2 + 0.1])
    assert curve.share.ravel() == pytest.approx([0.5, 0.5])


def test_canonical_takes_the_bins_of_each_row_and_by_default_the_distinct_vectors(rng):
    values = rng.dirichlet(np.ones(3), 5)
    place = rng.integers(0, 5, 200)
    y = datasets.draw_labels(values[place], rng=rng)
    given = validity_curve(y, values[place], notion="canonical", bins=place)
    default = validity_curve(y, values[place], notion="canonical")
    eps = np.linspace(0, 1, 50)
    assert given(eps) == pytest.approx(default(eps))
    frequency = np.eye(3)[y[place == 2]].mean(axis=0)
    assert given.gap[0, 2] == pytest.approx(np.abs(frequency - values[2]).sum())


def test_recalibrated_vectors_are_valid_on_more_of_the_data(rng):
    data = datasets.noisy_simplex(4000, 3, 0.8, rng=rng)
    place = HalfPlane().bins(data.proba)
    mean = np.array([np.eye(3)[data.labels[:2000][place[:2000] == b]].mean(axis=0) for b in (0, 1)])
    rows = slice(2000, None)
    base = validity_curve(data.labels[rows], data.proba[rows], notion="canonical", bins=HalfPlane())
    better = validity_curve(
        data.labels[rows], mean[place[rows]], notion="canonical", bins=place[rows]
    )
    assert better(0.1) == 1.0
    assert base(0.1) < 1.0


def test_fitted_calibrators_lend_their_bins(rng):
    data = datasets.noisy_simplex(3000, 3, 0.8, rng=rng)
    fit, rows = slice(0, 1500), slice(1500, None)
    X, y = data.proba[rows], data.labels[rows]

    vectors = CanonicalBinning(n_bins=10).fit(data.proba[fit], data.labels[fit])
    base = validity_curve(y, X, notion="canonical", bins=vectors)
    better = validity_curve(y, vectors.predict_proba(X), notion="canonical", bins=vectors.bins(X))
    assert better.share == pytest.approx(base.share)
    assert better(0.2) > base(0.2)

    top = MulticlassToBinary(HistogramBinning(n_bins=8), notion="top-label").fit(
        data.proba[fit], data.labels[fit]
    )
    label, claim = top.predict_top(X)
    base = validity_curve(y, X, notion="top-label", bins=top)
    better = validity_curve(
        y, claim, y_pred=label, notion="top-label", strategy="unique", classes=[0, 1, 2]
    )
    assert better(0.15) > base(0.15)


def test_one_row_and_the_result_has_a_text():
    curve = validity_curve([0], [[0.7, 0.3]], notion="canonical")
    assert curve(0.59) == 0.0
    assert curve(0.6) == 1.0
    assert (
        str(curve)
        == "validity, canonical: V(0.01) = 0.000, V(0.02) = 0.000, V(0.05) = 0.000, V(0.1) = 0.000"
    )
    assert json.loads(json.dumps(curve.to_dict()))["validity"] == [0.0, 1.0]


def test_nonsense_is_rejected():
    proba = np.full((4, 2), 0.5)
    with pytest.raises(ValueError, match="the bin number of every row"):
        validity_curve([0, 1, 0, 1], proba, notion="canonical", bins=[0.5, 0.5, 1.0, 1.0])
    with pytest.raises(
        ValueError,
        match="Arrays must have the same number of rows, but bins has 2 rows and y_prob has 4",
    ):
        validity_curve([0, 1, 0, 1], proba, notion="canonical", bins=[0, 1])
    with pytest.raises(ValueError, match="y_pred is only allowed for binary types"):
        validity_curve([0, 1, 0, 1], proba, notion="canonical", y_pred=[0, 1, 0, 1])
    with pytest.raises(TypeError, match="bins must be a fitted binning calibrator"):
        validity_curve([0, 1, 0, 1], proba, notion="confidence", bins=HalfPlane())
