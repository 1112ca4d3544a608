"""Histogram binning: bins, boundaries, ties, weights, and the numbers of other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibrant.binary import HistogramBinning
from calibrant.binning import UniformBins, distinct_sums, place_scores
from calibrant.metrics import expected_calibration_error

SIX_SCORES = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
SIX_OUTCOMES = np.array([0, 0, 1, 1, 0, 1])


def _positive(calibrator, score):
    return calibrator.predict_proba(np.asarray(score, dtype=float))[:, 1]


def _sample(rng, n=1000):
    score = rng.uniform(size=n)
    return score, (rng.uniform(size=n) < score**2).astype(int)


def test_bins_of_equal_mass_report_the_frequency_of_the_outcome():
    calibrator = HistogramBinning(n_bins=2, boundary="include").fit(SIX_SCORES, SIX_OUTCOMES)
    assert calibrator.edges_.tolist() == [0.3, 0.9]
    assert calibrator.counts_.tolist() == [3, 3]
    assert calibrator.hits_.tolist() == [1, 2]
    assert calibrator.values_.tolist() == [1 / 3, 2 / 3]


def test_a_score_at_an_edge_belongs_to_the_bin_below():
    calibrator = HistogramBinning(n_bins=2, boundary="include").fit(SIX_SCORES, SIX_OUTCOMES)
    assert _positive(calibrator, [0.0, 0.3, 0.3 + 1e-12, 1.0]).tolist() == [
        1 / 3,
        1 / 3,
        2 / 3,
        2 / 3,
    ]


def test_exclude_leaves_the_row_of_each_edge_out_but_not_the_largest_score():
    calibrator = HistogramBinning(n_bins=2, boundary="exclude").fit(SIX_SCORES, SIX_OUTCOMES)
    assert calibrator.edges_.tolist() == [0.3, 0.9]
    assert calibrator.counts_.tolist() == [2, 3]
    assert calibrator.values_.tolist() == [0.0, 2 / 3]


@pytest.mark.parametrize("n_bins", [1, 2, 7, 15, 100])
def test_edges_are_the_largest_scores_of_an_array_split(rng, n_bins):
    score, outcome = _sample(rng, 997)
    calibrator = HistogramBinning(n_bins=n_bins, boundary="include").fit(score, outcome)
    groups = np.array_split(np.sort(score), n_bins)
    np.testing.assert_array_equal(calibrator.edges_, [group[-1] for group in groups])
    np.testing.assert_array_equal(calibrator.counts_, [len(group) for group in groups])


def test_the_number_of_bins_follows_from_the_points_per_bin(rng):
    score, outcome = _sample(rng, 149)
    assert HistogramBinning().fit(score, outcome).edges_.size == 2
    assert HistogramBinning(points_per_bin=200).fit(score, outcome).edges_.size == 1


def test_each_bin_keeps_one_point_less_than_its_group(rng):
    score, outcome = _sample(rng, 1000)
    assert HistogramBinning(points_per_bin=50).fit(score, outcome).counts_.tolist() == [49] * 19 + [
        50
    ]


# Golden numbers of the authors' code, without its random nudge.


def _focal(real_data):
    file = real_data("focal_cifar10_resnet50_gupta")
    return softmax(file["val_logits"].astype(np.float64), axis=1), file["val_labels"]


def _golden(reference, name):
    return reference["focal_cifar10_resnet50_gupta"][
        "histogram_binning (df-posthoc calibration.py)"
    ][name]


def _assert_same_bins(calibrator, golden):
    # The last edge of the reference is infinite, ours the largest score: neither limits the last
    # bin. Edges are scores as they are, whose last bit depends on the exp of the machine that made
    # the softmax.
    np.testing.assert_allclose(
        calibrator.edges_[:-1], golden["bin_upper_edges"][:-1], rtol=4e-16, atol=0
    )
    np.testing.assert_array_equal(calibrator.values_, golden["bin_values"])
    if "counts" in golden:
        np.testing.assert_array_equal(calibrator.counts_, golden["counts"])


@pytest.mark.parametrize("n_bins", [15, 100])
def test_confidence_bins_equal_those_of_the_authors(real_data, reference, n_bins):
    proba, y = _focal(real_data)
    golden = _golden(reference, f"HB_binary on top-1 confidence (conf-HB) n_bins={n_bins} delta0")
    calibrator = HistogramBinning(n_bins=n_bins, boundary="include", delta=0.0)
    calibrator.fit(proba.max(axis=1), (proba.argmax(axis=1) == y).astype(int))
    _assert_same_bins(calibrator, golden)


@pytest.mark.parametrize("n_bins", [15, 100])
def test_class_wise_bins_equal_those_of_the_authors(real_data, reference, n_bins):
    proba, y = _focal(real_data)
    golden = _golden(
        reference,
        f"class-wise HB (composed: HB_binary per class; NOT in repo) n_bins={n_bins} delta0",
    )
    for k, expected in enumerate(golden["per_class"]):
        calibrator = HistogramBinning(n_bins=n_bins, boundary="include", delta=0.0)
        _assert_same_bins(calibrator.fit(proba[:, k], (y == k).astype(int)), expected)


def test_bins_of_fifty_points_equal_those_of_the_authors(real_data, reference):
    proba, y = _focal(real_data)
    top = proba.argmax(axis=1)
    for k, expected in enumerate(
        _golden(reference, "HB_toplabel points_per_bin=50 delta0")["per_class"]
    ):
        rows = top == k
        calibrator = HistogramBinning(points_per_bin=50, boundary="include", delta=0.0)
        _assert_same_bins(calibrator.fit(proba[rows, k], (y[rows] == k).astype(int)), expected)


# Golden numbers of the R package probcal.


def test_equal_width_equals_probcal(probcal_golden, probcal_reference):
    p, y, _ = probcal_golden("binary_p_y_score").T
    golden = probcal_reference["reference"]["binary"]["cal_histogram_equal_width_10"]
    calibrator = HistogramBinning(n_bins=10, strategy="uniform", delta=0.0).fit(p, y.astype(int))
    np.testing.assert_array_equal(calibrator.counts_, golden["counts"])
    np.testing.assert_allclose(calibrator.values_, golden["bin_values"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        _positive(calibrator, p[:6]), golden["pred_head6"], rtol=0, atol=1e-14
    )


def test_equal_frequency_groups_the_rows_as_probcal_does(probcal_golden, probcal_reference):
    # probcal puts its breaks between two scores (quantiles of type 8) and closes bins on the left;
    # ours are scores and close bins on the right. Without ties both split the same rows.
    p, y, _ = probcal_golden("binary_p_y_score").T
    golden = probcal_reference["reference"]["binary"]["cal_histogram_equal_freq_10"]
    calibrator = HistogramBinning(n_bins=10, boundary="include", delta=0.0).fit(p, y.astype(int))
    np.testing.assert_array_equal(calibrator.counts_, golden["counts"])
    np.testing.assert_allclose(calibrator.values_, golden["bin_values"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        _positive(calibrator, p[:6]), golden["pred_head6"], rtol=0, atol=1e-14
    )
    assert (calibrator.edges_[:-1] < golden["breaks"][1:-1]).all()


# Equal values.


def test_delta_tells_bins_of_equal_value_apart():
    score, outcome = np.linspace(0, 1, 40), np.ones(40, dtype=int)
    values = HistogramBinning(n_bins=8).fit(score, outcome).values_
    assert np.unique(values).size == 8
    assert np.abs(values - 1.0).max() <= 1.0001e-10  # delta and round-off
    assert values.max() <= 1.0
    np.testing.assert_array_equal(
        HistogramBinning(n_bins=8, delta=0.0).fit(score, outcome).values_, 1.0
    )


def test_of_equal_bins_the_higher_scores_get_the_higher_value_unless_a_seed_orders_them(rng):
    score, outcome = np.linspace(0, 1, 40), np.zeros(40, dtype=int)
    assert (np.diff(HistogramBinning(n_bins=8).fit(score, outcome).values_) > 0).all()
    drawn = HistogramBinning(n_bins=8, random_state=3).fit(score, outcome).values_
    assert (np.diff(drawn) < 0).any()
    np.testing.assert_array_equal(
        drawn, HistogramBinning(n_bins=8, random_state=3).fit(score, outcome).values_
    )


def test_values_that_differ_are_left_as_they_are():
    calibrator = HistogramBinning(n_bins=2, boundary="include", delta=0.1, random_state=0).fit(
        SIX_SCORES, SIX_OUTCOMES
    )
    assert calibrator.values_.tolist() == [1 / 3, 2 / 3]


# Hard input.


def test_a_tied_score_stays_in_one_bin():
    score = np.array([0.1] * 5 + [0.5] * 10 + [0.9] * 5)
    outcome = np.array([0] * 5 + [0, 1] * 5 + [1] * 5)
    calibrator = HistogramBinning(n_bins=4, boundary="include").fit(score, outcome)
    assert calibrator.edges_.tolist() == [0.1, 0.5, 0.9]
    assert calibrator.values_.tolist() == [0.0, 0.5, 1.0]


def test_exclude_takes_one_row_from_a_tied_edge_and_leaves_its_frequency():
    score = np.array([0.1] * 5 + [0.5] * 10 + [0.9] * 5)
    outcome = np.array([0] * 5 + [0, 1] * 5 + [1] * 5)
    calibrator = HistogramBinning(n_bins=4, boundary="exclude").fit(score, outcome)
    np.testing.assert_allclose(calibrator.counts_, [4, 9, 5])
    np.testing.assert_allclose(calibrator.values_, [0.0, 0.5, 1.0], rtol=0, atol=1e-10)
    assert calibrator.n_tied_edges_ == 2


@pytest.mark.parametrize("boundary", ["exclude", "include"])
def test_constant_scores_are_one_bin(boundary):
    calibrator = HistogramBinning(n_bins=15, boundary=boundary).fit(
        np.full(20, 0.7), np.arange(20) % 4 == 0
    )
    assert _positive(calibrator, [0.0, 0.7, 1.0]).tolist() == [0.25] * 3
    assert calibrator.counts_.tolist() == [20]


def test_two_distinct_scores_are_two_bins():
    score, outcome = (
        np.repeat([0.2, 0.8], 50),
        np.r_[np.zeros(40), np.ones(10), np.zeros(5), np.ones(45)].astype(int),
    )
    calibrator = HistogramBinning(n_bins=10).fit(score, outcome)
    np.testing.assert_allclose(
        _positive(calibrator, [0.2, 0.5, 0.8]), [0.2, 0.9, 0.9], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("outcome", [0, 1])
def test_equal_outcomes_give_that_outcome(rng, strategy, outcome):
    score = rng.uniform(size=300)
    calibrator = HistogramBinning(n_bins=5, strategy=strategy).fit(score, np.full(300, outcome))
    np.testing.assert_allclose(
        _positive(calibrator, score), outcome, rtol=0, atol=1.0001e-10
    )  # delta and round-off


def test_fewer_rows_than_bins_leave_bins_without_rows():
    included = HistogramBinning(n_bins=15, boundary="include", delta=0.0).fit(
        [0.2, 0.4, 0.9], [0, 1, 1]
    )
    assert included.values_.tolist() == [0.0, 1.0, 1.0]
    excluded = HistogramBinning(n_bins=15, delta=0.0).fit([0.2, 0.4, 0.9], [0, 1, 1])
    assert excluded.counts_.tolist() == [0, 0, 1]
    assert excluded.values_.tolist() == [0.5, 0.5, 1.0]


def test_an_empty_bin_of_equal_width_reports_one_half():
    calibrator = HistogramBinning(n_bins=4, strategy="uniform").fit(
        [0.1, 0.2, 0.3, 0.9], [0, 1, 1, 1]
    )
    np.testing.assert_allclose(_positive(calibrator, [0.6]), 0.5, rtol=0, atol=1e-10)
    assert calibrator.counts_.tolist() == [2, 1, 0, 1]


def test_one_row_is_enough():
    assert HistogramBinning().fit([0.3], [1]).predict_proba([0.0, 1.0])[:, 1].tolist() == [1.0, 1.0]


def test_exact_zeros_and_ones_are_ordinary_scores():
    score, outcome = (
        np.repeat([0.0, 0.5, 1.0], 30),
        np.r_[np.zeros(30), np.arange(30) % 2, np.ones(30)].astype(int),
    )
    calibrator = HistogramBinning(n_bins=3).fit(score, outcome)
    np.testing.assert_allclose(
        _positive(calibrator, [0.0, 0.5, 1.0]), [0.0, 0.5, 1.0], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("boundary", ["exclude", "include"])
def test_heavy_ties_of_half_precision_scores(real_data, boundary):
    file = real_data("llm_emotion_mistral-7b-v0.1-task-icl1")
    proba = softmax(file["logits"].astype(np.float64), axis=1)
    score, outcome = proba.max(axis=1), (proba.argmax(axis=1) == file["labels"]).astype(int)
    assert np.unique(score).size < 0.9 * score.size
    calibrator = HistogramBinning(boundary=boundary).fit(score, outcome)
    assert (np.diff(calibrator.edges_) > 0).all()
    n_left_out = calibrator.edges_.size - 1 if boundary == "exclude" else 0
    assert calibrator.counts_.sum() == pytest.approx(score.size - n_left_out)
    assert ((calibrator.values_ >= 0) & (calibrator.values_ <= 1)).all()


# Weights.


def test_weight_two_is_the_row_twice_where_boundary_points_count(rng):
    score, outcome = _sample(rng, 200)
    weight = rng.integers(0, 4, size=200)
    weighted = HistogramBinning(n_bins=7, boundary="include").fit(
        score, outcome, sample_weight=weight
    )
    repeated = HistogramBinning(n_bins=7, boundary="include").fit(
        np.repeat(score, weight), np.repeat(outcome, weight)
    )
    np.testing.assert_array_equal(weighted.edges_, repeated.edges_)
    np.testing.assert_array_equal(weighted.counts_, repeated.counts_)
    np.testing.assert_allclose(weighted.values_, repeated.values_, rtol=1e-12)


@pytest.mark.parametrize("boundary", ["exclude", "include"])
def test_weight_zero_is_no_row(rng, boundary):
    score, outcome = _sample(rng, 200)
    present = rng.uniform(size=200) < 0.7
    weighted = HistogramBinning(n_bins=7, boundary=boundary).fit(
        score, outcome, sample_weight=present.astype(float)
    )
    absent = HistogramBinning(n_bins=7, boundary=boundary).fit(score[present], outcome[present])
    np.testing.assert_array_equal(weighted.edges_, absent.edges_)
    np.testing.assert_array_equal(weighted.values_, absent.values_)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
def test_weights_that_are_not_whole_are_shared_out_evenly(rng):
    score, outcome = _sample(rng, 5000)
    weight = rng.uniform(size=5000)
    calibrator = HistogramBinning(n_bins=10, boundary="include").fit(
        score, outcome, sample_weight=weight
    )
    np.testing.assert_allclose(calibrator.counts_, weight.sum() / 10, atol=weight.max())
    place = np.searchsorted(calibrator.edges_[:-1], score)
    expected = [np.average(outcome[place == b], weights=weight[place == b]) for b in range(10)]
    np.testing.assert_allclose(calibrator.values_, expected, rtol=1e-12)


def test_excluding_a_weighted_edge_removes_its_row_whole():
    calibrator = HistogramBinning(n_bins=2).fit(
        [0.1, 0.2, 0.3, 0.8], [0, 1, 1, 0], sample_weight=[1, 3, 2, 2]
    )
    assert calibrator.edges_.tolist() == [0.2, 0.8]
    assert calibrator.counts_.tolist() == [1, 4]
    assert calibrator.values_.tolist() == [0.0, 0.5]


@pytest.mark.parametrize("boundary", ["exclude", "include"])
def test_the_order_of_rows_does_not_matter(rng, boundary):
    score = rng.integers(0, 30, size=300) / 30
    outcome = (rng.uniform(size=300) < score).astype(int)
    order = rng.permutation(300)
    first = HistogramBinning(n_bins=6, boundary=boundary).fit(score, outcome)
    second = HistogramBinning(n_bins=6, boundary=boundary).fit(score[order], outcome[order])
    np.testing.assert_allclose(first.values_, second.values_, rtol=1e-14)


# Equal width.


@given(st.integers(1, 300), st.lists(st.floats(0, 1), max_size=20))
def test_bins_of_equal_width_are_those_of_the_metrics(n_bins, more):
    scores = np.concatenate([np.arange(n_bins + 1) / n_bins, more])
    near = np.clip(np.concatenate([scores, np.nextafter(scores, 0), np.nextafter(scores, 1)]), 0, 1)
    calibrator = HistogramBinning(n_bins=n_bins, strategy="uniform").fit([0.5], [1])
    np.testing.assert_array_equal(
        calibrator.bins_.assign(near, 0), UniformBins(n_bins).assign(near)
    )


def test_equal_width_leaves_no_row_out(rng):
    score, outcome = _sample(rng, 500)
    assert (
        HistogramBinning(n_bins=5, strategy="uniform", boundary="exclude")
        .fit(score, outcome)
        .counts_.sum()
        == 500
    )


# Use with others, and the boundary.


def test_forecasts_are_evaluated_on_the_bins_of_a_fitted_calibrator(rng):
    score, outcome = _sample(rng)
    calibrator = HistogramBinning(n_bins=9, boundary="include", delta=0.0).fit(score, outcome)
    groups = np.array_split(np.argsort(score), 9)
    gaps = [abs(outcome[rows].mean() - score[rows].mean()) * len(rows) / 1000 for rows in groups]
    assert expected_calibration_error(
        outcome, score, notion="class-1", bins=calibrator
    ) == pytest.approx(sum(gaps))


def test_recalibrated_scores_are_calibrated_on_the_data_of_the_fit(rng):
    score, outcome = _sample(rng)
    calibrated = HistogramBinning(boundary="include").fit(score, outcome).predict_proba(score)
    error = expected_calibration_error(outcome, calibrated, notion="class-1", strategy="unique")
    assert error < 1e-9  # delta moves values by up to 1e-10


def test_logits_are_binned_like_their_probabilities(rng):
    score, outcome = _sample(rng)
    odds = np.log(score / (1 - score))
    from_odds = HistogramBinning(inputs="logits").fit(odds, outcome)
    np.testing.assert_allclose(
        from_odds.values_, HistogramBinning().fit(score, outcome).values_, rtol=1e-12
    )


def test_float32_in_float32_out(rng):
    score, outcome = _sample(rng)
    calibrator = HistogramBinning().fit(score.astype(np.float32), outcome)
    assert calibrator.predict_proba(score.astype(np.float32)).dtype == np.float32


def test_fit_changes_no_parameter_and_refits_alike(rng):
    score, outcome = _sample(rng)
    calibrator = HistogramBinning(points_per_bin=30, random_state=5)
    before = calibrator.get_params()
    first = calibrator.fit(score, outcome).values_
    assert calibrator.get_params() == before
    np.testing.assert_array_equal(calibrator.fit(score, outcome).values_, first)
    np.testing.assert_array_equal(clone(calibrator).fit(score, outcome).values_, first)


def test_more_than_two_classes_raise_with_the_line_that_helps():
    with pytest.raises(ValueError, match=r"MulticlassToBinary\(HistogramBinning\(\)"):
        HistogramBinning().fit([[0.2, 0.3, 0.5]], [0])


def test_prediction_before_the_fit_raises():
    with pytest.raises(NotFittedError):
        HistogramBinning().predict_proba([0.5])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bins": 0}, "n_bins must be an integer"),
        ({"points_per_bin": 2.5}, "points_per_bin must be an integer"),
        ({"points_per_bin": [50, 60]}, "For one number per class, use MulticlassToBinary"),
        ({"strategy": "kmeans"}, "strategy must be one of"),
        ({"boundary": "open"}, "boundary must be one of"),
        ({"delta": -1.0}, r"delta must be at least 0 and below 1"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        HistogramBinning(**parameters).fit([0.2, 0.8], [0, 1])


@pytest.mark.parametrize("boundary", ["exclude", "include"])
@pytest.mark.parametrize("decimals", [1, 2, 12])
@pytest.mark.parametrize("n_bins", [1, 7, 300])
def test_slices_of_ordered_rows_are_the_bins_of_distinct_scores(boundary, decimals, n_bins, rng):
    score, outcome = np.round(rng.random(300), decimals), rng.random(300) < 0.3
    made = HistogramBinning(n_bins=n_bins, boundary=boundary).fit(score, outcome)
    same = HistogramBinning(n_bins=n_bins, boundary=boundary)
    sums = distinct_sums(score, outcome.astype(float), np.ones(300))
    same._fit_distinct(*sums, sums[1])
    for name in ("edges_", "counts_", "hits_", "values_", "n_tied_edges_"):
        np.testing.assert_array_equal(getattr(made, name), getattr(same, name))


@pytest.mark.parametrize("n_bins", [1, 7, None])
def test_rows_counted_into_even_bins_are_those_of_the_distinct_scores(n_bins, rng):
    score = np.round(rng.uniform(size=700), 2)
    outcome = (rng.uniform(size=700) < score).astype(int)
    counted, summed = (
        HistogramBinning(n_bins, strategy="uniform").fit(score, outcome, sample_weight=weight)
        for weight in (None, np.append(np.ones(700 - 1), 2.0))
    )
    last = place_scores(score[-1:], counted.edges_)
    summed.counts_[last] -= 1  # of the row that counts twice
    summed.hits_[last] -= outcome[-1]
    np.testing.assert_array_equal(counted.edges_, summed.edges_)
    np.testing.assert_array_equal(counted.counts_, summed.counts_)
    np.testing.assert_array_equal(counted.hits_, summed.hits_)
