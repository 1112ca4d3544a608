"""Guarantees of fitted reductions: covered claims, their names, and exceptions."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

from calibrant.binary import HistogramBinning, PlattScaling
from calibrant.reductions import MulticlassToBinary
from six_rows import SIX, TRUTH


def _sample(rng, n=600, n_classes=5):
    logits = rng.normal(size=(n, n_classes)) * 2
    proba = softmax(logits, axis=1)
    y = np.array([rng.choice(n_classes, p=row) for row in softmax(logits / 2, axis=1)])
    return proba, y


def _bound(count, k, alpha):
    return math.sqrt(math.log(2 * count / alpha) / (2 * (k - 1))) + 1e-10


def test_the_top_label_guarantee_is_that_of_theorem_1(rng):
    P, y = _sample(rng, n=2000)
    result = MulticlassToBinary(HistogramBinning(points_per_bin=40)).fit(P, y).guarantee(alpha=0.1)
    assert result.marginal == pytest.approx(_bound(1, 40, 0.1), rel=1e-12)
    assert result.conditional == pytest.approx(_bound(2000 / 40, 40, 0.1), rel=1e-12)
    assert result.expected_ece == pytest.approx(math.sqrt(1 / 80) + 1e-10, rel=1e-12)
    assert result.n_bins == sum(int(n // 40) for n in np.bincount(P.argmax(axis=1)))
    assert result.not_covered == ()
    assert str(result).startswith(
        f"The following bounds hold with 90% confidence, for all {result.n_bins} bins jointly. "
        "When the reported probability of class "
    )


def test_the_class_wise_guarantee_is_that_of_theorem_2(rng):
    P, y = _sample(rng, n=2000, n_classes=3)
    fitted = MulticlassToBinary(HistogramBinning(points_per_bin=[50, 80, 100]), "class-wise").fit(
        P, y
    )
    result = fitted.guarantee(alpha=0.06)
    assert [q.points_per_bin for q in result.quantities] == [50, 80, 100]
    assert [q.marginal for q in result.quantities] == pytest.approx(
        [_bound(1, k, 0.02) for k in (50, 80, 100)], rel=1e-12
    )
    assert result.conditional == pytest.approx(_bound(2000 / 50, 50, 0.02), rel=1e-12)
    own = fitted.guarantee(alpha=[0.01, 0.02, 0.03])
    expected = [
        _bound(2000 / k, k, a) for k, a in zip((50, 80, 100), (0.01, 0.02, 0.03), strict=True)
    ]
    assert [q.conditional for q in own.quantities] == pytest.approx(expected, rel=1e-12)
    assert own.alpha == pytest.approx(0.06)


def test_bins_of_equal_width_are_guaranteed_by_the_points_that_they_hold(rng):
    P, y = _sample(rng, n_classes=3)
    fitted = MulticlassToBinary(HistogramBinning(n_bins=6, strategy="uniform"), "confidence").fit(
        P, y
    )
    result = fitted.guarantee()
    counts = fitted.calibrators_[0].counts_
    assert (counts == 0).sum() == 2  # no confidence of three classes is below 1/3
    assert result.n_bins == 4
    assert result.quantities[0].points_per_bin == counts[2:].min() + 1
    assert result.not_covered == ("2 bins without rows, which return 0.5",)


def test_a_given_number_of_bins_is_a_number_of_points_too(rng):
    P, y = _sample(rng, n=1000)
    result = MulticlassToBinary(HistogramBinning(n_bins=12), "confidence").fit(P, y).guarantee()
    assert result.quantities[0].points_per_bin == 1000 // 12
    assert result.conditional == pytest.approx(_bound(1000 / 83, 83, 0.05), rel=1e-12)


@pytest.mark.parametrize(
    ("notion", "text"),
    [
        ("confidence", "probability of the predicted class is"),
        ("top-label", "probability of 'c' is|probability of 'a' is|probability of 'b' is"),
        ("class-1", "probability of 'b' is"),
        ("rank-2", "probability of the class of rank 2 is"),
        ("within-top-2", "probability of one of its top 2 classes is"),
        ("top-2-confidence", "probability of the (predicted class|class of rank 2) is"),
        ("top-2-label", "probability of '[abc]'( at rank 2)? is"),
    ],
)
def test_the_sentence_names_what_the_model_says(rng, notion, text):
    P, y = _sample(rng, n_classes=3)
    names = np.array(["a", "b", "c"])
    result = (
        MulticlassToBinary(HistogramBinning(), notion, classes=names).fit(P, names[y]).guarantee()
    )
    assert re.search(text, str(result))


def test_a_class_in_fallback_is_named_as_not_covered(rng):
    P, y = _sample(rng, n_classes=3)
    P = np.column_stack([P, np.zeros(len(P))])
    result = (
        MulticlassToBinary(HistogramBinning(), classes=["a", "b", "c", "rare"])
        .fit(P, np.array(list("abc"))[y])
        .guarantee()
    )
    assert result.not_covered == ("'rare' (too few rows for separate bins)",)
    assert all(interval.claim != "'rare'" for interval in result.intervals)


def test_normalised_rows_are_named_as_not_covered(rng):
    P, y = _sample(rng)
    result = (
        MulticlassToBinary(HistogramBinning(), "class-wise", normalize=True).fit(P, y).guarantee()
    )
    assert result.not_covered == ("the normalized rows of predict_proba",)
    assert (
        MulticlassToBinary(HistogramBinning(), "class-wise").fit(P, y).guarantee().not_covered == ()
    )


def test_a_class_with_single_points_a_bin_is_named_as_not_covered():
    rng = np.random.default_rng(0)
    P = np.repeat(np.eye(2) * 0.2 + 0.4, [100, 15], axis=0) + rng.uniform(-0.05, 0.05, size=115)[
        :, None
    ] * [1, -1]
    result = MulticlassToBinary(HistogramBinning(n_bins=10)).fit(P, P.argmax(axis=1)).guarantee()
    assert result.not_covered == ("class 1 (fewer than two rows per bin)",)
    assert result.n_bins == 10


def test_other_calibrators_have_no_guarantee():
    with pytest.raises(ValueError, match="PlattScaling has no distribution-free guarantee"):
        MulticlassToBinary(PlattScaling(), "confidence").fit(SIX, TRUTH).guarantee()


def test_boundary_points_that_count_leave_no_guarantee(rng):
    with pytest.raises(ValueError, match="boundary='exclude'"):
        MulticlassToBinary(HistogramBinning(boundary="include")).fit(*_sample(rng)).guarantee()


def test_weights_other_than_one_leave_no_guarantee(rng):
    P, y = _sample(rng)
    fitted = MulticlassToBinary(HistogramBinning()).fit(
        P, y, sample_weight=np.linspace(0.5, 2, 600)
    )
    with pytest.raises(ValueError, match="weighted rows"):
        fitted.guarantee()
    ones = MulticlassToBinary(HistogramBinning()).fit(P, y, sample_weight=np.ones(600)).guarantee()
    assert ones == MulticlassToBinary(HistogramBinning()).fit(P, y).guarantee()


def test_too_few_points_leave_no_guarantee():
    with pytest.raises(ValueError, match="too few rows for a guarantee"):
        MulticlassToBinary(HistogramBinning(), "top-label").fit(SIX, TRUTH).guarantee()
    with pytest.raises(ValueError, match="too few rows for a guarantee"):
        MulticlassToBinary(HistogramBinning(n_bins=6), "confidence").fit(SIX, TRUTH).guarantee()


def test_there_is_no_guarantee_before_the_fit():
    with pytest.raises(NotFittedError):
        MulticlassToBinary(HistogramBinning()).guarantee()


def test_one_alpha_is_split_between_the_claims_that_are_covered(rng):
    P, y = _sample(rng, n=600, n_classes=3)
    fitted = MulticlassToBinary(HistogramBinning(points_per_bin=[50, 50, 1]), "class-wise")
    result = fitted.fit(P, y).guarantee(alpha=0.1)
    assert [q.name for q in result.quantities] == ["class 0", "class 1"]
    assert [q.alpha for q in result.quantities] == [0.05, 0.05]
    assert result.not_covered == ("class 2 (fewer than two rows per bin)",)


def test_alphas_of_claims_that_are_not_covered_do_not_count(rng):
    P, y = _sample(rng, n=600, n_classes=3)
    fitted = MulticlassToBinary(HistogramBinning(points_per_bin=[50, 50, 1]), "class-wise")
    result = fitted.fit(P, y).guarantee(alpha=[0.01, 0.02, 0.03])
    assert [q.alpha for q in result.quantities] == [0.01, 0.02]
    assert result.alpha == pytest.approx(0.03)
