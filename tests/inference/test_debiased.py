from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import datasets
from calibrant.binning import Bins, bin_table
from calibrant.inference import _debiased, debiased_interval
from calibrant.metrics import expected_calibration_error
from calibrant.notions import as_notion

ONES = np.ones(23)
NOTIONS = [
    "confidence",
    "top-label",
    "class-wise",
    "class-1",
    "within-top-2",
    "top-2-confidence",
    "top-2-label",
]


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_estimate_is_the_debiased_error_and_lies_in_the_interval(notion, rng):
    data = datasets.noisy_simplex(300, 3, 0.2, rng=rng)
    result = debiased_interval(data.labels, data.proba, notion=notion, n_bins=8)
    options = {"notion": notion, "n_bins": 8, "strategy": "quantile", "norm": 2, "debias": True}
    error = expected_calibration_error(data.labels, data.proba, **options)
    # The interval floors the sum over labels at zero, the metric floors each label.
    assert result.estimate <= error if notion.endswith("label") else result.estimate == error
    assert 0 <= result.low <= result.estimate <= result.high


@pytest.mark.parametrize(("split", "whole"), [("top-label", "confidence")])
@pytest.mark.parametrize("n_samples", [2, 10, 60, 300])
def test_a_split_by_label_is_never_below_the_whole(split, whole, n_samples, rng):
    proba, y = rng.dirichlet(np.ones(8), n_samples), rng.integers(8, size=n_samples)
    fine, coarse = (debiased_interval(y, proba, notion=n) for n in (split, whole))
    assert fine.estimate >= coarse.estimate
    assert fine.low >= coarse.low
    assert fine.high >= coarse.high


def test_claims_of_few_rows_have_fewer_bins(rng):
    claims = as_notion("class-1").claims(rng.dirichlet([1, 1], 23), rng.integers(2, size=23), ONES)
    table = bin_table(claims, n_bins=15, strategy="quantile", rows_per_bin=5)
    assert table.weight.tolist() == [[5, 6, 6, 6]]


def test_rows_alone_in_a_bin_widen_the_interval_and_are_noted(rng):
    y, score = [0, 0, 0, 0, 1], np.array([0.2, 0.2, 0.2, 0.2, 0.9])
    result = debiased_interval(y, score, notion="class-1", strategy="uniform", n_bins=10)
    assert result.estimate == pytest.approx(0.2)
    assert result.note == "20% of the rows are alone in their bin and not in the estimate"
    assert result.guarantee == "heuristic"
    assert result.high > (0.9**2 / 5) ** 0.5


def pair_variance(y, proba, n_bins):
    """V_2 of the docstring for class-wise claims, summed over pairs of rows."""
    n, n_classes = proba.shape
    cell = np.minimum((proba * n_bins).astype(int), n_bins - 1)
    residual = np.eye(n_classes)[y] - proba
    weight = np.zeros((n, n_classes))
    for k in range(n_classes):
        for b in range(n_bins):
            rows = cell[:, k] == b
            residual[rows, k] -= residual[rows, k].mean() if rows.sum() > 1 else 0
            weight[rows, k] = 1 / rows.sum() if rows.sum() > 1 else 0
    total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                same = cell[i] == cell[j]
                total += np.sum(same * weight[i] * residual[i] * residual[j]) ** 2
    return 2 * total / (n * n_classes) ** 2


def test_the_variances_by_pairs_of_rows(rng):
    data = datasets.noisy_simplex(40, 3, 0.3, rng=rng)
    result = debiased_interval(
        data.labels, data.proba, notion="class-wise", n_bins=4, strategy="uniform"
    )
    cell = np.minimum((data.proba * 4).astype(int), 3)
    residual = np.eye(3)[data.labels] - data.proba
    influence = np.zeros(40)
    for k in range(3):
        for b in range(4):
            rows = cell[:, k] == b
            mean = residual[rows, k].mean() if rows.sum() > 1 else 0.0
            influence[rows] += (2 * mean * residual[rows, k] - mean**2) / 3
    pairs = pair_variance(data.labels, data.proba, 4)
    variance = max(influence.var() / 40 - pairs, pairs)
    assert result.standard_error == pytest.approx(np.sqrt(variance), rel=1e-10)
    claims = as_notion("class-wise").claims(data.proba, data.labels, np.ones(40))
    table = bin_table(claims, n_bins=4)
    assert _debiased._pair_variance(claims, table) == pytest.approx(pairs, rel=1e-10)
    assert _debiased._mean_variance(claims, table) == pytest.approx(influence.var() / 40, rel=1e-10)


def test_covariances_of_many_quantities_are_bounded_from_above(rng, monkeypatch):
    data = datasets.noisy_simplex(200, 5, 0.0, rng=rng)
    exact = debiased_interval(data.labels, data.proba, notion="class-wise")
    monkeypatch.setattr(_debiased, "_MOST_QUANTITIES", 2)
    bounded = debiased_interval(data.labels, data.proba, notion="class-wise")
    assert bounded.estimate == exact.estimate
    assert exact.standard_error < bounded.standard_error < 5 * exact.standard_error


def test_pairs_of_rows_give_what_pairs_of_quantities_give(rng):
    proba, y = rng.dirichlet(np.ones(12), 30), rng.integers(12, size=30)
    claims = as_notion("class-wise").claims(proba, y, rng.integers(1, 4, 30).astype(float))
    table = bin_table(claims, strategy="quantile", rows_per_bin=5)
    columns = list(_debiased._columns(claims, table))
    assert _debiased._pairs_of_rows(columns, claims.weight) == pytest.approx(
        _debiased._all_pairs(columns, claims.weight), rel=1e-12
    )


def test_joint_cells_may_be_found_instead_of_tabulated(rng, monkeypatch):
    data = datasets.noisy_simplex(100, 3, 0.2, rng=rng)
    expected = debiased_interval(data.labels, data.proba, notion="top-2-label")
    monkeypatch.setattr(_debiased, "_JOINT_CELLS", 3)
    assert debiased_interval(
        data.labels, data.proba, notion="top-2-label"
    ).standard_error == pytest.approx(expected.standard_error, rel=1e-12)


@pytest.mark.parametrize("notion", NOTIONS)
def test_equal_weights_are_those_of_one_and_rows_of_weight_zero_are_absent(notion, rng):
    proba, y = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    weight = np.where(np.arange(60) < 50, 0.02, 0.0)
    weighted = debiased_interval(y, proba, notion=notion, n_bins=5, sample_weight=weight)
    present = debiased_interval(y[:50], proba[:50], notion=notion, n_bins=5)
    for name in ("estimate", "low", "high", "standard_error", "n_samples"):
        assert getattr(weighted, name) == pytest.approx(getattr(present, name), abs=1e-12)


@pytest.mark.parametrize("shrinkage", [0.0, pytest.param(0.1, marks=pytest.mark.slow), 0.4])
def test_the_standard_error_is_that_of_repeated_samples(shrinkage, monkeypatch):
    squares = []
    interval = _debiased._square_interval
    monkeypatch.setattr(
        _debiased,
        "_square_interval",
        lambda square, *rest: squares.append(square) or interval(square, *rest),
    )
    draws = (datasets.linear_family(1000, shrinkage, rng=seed) for seed in range(400))
    errors = [
        debiased_interval(data.labels, data.proba, notion="class-1").standard_error
        for data in draws
    ]
    # 400 runs determine a spread to 4%. Near calibration, the larger of two noisy variances is
    # slightly too large.
    assert np.mean(errors) == pytest.approx(np.std(squares), rel=0.2)


def test_one_row_and_certain_predictions():
    single = debiased_interval([1], [[0.3, 0.7]])
    assert np.isnan(single.estimate)
    assert (single.low, single.high) == (0.0, 0.7)
    assert single.note == "not identifiable, because no bin contains two rows"
    sure = debiased_interval([0, 1, 0], np.eye(2)[[0, 1, 0]])
    assert sure.low == sure.estimate == 0.0
    assert 0.5 < sure.high < 1.0
    wrong = debiased_interval([1, 1, 1], np.eye(2)[[0, 0, 0]])
    assert wrong.estimate == wrong.high == 1.0
    assert 0.0 <= wrong.low < 0.7


def test_real_predictions_give_the_figures_of_verified_calibration(real_data, reference):
    focal = real_data("focal_cifar10_resnet50_gupta")
    y, proba = focal["test_labels"], softmax(focal["test_logits"].astype(float), axis=1)
    golden = reference["focal_cifar10_resnet50_gupta"]["uncalibrated_test"]["verified_calibration"]

    def split(score):
        """Bins of the reference: the larger ones come first if rows do not divide evenly."""
        return np.array([group[-1] for group in np.array_split(np.sort(score), 15)])

    cases = [
        ("confidence", golden["get_top_calibration_error default"], (split(proba.max(axis=1)),)),
        (
            "class-wise",
            golden["get_calibration_error default (p=2,debias,marginal)"],
            tuple(split(c) for c in proba.T),
        ),
    ]
    for notion, published, edges in cases:
        same_bins = debiased_interval(y, proba, notion=notion, bins=Bins(edges))
        assert same_bins.estimate == pytest.approx(published, abs=1e-8)
        # The sizes of our quantile bins differ by up to one row.
        own = debiased_interval(y, proba, notion=notion)
        assert own.estimate == pytest.approx(published, abs=2e-5)
        assert own.low < own.estimate < own.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "notion"),
    [
        (lambda seed: datasets.linear_family(1000, 0.2, rng=seed), "class-1"),
        (lambda seed: datasets.linear_family(1000, 0.05, rng=seed), "class-1"),
        (lambda seed: datasets.power_family(500, 2.0, rng=seed), "class-1"),
        (lambda seed: datasets.noisy_simplex(1000, 2, 0.4, rng=seed), "class-wise"),
        (lambda seed: datasets.noisy_simplex(1000, 3, 0.4, rng=seed), "class-wise"),
        (lambda seed: datasets.noisy_simplex(1000, 10, 0.4, rng=seed), "class-wise"),
        (lambda seed: datasets.noisy_simplex(1000, 3, 0.0, rng=seed), "class-wise"),
    ],
)
def test_intervals_cover_the_true_error_of_families_where_it_is_known(make, notion):
    covered = 0
    for seed in range(1000):
        data = make(seed)
        result = debiased_interval(data.labels, data.proba, notion=notion)
        covered += result.low <= data.errors[f"{notion}-l2"] <= result.high
    assert covered >= 920


@pytest.mark.parametrize("notion", ["confidence", "class-wise", "top-label"])
def test_the_order_of_the_array_in_memory_does_not_matter(notion, rng):
    proba, labels = rng.dirichlet(np.ones(4), 200), rng.integers(4, size=200)
    one, other = (
        debiased_interval(labels, p, notion=notion) for p in (proba, np.asfortranarray(proba))
    )
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)
