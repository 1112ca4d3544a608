from __future__ import annotations

import numpy as np
import pytest

from calibrant import datasets, evaluate


@pytest.mark.parametrize("model", ["naive_bayes", "forest", "boosting", "mlp", "logistic"])
def test_digits_predictions_are_valid_deterministic_and_better_than_chance(model):
    data = datasets.digits_predictions(model)
    assert data.class_names.tolist() == list(range(10))
    result = evaluate(data.test_labels, data.test_proba)
    assert result.accuracy > 0.8
    if model not in ("mlp", "boosting"):  # the others are slow and use the same code
        np.testing.assert_array_equal(
            data.test_proba, datasets.digits_predictions(model).test_proba
        )


def test_naive_bayes_is_overconfident_and_the_forest_underconfident():
    for model, sign in (("naive_bayes", 1), ("forest", -1)):
        data = datasets.digits_predictions(model)
        excess = (
            data.test_proba.max(1).mean() - evaluate(data.test_labels, data.test_proba).accuracy
        )
        assert sign * excess > 0.05


def test_families_are_reproducible_and_reject_nonsense():
    for family in (datasets.power_family, datasets.linear_family, datasets.noisy_simplex):
        first, second = family(50, rng=1), family(50, rng=np.random.default_rng(1))
        np.testing.assert_array_equal(first.labels, second.labels)
        with pytest.raises(ValueError, match="n_samples must be an integer"):
            family(0)
    with pytest.raises(ValueError, match="exponent must be positive"):
        datasets.power_family(5, 0.0)
    with pytest.raises(ValueError, match=r"shrinkage must be in \[0, 1\]"):
        datasets.linear_family(5, 2.0)
    with pytest.raises(ValueError, match=r"noise must be in \[0, 1\]"):
        datasets.noisy_simplex(5, 3, -0.1)
    with pytest.raises(ValueError, match="model must be one of 'naive_bayes'"):
        datasets.digits_predictions("svm")


def test_drawn_labels_follow_their_probabilities():
    proba = np.tile([0.2, 0.5, 0.3], (200_000, 1))
    shares = np.bincount(datasets.draw_labels(proba, rng=2)) / 200_000
    np.testing.assert_allclose(shares, [0.2, 0.5, 0.3], atol=0.005)  # four standard errors


def test_a_class_of_probability_zero_is_never_drawn():
    proba = np.tile([0.0, 0.5, 0.5, 0.0], (10_000, 1))
    assert set(datasets.draw_labels(proba, rng=3)) == {1, 2}
